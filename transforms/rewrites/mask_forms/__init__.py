"""Rewrites that give what a mask picks the form that other mends are about."""
