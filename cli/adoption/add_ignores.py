"""`--add-ignores REASON`: takes every finding back by a comment, so that a project can adopt the check today."""

from __future__ import annotations

import io
import tokenize
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from graphmend.analysis.finding import Finding
from graphmend.analysis.findings.suppressions import Suppression, suppressions
from graphmend.analysis.syntax.source import LineIndex, Source
from graphmend.workspace import files


def add_ignores(path: Path, findings: Iterable[Finding], reason: str) -> tuple[int, list[str]]:
    """(findings that are taken back now, problems), after the file was rewritten."""
    try:
        text = files.read(path)
        after, number = with_ignores(text.text, findings, reason)
        if number:
            files.replace(path, text.encode(after), expected=text.data)
        return number, []
    except files.FileProblem as problem:
        return 0, [f"{path}: {problem}"]


def with_ignores(text: str, findings: Iterable[Finding], reason: str) -> tuple[str, int]:
    """A text with a comment for every finding, and how many findings they take back."""
    lines = LineIndex(text)
    ends = _statement_ends(lines)
    by_line: dict[int, list[str]] = defaultdict(list)
    number = 0
    for finding in findings:
        line = ends.get(finding.span.line)
        if line is not None:
            number += 1
            by_line[line].append(finding.code)
    existing = {comment.span.line: comment for comment in suppressions(Source(text)) if comment.lines is not None}
    for line in sorted(by_line, reverse=True):
        old = lines.line(line - 1)
        start = lines.offset(line - 1, 0)
        new = _with_comment(old, by_line[line], existing.get(line), reason)
        text = text[:start] + new + text[start + len(old) :]
    return text, number


def _with_comment(line: str, codes: list[str], existing: Suppression | None, reason: str) -> str:
    known = existing.codes if existing is not None else ()
    named = ", ".join(sorted({*known, *codes}))
    if existing is None:
        said = f" {reason}" if reason else ""
        return f"{line.rstrip()}  # graphmend: ignore[{named}]{said}"
    kept = existing.reason or reason
    comment = f"# graphmend: ignore[{named}] {kept}".rstrip()
    return line[: existing.span.column] + comment + line[existing.span.end_column :]


def _statement_ends(lines: LineIndex) -> dict[int, int]:
    """For each line of a statement, or of a compound one's header, its last line: only there is room for a comment."""
    ends: dict[int, int] = {}
    text = "".join(lines.line(number) + "\n" for number in range(len(lines)))
    first: int | None = None
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NEWLINE:
                last = token.start[0]
                ends.update(dict.fromkeys(range(first or last, last + 1), last))
                first = None
            elif first is None and token.type not in (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT):
                first = token.start[0]
    except (tokenize.TokenError, SyntaxError):
        pass  # what comes behind is not Python, and has no findings
    return ends
