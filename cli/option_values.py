"""Values of options on a command line."""

from __future__ import annotations


def words(text: str) -> list[str]:
    """A list with commas between its words."""
    return [word.strip() for word in text.split(",") if word.strip()]
