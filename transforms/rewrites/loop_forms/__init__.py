"""Rewrites that give loops and lists the form that other mends are about."""
