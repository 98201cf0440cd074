"""Definitions of modules, as parsed and before any evaluation; the values that stand for them; the project."""
