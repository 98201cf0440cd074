"""GM607: a function that `torch.cond` or its kind traces does what such an operator can't hold."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from graphmend.analysis.interpreter.events import Bodies, Event, OutsideChange
from graphmend.analysis.lattice.values import NONE, Const, Container, Static, Tensor, Value
from graphmend.analysis.program.entities import Function, Instance
from graphmend.analysis.rules.rule import Break, Context, Rule
from graphmend.analysis.syntax.traversal import walk


class OperatorBody(Rule):
    """
    What it does:
        Finds functions given to `torch.cond`, `torch.while_loop`, `scan`, `associative_scan` and `map` that return
        other things than these take, return an operand as it is, write to one, or change what is outside of them.

    Why it breaks:
        The functions become graphs of their own, with tensors going in and new tensors coming out. What does not fit
        is an error when the call is compiled: nothing runs (torch 2.13).

    Example:
        torch.cond(p, lambda x: x, lambda x: x + 1, (x,))

    Use instead:
        torch.cond(p, lambda x: x.clone(), lambda x: x + 1, (x,))

    Mends:
        none: `clone()` what is returned as it came, and return what is to be kept

    References:
        https://docs.pytorch.org/docs/2.13/cond.html
    """

    code = "GM607"
    name = "operator-body"
    message = "a function that {operator} traces {does}: TorchDynamo can't compile the call"
    advice = "Take tensors, return new tensors of the same structure, and change nothing else."
    events = (Bodies, OutsideChange)
    valid: ClassVar = (
        """
import torch

@torch.compile
def f(x: torch.Tensor):
    y = torch.cond(x.sum() > 0, lambda a: a.sin(), lambda a: a.clone(), (x,))
    (z,) = torch.while_loop(lambda a: a.sum() < 9, lambda a: (a + 1,), (y,))
    return z

def example_inputs():
    return [(torch.ones(4),)]
""",
    )
    invalid: ClassVar = (
        """
import torch

@torch.compile
def f(x: torch.Tensor):
    y = x + 1
    return torch.cond(y.sum() > 0, lambda a: a, lambda a: a.cos(), (y,))

def example_inputs():
    return [(torch.ones(4),)]
""",
        """
import torch

@torch.compile
def f(x: torch.Tensor):
    y = x + 1
    return torch.while_loop(lambda a: a < 9, lambda a: (a + 1,), (y,))

def example_inputs():
    return [(torch.ones(4),)]
""",
    )

    def judge(self, event: Event, context: Context) -> Break | None:
        if isinstance(event, OutsideChange):
            fill = {"operator": event.operator, "does": "changes what is outside of it"}
            return Break("GB0067", fill=fill, effect="raises")
        assert isinstance(event, Bodies)
        found = next(_wrong(event), None) or _symbols(event, context.mode.options)
        if found is None:
            return None
        gb_id, does = found
        return Break(gb_id, fill={"operator": event.operator, "does": does}, effect="raises")


def _wrong(event: Bodies) -> Iterator[tuple[str, str]]:
    """What TorchDynamo refuses, the first thing that it gets to first."""
    for function in event.functions:
        assert isinstance(function, Function)
        yield from _effects(function)
    first = event.results[0]
    if event.operator.startswith("while_loop"):
        if isinstance(first, Const) and first.value is True:
            yield "GB0339", "never ends"
        if isinstance(first, Tensor) and not first.likely and (first.rank or _as_wide(first, event.operands)):
            yield "GB0308", "answers with more than one element"
    for result in event.results:
        parts = _leaves(result)
        if any(isinstance(p, Instance) or (isinstance(p, Static) and p.type == "str") for p in parts):
            yield "GB0314", "returns what is neither a tensor nor a number"
    if event.operator.startswith("cond"):
        if any(NONE in _leaves(result) and len(_leaves(result)) > 1 for result in event.results):
            yield "GB0350", "returns None among its results"
        if len({_structure(result) for result in event.results} - {None}) > 1:
            yield "GB0313", "returns another structure than the other one"
    elif event.operator.startswith("associative"):
        items = first.items if isinstance(first, Container) else None
        if items == ():
            yield "GB0318", "returns nothing"
        if items is not None and len(items) != len(event.operands) // 2 and not event.operator.endswith("scan"):
            yield "GB0319", "returns another number of tensors than it takes"
    elif event.operator == "scan" and isinstance(first, Container) and len(first.items or (0, 0)) != 2:
        yield "GB0343", "returns no pair of what it carries and what it gives"


def _symbols(event: Bodies, options: frozenset[str]) -> tuple[str, str] | None:
    """A size that a branch returns: with dynamic shapes it is a symbol."""
    if "dynamic" not in options or not event.operator.startswith("cond"):
        return None
    leaves = [leaf for result in event.results for leaf in _leaves(result)]
    is_size = any(leaf.__class__ is Static and leaf.type == "int" for leaf in leaves if isinstance(leaf, Static))
    return ("GB0340", "returns a size, which is a symbol with dynamic shapes") if is_size else None


def _leaves(value: Value) -> list[Value]:
    if isinstance(value, Container) and value.kind in ("list", "tuple") and value.items is not None:
        return [leaf for item in value.items for leaf in _leaves(item)]
    return [value]


def _structure(value: Value) -> str | None:
    """The kinds of the containers in a result; None where that is not known."""
    if isinstance(value, Tensor):
        return "tensor"
    if isinstance(value, Container) and value.kind in ("list", "tuple") and value.items is not None:
        inner = [_structure(item) for item in value.items]
        return f"{value.kind}({', '.join(filter(None, inner))})" if None not in inner else None
    return None


def _as_wide(value: Tensor, operands: tuple[Value, ...]) -> bool:
    """Whether a tensor has the shape of an operand that has more than one dimension, or is compared as a whole."""
    shapes = [o.shape for o in operands if isinstance(o, Tensor) and o.rank]
    return value.shape is not None and value.shape in shapes


def _effects(function: Function) -> Iterator[tuple[str, str]]:
    """What a function does to things that are not its own."""
    node = function.info.node
    body = [node.body] if isinstance(node, ast.Lambda) else node.body
    parameters = {p.arg for p in function.info.parameters}
    nodes = [n for part in body for n in walk(part)]
    own = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for n in nodes:
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and isinstance(n.func.value, ast.Name):
            name, method = n.func.value.id, n.func.attr
            if name in parameters - own and method.endswith("_") and not method.endswith("__"):
                yield "GB0041", "writes to an operand"
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) and isinstance(n.value, ast.Name):
            outside = n.value.id not in parameters | own
            yield from [("GB4413", "sets an attribute of what is outside of it")] * outside
    returned = [body[0]] if isinstance(node, ast.Lambda) else [n.value for n in nodes if isinstance(n, ast.Return)]
    for value in returned:
        parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]
        if any(isinstance(part, ast.Name) and part.id in parameters - own for part in parts):
            yield "GB0040", "returns an operand as it is"
