"""Indices that a test keeps inside of what they index: 0 stands for them where the test fails.

`if t != pad: counts[t] += 1` reads and writes `counts[torch.where(t != pad, t, 0)]`, which is there wherever `counts`
has an element. What is read there in vain is not selected.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Tensor, dtype_kind
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.qualified_names import qualified
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.raising.kept_away import kept_away

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

#: functions of an index that 0 is a value of, the operand's position, the receiver of a method counted
_INDEX = {
    **dict.fromkeys("gather index_select scatter scatter_add index_add index_copy index_fill select".split(), 2),
    **dict.fromkeys("take take_along_dim cross_entropy nll_loss".split(), 1),
    **dict.fromkeys("embedding one_hot".split(), 0),
}


def keep_inside(
    facts: FunctionFacts,
    expression: ast.expr,
    at: ast.stmt,
    taken: Callable[[str, str], str],
    zeros_like: Callable[[], str] | None,
    replace: dict[ast.expr, str],
    protected: set[ast.expr],
) -> list[ast.expr]:
    """Adds to `replace` a text for each index that a test in `at` is about, and to `protected` the operations that do
    not raise for it then. The indices. `taken(index, other)` is the text of the index where the operation is wanted,
    and of the other elsewhere. Without `zeros_like` only what is known to hold whole numbers is an index: a mask that
    is False everywhere picks nothing, of which a maximum raises.
    """
    code, found = Code(facts.source), []
    for node, indices in _indexing(facts, expression):
        about = [] if node in protected else kept_away(facts, node, at)
        kept = [i for i in indices if i in about and (zeros_like is not None or _kind(facts, i) == "int")]
        if any(operand not in kept and operand is not _owner(node) for operand in about):
            continue  # it raises for another of them all the same
        for index in kept:
            text = code.argument(index, replace)
            # of a dtype that is not known it may be a mask, and stays one
            other = "0" if zeros_like is None or _kind(facts, index) == "int" else f"{zeros_like()}({text})"
            replace[index] = taken(text, other)
        if kept:
            protected.add(node)
        found += kept
    return found


def _indexing(facts: FunctionFacts, expression: ast.expr) -> Iterator[tuple[ast.expr, list[ast.expr]]]:
    """The operations of an expression whose indices are tensors of whole numbers, inner ones first."""
    for child in ast.iter_child_nodes(expression):
        part = child.value if isinstance(child, ast.keyword) else child
        if isinstance(part, ast.expr):
            yield from _indexing(facts, part)
    match expression:
        case ast.Subscript(value=owner, slice=place) if isinstance(facts.value(owner), Tensor):
            parts = place.elts if isinstance(place, ast.Tuple) else [place]
            if (indices := [part for part in parts if _is_index(facts, part)]) and not any(map(_bounded, parts)):
                yield expression, indices
        case ast.Call():
            if (index := _operand(facts, expression)) is not None and _is_index(facts, index):
                yield expression, [index]


def _operand(facts: FunctionFacts, call: ast.Call) -> ast.expr | None:
    called = facts.value(call.func)
    if isinstance(called, ExternalInstance) and called.cls == "torch.nn.Embedding":
        return call.args[0] if call.args else None
    folder, _, last = (qualified(facts, call.func) or "").rpartition(".")
    if folder not in known.FUNCTIONAL or last not in _INDEX:
        return None
    operands = list(call.args)
    if folder == "torch.Tensor" and isinstance(call.func, ast.Attribute):
        operands.insert(0, call.func.value)
    return operands[_INDEX[last]] if len(operands) > _INDEX[last] else None


def _owner(node: ast.expr) -> ast.expr | None:
    """What is indexed: a test of its size is about the index."""
    return node.value if isinstance(node, ast.Subscript) else None


def _bounded(part: ast.expr) -> bool:
    return isinstance(part, ast.Slice) and any(b is not None for b in (part.lower, part.upper, part.step))


def _is_index(facts: FunctionFacts, node: ast.expr) -> bool:
    """May a tensor hold whole numbers? Those of one byte are a mask."""
    value = facts.value(node)
    return isinstance(value, Tensor) and not value.ndarray and _kind(facts, node) in ("int", None)


def _kind(facts: FunctionFacts, node: ast.expr) -> str | None:
    value = facts.value(node)
    if not isinstance(value, Tensor) or value.dtype == "uint8":
        return "mask"
    return dtype_kind(value.dtype)
