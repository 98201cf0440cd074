"""May code raise, where it is evaluated although it was not before?"""

from __future__ import annotations

import ast
from collections.abc import Container
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.transforms.code.qualified_names import constant, qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.dtypes import kind
from graphmend.transforms.legality.effects import is_layer
from graphmend.transforms.legality.operations import names as known

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


def may_raise(
    facts: FunctionFacts, *nodes: ast.expr, protected: Container[ast.expr] = frozenset(), at: ast.stmt | None = None
) -> list[Difference]:
    """The exceptions that evaluating code for every input may bring, each with kind `exception`; none where it is
    total.

    `protected` are the operations whose operands are harmless then (see `double_where`); `at` is the statement in
    whose place the code is evaluated, by default the branch of the finding: what is evaluated there all the same may
    raise once more.
    """
    found: list[Difference] = []
    for whole in nodes:
        for node in ast.walk(whole):
            if not (isinstance(node, ast.BinOp) and node in protected):
                _judge(facts, node, found)
    return found


def _judge(facts: FunctionFacts, node: ast.AST, found: list[Difference]) -> None:
    if isinstance(node, ast.Call):
        _judge_call(facts, node, found)
    elif isinstance(node, ast.BinOp):
        _judge_operator(facts, node, found)
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        whole = all(isinstance(i, ast.Slice) or constant(i) in (None, ...) for i in _indices(node))
        if not (isinstance(facts.value(node.value), Tensor) and whole and not _computed(node)):
            found.append(_both_sides(node))


def _judge_call(facts: FunctionFacts, node: ast.Call, found: list[Difference]) -> None:
    name = qualified(facts, node.func)
    if name is None or is_layer(facts, node.func):
        return
    folder, _, last = name.rpartition(".")
    pure = folder in known.FUNCTIONAL and name not in ("torch.finfo", "torch.iinfo", "torch.tensor", "torch.device")
    if pure and not _total(facts, node, last):
        found.append(_both_sides(node))


def _total(facts: FunctionFacts, node: ast.Call, last: str) -> bool:
    """Can a call of a pure torch function raise for no value of its arguments?"""
    if last in known.ELEMENTWISE or last in known.TESTS or last in known.CASTS:
        return True
    if last in known.ARITHMETIC:
        return _fit(facts, [*node.args, *([node.func.value] if isinstance(node.func, ast.Attribute) else [])])
    if last in known.REDUCTIONS:
        return len(node.args) + len(node.keywords) <= (
            0 if isinstance(node.func, ast.Attribute) and _is_method(facts, node) else 1
        )
    return last in ("finfo", "zeros", "ones", "full", "dim", "size", "numel", "where")


def _is_method(facts: FunctionFacts, node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and isinstance(facts.value(node.func.value), Tensor)


def _judge_operator(facts: FunctionFacts, node: ast.BinOp, found: list[Difference]) -> None:
    tensors = [o for o in (node.left, node.right) if isinstance(facts.value(o), Tensor)]
    if not tensors:
        return
    if isinstance(node.op, (ast.FloorDiv, ast.Mod)) and any(kind(facts, t) != "float" for t in tensors):
        found.append(
            Difference(
                "exception",
                f"`{_short(node)}` divides by zero where its side was not taken, if that is what the branch avoids",
            )
        )
    elif isinstance(node.op, ast.MatMult) or not _fit(facts, [node.left, node.right]):
        found.append(_both_sides(node))


def _fit(facts: FunctionFacts, operands: list[ast.expr]) -> bool:
    """Do the shapes of operands broadcast for certain: numbers, 0-d tensors, or one shape?"""
    values = [facts.value(o) for o in operands]
    shaped = [v for v in values if isinstance(v, Tensor) and v.rank != 0]
    paths = {ast.unparse(o) for o, v in zip(operands, values, strict=True) if isinstance(v, Tensor) and v.rank != 0}
    same = len({v.shape for v in shaped}) == 1 and shaped[0].shape is not None if shaped else True
    return len(paths) <= 1 or same


def _indices(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _computed(node: ast.Subscript) -> bool:
    return any(not isinstance(i, (ast.Slice, ast.Constant)) for i in _indices(node))


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 50 else f"{text[:47]}..."


def _both_sides(node: ast.expr) -> Difference:
    return Difference(
        "exception", f"`{_short(node)}` is evaluated on both sides and may raise where its side was not taken"
    )
