"""Layouts: which operations of torch return a sparse tensor."""

from __future__ import annotations

from graphmend.analysis.lattice.values import SparseTensor, Tensor, Value

_MAKES = frozenset(
    "sparse_coo_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor "
    "sparse_compressed_tensor to_sparse to_sparse_coo to_sparse_csr to_sparse_csc to_sparse_bsr to_sparse_bsc "
    "sparse_mask".split()
)
#: of a sparse tensor, the result is one, too
_KEEPS = frozenset(
    "t transpose coalesce clone detach to cpu cuda float double half index_select neg abs mul div contiguous".split()
)


def with_layout(name: str, first: Tensor | None, value: Tensor) -> Tensor:
    """The result `value` of `torch.name(first, ...)`, or of the method, with the layout that it has."""
    in_place = name.endswith("_") and not name.endswith("__")
    if name in _MAKES or (isinstance(first, SparseTensor) and (name in _KEEPS or in_place)):
        return SparseTensor(value.origin, value.rank, value.dtype, None, graph_input=True)
    return value


def product_layout(left: Value, right: Value, value: Value) -> Value:
    """The result `value` of `left @ right`: sparse only where both are."""
    if isinstance(left, SparseTensor) and isinstance(right, SparseTensor) and isinstance(value, Tensor):
        return SparseTensor(value.origin, value.rank, value.dtype, None, graph_input=True)
    return value
