"""A number that a loop steps in each iteration, carried as a 0-d tensor by `torch.while_loop`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Static, Tensor, Value, dtype_kind
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bound_before
from graphmend.transforms.code.liveness import alive, reads, writes
from graphmend.transforms.code.qualified_names import constant, number_type
from graphmend.transforms.if_conversion.selection import NotSelectableError, as_tensor

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.transforms.if_conversion.tensor_predicates import Predicates


class Counter(NamedTuple):
    """A number that the loop counts in, with the texts of what it is at first and after each iteration."""

    name: str
    start: str
    next: str
    target: str | None = None
    """The name that it has behind the loop, where it is read."""


def stepped_numbers(facts: FunctionFacts, loop: ast.While | ast.For, body: list[ast.stmt]) -> dict[ast.stmt, str]:
    """What steps a number in each iteration of a `while`, which reads it no more then, and the number's name."""
    found: dict[ast.stmt, str] = {}
    for i, statement in enumerate(body if isinstance(loop, ast.While) and body is loop.body else ()):
        if (stepped := _stepped(statement)) is None:
            continue
        name, operator, step = stepped
        before, by = facts.before(loop).get(name), number_type(facts, step)
        kind = before.type if isinstance(before, Static) else None
        whole = kind == by == "int" and isinstance(operator, (ast.Add, ast.Sub))
        others = [s for s in body if s is not statement]
        alone = name not in reads(*body[i + 1 :]) | writes(*others) and not reads(step) & writes(*body)
        if alone and (whole or (kind == "float" and by in ("int", "float"))):
            found[statement] = name
    return found if len(found) == 1 else {}


def _stepped(statement: ast.stmt) -> tuple[str, ast.operator, ast.expr] | None:
    """The name in `n += step` or `n = n + step`, with the operator and the step."""
    match statement:
        case ast.AugAssign(target=ast.Name(id=name), op=operator, value=step):
            pass
        case ast.Assign(
            targets=[ast.Name(id=name)], value=ast.BinOp(left=ast.Name(id=again), op=operator, right=step)
        ) if name == again:
            pass
        case _:
            return None
    return (name, operator, step) if type(operator) in _SIGNS else None


_SIGNS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}


def as_counter(
    facts: FunctionFacts, loop: ast.While, predicates: Predicates, statement: ast.stmt, name: str
) -> Counter:
    """A number that the loop counts in, as a tensor: Inductor takes no number that changes (torch 2.13)."""
    before, stepped = facts.before(loop), _stepped(statement)
    device = next((n for n in sorted(reads(loop.test)) if isinstance(before.get(n), Tensor)), None)
    if device is None:
        raise NotSelectableError(f"no tensor of the loop's test tells the device of `{name}`")
    number = before.get(name)
    whole = isinstance(number, Static) and number.type == "int"
    values = (facts.value(n) for n in nodes_in(loop.test) if isinstance(n, ast.expr))
    compared = [value.dtype for value in values if isinstance(value, Tensor)]
    wide = all(dtype == "int64" or dtype_kind(dtype) in ("bool", "float") for dtype in compared)
    if whole and not wide and not _counts_up(facts, loop, statement, name):
        raise NotSelectableError(f"`{name}` may wrap around where it is compared with narrow numbers")
    read = alive(facts, name, loop)
    if whole and read:
        raise NotSelectableError(f"`{name}` is read behind the loop, and would be a tensor")
    dtype, uses = as_tensor(facts, "int64" if whole else "float64", lambda uses: uses.name(name), converts=loop)
    predicates.differences += uses.differences
    assert stepped is not None
    of = "" if whole else f", dtype={_dtype(predicates, dtype, device, before[device])}"
    start = f"{predicates.imports.name('torch.full')}((), {name}{of}, device={device}.device)"
    step = f"{name} {_SIGNS[type(stepped[1])]} {predicates.code.operand(stepped[2])}"
    return Counter(name, start, step, name if read else None)


def _dtype(predicates: Predicates, dtype: str, name: str, value: Value) -> str:
    """The text of a dtype that is `dtype`, and not less than that of a tensor which the number meets."""
    own = predicates.imports.name(f"torch.{dtype}")
    if dtype == "float64" or (isinstance(value, Tensor) and value.dtype == dtype):
        return own
    return f"{predicates.imports.name('torch.promote_types')}({name}.dtype, {own})"


def _counts_up(facts: FunctionFacts, loop: ast.While, statement: ast.stmt, name: str) -> bool:
    """Is a number counted one by one from below a bound to that, which every dtype of the bound holds?"""
    first = bound_before(facts, loop, name)
    start = constant(first) if first is not None else None
    up = isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add) and constant(statement.value) == 1
    asked = [n for n in nodes_in(loop.test) if isinstance(n, ast.Compare) and name in reads(n)]
    below = all(isinstance(n.left, ast.Name) and len(n.ops) == 1 and isinstance(n.ops[0], ast.Lt) for n in asked)
    return isinstance(start, int) and start >= 0 and up and below
