"""Recognises syntax of a newer Python than the one that runs GraphMend, as opposed to wrong syntax.

A text is parsed by the running Python's own parser. Where that fails, the line that it fails at is compared with what
later versions added (https://docs.python.org/3/whatsnew/).
"""

from __future__ import annotations

import re
import sys
from typing import NamedTuple


class SyntaxFeature(NamedTuple):
    """A syntax feature and the version that introduced it."""

    version: tuple[int, int]
    name: str
    line: re.Pattern[str]
    """Matches lines with the feature, and no line that is merely incomplete."""


#: quotes within the braces of a string that the same quotes surround, and a backslash there
_QUOTES = r"""[fF](?P<q>["'])(?:(?!(?P=q)).)*\{(?:(?!(?P=q))[^{}])*(?P=q)[^"']*(?P=q)[^{}]*\}[^"']*(?P=q)"""
_BACKSLASH = r"""[fF](?P<r>["'])(?:(?!(?P=r)).)*\{[^{}"']*(?:'[^{}'"]*\\[^{}'"]*'|"[^{}'"]*\\[^{}'"]*")[^{}]*\}"""
_BRACKETED = r"\[(?:[^\[\]]|\[[^\[\]]*\])*?"
#: of those that one line may have, the newest stands first
_FORMS = (
    SyntaxFeature(
        (3, 13),
        "a default of a type parameter",
        re.compile(rf"\s*(?:async\s+def|def|class|type)\s+\w+\s*{_BRACKETED}[^=!<>:]=[^=]"),
    ),
    SyntaxFeature((3, 11), "except*", re.compile(r"\s*except\s*\*")),
    SyntaxFeature((3, 11), "a starred index", re.compile(r".*[\w\])]\[(?:[^\[\]]*,\s*)?\*[\w.]+[^\[\]]*\]")),
    SyntaxFeature(
        (3, 11), "a starred annotation", re.compile(r"\s*(?:(?:async\s+)?def\b.*)?\*\w+\s*:\s*\*[\w.]+\s*[,)\[]")
    ),
    SyntaxFeature((3, 12), "a type statement", re.compile(r"\s*type\s+\w+\s*(\[.*\])?\s*=")),
    SyntaxFeature((3, 12), "type parameters", re.compile(r"\s*(async\s+def|def|class)\s+\w+\s*\[")),
    SyntaxFeature((3, 12), "a nested f-string", re.compile(rf".*?(?:{_QUOTES}|{_BACKSLASH})")),
    SyntaxFeature((3, 14), "a template string", re.compile(r".*(?<!\w)[rR]?[tT][rR]?['\"]")),
    SyntaxFeature((3, 14), "except without parentheses", re.compile(r"\s*except\s+[\w.]+\s*,")),
)


def newer_syntax(line: str, running: tuple[int, int] = sys.version_info[:2]) -> str | None:
    """The message for a line that Python `running` can't parse and a later version can; None otherwise."""
    for form in _FORMS:
        if running < form.version and form.line.match(line):
            needed, here = (".".join(map(str, version)) for version in (form.version, running))
            return f"{form.name}: syntax of Python {needed}, but graphmend runs on {here}; the file is not checked"
    return None
