"""Rewrites of data-dependent shapes."""
