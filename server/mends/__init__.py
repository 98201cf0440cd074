"""Mends as code actions and edits."""
