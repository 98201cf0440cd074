"""Rank and dtype of what linear algebra, indices and layouts give, as far as they follow from the ranks of operands.

Nothing is said of NumPy's functions of the same names. Measured with torch 2.13: `tests/analysis/test_values.py` asks
torch itself.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from graphmend.analysis.lattice.arguments import Arguments, Keywords
from graphmend.analysis.lattice.values import Const, Container, Scalar, Static, Tensor, Value, dtype_kind, tensor_in

#: whatever is given
_FIXED = {
    "dot": 0, "vdot": 0, "trace": 0, "dist": 0, "outer": 2, "ger": 2, "mv": 1, "addmv": 1, "mm": 2, "addmm": 2,
    "addr": 2, "bmm": 3, "baddbmm": 3, "bincount": 1, "histc": 1, "ravel": 1, "combinations": 2, "block_diag": 2,
}  # fmt: skip
#: more or fewer than the first operand has
_MORE = {
    "det": -2, "logdet": -2, "svdvals": -1, "eigvalsh": -1, "diagonal": -1, "diag_embed": 1, "view_as_real": 1,
    "view_as_complex": -1, "one_hot": 1, "trapezoid": -1, "trapz": -1, "cross": 0, "inverse": 0,
    "inv": 0, "pinv": 0, "pinverse": 0, "cholesky": 0, "matrix_exp": 0, "matrix_power": 0, "diff": 0, "bucketize": 0,
    "angle": 0, "cumulative_trapezoid": 0, "scaled_dot_product_attention": 0,
}  # fmt: skip
#: what counts and places are
_WHOLE = frozenset({"one_hot", "bucketize", "searchsorted"})
#: of real numbers they are real, of others they are not of their dtype
_REAL_OF_REAL = frozenset({"angle", "svdvals", "eigvalsh"})
_COMPLEX = frozenset({"view_as_complex"})
_NO_DTYPE = frozenset(
    {"histc", "view_as_real", "block_diag", "cov", "corrcoef", "trapezoid", "trapz", "cumulative_trapezoid"}
)


def known(name: str, self_: Tensor | None, args: Arguments, keywords: Keywords) -> tuple[int | None, Hashable] | None:
    """(rank, dtype) of a call with one tensor as result, each None where it does not follow; None without a rule."""
    operands = (self_, *args) if self_ is not None else tuple(args)
    if not operands or "out" in keywords or any(t.ndarray for t in map(tensor_in, operands) if t is not None):
        return None
    if name in _FIXED:
        rank: int | None = _FIXED[name]
    elif name in _MORE:
        of = _rank(operands[0])
        rank = of + _MORE[name] if of is not None and of + _MORE[name] >= 0 else None
    elif name in _RULES:
        rank = _RULES[name](operands, keywords)
    elif name in ("unfold", "fold"):
        of = _rank(operands[0])
        more = 1 if self_ is not None or name == "fold" else -1  # a method, and two functions of torch.nn.functional
        rank = of + more if of is not None else None
    else:
        return None
    return rank, _dtype(name, operands, keywords)


def _dtype(name: str, operands: Sequence[Value], keywords: Keywords) -> Hashable:
    if name in _NO_DTYPE or "dtype" in keywords:
        return None
    if name in _WHOLE:
        return None if "out_int32" in keywords else "int64"
    if name == "bincount":
        return "int64" if len(operands) == 1 and "weights" not in keywords else None
    tensors = [t for t in map(tensor_in, operands) if t is not None]
    if name == "embedding":
        return tensors[1].dtype if _looks_up(operands) and len(tensors) > 1 else None
    first = tensors[0] if tensors else None
    if first is None:
        return None
    kind = dtype_kind(first.dtype)
    if name in _COMPLEX:
        return "complex"
    if name in _REAL_OF_REAL:
        return first.dtype if kind == "float" else None
    if name in _OF_FIRST:
        return first.dtype
    return first.dtype if all(t.dtype == first.dtype for t in tensors) else None


def matmul(a: int | None, b: int | None) -> int | None:
    """Dimensions of `a @ b`: one of each is summed over, and what stands in front of the last two is broadcast."""
    if a is None or b is None or not (a and b):
        return None
    if a == 1 or b == 1:
        return max(a, b) - 1 if max(a, b) > 1 else 0
    return max(a, b)


def subscripted(rank: int | None, parts: Sequence[Value]) -> int | None:
    """Dimensions of `x[parts]`. What tensors pick together stands where the dimensions were that they pick from."""
    picked = 0
    for part in parts:
        if rank is None:
            return None
        if isinstance(part, Const) and part.value is None:
            rank += 1
        elif isinstance(part, Scalar) or _is_whole(part):
            rank -= 1
        elif isinstance(part, Tensor) and part.rank is not None and (kind := dtype_kind(part.dtype)) in ("int", "bool"):
            rank -= 1 if kind == "int" else part.rank
            picked = max(picked, part.rank if kind == "int" else 1)
        elif not (isinstance(part, Const) and part.value is Ellipsis) and not _is_slice(part):
            return None
    return rank + picked if rank is not None and rank >= 0 else None


def _is_slice(part: Value) -> bool:
    return isinstance(part, Container) and part.kind == "slice"


def _rank(value: Value | None) -> int | None:
    tensor = tensor_in(value) if value is not None else None
    return tensor.rank if tensor is not None else None


def _second(operands: Sequence[Value], keywords: Keywords, *names: str) -> Value | None:
    return operands[1] if len(operands) > 1 else next((keywords[n] for n in names if n in keywords), None)


def _integer(value: Value | None, default: int | None = None) -> int | None:
    if value is None:
        return default
    plain = isinstance(value, Const) and isinstance(value.value, int) and not isinstance(value.value, bool)
    return value.value if plain and isinstance(value, Const) else None


def _is_whole(value: Value | None) -> bool:
    return isinstance(value, Static) and value.type == "int"


def _both(rule: Callable[[int, int], int | None]) -> Callable[[Sequence[Value], Keywords], int | None]:
    def of(operands: Sequence[Value], keywords: Keywords) -> int | None:
        a, b = _rank(operands[0]), _rank(_second(operands, keywords, "other", "mat2", "tensor2", "x2"))
        return rule(a, b) if a is not None and b is not None else None

    return of


def _solved(a: int, b: int) -> int | None:
    return b if a == b or (a, b) == (2, 1) else None


def _of_second(operands: Sequence[Value], keywords: Keywords) -> int | None:
    second = _second(operands, keywords, "other", "index", "indices", "input")
    return 0 if _is_whole(second) or getattr(second, "type", None) == "float" else _rank(second)


def _diagonal(operands: Sequence[Value], keywords: Keywords) -> int | None:
    return {1: 2, 2: 1}.get(_rank(operands[0]) or 0)


def _flattened(operands: Sequence[Value], keywords: Keywords) -> int | None:
    rank = _rank(operands[0])
    first = _integer(keywords.get("start_dim", operands[1] if len(operands) > 1 else None), 0)
    last = _integer(keywords.get("end_dim", operands[2] if len(operands) > 2 else None), -1)
    if first == 0 and last == -1:
        return 1
    if rank is None or first is None or last is None:
        return None
    first, last = (n + rank if n < 0 else n for n in (first, last))
    return rank - (last - first) if 0 <= first <= last < rank else None


def _sized(operands: Sequence[Value], keywords: Keywords) -> int | None:
    """A tensor of given sizes, made by a method of another one."""
    sizes: Sequence[Value] | None = operands[1:] or ([keywords["size"]] if "size" in keywords else None)
    if sizes and isinstance(sizes[0], Container):
        sizes = sizes[0].items
    return len(sizes) if sizes is not None and all(map(_is_whole, sizes)) else None


def _filled(operands: Sequence[Value], keywords: Keywords) -> int | None:
    sizes = operands[1] if len(operands) > 1 else keywords.get("size")
    if isinstance(sizes, Container) and sizes.items is not None and all(map(_is_whole, sizes.items)):
        return len(sizes.items)
    return None


def _unflattened(operands: Sequence[Value], keywords: Keywords) -> int | None:
    rank, sizes = _rank(operands[0]), keywords.get("sizes", operands[2] if len(operands) > 2 else None)
    known = rank is not None and isinstance(sizes, Container) and sizes.items is not None
    return rank - 1 + len(sizes.items) if known else None  # type: ignore[operator,union-attr]


def _joined(least: int) -> Callable[[Sequence[Value], Keywords], int | None]:
    """Of tensors in a list, of which each gets some dimensions at least."""

    def of(operands: Sequence[Value], keywords: Keywords) -> int | None:
        of = operands[0]
        rank = _rank(of.element if isinstance(of, Container) else of)
        return max(rank, least) if rank is not None else None

    return of


def _contracted(operands: Sequence[Value], keywords: Keywords) -> int | None:
    a, b = _rank(operands[0]), _rank(operands[1] if len(operands) > 1 else None)
    dims = _integer(keywords.get("dims", operands[2] if len(operands) > 2 else None), 2)
    return a + b - 2 * dims if None not in (a, b, dims) else None  # type: ignore[operator]


def _looks_up(operands: Sequence[Value]) -> bool:
    """Is a call of `embedding` that of `torch.nn.functional`? torch's own one has the table in front."""
    kinds = [dtype_kind(t.dtype) if (t := tensor_in(operand)) is not None else None for operand in operands[:2]]
    return kinds[:1] == ["int"] and kinds[1:] in (["float"], ["complex"])


def _embedded(operands: Sequence[Value], keywords: Keywords) -> int | None:
    rank = _rank(operands[0])
    return rank + 1 if rank is not None and _looks_up(operands) else None


def _covariance(operands: Sequence[Value], keywords: Keywords) -> int | None:
    return {1: 0, 2: 2}.get(_rank(operands[0]) or 0)


_RULES: dict[str, Callable[[Sequence[Value], Keywords], int | None]] = {
    "matmul": _both(matmul),
    "inner": _both(lambda a, b: a + b - 2 if a and b else max(a, b)),
    "kron": _both(max),
    "cdist": _both(max),
    "solve": _both(_solved),
    "searchsorted": _of_second,
    "take": _of_second,
    "reshape_as": _of_second,
    "view_as": _of_second,
    "expand_as": _of_second,
    "take_along_dim": _of_second,
    "diag": _diagonal,
    "flatten": _flattened,
    "unflatten": _unflattened,
    "new_zeros": _sized,
    "new_ones": _sized,
    "new_empty": _sized,
    "new_full": _filled,
    "hstack": _joined(1),
    "vstack": _joined(2),
    "row_stack": _joined(2),
    "column_stack": _joined(2),
    "dstack": _joined(3),
    "cartesian_prod": lambda operands, _: 2 if len(operands) > 1 else 1,
    "tensordot": _contracted,
    "embedding": _embedded,
    "cov": _covariance,
    "corrcoef": _covariance,
}
#: of which other operands do not decide the dtype
_OF_FIRST = frozenset(
    "take reshape_as view_as expand_as take_along_dim flatten unflatten new_zeros new_ones new_empty new_full diag "
    "unfold fold ravel diagonal diag_embed diff scaled_dot_product_attention".split()
)
