"""The classes and functions at the top level of a text, found without parsing it: lenses are asked for at every
keystroke, and most texts do not parse while one types. Knows no protocol.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_TOP = re.compile(r"^(?:@|(?P<kind>class|def|async def)[ \t]+(?P<name>\w+)|[^\s#)\]}])", re.MULTILINE)
_METHOD = re.compile(r"^[ \t]+(?:async )?def (?P<name>\w+)", re.MULTILINE)


class Definition(NamedTuple):
    """A top-level definition between two offsets; `at` is its name's line, behind any decorators."""

    name: str
    is_class: bool
    begin: int
    at: int
    end: int
    methods: frozenset[str]


def definitions(text: str) -> list[Definition]:
    """The definitions in order. Text that is not at the left edge belongs to the one before it."""
    found: list[Definition] = []
    tops = list(_TOP.finditer(text))
    begin: int | None = None
    for i, top in enumerate(tops):
        if begin is None:
            begin = top.start()
        if top[0] == "@":
            continue
        if top["name"]:
            end = tops[i + 1].start() if i + 1 < len(tops) else len(text)
            is_class = top["kind"] == "class"
            methods = (
                frozenset(m["name"] for m in _METHOD.finditer(text, top.start(), end)) if is_class else frozenset()
            )
            found.append(Definition(top["name"], is_class, begin, top.start(), end, methods))
        begin = None
    return found


def at(text: str, offset: int) -> Definition | None:
    """The definition around an offset."""
    return next((d for d in definitions(text) if d.begin <= offset < d.end or offset == d.end == len(text)), None)
