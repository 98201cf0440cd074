"""May one tensor, whose rows they are, stand for a list of tensors? Follows the list through names and slices to every
use.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import reaching
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.liveness import stored, writes
from graphmend.transforms.code.qualified_names import constant, number_type, qualified
from graphmend.transforms.legality.memory import changed_in_place
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

#: builtins that run through a tensor's rows as they do through a list
_RUN_THROUGH = frozenset(f"builtins.{name}" for name in ("sum", "len", "enumerate", "zip"))

#: what takes a sequence of tensors, and no tensor in its place; the result is a new one
_JOINS = frozenset(f"torch.{name}" for name in "stack cat concat concatenate hstack vstack dstack row_stack".split())


class NotRowsError(Exception):
    """A use needs a list; the message says which."""


@answers("memory")
def as_rows(facts: FunctionFacts, node: ast.expr) -> bool:
    """Does a use of a list take a sequence of rows only, and no tensor of them? Refuses where one takes neither:
    NotRowsError. What is taken out of it would be a copy.
    """
    uses = [*_uses(facts, node)]
    for use in uses:
        statement = next(a for a in facts.ancestors(use) if isinstance(a, ast.stmt))
        taken = [n.target for n in facts.ancestors(use) if isinstance(n, ast.comprehension)]
        if any(changed_in_place(facts, name) for name in sorted(stored([statement]) | writes(*taken))):
            raise NotRowsError("what is taken out of the list is changed in place, and would be a copy")
    return any(_is_joined(facts, use) for use in uses)


def _is_joined(facts: FunctionFacts, node: ast.expr) -> bool:
    parent = facts.parent(node)
    return isinstance(parent, ast.Call) and parent.args[:1] == [node] and qualified(facts, parent.func) in _JOINS


def _uses(facts: FunctionFacts, node: ast.expr) -> Iterator[ast.expr]:
    """The expressions that stand for the list, and are used as its rows are."""
    parent = facts.parent(node)
    match parent:
        case ast.Subscript(value=value, slice=index, ctx=ast.Load()) if value is node:
            if isinstance(index, ast.Slice):
                if index.step is not None and not _is_positive(index.step):
                    raise NotRowsError("a tensor has no slices in falling order")
                yield from _uses(facts, parent)
            elif isinstance(constant(index), int) or number_type(facts, index) == "int":
                yield node
            else:
                raise NotRowsError(f"`{shortened(parent)}` is not known to take one tensor out of the list")
        case ast.Call(func=function) if node in parent.args and qualified(facts, function) in _RUN_THROUGH:
            yield node
        case ast.Call() if _is_joined(facts, node):
            yield node
        case ast.For(iter=over) | ast.comprehension(iter=over) if over is node:
            yield node
        case ast.Assign(targets=[ast.Tuple()]):
            yield node
        case ast.Assign(targets=[ast.Name(id=name)]):
            every = [n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n.id == name]
            read = {n: reaching(facts, n) for n in every if isinstance(n.ctx, ast.Load)}
            stores = len(every) - len(read)
            if not any(isinstance(a, (ast.For, ast.AsyncFor, ast.While)) for a in facts.ancestors(parent)):
                read = {n: bound for n, bound in read.items() if not _is_before(facts, n, parent)}
            if stores != 1 and None in read.values():
                raise NotRowsError(f"`{name}` is bound to other values as well")
            for use, bound in read.items():
                if bound in (None, node):
                    yield from _uses(facts, use)
        case _:
            raise NotRowsError("the sorted list is used as a list")


def _is_positive(node: ast.expr) -> bool:
    return isinstance(step := constant(node), int) and step > 0


def _is_before(facts: FunctionFacts, read: ast.Name, statement: ast.stmt) -> bool:
    """Is a name read when a statement that is in no loop has not bound it yet? What is called later reads it later."""
    later = (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.GeneratorExp)
    around = itertools.takewhile(lambda a: a is not facts.function, facts.ancestors(read))
    end = (statement.end_lineno or 0, statement.end_col_offset or 0)
    return (read.lineno, read.col_offset) < end and not any(isinstance(a, later) for a in around)
