"""Text of others on a terminal: control characters are shown, not obeyed."""

from __future__ import annotations

import re

#: C0 but tabulator and line feed, delete, C1, and what turns the direction of writing
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    r"""The text with control characters as Python writes them (`\x1b`); line feeds and tabulators stay."""
    return _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text)
