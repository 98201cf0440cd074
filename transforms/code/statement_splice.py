"""Statements cut out, composed and put back through libcst, on the smallest statement list that holds them.

New statements are written flush left. Statements of the file that go on living inside them are named by
`HOLE.format(number)` and spliced in as libcst nodes, so that their comments move along and their multi-line
strings keep every byte. Imported only when an edit is asked for: libcst takes ten times as long as `ast`.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import libcst as cst

from graphmend.analysis.syntax.span import Span
from graphmend.transforms.code.positions import begins_line, first_position, is_elif
from graphmend.transforms.fix import TextEdit, Unmendable

if TYPE_CHECKING:
    from graphmend.analysis.syntax.source import Source

_HOLE = re.compile(r"__statements_(\d+)__")


class Place:
    """A run of statements in a text: where it is, and how code looks there."""

    def __init__(self, source: Source, first: ast.stmt, last: ast.stmt) -> None:
        self.source = source
        line, column = first_position(source, first)
        end = source.span(last)
        header = source.lines.line(line - 1)
        self.newline = "\r\n" if "\r\n" in source.text else "\n"
        self.unit = _indent_unit(source)
        self.indent = header[: len(header) - len(header.lstrip("\ufeff \t\f"))].strip("\ufeff\f")
        self.lead = ""  # what the new statements need in front of them
        if is_elif(source, first):
            self.lead = f"else:{self.newline}{self.indent}{self.unit}"
        elif header[:column].strip("\ufeff \t\f"):  # behind the colon of a compound statement
            column = len(header[:column].rstrip())
            self.lead = f"{self.newline}{self.indent}{self.unit}"
        self.tail = ""  # comments that the new statements get behind them
        self.span = Span(line, column, end.end_line, end.end_column)
        self.code_end = end.end_line, end.end_column

    def replacement(self, new: str, kept: Sequence[Sequence[ast.stmt]]) -> TextEdit:
        """The edit that puts `new` here."""
        body = _fill(new, [self.parse(statements) for statements in kept], self)
        self._take_tail()
        return TextEdit(self.span, self.with_comments(self.generate(body)))

    def insertion(self, new: str) -> TextEdit:
        """The edit that puts `new` in front of what is here."""
        start = Span(self.span.line, self.span.column, self.span.line, self.span.column)
        return TextEdit(start, f"{self.generate(_fill(new, [], self))}{self.newline}{self.indent}")

    def addition(self, new: str) -> TextEdit:
        """The edit that puts `new` on the lines behind what is here."""
        end, column = self.span.end_line, len(self.source.lines.line(self.span.end_line - 1).rstrip("\r\n"))
        text = f"{self.newline}{self.indent}{self.generate(_fill(new, [], self))}"
        return TextEdit(Span(end, column, end, column), text)

    @property
    def depth(self) -> str:
        return self.indent + (self.unit if self.lead else "")

    def parse(self, statements: Sequence[ast.stmt]) -> list[cst.BaseStatement]:
        """Existing statements as libcst nodes, with the comments above and behind them."""
        source = self.source
        line, column = first_position(source, statements[0])
        end = statements[-1].end_lineno or statements[-1].lineno
        lines = source.lines
        stop = source.span(statements[-1]).end_column
        if (end, stop) != (self.span.end_line, self.span.end_column):  # else the comment behind it stays where it is
            stop = len(lines.line(end - 1))
        if not begins_line(source, statements[0]):
            return list(
                cst.parse_module(source.text[lines.offset(line - 1, column) : lines.offset(end - 1, stop)]).body
            )
        while line > 1 and lines.line(line - 2).lstrip().startswith("#"):
            line -= 1
        text = source.text[lines.offset(line - 1, 0) : lines.offset(end - 1, stop)]
        if is_elif(source, statements[0]):
            at = text.index("elif")
            text = f"{text[:at]}if{text[at + 4 :]}"
        if not lines.line(first_position(source, statements[0])[0] - 1)[:1].isspace():
            return list(cst.parse_module(text).body)
        block = cst.ensure_type(cst.parse_module(f"if 1:{self.newline}{text}{self.newline}").body[0], cst.If).body
        return [s for s in block.body if isinstance(s, cst.BaseStatement)]

    def generate(self, body: Sequence[cst.BaseStatement]) -> str:
        """Statements as text at this place: no indentation in front of the first, no line end behind the last."""
        block = cst.IndentedBlock(body=list(body), indent=self.depth or None)
        module = cst.Module([], default_indent=self.unit, default_newline=self.newline)
        if not self.depth:
            return module.with_changes(body=list(body)).code.rstrip("\r\n")
        text = module.code_for_node(cst.If(test=cst.Name("x"), body=block))
        return text[len(f"if x:{self.newline}{self.depth}") :].rstrip("\r\n")

    def with_comments(self, text: str) -> str:
        """`text` with the comments that it would lose on lines above it, and those that end the block behind it."""
        wrapped = f"if 1:\n{self.depth}{text}" if self.depth else text
        kept = Counter(comment for _, comment in comments(wrapped))
        lost = []
        for place, comment in comments(self.source.text):
            if (self.span.line, self.span.column) <= place < self.code_end:
                kept[comment] -= 1
                lost += [comment] if kept[comment] < 0 else []
        above = "".join(f"{c}{self.newline}{self.depth}" for c in lost)
        return f"{self.lead}{above}{text}{self.tail}"

    def _take_tail(self) -> None:
        """Takes in comments on lines of their own behind the last statement that belong to its block: they are
        indented more than what replaces it.
        """
        lines, end = self.source.lines, self.span.end_line
        column = len(self.indent) + (len(self.unit) if self.lead else 0)
        last = end
        while last < len(lines) and lines.line(last).lstrip(" \t")[:1] == "#":
            line = lines.line(last)
            if len(line) - len(line.lstrip(" \t")) <= column:
                break
            last += 1
        if last > end:
            rest = lines.line(end - 1)[self.span.end_column :]
            own = [f"{self.depth}{lines.line(number).strip()}" for number in range(end, last)]
            self.tail = self.newline.join([rest.rstrip(), *own])
            self.span = self.span._replace(end_line=last, end_column=len(lines.line(last - 1).rstrip()))


def _fill(new: str, holes: Sequence[Sequence[cst.BaseStatement]], place: Place) -> list[cst.BaseStatement]:
    """The statements of `new` with its holes filled."""

    class Filler(cst.CSTTransformer):
        def leave_SimpleStatementLine(
            self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
        ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
            match original_node.body:
                case [cst.Expr(value=cst.Name(value=name))] if hole := _HOLE.fullmatch(name):
                    return cst.FlattenSentinel(holes[int(hole[1])])
            return updated_node

    config = cst.PartialParserConfig(default_indent=place.unit, default_newline=place.newline)
    try:
        module = cst.parse_module(new.replace("\r\n", "\n").replace("\n", place.newline), config)
    except cst.ParserSyntaxError as error:
        raise Unmendable(f"the new code would not parse: {error.message}") from error
    filled = module.visit(Filler())
    return list(filled.body)


@lru_cache(maxsize=16)
def comments(text: str) -> tuple[tuple[tuple[int, int], str], ...]:
    """The comments in code that parses, with their lines and columns, in order."""
    found: list[tuple[tuple[int, int], str]] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text.removeprefix("\ufeff")).readline):
            if token.type == tokenize.COMMENT:
                found.append((token.start, token.string))
    except (tokenize.TokenError, IndentationError, SyntaxError) as error:
        raise Unmendable("the comments of the code cannot be told apart") from error
    return tuple(found)


def _indent_unit(source: Source) -> str:
    """One step of indentation as the file has it."""
    found = re.search(r"^(?!\s*#)[^\n]*:[ \t]*(?:#[^\n]*)?\r?\n([ \t]+)\S", source.text, re.MULTILINE)
    if found is None:
        return "    "
    line = source.text[found.start() : found.end()].lstrip("\r\n")
    outer = line[: len(line) - len(line.lstrip(" \t"))]
    return found[1][len(outer) :] or "    "
