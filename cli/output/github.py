"""`--output-format github`: workflow commands, which GitHub shows as annotations.

https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from graphmend.cli.paths import posix

if TYPE_CHECKING:
    from graphmend.cli.checking.file_report import CheckRun

_LEVELS = {"error": "error", "warning": "warning", "information": "notice", "hint": "notice"}


def write(run: CheckRun, out: TextIO) -> None:
    for item in run.items:
        finding, span = item.finding, item.finding.span
        properties = {
            "title": f"graphmend ({finding.code})",
            "file": posix(finding.path),
            "line": str(span.line),
            "col": str(span.column + 1),
            "endLine": str(span.end_line),
        }
        if span.end_line == span.line:  # GitHub knows columns on one line only
            properties["endColumn"] = str(span.end_column + 1)
        where = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
        out.write(f"::{_LEVELS[item.severity]} {where}::{_data(f'{finding.code} {finding.message}')}\n")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
