"""Do two expressions give tensors of one shape and one dtype? By the analysis's tokens, else by how both are
built from one leaf.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Const, Container, Scalar, Static, Tensor, dtype_kind
from graphmend.analysis.tensors.promotion import promote_scalar
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.qualified_names import constant, qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_JOINS = frozenset(f"torch.{name}" for name in ("cat", "concat", "concatenate", "hstack", "vstack", "dstack"))
_KINDS = ("bool", "int", "float", "complex", None)


class TensorType(NamedTuple):
    """Shape and dtype of a tensor as tokens: equal tokens, equal shapes or dtypes; None is equal to nothing."""

    shape: Hashable
    dtype: Hashable
    proven: bool = True
    """Is it a tensor for certain?"""

    def or_else(self, other: TensorType) -> TensorType:
        """What is known of a tensor that is this one or another."""
        shape = self.shape if self.shape == other.shape else None
        dtype = self.dtype if self.dtype == other.dtype else None
        return TensorType(shape, dtype, self.proven and other.proven)


@dataclass(frozen=True)
class Likeness:
    """What is known about two expressions; a blocker refuses, differences are named."""

    blocker: str | None = None
    differences: tuple[Difference, ...] = ()


class ShapeInference:
    """Shapes and dtypes of expressions, with those of names that were bound on the way to tensors or numbers."""

    def __init__(
        self,
        facts: FunctionFacts,
        bound: Mapping[str, TensorType] | None = None,
        numbers: Mapping[str, str | None] | None = None,
    ) -> None:
        self.facts = facts
        self.bound = dict(bound or {})
        self.numbers = numbers or {}

    @answers("shapes")
    def of(self, node: ast.expr) -> TensorType | None:
        """The shape and dtype of an expression; None where it is no tensor, or nothing is known."""
        if isinstance(node, ast.Name) and node.id in self.bound:
            return self.bound[node.id]
        if isinstance(node, ast.Name) and node.id in self.numbers:
            return None
        built = self._built(node)
        value = self.facts.value(node)
        if isinstance(value, Tensor):
            shape = value.shape if value.shape is not None else built.shape if built else None
            if value.rank == 0:
                shape = ()
            dtype = (
                value.dtype if value.dtype not in _KINDS or value.dtype == "bool" else built.dtype if built else None
            )
            return TensorType(shape, dtype)
        if isinstance(value, (Static, Scalar, Container)) or (isinstance(node, ast.Constant)):
            return None
        return built

    def _built(self, node: ast.expr) -> TensorType | None:
        """The shape and dtype of an expression from those of its parts."""
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and _is_path(node):
            value = self.facts.value(node)
            token = ("leaf", ast.unparse(node))
            kind = dtype_kind(value.dtype) if isinstance(value, Tensor) else None
            return TensorType(token, (kind, token) if kind else token, proven=isinstance(value, Tensor))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            return self.of(node.operand)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)):
            return self._operator(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        return None

    def _operator(self, node: ast.BinOp) -> TensorType | None:
        left, right = self.of(node.left), self.of(node.right)
        if left and right:
            dtype = left.dtype if left.dtype == right.dtype else None
            if isinstance(node.op, ast.Div) and dtype is not None:
                dtype = promote(dtype, "float")  # whole numbers become floating ones
            return TensorType(broadcast(left.shape, right.shape), dtype, left.proven and right.proven)
        tensor, other = (left, node.right) if left else (right, node.left)
        number = self.numbers.get(other.id) if isinstance(other, ast.Name) else None
        number = number or _number(self.facts, other)
        if tensor is None or number is None:
            return None
        kind = "float" if isinstance(node.op, ast.Div) else number
        return TensorType(tensor.shape, promote(tensor.dtype, kind), tensor.proven)

    def _call(self, node: ast.Call) -> TensorType | None:
        name = qualified(self.facts, node.func)
        last = name.rpartition(".")[2] if name else node.func.attr if isinstance(node.func, ast.Attribute) else ""
        first = node.args[0] if node.args else None
        if (
            isinstance(node.func, ast.Attribute)
            and not (name or "").startswith(("torch.nn", "torch._"))
            and self.of(node.func.value)
        ) and (name is None or name.startswith("torch.Tensor.")):
            first = node.func.value
        if first is None or (name and name.rpartition(".")[0] not in known.FUNCTIONAL):
            return None
        inner = self.of(first)
        if inner is None:
            return None
        if last in known.LOSSES and not any(k.arg in ("reduction", "reduce", "size_average") for k in node.keywords):
            return TensorType((), inner.dtype, inner.proven)
        if last in known.TESTS:
            return TensorType(inner.shape, "bool", inner.proven)
        if last in known.ELEMENTWISE and not any(k.arg == "dtype" for k in node.keywords):
            kept = last in (
                "clone",
                "contiguous",
                "detach",
                "zeros_like",
                "ones_like",
                "empty_like",
                "full_like",
                "neg",
                "relu",
            )
            kind = token_kind(inner.dtype)
            floats = None if inner.dtype is None else ("floats", inner.dtype)
            dtype = inner.dtype if kept or kind == "float" else floats
            return TensorType(inner.shape, dtype, inner.proven)
        if last in known.CASTS:
            return TensorType(inner.shape, last, inner.proven)
        return None


@answers("shapes")
def alike(
    facts: FunctionFacts,
    a: ast.expr,
    b: ast.expr,
    left: ShapeInference | None = None,
    right: ShapeInference | None = None,
) -> Likeness:
    """What `torch.where(c, a, b)` would do to shape and dtype."""
    one, two = (left or ShapeInference(facts)).of(a), (right or ShapeInference(facts)).of(b)
    return compare(shortened(a), one, shortened(b), two)


@answers("shapes")
def compare(a: str, one: TensorType | None, b: str, two: TensorType | None) -> Likeness:
    """The same, where both are known already; `a` and `b` say what they are of."""
    if one is None or two is None:
        return Likeness(f"`{a if one is None else b}` is not known to be a tensor")
    differences: list[Difference] = []
    if one.shape != two.shape or one.shape is None:
        larger = _larger(a, one.shape, b, two.shape)
        if larger is None:
            return Likeness(f"the shapes of `{a}` and `{b}` are not known to be equal")
        differences.append(larger)
    if one.dtype != two.dtype or one.dtype is None:
        kinds = [token_kind(one.dtype), token_kind(two.dtype)]
        if None not in kinds and kinds[0] != kinds[1]:
            return Likeness(f"the dtypes of `{a}` and `{b}` differ")
        differences.append(
            Difference("dtype", f"if the dtypes of `{a}` and `{b}` differ, the result has the promoted one")
        )
    differences += [
        Difference("type", f"`{text}` is taken for a tensor") for text, meta in ((a, one), (b, two)) if not meta.proven
    ]
    return Likeness(None, tuple(differences))


@answers("shapes")
def is_sized_by_values(facts: FunctionFacts, node: ast.AST) -> bool:
    """Does a mask decide how large what is read is, so that TorchDynamo breaks there?"""
    if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
        return False
    mask = facts.value(node.slice)
    return isinstance(mask, Tensor) and mask.dtype == "bool" and not mask.ndarray


@answers("shapes")
def other_sizes(facts: FunctionFacts, part: ast.expr, whole: ast.expr) -> bool:
    """Is one expression a part of a tensor that the other one has all of, or of another rank?"""
    values = facts.value(part), facts.value(whole)
    ranks = [v.rank if isinstance(v, Tensor) else None for v in values]
    if None not in ranks and ranks[0] != ranks[1]:
        return True
    if _joins(facts, part, whole):
        return True
    if not isinstance(part, ast.Subscript):
        return False
    indices = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
    cuts = any(
        i.lower or i.upper or i.step if isinstance(i, ast.Slice) else constant(i) not in (None, ...) for i in indices
    )
    if cuts and ast.unparse(part.value) == ast.unparse(whole):
        return True
    inference = ShapeInference(facts)
    of, all_of = inference.of(part.value), inference.of(whole)
    return cuts and of is not None and all_of is not None and of.shape is not None and of.shape == all_of.shape


def _joins(facts: FunctionFacts, part: ast.expr, whole: ast.expr) -> bool:
    """Is a tensor joined with others in an expression? Only where those are empty the sizes are its own."""
    match whole:
        case ast.Call(func=function, args=[ast.Tuple(elts=parts) | ast.List(elts=parts), *_]) if len(parts) > 1:
            return qualified(facts, function) in _JOINS and ast.dump(part) in map(ast.dump, parts)
    return False


def broadcast(a: Hashable, b: Hashable) -> Hashable:
    """The token of two shapes broadcast together."""
    if a is None or b is None:
        return None
    parts = _parts(a) | _parts(b)
    return next(iter(parts), ()) if len(parts) < 2 else ("broadcast", parts)


def _parts(shape: Hashable) -> frozenset[Hashable]:
    if isinstance(shape, tuple) and shape[:1] == ("broadcast",):
        return frozenset(shape[1])
    return frozenset() if shape == () else frozenset({shape})


def _larger(a: str, one: Hashable, b: str, two: Hashable) -> Difference | None:
    """What differs where one value has the other's shape, broadcast with more."""
    if one is None or two is None or one == () or two == ():
        return None
    if _parts(one) < _parts(two):
        a, b = b, a
    elif not _parts(two) < _parts(one):
        return None
    return Difference("shape", f"if the shape of `{a}` is larger than that of `{b}`, the result always has it")


def token_kind(dtype: Hashable) -> str | None:
    """The kind of a dtype token."""
    if isinstance(dtype, tuple) and dtype:
        if dtype[0] in ("bool", "int", "float", "complex"):
            return str(dtype[0])
        return None
    return dtype_kind(
        {"double": "float64", "half": "float16", "long": "int64"}.get(str(dtype), dtype)
        if isinstance(dtype, str)
        else dtype
    )


def promote(dtype: Hashable, number: str) -> Hashable:
    """The dtype of a tensor combined with a Python number."""
    found = promote_scalar(dtype, number)
    # which float or complex dtype it is depends on the one that it was, and on torch's default
    return (found, dtype) if isinstance(found, str) and found != dtype and found in ("float", "complex") else found


def _number(facts: FunctionFacts, node: ast.expr) -> str | None:
    """The kind of a Python number."""
    literal = constant(node)
    if isinstance(literal, (bool, int, float, complex)):
        return type(literal).__name__
    value = facts.value(node)
    if isinstance(value, Const) and isinstance(value.value, (bool, int, float, complex)):
        return type(value.value).__name__
    if isinstance(value, (Static, Scalar)) and value.type in ("bool", "int", "float", "complex"):
        return value.type
    return None


def _is_path(node: ast.expr) -> bool:
    """A name, or attributes and constant subscripts of one."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Subscript) and constant(node.slice) is None:
            return False
        node = node.value
    return isinstance(node, ast.Name)
