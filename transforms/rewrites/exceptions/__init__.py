"""Rewrites that ask before an operation what it would raise for, instead of handling the exception."""
