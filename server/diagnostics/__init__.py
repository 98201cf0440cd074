"""Findings as diagnostics, pushed and pulled."""
