"""May a 0-d tensor stand where a Python number stands? Follows the number from its expression through names to
every use.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Scalar, Tensor, dtype_kind, tensor_in
from graphmend.transforms.code.qualified_names import qualified
from graphmend.transforms.fix import Difference

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

#: functions whose number arguments may be 0-d tensors, traced by torch 2.13
_TAKES_TENSORS = frozenset(
    f"torch.{folder}{name}"
    for folder in ("", "Tensor.")
    for name in (
        "where",
        "fill_",
        "masked_fill",
        "masked_fill_",
        "add",
        "sub",
        "mul",
        "div",
        "maximum",
        "minimum",
        "pow",
    )
) | {"builtins.max", "builtins.min", "builtins.abs", "torch.full"}

#: they take one bound as a tensor
_BOUNDS = frozenset(
    f"torch.{folder}{name}" for folder in ("", "Tensor.") for name in ("clamp", "clip", "clamp_min", "clamp_max")
)

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.FloorDiv, ast.Mod)


class NeedsPythonNumberError(Exception):
    """A use that needs a Python number; the message is the sentence to refuse with."""


class ScalarUses:
    """Follows a number to its uses, and collects what a tensor in its place would do differently."""

    def __init__(self, facts: FunctionFacts, dtype: object = None) -> None:
        self.facts = facts
        self.kind = dtype_kind(dtype) if isinstance(dtype, str) else None
        self.differences: list[Difference] = []
        self._seen: set[str] = set()
        self._mixed = False

    def follow(self, node: ast.expr) -> None:
        """Goes up from an expression whose value would become a 0-d tensor."""
        parent = self.facts.parent(node)
        match parent:
            case ast.BinOp(op=op) if isinstance(op, _ARITHMETIC):
                self._arithmetic(parent, node)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
                self.follow(parent)
            case ast.Compare(ops=ops) if not any(isinstance(o, (ast.In, ast.NotIn, ast.Is, ast.IsNot)) for o in ops):
                self._test(parent)
            case ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                self._test(parent)
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) if test is node:
                pass  # a branch on a tensor, which has mends of its own
            case ast.IfExp():
                self.follow(parent)
            case ast.Assert(test=test) if test is node:
                pass
            case ast.FormattedValue(conversion=-1) if self._raised(parent):
                pass
            case ast.Call() if node in parent.args or any(k.value is node for k in parent.keywords):
                self._argument(parent)
            case ast.keyword():
                above = self.facts.parent(parent)
                assert isinstance(above, ast.Call)
                self._argument(above)
            case ast.NamedExpr(target=target):
                self.name(target.id)
                self.follow(parent)
            case ast.Assign(targets=targets):
                self.names(targets)
            case ast.AnnAssign(target=target):
                self._target(target)
            case ast.AugAssign(target=ast.Name(id=name)):
                if not isinstance(self.facts.before(parent).get(name), Tensor):
                    self.name(name)
            case ast.AugAssign():
                raise NeedsPythonNumberError(f"`{_short(parent)}` counts in a Python number that outlives the region")
            case _:
                raise NeedsPythonNumberError(f"`{_short(parent or node)}` needs a Python number")

    def names(self, targets: list[ast.expr]) -> None:
        for target in targets:
            self._target(target)

    def _arithmetic(self, parent: ast.BinOp, node: ast.expr) -> None:
        other = parent.right if parent.left is node else parent.left
        value = self.facts.value(other)
        if isinstance(value, Tensor) and not value.ndarray:
            kind = dtype_kind(value.dtype)
            order = ("bool", "int", "float", "complex")
            lower = kind is not None and self.kind is not None and order.index(self.kind) <= order.index(kind)
            if not (lower and value.rank) and not (value.dtype == "float32" and self.kind == "float"):
                self.differences.append(
                    Difference(
                        "dtype", "a 0-d tensor may promote the result to its own dtype, which a Python number does not"
                    )
                )
            return
        self.differences.append(
            Difference("rounding", "numbers are computed in the tensor's precision instead of Python's")
        )
        self.follow(parent)

    def _test(self, parent: ast.expr) -> None:
        if self._mixed:
            raise NeedsPythonNumberError(
                f"`{_short(parent)}` would be a Python bool for some values and a tensor for others"
            )
        above = self.facts.parent(parent)
        if isinstance(above, (ast.GeneratorExp, ast.ListComp)) and above.elt is parent:
            return  # an element of `any` or `all`, or the list is judged by itself
        self.follow(parent)

    def _argument(self, call: ast.Call) -> None:
        name = qualified(self.facts, call.func) or ""
        if name not in _TAKES_TENSORS | _BOUNDS:
            raise NeedsPythonNumberError(f"`{_short(call)}` needs a Python number")
        if name in ("builtins.max", "builtins.min"):
            self._mixed = True  # either side may be the result
        if name in _BOUNDS and len(call.args) + len(call.keywords) != (1 if "Tensor" in name else 2):
            raise NeedsPythonNumberError(f"`{_short(call)}` takes two numbers or two tensors for its bounds")
        if tensor_in(self.facts.value(call)) is None:
            self.follow(call)

    def _target(self, target: ast.expr) -> None:
        match target:
            case ast.Name(id=name):
                self.name(name)
            case ast.Attribute():
                self.differences.append(
                    Difference("type", f"`{_short(target)}` holds a 0-d tensor instead of a Python number")
                )
            case ast.Subscript(value=value) if isinstance(self.facts.value(value), Tensor):
                pass
            case _:
                raise NeedsPythonNumberError(f"`{_short(target)}` is to hold a Python number")

    def name(self, name: str) -> None:
        """Follows a number to the uses of a name that it is given."""
        if name in self._seen:
            return
        self._seen.add(name)
        for node in ast.walk(self.facts.function):
            if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
                raise NeedsPythonNumberError(f"`{name}` is no local name")
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                if isinstance(self.facts.value(node), Tensor):
                    continue
                self.follow(node)
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
                self.differences.append(
                    Difference("rounding", "numbers are computed in the tensor's precision instead of Python's")
                )

    def _raised(self, node: ast.AST) -> bool:
        """Does a text only serve as the message of an exception?"""
        return any(isinstance(a, (ast.Raise, ast.Assert)) for a in self.facts.ancestors(node))


def is_scalar(facts: FunctionFacts, node: ast.expr) -> bool:
    return isinstance(facts.value(node), Scalar)


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 50 else f"{text[:47]}..."
