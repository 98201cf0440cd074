"""Rewrites of code that chooses between modules."""
