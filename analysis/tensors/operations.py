"""Transfer functions of tensor operations: rank, dtype and shape as far as they follow from the operands.

A shape or dtype that does not follow is None: nothing is ever guessed, because rewrites rely on equal tokens. Semantics
are torch's type promotion and broadcasting rules,
https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc (torch 2.13).
"""

from __future__ import annotations

import ast
from collections.abc import Hashable

from graphmend.analysis.lattice.arguments import Arguments, Keywords
from graphmend.analysis.lattice.evidence import Evidence
from graphmend.analysis.lattice.external import ExternalName
from graphmend.analysis.lattice.values import (
    UNKNOWN,
    Const,
    Container,
    Scalar,
    Static,
    Tensor,
    Value,
    dtype_kind,
    is_known_input,
    join_all,
    options,
    tensor_in,
)
from graphmend.analysis.tensors import ranks
from graphmend.analysis.tensors.factories import factory
from graphmend.analysis.tensors.families import (
    BINARY,
    BINARY_BOOL,
    BINARY_FLOAT,
    BOOLEAN,
    CLASSIFIES,
    FLOATING,
    LOSSES,
    PICKS,
    PLACES,
    REARRANGES,
    REDUCTIONS,
    RESHAPES,
    SAME,
    TRANSFORMS,
)
from graphmend.analysis.tensors.promotion import (
    TORCH_DTYPES,
    broadcast,
    dtype_of,
    never_uint8,
    promote,
    promote_scalar,
    scalar_kind,
    summed,
)
from graphmend.analysis.tensors.ranks import matmul


def result(of: Tensor | None, node: ast.AST, says: str = "is a Tensor", **known: object) -> Tensor:
    """The result of an operation on `of`, with evidence. `known`: its rank, dtype, shape."""
    origin = Evidence(says, node, of.origin if of is not None else None)
    rank, dtype, shape = known.get("rank"), known.get("dtype"), known.get("shape")
    if of is None:
        return Tensor(origin, rank, dtype, shape, constant=True)  # type: ignore[arg-type]
    constant = of.constant and not is_known_input(of)
    return Tensor(origin, rank, dtype, shape, likely=of.likely, ndarray=of.ndarray, constant=constant)  # type: ignore[arg-type]


def unary(value: Tensor, node: ast.UnaryOp) -> Tensor:
    return result(value, node, rank=value.rank, dtype=value.dtype, shape=value.shape)


def binary(node: ast.expr | ast.AugAssign, op: ast.operator, left: Value, right: Value) -> Value:
    """`left op right`, where one of them is or may be a tensor."""
    a, b = tensor_in(left), tensor_in(right)
    base = a if a is not None and (b is None or not a.likely) else b
    assert base is not None
    if a is not None and b is not None:
        base = a if not a.constant else b  # what comes of it is constant only if both are
        rank, shape = broadcast(a, b)
        dtype = promote(a, b)
        if isinstance(op, ast.MatMult):
            rank = matmul(a.rank, b.rank)
            shape = () if rank == 0 else None
    else:
        other = right if a is not None else left
        rank, shape = base.rank, base.shape
        dtype = promote_scalar(base.dtype, scalar_kind(other))
        if not isinstance(other, (Static, Scalar)):
            rank = shape = dtype = None  # an unknown operand may be a tensor of any shape
    if isinstance(op, ast.Div):
        kind = dtype_kind(dtype)
        dtype = (
            dtype
            if kind in ("float", "complex")
            else "float"
            if kind in ("int", "bool")
            else promote_scalar(dtype, "float")
        )
    if isinstance(node, ast.AugAssign) and a is not None:
        rank, shape, dtype = a.rank, a.shape, a.dtype  # in place: the target keeps what it is
    if any(not isinstance(o, (Tensor, Static, Scalar)) for o in (*options(left), *options(right))) and (
        a is None or b is None
    ):
        rank = shape = None
    return _mixed(result(base, node, "is a Tensor, as an operand is", rank=rank, dtype=dtype, shape=shape), left, right)


_COMPARES = "compares a Tensor, which gives a Tensor"


def _mixed(value: Tensor, left: Value, right: Value) -> Tensor:
    """The value of an operation, likely only where no operand is a tensor for certain."""
    if value.likely or any(isinstance(o, Tensor) and not o.likely for o in (left, right)):
        return value
    return Tensor(value.origin, value.rank, value.dtype, value.shape, likely=True, ndarray=value.ndarray)


def compare(node: ast.expr, left: Value, right: Value) -> Value:
    """`left < right`, elementwise."""
    a, b = tensor_in(left), tensor_in(right)
    base = a if a is not None else b
    assert base is not None
    if a is not None and b is not None:
        rank, shape = broadcast(a, b)
    elif isinstance(right if a is not None else left, (Static, Scalar)):
        rank, shape = base.rank, base.shape
    else:
        rank = shape = None
    return _mixed(result(base, node, _COMPARES, rank=rank, dtype="bool", shape=shape), left, right)


def subscript(value: Tensor, index: Value, node: ast.AST) -> Value:
    """`value[index]`."""
    parts = (
        index.items if isinstance(index, Container) and index.kind == "tuple" and index.items is not None else (index,)
    )
    rank = ranks.subscripted(value.rank, parts)
    by = tensor_in(parts[0]) if len(parts) == 1 and value.rank == 1 else None
    shape: Hashable = () if rank == 0 else by.shape if by is not None and dtype_kind(by.dtype) == "int" else None
    return result(value, node, "is an element or part of a Tensor", rank=rank, dtype=value.dtype, shape=shape)


def unbound(value: Tensor, node: ast.AST) -> Tensor:
    """One element of the iteration over a tensor's first dimension."""
    rank = value.rank - 1 if value.rank else None
    return result(value, node, "yields Tensors", rank=rank, dtype=value.dtype, shape=() if rank == 0 else None)


#: functions that make a tensor of an array or of another tensor, as it is
_WRAPPING = frozenset({"tensor", "as_tensor", "from_numpy"})


def operation(name: str, self_: Tensor | None, args: Arguments, keywords: Keywords, node: ast.AST) -> Tensor:
    """The result of `torch.name(...)` or `self_.name(...)`, for an operation with one tensor as result."""
    operands = (self_, *args) if self_ is not None else args
    first = next((t for t in map(tensor_in, operands) if t is not None), None)
    said = "returns a Tensor"
    if first is None:
        return factory(name, args, keywords, node)
    rest = operands[1:] if operands and tensor_in(operands[0]) is first else operands
    if name in _WRAPPING and first is operands[0]:
        dtype = dtype_of(keywords["dtype"]) if "dtype" in keywords else first.dtype
        same = name == "as_tensor" and first.graph_input and not first.ndarray
        flags = {"likely": first.likely, "graph_input": same, "constant": first.constant}
        return Tensor(Evidence(said, node, first.origin), first.rank, dtype, first.shape, **flags)
    if name in ("to", "type", "type_as", "astype"):
        return _converted(name, first, rest, keywords, node)
    if name in TORCH_DTYPES or name in ("bool", "bfloat16", "byte", "char"):
        named = {"byte": "uint8", "char": "int8"}.get(name, TORCH_DTYPES.get(name, name))
        return result(first, node, said, rank=first.rank, dtype=named, shape=first.shape)
    if name in ("clamp", "clip", "clamp_min", "clamp_max"):
        return _clamped(first, rest, keywords, node)
    if name == "square":
        return result(first, node, said, rank=first.rank, dtype=promote_scalar(first.dtype, "int"), shape=first.shape)
    if name in ("cumsum", "cumprod"):
        dtype = dtype_of(keywords["dtype"]) if "dtype" in keywords else summed(first.dtype)
        return result(first, node, said, rank=first.rank, dtype=dtype, shape=first.shape)
    if name in ("max", "min") and rest and tensor_in(rest[0]) is not None:
        return _two("maximum", operands, node)
    if name in ("masked_fill", "masked_scatter"):
        rank, shape = _broadcast_with(first, rest[0] if rest else keywords.get("mask", UNKNOWN))
        return result(first, node, said, rank=rank, dtype=first.dtype, shape=shape)
    if (follows := ranks.known(name, self_, args, keywords)) is not None:
        rank, dtype = follows
        return result(first, node, said, rank=rank, dtype=dtype, shape=() if rank == 0 else None)
    if name in SAME:
        dtype = dtype_of(keywords.get("dtype")) if "dtype" in keywords else first.dtype
        if name in ("abs", "absolute") and dtype_kind(dtype) in ("complex", None):
            dtype = "float" if dtype_kind(dtype) else ("abs", dtype)  # of complex numbers it is real
        return result(first, node, said, rank=first.rank, dtype=dtype, shape=first.shape)
    if name in FLOATING:
        kind = dtype_kind(first.dtype)
        floating = (
            first.dtype if kind in ("float", "complex") else "float" if kind else promote_scalar(first.dtype, "float")
        )
        if "dtype" in keywords:
            floating = dtype_of(keywords["dtype"])
        return result(first, node, said, rank=first.rank, dtype=floating, shape=first.shape)
    if name in BOOLEAN:
        return result(first, node, said, rank=first.rank, dtype="bool", shape=first.shape)
    if name in BINARY or name in BINARY_FLOAT or name in BINARY_BOOL:
        return _two(name, operands, node)
    if name in REDUCTIONS:
        return _reduced(name, first, rest, keywords, node)
    if name == "where" and len(operands) == 3:
        return _where(operands, node)
    if name in ("unsqueeze", "stack"):
        rank = first.rank + 1 if first.rank is not None else None
        return result(first, node, said, rank=rank, dtype=first.dtype)
    if name == "view" and len(rest) == 1 and isinstance(rest[0], ExternalName):
        return result(first, node, said, rank=first.rank, dtype=dtype_of(rest[0]))
    if name in TRANSFORMS:
        return result(first, node, said, rank=first.rank, dtype=TRANSFORMS[name])
    if name in RESHAPES:
        dims = rest[0].items if len(rest) == 1 and isinstance(rest[0], Container) else rest
        known = dims is not None and all(isinstance(d, Static) and d.type == "int" for d in dims)
        rank = len(dims) if known and dims is not None else None
        shape = (1,) if rank == 1 and first.shape == () and name in ("view", "reshape") else None
        return result(first, node, said, rank=rank, dtype=first.dtype, shape=shape)
    if name in REARRANGES:
        return result(first, node, said, rank=first.rank, dtype=first.dtype)
    if name in ("linear", "conv1d", "conv2d", "conv3d"):
        return result(first, node, said, rank=first.rank, dtype=first.dtype)
    if name in ("cosine_similarity", "pairwise_distance"):
        a, b = first, next((t for t in map(tensor_in, rest) if t is not None), None)
        of = broadcast(a, b)[0] if b is not None else None
        rank = of - 1 if of and "keepdim" not in keywords and len(rest) < 4 else None
        alike = b is not None and a.dtype == b.dtype and dtype_kind(a.dtype) == "float"  # of others it is promoted
        return result(first, node, said, rank=rank, dtype=a.dtype if alike else None)
    if name in LOSSES and rest and (other := tensor_in(rest[0])) is not None:
        both = name == "binary_cross_entropy_with_logits"  # torch's own one has no reduction by default
        how = keywords.get("reduction", UNKNOWN if both else Const("mean"))
        if isinstance(how, Const) and how.value == "none":
            rank, shape = broadcast(first, other)
            return result(first, node, said, rank=rank, dtype=promote(first, other), shape=shape)
        if isinstance(how, Const) and len(rest) == 1 and not {"reduce", "size_average"} & keywords.keys():
            return result(first, node, said, rank=0, dtype=promote(first, other), shape=())
    if name in CLASSIFIES and self_ is None and len(rest) == 1 and (other := tensor_in(rest[0])) is not None:
        how = keywords.get("reduction", UNKNOWN if {"reduce", "size_average"} & keywords.keys() else Const("mean"))
        if isinstance(how, Const) and (how.value != "none" or name == "nll_loss" or other.dtype == "int64"):
            return result(first, node, said, rank=other.rank if how.value == "none" else 0, dtype=first.dtype)
    if name == "repeat_interleave":
        dim = keywords.get("dim", rest[1] if len(rest) > 1 else None)
        flat = dim is None or (isinstance(dim, Const) and dim.value is None)
        along = isinstance(dim, Static) and dim.type == "int"
        return result(first, node, said, rank=1 if flat else first.rank if along else None, dtype=first.dtype)
    if name in PLACES or (name == "nonzero" and "as_tuple" not in keywords and not first.ndarray):
        return result(first, node, said, rank=first.rank if name in ("argsort", "multinomial") else 2, dtype="int64")
    if name in ("gather", "squeeze", "select", "narrow", "masked_select", "nonzero"):
        picked = "int64" if name == "nonzero" else first.dtype
        rank = 1 if name == "masked_select" else first.rank if name in ("gather", "narrow") else None
        rank = 0 if name == "squeeze" and first.shape == (1,) else rank
        return result(first, node, said, rank=rank, dtype=picked, shape=() if name == "squeeze" and rank == 0 else None)
    if "dtype" not in keywords and (name in PICKS or (name.endswith("_") and self_ is not None)):
        return result(first, node, said, dtype=first.dtype)  # in place, a tensor keeps its dtype
    return result(first, node, said)


def _clamped(first: Tensor, rest: Arguments, keywords: Keywords, node: ast.AST) -> Tensor:
    """`clamp` promotes as arithmetic with its bounds does."""
    dtype, rank, shape = first.dtype, first.rank, first.shape
    for bound in (*rest, *keywords.values()):
        if isinstance(bound, Const) and bound.value is None:
            continue
        other = tensor_in(bound)
        if other is not None:
            dtype = promote(first, other) if dtype == first.dtype else None
            rank, shape = broadcast(first, other) if shape == first.shape else (None, None)
        else:
            dtype = promote_scalar(dtype, scalar_kind(bound))
    return result(first, node, "returns a Tensor", rank=rank, dtype=dtype, shape=shape)


def _broadcast_with(first: Tensor, other: Value) -> tuple[int | None, Hashable]:
    tensor = tensor_in(other)
    return broadcast(first, tensor) if tensor is not None else (None, None)


def _converted(name: str, first: Tensor, rest: Arguments, keywords: Keywords, node: ast.AST) -> Tensor:
    dtype: Hashable = first.dtype
    for argument in (*rest, *(v for k, v in keywords.items() if k in ("dtype", "other"))):
        other = tensor_in(argument)
        if other is not None:
            dtype = other.dtype
        elif (named := dtype_of(argument)) is not None:
            dtype = named
        elif (isinstance(argument, Static) and argument.type in ("device", "str", "bool")) or (
            isinstance(argument, ExternalName) and argument.name.startswith("torch.device")
        ):
            continue
        else:
            dtype = None
    return result(first, node, "returns a Tensor", rank=first.rank, dtype=dtype, shape=first.shape)


def _two(name: str, operands: tuple[Value, ...], node: ast.AST) -> Tensor:
    left = operands[0]
    right = operands[1] if len(operands) > 1 else UNKNOWN
    fake = ast.BinOp(ast.Constant(0), ast.Div() if name in BINARY_FLOAT else ast.Add(), ast.Constant(0))
    value = binary(fake, fake.op, left, right)
    assert isinstance(value, Tensor)
    dtype = "bool" if name in BINARY_BOOL else value.dtype
    base = tensor_in(left) or tensor_in(right)
    return result(base, node, "returns a Tensor", rank=value.rank, dtype=dtype, shape=value.shape)


def _reduced(name: str, first: Tensor, rest: Arguments, keywords: Keywords, node: ast.AST) -> Tensor:
    how = REDUCTIONS[name]
    kind = dtype_kind(first.dtype)
    dtype: Hashable
    if how == "bool":
        dtype = "bool" if first.ndarray or never_uint8(first.dtype) else None  # of uint8 it is uint8
    elif how == "int64":
        dtype = how
    elif "dtype" in keywords:
        dtype = dtype_of(keywords["dtype"])
    elif how == "same" or kind in ("float", "complex"):
        dtype = first.dtype
    elif how == "sum":
        dtype = summed(first.dtype)
    else:
        dtype = "float" if kind is not None else promote_scalar(first.dtype, "float")
    if name == "norm":
        rest = rest[1:]  # which norm it is
    elif name in ("quantile", "nanquantile"):
        of = rest[0] if rest else keywords.get("q", UNKNOWN)
        if not isinstance(of, Static) or of.type != "float":
            return result(first, node, "returns a Tensor", dtype=dtype)  # one for each
        rest = rest[1:]
    over_some = bool(rest) or any(k in keywords for k in ("dim", "axis"))
    if not over_some:
        keep = keywords.get("keepdim")
        return result(
            first,
            node,
            "returns a Tensor",
            rank=0 if keep is None else first.rank,
            dtype=dtype,
            shape=() if keep is None else None,
        )
    keep = keywords.get("keepdim") or keywords.get("keepdims") or (rest[1] if len(rest) > 1 else None)
    axis = keywords.get("dim") or keywords.get("axis") or (rest[0] if rest else None)
    kept = keep is not None and not (isinstance(keep, Const) and keep.value is False)
    axes = _axes(axis)
    rank = None
    if first.rank is not None and axes is not None and axes <= first.rank:
        rank = first.rank if kept else first.rank - axes
    return result(first, node, "returns a Tensor", rank=rank, dtype=dtype, shape=() if rank == 0 else None)


def _axes(axis: Value | None) -> int | None:
    """How many dimensions an argument names."""
    if isinstance(axis, Container) and axis.items:
        return len(axis.items) if all(isinstance(i, Static) and i.type == "int" for i in axis.items) else None
    return 1 if isinstance(axis, Static) and axis.type == "int" else None


def _where(operands: tuple[Value, ...], node: ast.AST) -> Tensor:
    mask = tensor_in(operands[0])
    sides = [tensor_in(o) for o in operands[1:]]
    chosen = [t for t in sides if t is not None]
    if mask is None:
        return result(chosen[0] if chosen else None, node, "returns a Tensor")
    kinds = [scalar_kind(o) for o, t in zip(operands[1:], sides, strict=True) if t is None]
    dtype: Hashable
    if len(chosen) == 2:
        (rank, shape), dtype = broadcast(*chosen), promote(*chosen)
        both = result(chosen[0], node, rank=rank, shape=shape)
        rank, shape = broadcast(mask, both)
    elif chosen:
        (rank, shape), dtype = broadcast(mask, chosen[0]), promote_scalar(chosen[0].dtype, kinds[0])
    else:
        rank, shape = mask.rank, mask.shape
        dtype = {"int": "int64", "bool": "bool"}.get(kinds[0] or "") if kinds[0] == kinds[1] else None
    return result(chosen[0] if chosen else mask, node, "returns a Tensor", rank=rank, dtype=dtype, shape=shape)


def pair(first: Tensor, args: Arguments, keywords: Keywords, node: ast.AST) -> Container:
    """`x.max(dim)` and its like: values and indices."""
    values = _reduced("amax", first, args, keywords, node)
    indices = result(first, node, "returns Tensors", rank=values.rank, dtype="int64", shape=values.shape)
    return Container("tuple", (values, indices), fields={"values": values, "indices": indices})


def any_of(values: tuple[Value, ...]) -> Tensor | None:
    """The first tensor among some values, looking into containers."""
    for value in values:
        found = tensor_in(value)
        if found is None and isinstance(value, Container):
            within = join_all(value.items) if value.items else value.of
            found = tensor_in(within) if within is not None else None
        if found is not None:
            return found
    return None
