"""The edit that takes a finding back: a comment on its line, or its code in the comment that is there. No protocol."""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterator
from typing import NamedTuple

from graphmend.analysis.finding import Finding
from graphmend.analysis.syntax.source import LineIndex
from graphmend.analysis.syntax.span import Span

_COMMENT = re.compile(r"#\s*graphmend:\s*ignore(?![\w-])(?:\s*\[(?P<codes>[^\]]*)\])?")


_FILE_COMMENT = re.compile(r"#\s*graphmend:\s*ignore-file(?![\w-])(?:\s*\[(?P<codes>[^\]]*)\])?")
#: the lines in front of everything that mean something to the system, and to Python
_HEAD = re.compile(r"#!|#.*coding[:=]")


class Edit(NamedTuple):
    """Put `text` in place of `span`."""

    span: Span
    text: str


def edit(lines: LineIndex, finding: Finding) -> Edit | None:
    """The comment goes where the finding begins; where no comment can stand there (inside a string that spans lines,
    behind a backslash), to the end of the statement. None where a comment takes the finding back already."""
    number = finding.span.line
    if _is_continued(lines, number):
        number = _statement_end(lines, number)
    text = lines.line(number - 1)
    found = _COMMENT.search(text, _comment_column(lines, number))
    if found is None:
        end = len(text.rstrip())
        return Edit(Span(number, end, number, len(text)), f"  # graphmend: ignore[{finding.code}]")
    codes = found["codes"]
    if codes is None or finding.code in re.split(r"[,\s]+", codes):
        return None
    at = found.end("codes")
    return Edit(Span(number, at, number, at), f", {finding.code}" if codes.strip() else finding.code)


def file_edit(lines: LineIndex, code: str) -> Edit | None:
    """The comment that takes a code back in the whole file: the one that is there with one code more, else one below
    the lines that Python reads in comments. None where one takes it back already.
    """
    for token in _tokens(lines):
        found = _FILE_COMMENT.match(token.string) if token.type == tokenize.COMMENT and not token.start[1] else None
        if found is not None:
            codes = found["codes"]
            if codes is None or code in re.split(r"[,\s]+", codes):
                return None
            line, at = token.start[0], found.end("codes")
            return Edit(Span(line, at, line, at), f", {code}" if codes.strip() else code)
    head = next((n for n in range(min(2, len(lines))) if not _HEAD.match(lines.line(n))), min(2, len(lines)))
    ends = "\r\n" if lines.text[: lines.starts[1] if len(lines) > 1 else 0].endswith("\r\n") else "\n"
    return Edit(Span(head + 1, 0, head + 1, 0), f"# graphmend: ignore-file[{code}]{ends}")


def _is_continued(lines: LineIndex, number: int) -> bool:
    """Whether a line (from 1) ends inside a string or with a backslash."""
    if lines.line(number - 1).endswith("\\"):
        return True
    opened = 0
    for token in _tokens(lines):
        if token.start[0] > number:
            break
        if token.type == tokenize.STRING and token.start[0] <= number < token.end[0]:
            return True
        name = tokenize.tok_name[token.type]
        opened += (name in ("FSTRING_START", "TSTRING_START")) - (
            name in ("FSTRING_END", "TSTRING_END")
        )  # from 3.12 on
    return opened > 0


def _statement_end(lines: LineIndex, number: int) -> int:
    """The last line of the statement that a line belongs to."""
    return next((t.start[0] for t in _tokens(lines) if t.type == tokenize.NEWLINE and t.start[0] >= number), number)


def _comment_column(lines: LineIndex, number: int) -> int:
    """Where the comment of a line begins; its end where it has none."""
    columns = (t.start[1] for t in _tokens(lines) if t.type == tokenize.COMMENT and t.start[0] == number)
    return next(columns, len(lines.line(number - 1)))


def _tokens(lines: LineIndex) -> Iterator[tokenize.TokenInfo]:
    """The tokens, up to where the text stops being Python; its lines are ours, whatever ends them."""
    texts = (lines.line(number) + "\n" for number in range(len(lines)))
    try:
        yield from tokenize.generate_tokens(lambda: next(texts, ""))
    except (tokenize.TokenError, SyntaxError):
        return
