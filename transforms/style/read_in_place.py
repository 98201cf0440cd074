"""Fields and outer names that had a name while a mend was made are read and stored where they are used, if only one
statement is left.

Before:
    best = self.best
    best = torch.where(loss < best, loss, best)
    self.best = best

After:
    self.best = torch.where(loss < self.best, loss, self.best)
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from itertools import islice

from graphmend.analysis.syntax.source import Source
from graphmend.analysis.syntax.span import Span
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.text_edits import apply
from graphmend.transforms.fix import TextEdit


def without_names(source: Source, changed: Collection[int]) -> str:
    """The text without names of which each is bound to a place, once to a value, and stored in the place again, in
    `changed` lines (from 1) and nowhere else.
    """
    if source.tree is None:
        return source.text
    edits = set[TextEdit]()  # those of an inner function are the outer one's, too
    for function in (n for n in nodes_in(source.tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))):
        found = [one for one in _threes(function) if all(s.lineno in changed for s in one) and _apart(source, one)]
        inside = {n for one in found for s in one for n in nodes_in(s)}
        outside = {n.id for n in nodes_in(function) if isinstance(n, ast.Name) and n not in inside}
        outside |= {n for s in nodes_in(function) if isinstance(s, (ast.Global, ast.Nonlocal)) for n in s.names}
        edits |= {edit for one in found if _name(one) not in outside for edit in _joined(source, *one)}
    return apply(source.text, edits, source)


Three = tuple[ast.Assign, ast.Assign, ast.Assign]


def _threes(function: ast.AST) -> Iterator[Three]:
    """`name = place`, `name = value` and `place = name`, one after the other."""
    blocks = (b for n in nodes_in(function) for _, b in ast.iter_fields(n) if isinstance(b, list))
    for block in blocks:
        for first, second, third in zip(block, islice(block, 1, None), islice(block, 2, None), strict=False):
            match first, second, third:
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute() | ast.Name() as place),
                    ast.Assign(targets=[ast.Name(id=again)]),
                    ast.Assign(targets=[ast.Attribute() | ast.Name() as stored], value=ast.Name(id=last)),
                ) if name == again == last and ast.unparse(place) == ast.unparse(stored):
                    yield first, second, third


def _name(one: Three) -> str:
    target = one[0].targets[0]
    assert isinstance(target, ast.Name)
    return target.id


def _apart(source: Source, one: Three) -> bool:
    """Has each statement its lines to itself?"""
    for span in map(source.span, one):
        front = source.lines.line(span.line - 1)[: span.column]
        behind = source.lines.line(span.end_line - 1)[span.end_column :]
        if front.strip() or behind.strip():
            return False
    return True


def _joined(source: Source, first: ast.Assign, second: ast.Assign, third: ast.Assign) -> Iterator[TextEdit]:
    place, name = source.segment(source.span(first.value)), _name((first, second, third))
    for gone in (first, third):
        yield TextEdit(Span(gone.lineno, 0, (gone.end_lineno or gone.lineno) + 1, 0), "")
    for node in nodes_in(second):
        if isinstance(node, ast.Name) and node.id == name:
            yield TextEdit(source.span(node), place)
