"""How a project writes its code: the line length of its formatter, and whether it has one."""

from __future__ import annotations

import configparser
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pathspec import GitIgnoreSpec

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LINE_LENGTH = 88
"""What ruff and black take where nothing is set."""
_FORMATTERS = ("ruff", "black")


@dataclass(frozen=True)
class CodeStyle:
    """What mended text is to look like."""

    line_length: int = LINE_LENGTH
    """Characters."""
    formatted: bool = False
    """Whether ruff or black is configured."""


def code_style(path: Path) -> CodeStyle:
    """The style of a file: of the nearest settings of ruff or black above it, else of `.editorconfig`. Settings that
    cannot be read count as none.
    """
    for folder in path.absolute().parents:
        for name in (".ruff.toml", "ruff.toml"):
            if (folder / name).is_file():
                return CodeStyle(_length(_toml(folder / name)) or LINE_LENGTH, True)
        tools = _table(_toml(folder / "pyproject.toml"), "tool")
        for name in _FORMATTERS:
            if name in tools:
                return CodeStyle(_length(_table(tools, name)) or LINE_LENGTH, True)
    return CodeStyle(_editorconfig(path.absolute()) or LINE_LENGTH)


def _toml(file: Path) -> Mapping[str, Any]:
    try:
        found: dict[str, Any] = tomllib.loads(file.read_text("utf-8-sig"))
    except (OSError, ValueError):
        return {}
    return found


def _table(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = table.get(name)
    return found if isinstance(found, Mapping) else {}


def _length(table: Mapping[str, Any]) -> int | None:
    given = table.get("line-length")
    return given if isinstance(given, int) and not isinstance(given, bool) and 20 <= given <= 1000 else None


def _editorconfig(path: Path) -> int | None:
    """`max_line_length` for a file; https://spec.editorconfig.org. Of the sections that match, the last counts."""
    for folder in path.parents:
        try:
            text = (folder / ".editorconfig").read_text("utf-8-sig")
        except (OSError, ValueError):
            continue
        parser = configparser.RawConfigParser(strict=False, allow_no_value=True, delimiters=("=",))
        try:
            parser.read_string(f"[DEFAULT]\n{text}")
        except configparser.Error:
            continue
        found = None
        for section in parser.sections():
            if _matches(section, path.relative_to(folder).as_posix()):
                found = parser[section].get("max_line_length", found)
        if found is not None:
            return int(found) if found.isdecimal() and 20 <= int(found) <= 1000 else None
        if parser.defaults().get("root", "").lower() == "true":
            return None
    return None


def _matches(pattern: str, name: str) -> bool:
    """Whether a section is about a file; `{a,b}` means either."""
    begin, opened, rest = pattern.partition("{")
    inner, closed, end = rest.partition("}")
    choices = [f"{begin}{choice}{end}" for choice in inner.split(",")] if opened and closed else [pattern]
    return any(GitIgnoreSpec.from_lines([choice]).match_file(name) for choice in choices)
