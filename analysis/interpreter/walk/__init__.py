"""The walk through statements, and what they bind."""
