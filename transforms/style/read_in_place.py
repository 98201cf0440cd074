"""Fields and outer names that had a name while a mend was made are read and stored where they are used, if only one
statement is left.

Before:
    held_best = self.best
    held_best = torch.where(loss < held_best, loss, held_best)
    self.best = held_best

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
from graphmend.transforms.code.bindings import HELD
from graphmend.transforms.code.text_edits import apply
from graphmend.transforms.fix import TextEdit


def without_names(before: str, source: Source, changed: Collection[int]) -> str:
    """The text without such names that `before` does not have, of which each is bound to a place, once to a value, and
    stored in the place again, in `changed` lines (from 1) and nowhere else.
    """
    if source.tree is None or HELD not in source.text:
        return source.text
    edits = set[TextEdit]()  # those of an inner function are the outer one's, too
    for function in (n for n in nodes_in(source.tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))):
        found = [one for one in _threes(function) if all(s.lineno in changed for s in one) and _apart(source, one)]
        inside = {n for one in found for s in one for n in nodes_in(s)}
        outside = {n.id for n in nodes_in(function) if isinstance(n, ast.Name) and n not in inside}
        new = [one for one in found if _is_held(*one) and _name(one) not in outside and _name(one) not in before]
        edits |= {edit for one in new for edit in _joined(source, *one)}
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


def _is_held(first: ast.Assign, second: ast.Assign, third: ast.Assign) -> bool:
    """Is the name one that a mend gave to the place, and its value computed without binding any?"""
    place = first.value.attr if isinstance(first.value, ast.Attribute) else ast.unparse(first.value)
    binds = (ast.NamedExpr, ast.comprehension)
    held = _name((first, second, third)).rstrip("0123456789").rstrip("_") == f"{HELD}{place}".rstrip("0123456789_")
    return held and not any(isinstance(n, binds) for n in nodes_in(second.value))


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
