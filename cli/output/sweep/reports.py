"""What a sweep ends with, beside its results: a page, and a Parquet file where that can be made."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graphmend.cli.output.sweep import html, parquet
from graphmend.workspace import files

#: endings of what is written; a file of results has another one
SUFFIXES = (".html", ".parquet")


def write(results: Path, lines: Sequence[Mapping[str, Any]]) -> list[Path]:
    """Writes the reports, each whole or not at all; returns where. Raises `FileProblem`."""
    text = io.StringIO()
    html.write(lines, text)
    written = [_beside(results, ".html")]
    files.replace(written[0], text.getvalue().encode("utf-8", "replace"))
    if parquet.is_there():
        written.append(_beside(results, ".parquet"))
        files.replace(written[1], parquet.data(lines))
    return written


def _beside(results: Path, suffix: str) -> Path:
    """A name that no other file of results leads to, and that is not that of the results."""
    return results.with_name(results.name + suffix)
