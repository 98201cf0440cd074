"""What happens when an expression is evaluated although its branch was not taken. The questions that rewrites
ask before they do so.

The answers are sentences: a blocker is a reason to refuse, a difference has to be named by an unsafe mend.
"""

from __future__ import annotations

import ast
from collections.abc import Container
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Scalar, Static, Tensor, dtype_kind, tensor_in
from graphmend.transforms.code.liveness import reads
from graphmend.transforms.code.qualified_names import constant, qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality import torch_operations as known

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

#: how a gradient of zero may come back from an expression: as zero for every input, for finite inputs, or not
Leak = Literal["never", "at infinity", "anywhere"]

_ZEROS = Difference(
    "zero-gradients", "parameters that only the side not taken uses get zeros for gradients instead of None"
)
#: other functions that only compute, and raise for nothing that they are given here
_TOTAL = frozenset({"graphmend.runtime.select", "torch.finfo", "torch.iinfo", "torch.tensor", "torch.device"})
_BUILTINS = frozenset(
    [
        "len",
        "min",
        "max",
        "abs",
        "int",
        "float",
        "bool",
        "tuple",
        "list",
        "isinstance",
        "hasattr",
        "getattr",
        "range",
        "sum",
        "round",
        "str",
    ]
)


@dataclass
class Speculation:
    """What evaluating code in vain may do."""

    blockers: list[str] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)

    def add(self, other: Speculation) -> None:
        self.blockers += other.blockers
        self.differences += other.differences


def speculate(
    facts: FunctionFacts, *expressions: ast.expr, protected: Container[ast.expr] = frozenset()
) -> Speculation:
    """What evaluating expressions in vain may do: side effects block, a possible exception differs.

    `protected` are the operations whose operands are harmless then (see `double_where`).
    """
    found = Speculation()
    for expression in expressions:
        for node in ast.walk(expression):
            if not (isinstance(node, ast.BinOp) and node in protected):
                _judge(facts, node, found)
    return found


def repeatable(facts: FunctionFacts, *expressions: ast.expr) -> bool:
    """May expressions be evaluated more than once: no random numbers, no side effects, no layer with hooks?"""
    found = speculate(facts, *expressions)
    return not found.blockers and _ZEROS not in found.differences


def _judge(facts: FunctionFacts, node: ast.AST, found: Speculation) -> None:
    if isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
        found.blockers.append(f"`{_short(node)}` does more than compute")
    elif isinstance(node, ast.Call):
        _judge_call(facts, node, found)
    elif isinstance(node, ast.BinOp):
        _judge_operator(facts, node, found)
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        whole = all(isinstance(i, ast.Slice) or constant(i) in (None, ...) for i in _indices(node))
        if not (isinstance(facts.value(node.value), Tensor) and whole and not _computed(node)):
            found.differences.append(
                Difference(
                    "exception",
                    f"`{_short(node)}` is evaluated on both sides and may raise where its side was not taken",
                )
            )


def _judge_call(facts: FunctionFacts, node: ast.Call, found: Speculation) -> None:
    name = qualified(facts, node.func)
    if _layer(facts, node.func):
        found.differences.append(_ZEROS)
        return
    if name is None:
        found.blockers.append(f"`{_short(node.func)}` may have side effects")
        return
    folder, _, last = name.rpartition(".")
    if folder == "builtins" and last in _BUILTINS:
        if any(isinstance(facts.value(a), Tensor) for a in node.args) and last in ("int", "float", "bool", "str"):
            found.blockers.append(f"`{_short(node)}` takes a Python value out of a tensor")
    elif name.startswith("math.") or name in (
        "graphmend.runtime.select",
        "torch.finfo",
        "torch.iinfo",
        "torch.tensor",
        "torch.device",
    ):
        pass
    elif folder not in known.FUNCTIONAL:
        found.blockers.append(f"`{_short(node.func)}` may have side effects")
    elif last in known.RANDOM and not _no_dropout(node, last):
        found.blockers.append(f"`{name}` draws random numbers, and would draw them on both sides")
    elif last in known.EFFECTFUL or last.endswith("_") or any(k.arg == "out" for k in node.keywords):
        found.blockers.append(f"`{_short(node.func)}` changes something")
    elif any(k.arg == "inplace" and constant(k.value) is not False for k in node.keywords):
        found.blockers.append(f"`{_short(node)}` works in place")
    elif not _total(facts, node, last):
        found.differences.append(
            Difference(
                "exception", f"`{_short(node)}` is evaluated on both sides and may raise where its side was not taken"
            )
        )


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


def _judge_operator(facts: FunctionFacts, node: ast.BinOp, found: Speculation) -> None:
    tensors = [o for o in (node.left, node.right) if isinstance(facts.value(o), Tensor)]
    if not tensors:
        return
    if isinstance(node.op, (ast.FloorDiv, ast.Mod)) and any(_kind(facts, t) != "float" for t in tensors):
        found.differences.append(
            Difference(
                "exception",
                f"`{_short(node)}` divides by zero where its side was not taken, if that is what the branch avoids",
            )
        )
    elif isinstance(node.op, ast.MatMult) or not _fit(facts, [node.left, node.right]):
        found.differences.append(
            Difference(
                "exception", f"`{_short(node)}` is evaluated on both sides and may raise where its side was not taken"
            )
        )


def _fit(facts: FunctionFacts, operands: list[ast.expr]) -> bool:
    """Do the shapes of operands broadcast for certain: numbers, 0-d tensors, or one shape?"""
    values = [facts.value(o) for o in operands]
    shaped = [v for v in values if isinstance(v, Tensor) and v.rank != 0]
    paths = {ast.unparse(o) for o, v in zip(operands, values, strict=True) if isinstance(v, Tensor) and v.rank != 0}
    same = len({v.shape for v in shaped}) == 1 and shaped[0].shape is not None if shaped else True
    return len(paths) <= 1 or same


def leak(facts: FunctionFacts, expression: ast.expr, protected: Container[ast.expr] = frozenset()) -> Leak:
    """Where a gradient of zero, sent into an expression whose side was not taken, may come out as NaN."""
    worst: Leak = "never"
    for node in ast.walk(expression):
        level: Leak = "never"
        if isinstance(node, ast.Call):
            last = (qualified(facts, node.func) or "").rpartition(".")[2]
            arguments = [*node.args, *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]
            if not any(tensor_in(facts.value(a)) for a in arguments) or last in known.LEAKLESS:
                continue
            level = "anywhere" if last in known.SINGULAR else "at infinity"
        elif isinstance(node, ast.BinOp) and _floating(facts, node):
            sides = [tensor_in(facts.value(o)) for o in (node.left, node.right)]
            if isinstance(node.op, (ast.Add, ast.Sub)) or not any(sides):
                continue
            if isinstance(node.op, (ast.Div, ast.Mod, ast.FloorDiv)):
                level = "anywhere" if sides[1] else "never"
            elif isinstance(node.op, ast.Pow):
                level = "at infinity" if _small_power(node) else "anywhere"
            else:
                level = "at infinity" if all(sides) else "never"
        if level == "anywhere" and node in protected:
            level = "at infinity" if isinstance(node, ast.BinOp) else "never"
        if level == "anywhere" or worst == "never":
            worst = level
    return worst


def roots(facts: FunctionFacts, expression: ast.expr) -> set[str]:
    """The names in an expression that gradients may flow to."""
    return {n for n in reads(expression) if n not in facts.names and _may_carry(facts, expression, n)}


def _may_carry(facts: FunctionFacts, expression: ast.expr, name: str) -> bool:
    for node in ast.walk(expression):
        if isinstance(node, ast.Name) and node.id == name:
            value = facts.value(node)
            kind = dtype_kind(value.dtype) if isinstance(value, Tensor) else None
            if isinstance(value, (Static, Scalar)) or kind in ("bool", "int"):
                continue
            return True
    return False


def _floating(facts: FunctionFacts, node: ast.expr) -> bool:
    return _kind(facts, node) not in ("bool", "int")


def _kind(facts: FunctionFacts, node: ast.expr) -> str | None:
    value = facts.value(node)
    return dtype_kind(value.dtype) if isinstance(value, Tensor) else None


def _small_power(node: ast.BinOp) -> bool:
    power = constant(node.right)
    return isinstance(power, int) and power >= 1


def _no_dropout(node: ast.Call, last: str) -> bool:
    if "dropout" in last:
        return any(k.arg == "training" and constant(k.value) is False for k in node.keywords)
    if last == "scaled_dot_product_attention":
        return len(node.args) < 5 and all(k.arg != "dropout_p" or constant(k.value) in (0, 0.0) for k in node.keywords)
    return False


def _layer(facts: FunctionFacts, function: ast.expr) -> bool:
    value = facts.value(function)
    return isinstance(value, ExternalInstance) and value.cls in known.LAYERS


def _indices(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _computed(node: ast.Subscript) -> bool:
    return any(not isinstance(i, (ast.Slice, ast.Constant)) for i in _indices(node))


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 50 else f"{text[:47]}..."
