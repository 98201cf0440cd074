"""Records that outlive a call: is it noticed that something is added to them only when the graph runs?

What tracing adds to a list or a dictionary itself, TorchDynamo writes back behind the graph as a whole (2.13), over
what the graph has added. What reads it while tracing finds the state of before.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Container, Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.qualified_names import qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.memory import changed_in_place
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_CONVERSIONS = ("item", "tolist")


class NoticedError(Exception):
    """Something is told from what it was; the message says what."""


@answers("order")
def check_unnoticed(facts: FunctionFacts, record: ast.Name, *own: ast.stmt) -> None:
    """Raises `NoticedError` where the function, or one of the file that it may call, reads or changes what a name of
    the module holds, but for its own statements and for those that go into the graph as well.
    """
    held = isinstance(facts.value(record), Container)
    inside = {n for statement in own for n in nodes_in(statement)}
    for node in nodes_in(facts.function):
        if isinstance(node, ast.Name) and node.id == record.id and node not in inside and not _goes(facts, node, held):
            raise NoticedError(f"`{record.id}` is read or changed elsewhere in the function, too")
    for function in _reachable(facts):
        if any(isinstance(n, ast.Name) and n.id == record.id for n in nodes_in(function)):
            raise NoticedError(f"`{function.name}` reads or changes `{record.id}`, and may be called")


def _goes(facts: FunctionFacts, node: ast.Name, held: bool) -> bool:
    """Does a mention of a record go into the graph: is it emitted, or will it be? A method of what TorchDynamo does not
    know breaks the graph wherever it is called.
    """
    for above in facts.ancestors(node):
        if isinstance(above, ast.Call) and (qualified(facts, above.func) or "").startswith("graphmend.runtime."):
            return True
        if isinstance(above, ast.Expr) and isinstance(call := above.value, ast.Call):
            of = call.func.value if isinstance(call.func, ast.Attribute) else None
            breaks = any(isinstance(n, ast.Attribute) and n.attr in _CONVERSIONS for n in nodes_in(call))
            return of is node and (breaks or not held)
    return False


def _reachable(facts: FunctionFacts) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions of the file that a function may call, by their names, and those that they may call."""
    tree = facts.source.tree
    known: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = {}
    for node in nodes_in(tree) if tree is not None else ():
        if isinstance(node, _DEFINITIONS) and node is not facts.function:
            known.setdefault(node.name, []).append(node)
    todo: list[ast.AST] = [facts.function]
    while todo:
        for node in nodes_in(todo.pop()):
            name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
            for function in known.pop(name, ()):
                yield function
                todo.append(function)


@answers("memory")
def kept_copies(facts: FunctionFacts, *values: ast.expr) -> list[Difference]:
    """What differs where values are handed out of the graph to be kept: a tensor as a copy. Raises `NoticedError` where
    a tensor, or a list, may be another one when the graph runs.
    """
    found = []
    for value in values:
        match value:
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                found += kept_copies(facts, *parts)
            case ast.Dict(values=parts):
                found += kept_copies(facts, *parts)
            case ast.Starred(value=part):
                found += kept_copies(facts, part)
            case ast.Name() | ast.Attribute() | ast.Subscript() if isinstance(facts.value(value), Container):
                raise NoticedError(f"`{shortened(value)}` is kept, and may change before the graph runs")
            case _ if isinstance(facts.value(value), Tensor):
                if changed_in_place(facts, value):
                    raise NoticedError(f"`{shortened(value)}` is kept, and changed in place")
                found.append(Difference("aliasing", f"a copy of `{shortened(value)}` is kept"))
    return found
