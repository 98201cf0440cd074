"""Store under a mask without asking whether the mask picks anything.

Before:
    if m.any():
        x[m] = x[m] * 2

After:
    x[m] = x[m] * 2

Legal when:
    the body only stores under the very mask that the test asks about: numbers, or what is computed one by one from
    the elements that it picks. Copies of the tensor in front of that are made always.

Differs in:
    nothing, where the body makes no copy, the mask has the shape of what it picks from, what is stored has its dtype
    and raises for no input, the tensor is new memory, and gradients are off or nothing has read it: where the mask
    picks nothing, nothing is stored. Otherwise that raises or warns all the same, as do a leaf that asks for gradients,
    and backward that needs the old value.
"""

from __future__ import annotations

import ast
from collections.abc import Container
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.liveness import reads
from graphmend.transforms.code.positions import is_elif, replaceable
from graphmend.transforms.code.qualified_names import called, is_tensor, method, number_type
from graphmend.transforms.code.text_edits import HOLE, replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.dtypes import kind
from graphmend.transforms.legality.effects import warns
from graphmend.transforms.legality.gradients.sides import lost, recorded
from graphmend.transforms.legality.in_place import dense, writable, written_on_both_sides
from graphmend.transforms.legality.memory import outlived
from graphmend.transforms.legality.rows.masked_elements import (
    Picked,
    is_mask,
    one_by_one,
    other_shape,
    picked,
    picks_in,
    same_dtype,
)
from graphmend.transforms.legality.speculation import repeatable, speculate
from graphmend.transforms.legality.totality import may_raise
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "drop_guard"


@asks("effects", "totality", "memory", "domain", "dtypes", "shapes", "gradients")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = facts.statement
    if not isinstance(statement, ast.If) or statement.orelse:
        return None
    mask = _asked(facts, statement.test)
    copied = [c for s in statement.body if (c := _copied(facts, s))]
    if mask is not None and not repeatable(facts, mask):
        return refuse(NAME, f"`{ast.unparse(mask)}` is not the same each time it is evaluated")
    stores = [s for s in statement.body if _copied(facts, s) is None]
    if mask is None or not stores or not all(_stores(facts, s, mask) for s in stores):
        return None
    if not replaceable(facts, [statement]) or is_elif(facts.source, statement):
        return refuse(NAME, "the statement shares its line with another one")

    outlived_name = next((name for name in copied if outlived(facts, name, statement)), None)
    if outlived_name is not None:
        return refuse(NAME, f"`{outlived_name}` shares memory with what is changed later, which a copy does not")

    def make() -> list[TextEdit]:
        return [replace_statements(facts.source, [statement], f"{HOLE.format(0)}\n", statement.body)]

    differences = [Difference("aliasing", f"`{name}` is a copy even where the mask picks nothing") for name in copied]
    for name in copied:
        says = f"`{name}` has no gradient history even where the mask picks nothing"
        differences += lost(facts, statement, says)
    for store in stores:
        differences += _always(facts, statement, store, mask, copied)
    roots = dict.fromkeys(n for s in stores for n in _written(s) if n not in copied)
    kept = {n for s in stores for n in _needed(facts, s, mask)} if recorded(facts, statement) else set()
    differences += [written_on_both_sides(n) for n in roots if n in kept or not writable(facts, statement, n)]
    return offer(NAME, "store without asking first", facts, make, differences)


def _always(
    facts: FunctionFacts, statement: ast.If, store: ast.stmt, mask: ast.expr, copied: list[str]
) -> list[Difference]:
    """What a store under a mask that picks nothing does all the same: raise and warn."""
    assert isinstance(store, (ast.Assign, ast.AugAssign))
    target = store.target if isinstance(store, ast.AugAssign) else store.targets[0]
    assert isinstance(target, ast.Subscript)
    found = other_shape(facts, Picked(target.value, mask))
    picks = picks_in(facts, store.value, mask)
    for inner in picks.values():
        found += other_shape(facts, Picked(inner.tensor, mask))
    for part in _without(store.value, picks):
        found += [*may_raise(facts, part), *warns(facts, part)]
    value = facts.value(store.value)
    number = number_type(facts, store.value) is not None
    single = isinstance(value, Tensor) and value.rank == 0
    if isinstance(store, ast.AugAssign):
        into, of = kind(facts, target.value), number_type(facts, store.value) or kind(facts, store.value)
        whole = of in ("bool", "uint8", "int") and not isinstance(store.op, (ast.Div, ast.Pow))
        if not (into == "float" and of in ("bool", "uint8", "int", "float")) and not (into == of == "int" and whole):
            found.append(_DTYPES)
    elif not (number or single) and not same_dtype(facts, target.value, store.value):
        found.append(_DTYPES)
    name = ast.unparse(target.value)
    if name not in copied and not dense(facts, statement, target.value):
        found.append(Difference("output", f"where `{name}` is expanded memory a store by a mask warns"))
    return found


_DTYPES = Difference("exception", "a value of another dtype raises even where the mask picks nothing")


def _without(node: ast.expr, picks: Container[ast.expr]) -> list[ast.expr]:
    """The largest parts of an expression that have nothing to do with picked elements."""
    if node in picks:
        return []
    if not any(n in picks for n in nodes_in(node) if isinstance(n, ast.expr)):
        return [node]
    return [p for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr) for p in _without(child, picks)]


def _needed(facts: FunctionFacts, statement: ast.stmt, mask: ast.expr) -> set[str]:
    """The names of tensors whose values backward of what is stored may need: what is picked is a copy."""
    value = getattr(statement, "value", None)
    if not isinstance(value, ast.expr):
        return set()
    return {n for part in _without(value, picks_in(facts, value, mask)) for n in reads(part)}


def _written(statement: ast.stmt) -> list[str]:
    """The text of what a store changes."""
    targets = statement.targets if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    places = targets if isinstance(targets, list) else [targets]
    return [ast.unparse(p.value) for p in places if isinstance(p, ast.Subscript)]


def _asked(facts: FunctionFacts, test: ast.expr) -> ast.expr | None:
    """The mask of `m.any()`, `m.any().item()`, `m.sum() > 0`."""
    match test:
        case ast.Call(func=ast.Attribute(value=ast.Call() as inner, attr="item"), args=[], keywords=[]):
            return _asked(facts, inner)
        case ast.Call(func=ast.Name(id="bool"), args=[ast.Call() as inner], keywords=[]):
            return _asked(facts, inner)
        case ast.Compare(left=left, ops=[ast.Gt() | ast.NotEq()], comparators=[ast.Constant(value=0)]):
            mask = _quantified(facts, left, "sum")
        case _:
            mask = _quantified(facts, test, "any")
    return mask if mask is not None and is_mask(facts, mask) else None


def _quantified(facts: FunctionFacts, node: ast.expr, how: str) -> ast.expr | None:
    """`m` of `m.any()` or `torch.any(m)`."""
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    if called(facts, node, f"torch.{how}"):
        return node.args[0] if len(node.args) == 1 else None
    if method(facts, node, how) and not node.args and isinstance(node.func, ast.Attribute):
        return node.func.value
    return None


def _copied(facts: FunctionFacts, statement: ast.stmt) -> str | None:
    """The name in `x = x.clone()`."""
    match statement:
        case ast.Assign(
            targets=[ast.Name(id=name)],
            value=ast.Call(func=ast.Attribute(value=ast.Name(id=source) as tensor, attr="clone"), args=[], keywords=[]),
        ) if name == source and is_tensor(facts, tensor):
            return name
    return None


def _stores(facts: FunctionFacts, statement: ast.stmt, mask: ast.expr) -> bool:
    """Does a statement only store under a mask?"""
    match statement:
        case ast.Assign(targets=[ast.Subscript() as target], value=value):
            pass
        case ast.AugAssign(target=ast.Subscript() as target, value=value):
            pass
        case _:
            return False
    found = picked(facts, target)
    if found is None or ast.unparse(found.mask) != ast.unparse(mask) or speculate(facts, value).blockers:
        return False
    picks = picks_in(facts, value, mask)
    plain = not any(picked(facts, n) for n in nodes_in(value) if isinstance(n, ast.expr))
    return one_by_one(facts, value, picks) or (plain and isinstance(statement, ast.Assign) and is_tensor(facts, value))
