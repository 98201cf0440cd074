"""Findings that a project has agreed to keep."""
