"""Operators of torch that trace functions into the graph, `torch.cond` and its kind: their functions are entered, and
the rules are told what these return."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.interpreter.events import Bodies, OutsideChange
from graphmend.analysis.lattice.arguments import Arguments, Keywords
from graphmend.analysis.lattice.values import Container, Tensor, Value, join_all
from graphmend.analysis.program.entities import Function
from graphmend.analysis.syntax.traversal import walk

if TYPE_CHECKING:
    from graphmend.analysis.interpreter.interface import Walk


class _Operator(NamedTuple):
    """An operator: its arguments in order, which of them are functions, and which hold what these are called with."""

    parameters: tuple[str, ...]
    functions: tuple[str, ...]
    operands: tuple[str, ...]
    each: bool = False
    """Whether the operands are gone through element by element."""
    twice: bool = False
    """Whether its function takes two of each operand."""


#: methods of containers that change them
_CHANGES = frozenset({"append", "extend", "insert", "pop", "clear", "add", "update", "remove", "discard", "setdefault"})

_COND = _Operator(("pred", "true_fn", "false_fn", "operands"), ("true_fn", "false_fn"), ("operands",))
_LOOP = _Operator(("cond_fn", "body_fn", "carried_inputs"), ("cond_fn", "body_fn"), ("carried_inputs",))
_SCAN = _Operator(("combine_fn", "init", "xs"), ("combine_fn",), ("init", "xs"))
_ASSOCIATIVE = _Operator(("combine_fn", "xs"), ("combine_fn",), ("xs",), each=True, twice=True)
_MAP = _Operator(("f", "xs"), ("f",), ("xs",), each=True)

_OF = "torch._higher_order_ops."
OPERATORS: dict[str, _Operator] = {
    **dict.fromkeys(("torch.cond", _OF + "cond", _OF + "cond.cond", _OF + "cond.cond_op"), _COND),
    **dict.fromkeys(("torch.while_loop", _OF + "while_loop", _OF + "while_loop.while_loop"), _LOOP),
    _OF + "while_loop.while_loop_op": _LOOP,
    **dict.fromkeys((_OF + "scan", _OF + "scan.scan"), _SCAN),
    **dict.fromkeys((_OF + "associative_scan", _OF + "associative_scan.associative_scan"), _ASSOCIATIVE),
    _OF + "associative_scan.associative_scan_op": _ASSOCIATIVE,
    **dict.fromkeys((_OF + "map", _OF + "map.map"), _MAP),
}


def operator(w: Walk, name: str, args: Arguments, keywords: Keywords, node: ast.AST) -> Value | None:
    """The value of a call of an operator that traces functions; None for any other callable."""
    known = OPERATORS.get(name)
    if known is None or not isinstance(node, ast.expr):
        return None
    given = {**dict(zip(known.parameters, args, strict=False)), **keywords}
    functions = [given[f] for f in known.functions if f in given]
    if len(functions) != len(known.functions) or not all(isinstance(f, Function) for f in functions):
        return None
    operands = [part for o in known.operands for part in _parts(given.get(o))]
    if known.twice:
        operands += operands
    passed = tuple(_entering(o) for o in operands)
    results = [w.apply(f, passed, {}, node) for f in functions]
    for function in functions:
        assert isinstance(function, Function)
        for place in _changes(function):
            w.emit(OutsideChange, place, name.rpartition(".")[2])
    w.emit(Bodies, node, name.rpartition(".")[2], tuple(functions), passed, tuple(results))
    return None if known.each else join_all(results)


def _changes(function: Function) -> list[ast.Call]:
    """Calls by which a function changes containers that are not its own."""
    node = function.info.node
    nodes = [n for part in ([node.body] if isinstance(node, ast.Lambda) else node.body) for n in walk(part)]
    own = {p.arg for p in function.info.parameters}
    own |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return [
        n
        for n in nodes
        if isinstance(n, ast.Call)
        and isinstance(n.func, ast.Attribute)
        and n.func.attr in _CHANGES
        and isinstance(n.func.value, ast.Name)
        and n.func.value.id not in own
    ]


def _parts(value: Value | None) -> tuple[Value, ...]:
    if isinstance(value, Container) and value.items is not None:
        return value.items
    return () if value is None else (value,)


def _entering(value: Value) -> Value:
    """An operand as the function gets it: a value of its own, so that what comes back as it went in is seen."""
    if not isinstance(value, Tensor):
        return value
    return Tensor(value.origin, value.rank, value.dtype, value.shape, likely=value.likely, constant=value.constant)
