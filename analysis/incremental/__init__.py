"""Incremental analysis: the findings of one file, kept up to date through edits."""
