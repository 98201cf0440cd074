"""Rewrites of what is compiled anew from call to call."""
