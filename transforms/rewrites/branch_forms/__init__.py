"""Rewrites that give branches and loops the form that other mends are about."""
