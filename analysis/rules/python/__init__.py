"""GM5: Python and its environment."""
