"""Runs of a target, and how they compare."""
