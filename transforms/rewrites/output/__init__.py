"""Rewrites of output and other side effects."""
