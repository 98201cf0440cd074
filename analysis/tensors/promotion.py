"""Type promotion and broadcasting: the dtype and shape of the result of two operands.

Torch's rules (https://docs.pytorch.org/docs/2.13/tensor_attributes.html#type-promotion-doc) on dtypes and shapes that
may be tokens: a result that does not follow for certain is None.
"""

from __future__ import annotations

from collections.abc import Hashable

from graphmend.analysis.lattice.external import ExternalName
from graphmend.analysis.lattice.values import Scalar, Static, Tensor, Value, dtype_kind

ORDER = {"bool": 0, "int": 1, "float": 2, "complex": 3}


def promote_scalar(dtype: Hashable, kind: str | None) -> Hashable:
    """The dtype of a tensor after arithmetic with a Python number of a kind: the number only counts where its kind is
    higher."""
    have = dtype_kind(dtype)
    if kind is None:
        return None
    if have is not None:
        if ORDER[kind] <= ORDER[have]:
            return dtype
        return {"int": "int64", "float": "float", "complex": "complex"}[kind]
    if dtype is None:
        return None
    if kind == "bool":
        return dtype
    # a token of unknown kind: the promotion is a function of the token
    if isinstance(dtype, tuple) and dtype and dtype[0] in ("int", "float", "complex"):
        return dtype if ORDER[kind] <= ORDER[dtype[0]] else (kind, dtype[1])
    return (kind, dtype)


def promote(a: Tensor, b: Tensor) -> Hashable:
    """The dtype of arithmetic between two tensors."""
    if (
        a.dtype is not None
        and a.dtype == b.dtype
        and not (isinstance(a.dtype, str) and a.dtype in ("int", "float", "complex"))
    ):
        return a.dtype
    one, two = dtype_kind(a.dtype), dtype_kind(b.dtype)
    if one is not None and two is not None:
        if one == two:
            return one
        high, low = (a, b) if ORDER[one] > ORDER[two] else (b, a)
        # a 0-d tensor of a higher kind lifts a dimensioned one of a lower kind to its own dtype only
        return high.dtype if low.rank is not None else dtype_kind(high.dtype)
    return "float" if "float" in (one, two) and "complex" not in (one, two) and None not in (one, two) else None


def broadcast(a: Tensor, b: Tensor) -> tuple[int | None, Hashable]:
    """(rank, shape) of an elementwise operation between two tensors."""
    if a.shape is not None and a.shape == b.shape:
        return a.rank, a.shape
    if a.rank == 0:
        return b.rank, b.shape
    if b.rank == 0:
        return a.rank, a.shape
    rank = max(a.rank, b.rank) if a.rank is not None and b.rank is not None else None
    return rank, None


def scalar_kind(value: Value) -> str | None:
    if isinstance(value, (Static, Scalar)) and value.type in ORDER:
        return value.type
    return None


TORCH_DTYPES = {
    "float": "float32", "double": "float64", "half": "float16", "long": "int64", "int": "int32", "short": "int16",
    "cfloat": "complex64", "cdouble": "complex128",
}  # fmt: skip
_DTYPE_NAMES = frozenset(
    "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 "
    "float16 bfloat16 float32 float64 complex64 complex128".split()
)


def dtype_of(value: Value | None) -> Hashable:
    """The dtype that an argument names; None where it is not known."""
    if isinstance(value, ExternalName) and value.name.startswith("torch."):
        name = value.name[6:]
        name = TORCH_DTYPES.get(name, name)
        return name if name in _DTYPE_NAMES else None
    if isinstance(value, ExternalName) and value.name.startswith("builtins."):
        return {"bool": "bool", "int": "int64", "float": "float64"}.get(value.name[9:])
    return None


def never_uint8(dtype: Hashable) -> bool:
    kind = dtype_kind(dtype)
    return kind not in (None, "int") or dtype in ("int8", "int16", "int32", "int64")


def summed(dtype: Hashable) -> Hashable:
    """The dtype of a sum: integers and bools are added as int64."""
    kind = dtype_kind(dtype)
    if kind in ("int", "bool"):
        return "int64"
    return dtype if kind is not None else ("sum", dtype) if dtype is not None else None
