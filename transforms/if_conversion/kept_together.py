"""Python numbers that become 0-d tensors together: one that is taken out of a tensor, and others that it meets in a
list or in an expression, which must be tensors then, too.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Scalar, Tensor, Value
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import reaching
from graphmend.transforms.code.liveness import parameters, reads
from graphmend.transforms.code.qualified_names import constant
from graphmend.transforms.fix import Difference
from graphmend.transforms.if_conversion.kept_scalars import Taken, outermost, taken
from graphmend.transforms.legality.gradients.sides import recorded
from graphmend.transforms.legality.numbers.as_tensors import PROMOTES
from graphmend.transforms.legality.numbers.counterparts import Counterpart, joined
from graphmend.transforms.legality.scalar_uses import NeedsPythonNumberError, ScalarUses

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


class Numbers(NamedTuple):
    """Numbers that become tensors together, with their texts, and what is written otherwise around them."""

    texts: dict[ast.expr, str]
    counterparts: dict[ast.expr, Counterpart]
    differences: list[Difference]


def together(facts: FunctionFacts, kept: Mapping[ast.expr, Taken]) -> Numbers:
    """Numbers, with those that must become tensors along with them. Raises `NeedsPythonNumberError`."""
    found, waiting = Numbers({}, {}, []), [*kept.items()]
    while waiting:
        number, tensor = waiting.pop()
        if number in found.texts:
            continue
        tensor, uses = asked(facts, tensor, lambda uses, of=number: uses.follow(of))  # type: ignore[misc]
        found.texts[number] = tensor.captured()
        joined(found.counterparts, uses.counterparts)
        found.differences.extend([*tensor.differences, *uses.differences])
        for other in uses.also:
            if (made := _whole_constant(facts, other, number, tensor)) is not None:
                found.counterparts[other] = made
            else:
                waiting += _taken_in(facts, other)
    return found


def _whole_constant(facts: FunctionFacts, node: ast.expr, number: ast.expr, like: Taken) -> Counterpart | None:
    """A whole number that is written out, as a tensor like the int64 that it stands beside, on the device of a tensor
    that exists where it is made; None where it is no such number, or no tensor exists there.
    """
    value = constant(node)
    if not isinstance(value, int) or isinstance(value, bool) or like.dtype != "int64":
        return None
    before = facts.before(next(above for above in facts.ancestors(node) if isinstance(above, ast.stmt)))
    beside = sorted(n for n in {*reads(number), *parameters(facts.function)} if _is_plain(before.get(n)))
    if not beside:
        return None
    return Counterpart(node, formula=f"torch.tensor({value}, device={beside[0]}.device)")


def _taken_in(facts: FunctionFacts, node: ast.expr) -> list[tuple[ast.expr, Taken]]:
    """The numbers that an expression, or what its names are bound to, takes out of tensors."""
    detach = recorded(facts, facts.statement)
    found = [(number, taken(facts, number, detach=detach)) for number in _numbers(facts, node, set())]
    known = [(number, tensor) for number, tensor in found if tensor is not None]
    if not known or len(known) < len(found):
        raise NeedsPythonNumberError(f"`{ast.unparse(node)}` stays a Python number")
    return known


def _numbers(facts: FunctionFacts, node: ast.expr, seen: set[str]) -> list[ast.expr]:
    if any(isinstance(n, (ast.IfExp, ast.BoolOp)) for n in nodes_in(node)):
        raise NeedsPythonNumberError(f"`{ast.unparse(node)}` may stay a Python number")
    found = outermost(facts, node)
    inside = {n for number in found for n in nodes_in(number)}
    for name in nodes_in(node):
        if not isinstance(name, ast.Name) or name in inside or name.id in seen:
            continue
        if isinstance(facts.value(name), Scalar) and (bound := reaching(facts, name)) is not None:
            seen.add(name.id)
            found += _numbers(facts, bound, seen)
    return found


def _is_plain(value: Value | None) -> bool:
    return isinstance(value, Tensor) and not value.ndarray


def asked(facts: FunctionFacts, kept: Taken, ask: Callable[[ScalarUses], None]) -> tuple[Taken, ScalarUses]:
    """Follows a number to its uses, as wide as it is, or as Python's numbers where those are computed with. A float64
    without dimensions makes others of its kind: where it would, the number stays as narrow as its tensor.
    """
    tensor, uses = _as_wide_as_needed(facts, kept, ask)
    uses.exactly()
    return tensor, uses


def _as_wide_as_needed(
    facts: FunctionFacts, kept: Taken, ask: Callable[[ScalarUses], None]
) -> tuple[Taken, ScalarUses]:
    uses = ScalarUses(facts, kept.dtype, rewrites=True, restates=True)
    ask(uses)
    if PROMOTES in uses.differences and (narrow := kept.narrowed()) is not None:
        uses = ScalarUses(facts, narrow.dtype, rewrites=True, restates=True)
        ask(uses)
        return narrow, uses
    wide = kept.widened() if uses.computes else None
    if wide is None:
        return kept, uses
    wider = ScalarUses(facts, wide.dtype, rewrites=True, restates=True)
    ask(wider)
    if PROMOTES in wider.differences and not (uses.jumps and PROMOTES in uses.differences):
        return kept, uses
    return wide._replace(differences=kept.differences), wider
