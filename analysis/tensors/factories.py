"""Transfer functions of factories (`torch.zeros`): rank, dtype and shape as far as the arguments determine them."""

from __future__ import annotations

import ast
from collections.abc import Hashable

from graphmend.analysis.lattice.arguments import Arguments, Keywords
from graphmend.analysis.lattice.evidence import Evidence
from graphmend.analysis.lattice.values import UNKNOWN, Const, Container, Scalar, Static, Tensor, Value
from graphmend.analysis.tensors.promotion import ORDER, dtype_of

_FACTORIES = frozenset(
    "zeros ones empty rand randn full eye arange linspace randint randperm tensor as_tensor scalar_tensor".split()
)


def factory(name: str, args: Arguments, keywords: Keywords, node: ast.AST) -> Tensor:
    dtype = dtype_of(keywords.get("dtype")) if "dtype" in keywords else None
    rank: int | None = None
    shape: Hashable = None
    by_name = (keywords["size"],) if "size" in keywords else ()
    first = (args or by_name)[:1]
    sizes = first[0].items if first and isinstance(first[0], Container) else args or by_name
    if name in ("zeros", "ones", "empty", "rand", "randn", "full", "randint"):
        if name in ("full", "randint"):
            container = next((a for a in (*args, *by_name) if isinstance(a, Container)), None)
            sizes = container.items if container is not None else None
        if sizes is not None and all(isinstance(s, Static) and s.type == "int" for s in sizes):
            rank = len(sizes)
            if all(isinstance(s, Const) and isinstance(s.value, int) for s in sizes):
                shape = tuple(s.value for s in sizes if isinstance(s, Const))
        if dtype is None and "dtype" not in keywords:
            dtype = "int64" if name == "randint" else None if name == "full" else "float"
    elif name in ("arange", "linspace", "randperm"):
        rank = 1
        if "dtype" not in keywords:
            integral = name == "randperm" or (
                name == "arange" and all(isinstance(a, Static) and a.type == "int" for a in args)
            )
            dtype = "int64" if integral else "float" if name == "linspace" else None
    elif name in ("tensor", "as_tensor", "scalar_tensor", "array", "asarray"):
        rank, kind = _literal(args[0]) if args else (None, None)
        shape = () if rank == 0 else None
        if "dtype" not in keywords and kind is not None:
            dtype = {"int": "int64", "float": "float", "bool": "bool"}.get(kind)
    elif name == "eye":
        rank = 2
    constant = rank == 0 or (name not in _FACTORIES and not any(isinstance(a, Container) for a in args))
    return Tensor(Evidence("returns a Tensor", node), rank, dtype, shape, constant=constant)


def _literal(value: Value) -> tuple[int | None, str | None]:
    """(rank, kind) of `torch.tensor(value)`."""
    if isinstance(value, (Static, Scalar)):
        return (0, value.type) if value.type in ORDER else (None, None)
    if isinstance(value, Container) and value.kind in ("list", "tuple"):
        inner = value.element
        rank, kind = _literal(inner) if inner is not UNKNOWN else (None, None)
        return (rank + 1 if rank is not None else None), kind
    return None, None
