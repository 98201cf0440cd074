"""Changes to the text of a file: replacing statements, applying edits, and the checks around both. Imports
libcst only when asked for an edit.
"""

from __future__ import annotations

import ast
import difflib
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.source import LineIndex
from graphmend.analysis.syntax.span import Span
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import is_atom
from graphmend.transforms.code.positions import first_position
from graphmend.transforms.fix import TextEdit, Unmendable

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.syntax.source import Source

_IMPORT = re.compile(r"\s*(import|from)\s")
_BINDING = re.compile(r"^\s*(?:for )?([^\W\d]\w*(?:, [^\W\d]\w*)*) (?:=|in) ", re.MULTILINE)

#: what stands in front of an expression in parentheses, with them: no call, and no definition
_OPENS = re.compile(r"(?:[=+*/%|&^<>,(\[{:-]|\b(?:return|in|and|or|not|if|else)\s)\s*\($")

#: stands in new code for a list of statements that already exist
HOLE = "__statements_{}__"


def replace_statements(source: Source, old: Sequence[ast.stmt], new: str, *kept: Sequence[ast.stmt]) -> TextEdit:
    """Put `new`, written flush left, in the place of consecutive statements; `kept[i]` fills the hole number i."""
    from graphmend.transforms.code.statement_splice import Place

    return Place(source, old[0], old[-1]).replacement(new, kept)


def insert_before(source: Source, statement: ast.stmt, new: str) -> TextEdit:
    """Put `new`, written flush left, in front of a statement that begins its own line."""
    from graphmend.transforms.code.statement_splice import Place

    return Place(source, statement, statement).insertion(new)


def insert_after(source: Source, statement: ast.stmt, new: str) -> TextEdit:
    """Put `new`, written flush left, on the lines behind a statement that begins its own line."""
    from graphmend.transforms.code.statement_splice import Place

    return Place(source, statement, statement).addition(new)


def replace_expression(source: Source, node: ast.expr, text: str) -> TextEdit:
    """Put `text` in the place of an expression, and of parentheses around it that it does without."""
    span = source.span(node)
    if span.line != span.end_line or not is_atom(text):
        return TextEdit(span, text)
    line = source.lines.line(span.line - 1)
    before, after = line[: span.column], line[span.end_column :]
    if after.startswith(")") and not after[1:2].isidentifier() and _OPENS.search(before):
        span = span._replace(column=span.column - 1, end_column=span.end_column + 1)
    return TextEdit(span, text)


def apply(text: str, edits: Iterable[TextEdit], source: Source) -> str:
    """`text` of `source` after edits that do not overlap."""
    offset = source.lines.offset
    for edit in sorted(edits, key=lambda e: e.span, reverse=True):
        start, end = offset(edit.span.line - 1, edit.span.column), offset(edit.span.end_line - 1, edit.span.end_column)
        text = text[:start] + edit.text + text[end:]
    return text


def line_edits(old: str, new: str) -> Iterator[TextEdit]:
    """What turns one text into another: the runs of lines that differ."""
    before, after = lines_of(old), lines_of(new)
    head = next(
        (n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
    )
    matcher = difflib.SequenceMatcher(None, before[head:], after[head:], autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind != "equal":
            begin, end = (_place(before, head + at) for at in (a, b))
            yield TextEdit(Span(*begin, *end), "".join(after[head + c : head + d]))


def alike(one: Sequence[str], other: Sequence[str]) -> int:
    """How many items two lists begin with alike."""
    pairs = zip(one, other, strict=False)
    return next((number for number, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _place(lines: Sequence[str], number: int) -> tuple[int, int]:
    """The beginning of a line; behind the last one, the end of the text."""
    return (number + 1, 0) if number < len(lines) else (len(lines), len(lines[-1]))


def lines_of(text: str) -> list[str]:
    """The lines with their ends, as positions count them (`splitlines` also ends lines at form feeds and U+2028)."""
    starts = LineIndex(text).starts
    return [text[begin:end] for begin, end in zip(starts, [*starts[1:], len(text)], strict=True)]


def regions(
    source: Source, facts: FunctionFacts, own: Iterable[TextEdit], every: Iterable[TextEdit]
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Where a mend's statement begins and ends, as offsets before and after `every` edit of the text; what `own` edits
    put beside it counts.
    """
    offset = source.lines.offset
    places = [
        (offset(e.span.line - 1, e.span.column), offset(e.span.end_line - 1, e.span.end_column), len(e.text))
        for e in every
    ]
    span = source.span(facts.statement)
    begin, end = offset(span.line - 1, span.column), offset(span.end_line - 1, span.end_column)
    for e in own:
        start = offset(e.span.line - 1, e.span.column)
        if start >= begin:  # what stands above is an import, or a definition that is told apart
            end = max(end, offset(e.span.end_line - 1, e.span.end_column))
    shifted_begin = begin + sum(length - (stop - start) for start, stop, length in places if start < begin)
    shifted_end = end + sum(length - (stop - start) for start, stop, length in places if start <= end)
    return (begin, end), (shifted_begin, shifted_end)


def delete(source: Source, statement: ast.stmt) -> TextEdit:
    """Take out a statement that has its lines to itself and stands beside others."""
    line, last = first_position(source, statement)[0], statement.end_lineno or statement.lineno
    return TextEdit(Span(line, 0, last + 1, 0), "")


def merged_edit(source: Source, node: ast.stmt, edits: Iterable[TextEdit]) -> TextEdit:
    """Edits inside a statement as one of the whole statement, so that no other mend is made there in the same round."""
    span, lines = source.span(node), source.lines
    start, end = lines.offset(span.line - 1, span.column), lines.offset(span.end_line - 1, span.end_column)
    after = apply(source.text, edits, source)
    return TextEdit(span, after[start : len(after) - (len(source.text) - end)])


def statement_at(source: Source, old: ast.stmt) -> ast.stmt:
    """The statement that begins where `old` began in an earlier text, changed only behind that place."""
    if source.tree is not None:
        for node in nodes_in(source.tree):
            if isinstance(node, type(old)) and (node.lineno, node.col_offset) == (old.lineno, old.col_offset):
                return node
    raise Unmendable("the edited statement would not parse")


def changed_text(source: Source, node: ast.stmt, after: str) -> TextEdit:
    """What turns a text into `after`, which differs from it in and around one statement, as one edit of all of that."""
    span, lines, text = source.span(node), source.lines, source.text
    start, end = lines.offset(span.line - 1, span.column), lines.offset(span.end_line - 1, span.end_column)
    shorter = min(len(text), len(after))
    head = next((i for i in range(start) if text[i] != after[i]), start)
    most = min(len(text) - end, shorter - head)
    tail = next((i for i in range(most) if text[-1 - i] != after[-1 - i]), most)
    begin, stop = lines.position(head), lines.position(len(text) - tail)
    return TextEdit(Span(begin[0] + 1, begin[1], stop[0] + 1, stop[1]), after[head : len(after) - tail])


def checked(facts: FunctionFacts, make: Callable[[], Iterable[TextEdit]]) -> tuple[TextEdit, ...]:
    """The edits that `make` makes, in order, once the edited definition is known to parse."""
    source, edits = facts.source, tuple(sorted(set(make())))
    function = facts.function
    first, last = first_position(source, function)[0], function.end_lineno or function.lineno
    inside = [e for e in edits if first <= e.span.line and e.span.end_line <= last]
    for left, right in itertools.pairwise(edits):
        if (left.span.end_line, left.span.end_column) > (right.span.line, right.span.column):
            raise Unmendable("two edits of the mend overlap")
    lines = source.lines
    head, tail = lines.offset(first - 1, 0), lines.offset(last - 1, len(lines.line(last - 1)))
    after = apply(source.text, inside, source)
    definition = after[head : len(after) - (len(source.text) - tail)]
    nested = definition[:1] in (" ", "\t")
    try:
        ast.parse(f"if 1:\n{definition}\n" if nested else definition.removeprefix("\ufeff"))
    except SyntaxError as error:
        raise Unmendable(f"the edited definition would not parse: {error.msg}") from error
    return edits


def replace_else(source: Source, loop: ast.For | ast.While, text: str) -> TextEdit:
    """Writes something else than `else:` in front of the last block of a loop."""
    for number in range(loop.orelse[0].lineno, loop.body[-1].end_lineno or loop.lineno, -1):
        if found := _ELSE.match(source.lines.line(number - 1)):
            return TextEdit(Span(number, found.end(1), number, found.end()), text)
    raise Unmendable("the `else` of the loop shares its line with other code")


_ELSE = re.compile(r"([ \t]*)else[ \t]*:")


def deletion(facts: FunctionFacts, statement: ast.stmt) -> TextEdit:
    """Takes a statement out with its line; a comment behind it stays."""
    edit = replace_statements(facts.source, [statement], "pass\n")
    if edit.text != "pass" or len(facts.body_of(statement)) == 1:
        return edit
    line = facts.source.lines.line(edit.span.end_line - 1)
    rest = line[edit.span.end_column :]
    if rest.strip():
        behind = edit.span.end_column + len(rest) - len(rest.lstrip())
        return TextEdit(edit.span._replace(end_column=behind), "")
    return TextEdit(edit.span._replace(column=0, end_line=edit.span.end_line + 1, end_column=0), "")


def cross(one: Sequence[TextEdit], other: Sequence[TextEdit]) -> bool:
    """Do two sets of edits bind one name, where the lines of the one lie among those of the other? Each has looked for
    a name that is free in the text without the other.
    """
    (names, (first, last)), (others, (start, end)) = _bound(one), _bound(other)
    return bool(names & others) and first <= end and start <= last


def _bound(edits: Sequence[TextEdit]) -> tuple[set[str], tuple[int, int]]:
    """The names that statements in edits bind, and the first and the last line of all but imports."""
    own = [edit for edit in edits if not _IMPORT.match(edit.text)]
    names = {name for edit in own for bound in _BINDING.findall(edit.text) for name in bound.split(", ")}
    return names, (min((e.span[0] for e in own), default=0), max((e.span[2] for e in own), default=0))
