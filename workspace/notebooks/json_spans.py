"""Where the values of a JSON text stand in it, so that one of them can be replaced and every other byte stays.

The text has been read as JSON before: nothing is checked here.
"""

from __future__ import annotations

import json
import re

_BLANK = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_PART = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')
_ATOM = re.compile(r"[^,\]}\s]+")

Span = tuple[int, int]


def start_of(text: str, at: int = 0) -> int:
    """Where the next value begins."""
    found = _BLANK.match(text, at)
    return found.end() if found is not None else at


def members(text: str, at: int) -> dict[str, Span]:
    """The values of the object that begins at an offset, by key; of a key that is there twice, the last."""
    found: dict[str, Span] = {}
    at = start_of(text, at + 1)
    while text[at] != "}":
        key = _end(text, at)
        value = start_of(text, start_of(text, key) + 1)
        end = _end(text, value)
        found[json.loads(text[at:key])] = value, end
        at = _next(text, end)
    return found


def elements(text: str, at: int) -> list[Span]:
    """The elements of the array that begins at an offset."""
    found: list[Span] = []
    at = start_of(text, at + 1)
    while text[at] != "]":
        end = _end(text, at)
        found.append((at, end))
        at = _next(text, end)
    return found


def _next(text: str, end: int) -> int:
    """Where the next member or element begins, or the bracket that closes all."""
    at = start_of(text, end)
    return start_of(text, at + 1) if text[at] == "," else at


def _end(text: str, at: int) -> int:
    """Where the value that begins at an offset ends."""
    if text[at] == '"':
        string = _STRING.match(text, at)
        assert string is not None
        return string.end()
    if text[at] not in "[{":
        atom = _ATOM.match(text, at)
        assert atom is not None
        return atom.end()
    depth = 0
    for part in _PART.finditer(text, at):
        depth += (part[0] in "[{") - (part[0] in "]}")
        if not depth:
            return part.end()
    raise ValueError("a value does not end")


def string_list(lines: list[str], model: str, *, ascii_only: bool) -> str:
    """Strings as a JSON array that is laid out as `model`, the text of another one."""
    spans = elements(model, 0)
    first = model[1 : spans[0][0]] if spans else ""
    last = model[spans[-1][1] : -1] if spans else ""
    between = model[spans[0][1] : spans[1][0]] if len(spans) > 1 else f",{first or ' '}"
    return f"[{first}{between.join(json.dumps(line, ensure_ascii=ascii_only) for line in lines)}{last}]"
