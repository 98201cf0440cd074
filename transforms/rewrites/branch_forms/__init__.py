"""Rewrites that give branches the form that other mends are about."""
