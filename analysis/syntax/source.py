"""A file's text: its lines, positions in every encoding that editors use, its syntax tree or why it has none.

Lines end at LF, CRLF or CR, as Python's tokenizer and the Language Server Protocol both say; form feed and U+2028 do
not end a line. Columns inside GraphMend are code points; `ast` counts UTF-8 bytes and editors mostly UTF-16 units, so
both are converted here and nowhere else.
"""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate
from typing import Literal, NamedTuple

from graphmend.analysis.syntax.newer_syntax import newer_syntax
from graphmend.analysis.syntax.span import Span

Encoding = Literal["utf-8", "utf-16", "utf-32"]

_LINE_END = re.compile(r"\r\n|\r|\n")
_BOM = "\ufeff"


class Problem(NamedTuple):
    """Why a text has no syntax tree. `line` counts from 1, `column` from 0."""

    message: str
    line: int
    column: int
    newer: bool = False
    """Whether a later Python than the one that runs here would take the text."""


def _units(text: str, encoding: Encoding) -> int:
    """Length of `text` in the code units of `encoding`."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    if encoding == "utf-16":
        return len(text) + sum(c > "\uffff" for c in text)
    return len(text.encode("utf-8", "surrogatepass"))


class LineIndex:
    """Where the lines of a text begin. Lines count from 0 here, as offsets do."""

    def __init__(self, text: str) -> None:
        self.text = text
        if "\r" in text:
            self.starts = [0, *(m.end() for m in _LINE_END.finditer(text))]
        else:
            lengths = map(len, text.split("\n"))
            self.starts = list(accumulate(lengths, lambda start, length: start + length + 1, initial=0))[:-1]

    def __len__(self) -> int:
        return len(self.starts)

    def line(self, number: int) -> str:
        """The line without its end; "" past the last one."""
        if not 0 <= number < len(self.starts):
            return ""
        end = self.starts[number + 1] if number + 1 < len(self.starts) else len(self.text)
        return self.text[self.starts[number] : end].rstrip("\r\n")

    def offset(self, line: int, column: int) -> int:
        """Offset in the text of a code-point column; past the end of a line means its end, past the last line the
        text's end."""
        if line < 0:
            return 0
        if line >= len(self.starts):
            return len(self.text)
        return self.starts[line] + min(max(column, 0), len(self.line(line)))

    def position(self, offset: int) -> tuple[int, int]:
        """(line, code-point column) of an offset."""
        offset = min(max(offset, 0), len(self.text))
        line = bisect_right(self.starts, offset) - 1
        return line, offset - self.starts[line]

    def to_units(self, line: int, column: int, encoding: Encoding) -> int:
        """A code-point column as a column in `encoding`."""
        return _units(self.line(line)[:column], encoding)

    def from_units(self, line: int, units: int, encoding: Encoding) -> int:
        """A column in `encoding` as code points. Past the line's end means its end; inside a character, before it."""
        text = self.line(line)
        if encoding == "utf-32" or text.isascii():
            return min(max(units, 0), len(text))
        seen = 0
        for column, char in enumerate(text):
            seen += _units(char, encoding)
            if seen > units:
                return column
        return len(text)


class Source:
    """One version of one file's text."""

    def __init__(self, text: str, path: str = "<text>") -> None:
        self.text = text
        self.path = path
        self.problem: Problem | None = None

    @cached_property
    def lines(self) -> LineIndex:
        return LineIndex(self.text)

    @cached_property
    def tree(self) -> ast.Module | None:
        """The syntax tree; None, with `problem` set, for a text that does not parse."""
        text = self.text.removeprefix(_BOM)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # SyntaxWarning: an invalid escape is not our business
                return ast.parse(text)
        except SyntaxError as error:
            self.problem = self._problem(error)
        except (ValueError, UnicodeError) as error:  # null bytes (3.10 to 3.11.3), lone surrogates
            self.problem = Problem(str(error), 1, 0)
        except (RecursionError, MemoryError):  # CPython's parser gives up on deep nesting with either
            self.problem = Problem("nested too deeply to parse", 1, 0)
        return None

    def _problem(self, error: SyntaxError) -> Problem:
        line, column = error.lineno or 1, max((error.offset or 1) - 1, 0)
        newer = newer_syntax(self.lines.line(line - 1))
        return Problem(newer or error.msg, line, column, newer is not None)

    def is_same(self, other: Source) -> bool:
        """Whether both are the same version of one file."""
        return self.path == other.path and self.text == other.text

    def release_trees(self) -> None:
        """Release all but the text until it is needed: a syntax tree takes twenty times the memory of its text."""
        for name in ("tree", "lines"):
            self.__dict__.pop(name, None)

    def column(self, line: int, utf8: int) -> int:
        """`ast`'s UTF-8 byte column on a line (from 1) as code points."""
        bom = line == 1 and self.text.startswith(_BOM)
        text = self.lines.line(line - 1)
        if text.isascii():
            return utf8
        return self.lines.from_units(line - 1, utf8 + 3 * bom, "utf-8")

    def span(
        self, node: ast.expr | ast.stmt | ast.excepthandler | ast.arg | ast.keyword | ast.alias | ast.pattern
    ) -> Span:
        """The range of a node."""
        end_line, end = node.end_lineno or node.lineno, node.end_col_offset
        return Span(
            node.lineno,
            self.column(node.lineno, node.col_offset),
            end_line,
            self.column(end_line, node.col_offset if end is None else end),
        )

    def segment(self, span: Span) -> str:
        """The text of a range."""
        return self.text[
            self.lines.offset(span.line - 1, span.column) : self.lines.offset(span.end_line - 1, span.end_column)
        ]
