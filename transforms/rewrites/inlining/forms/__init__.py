"""Calls whose bodies may stand in their places, and the names that these get there."""
