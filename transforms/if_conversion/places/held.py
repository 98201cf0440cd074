"""What a place that a branch binds again holds before it: an attribute or a key of a dictionary."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Protocol

from graphmend.analysis.lattice.values import Container, Static, Tensor, options
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bindings
from graphmend.transforms.code.certain import evaluated_before
from graphmend.transforms.code.liveness import parameters
from graphmend.transforms.code.qualified_names import NUMBER_TYPES, constant, is_tensor, number_type
from graphmend.transforms.if_conversion.selection import SideValue
from graphmend.transforms.legality.same_shape import ShapeInference, TensorType

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.transforms.if_conversion.tensor_predicates import Predicates


class Converting(Protocol):
    """The block that stands around a place, while it is converted."""

    facts: FunctionFacts
    predicates: Predicates
    whole: ast.stmt
    """The statement that is converted."""


def held(block: Converting, target: ast.Attribute | ast.Subscript) -> SideValue | None:
    """The value that a place has before the branch: a tensor where the function reads it as one, or a number."""
    wanted, text = ast.unparse(target), block.predicates.code.text(target)
    number = _number(block, target)
    # a key that is read elsewhere may not be there yet
    keyed = isinstance(target, ast.Subscript)
    for node in evaluated_before(block.facts, block.whole) if keyed else nodes_in(block.facts.function):
        if not (isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Load)):
            continue
        if ast.unparse(node) == wanted and is_tensor(block.facts, node):
            return SideValue(text, node, ShapeInference(block.facts).of(node))
        if ast.unparse(node) == wanted:
            number = number or _number(block, node)
    if number is None and (kept := _entry(block, target)) is not None:
        return kept
    return SideValue(text, target, None, None, number) if number in NUMBER_TYPES else None


def _entry(block: Converting, target: ast.Attribute | ast.Subscript) -> SideValue | None:
    """The tensor that a dictionary with a name holds under a key when the branch is reached, by the analysis alone:
    of one that nobody else has.
    """
    if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
        return None
    if not _kept_to_itself(block, target.value.id):
        return None
    owner = block.facts.before(block.whole).get(target.value.id)
    value = (owner.fields or {}).get(constant(target.slice)) if isinstance(owner, Container) else None
    if not isinstance(value, Tensor) or value.ndarray:
        return None
    leaf = ("leaf", ast.unparse(target))
    exact = value.dtype not in ("int", "float", "complex", None)
    shape = () if value.rank == 0 else value.shape if value.shape is not None else leaf
    meta = TensorType(shape, value.dtype if exact else (value.dtype, leaf) if value.dtype else leaf)
    return SideValue(block.predicates.code.text(target), target, meta)


def _kept_to_itself(block: Converting, name: str) -> bool:
    """Is a dictionary written in the function, which up to the branch only reads and sets its keys?"""
    facts = block.facts
    loops = [a for a in facts.ancestors(block.whole) if isinstance(a, (ast.For, ast.AsyncFor, ast.While))]
    end = (loops[-1] if loops else block.whole).end_lineno or 0
    made = [b.value for b in bindings(facts).get(name, ())]
    if not made or name in parameters(facts.function) or not all(isinstance(v, ast.Dict) for v in made):
        return False
    for node in nodes_in(facts.function):
        if not (isinstance(node, ast.Name) and node.id == name and node.lineno <= end):
            continue
        above = facts.parent(node)
        item = isinstance(above, ast.Subscript) and above.value is node and not isinstance(above.ctx, ast.Del)
        if not item and not isinstance(node.ctx, ast.Store):
            return False
    return True


def _number(block: Converting, node: ast.expr) -> str | None:
    """The type of the Python number that a place holds, at first at least: a 0-d tensor may be stored there later."""
    found = options(block.facts.value(node))
    numbers = {v.type for v in found if isinstance(v, Static)}
    rest = [v for v in found if not isinstance(v, Static)]
    kept = all(isinstance(v, Tensor) and v.rank == 0 for v in rest)
    return numbers.pop() if len(numbers) == 1 and kept else number_type(block.facts, node)
