"""Tensors as driver code makes them, and what torch's operations do to their sizes. Of what is
not listed rank and dtype are known, as far as the interpreter's transfer functions know them."""

from __future__ import annotations

import ast
from collections.abc import Callable as Function

from graphmend.analysis.driver.execution.objects import (
    UNKNOWN,
    Constant,
    Method,
    Named,
    Object,
    Values,
    sequence,
)
from graphmend.analysis.driver.guards.atoms import Shape, Size, Tensor, only, raw_of, tensor
from graphmend.analysis.driver.history import joins, sizes_written
from graphmend.analysis.driver.history.joins import Arguments, Keywords
from graphmend.analysis.driver.history.numbers import arithmetic, written
from graphmend.analysis.lattice.external import ExternalName
from graphmend.analysis.lattice.values import UNKNOWN as UNKNOWN_VALUE
from graphmend.analysis.lattice.values import Const, Value
from graphmend.analysis.lattice.values import Tensor as TensorValue
from graphmend.analysis.tensors import operations
from graphmend.analysis.torch_facts.overloads import Returns

_Literal = tuple[Shape | None, str | None]

_FACTORIES = frozenset({"ones", "zeros", "rand", "randn", "empty", "full", "randint"})
_LIKE = frozenset({"ones_like", "zeros_like", "rand_like", "randn_like", "empty_like", "full_like"})
#: operations of one tensor that keep its sizes; True where the dtype may become another one
_SAME: dict[str, bool] = {
    **dict.fromkeys(
        """relu relu_ clone detach contiguous abs neg add_ sub_ mul_ div_ zero_ copy_ fill_ clamp clamp_ softmax
        log_softmax tanh sigmoid exp sin cos sqrt cumsum dropout gelu silu roll flip masked_fill index_copy index_add
        scatter normal_ uniform_ tril triu square pow add sub mul cpu cuda pin_memory""".split(),
        False,
    ),
    **dict.fromkeys(("to", "type", "type_as", "div", "where"), True),
}
#: those of them whose result is of floats, whatever the operand is, or of a wider dtype
_WIDENS = frozenset({
    "softmax", "log_softmax", "tanh", "sigmoid", "exp", "sin", "cos", "sqrt", "cumsum", "dropout", "gelu", "silu",
    "pow", "add", "sub", "mul",
})  # fmt: skip
#: and those whose operands are broadcast
_BROADCASTS = frozenset({"add", "sub", "mul", "div", "pow", "where", "masked_fill", "clamp"})
_ALIASES = {"double": "float64", "float": "float32", "half": "float16", "long": "int64", "int": "int32"}
#: items of a literal that are looked at
_LONGEST = 64
_DTYPES = {**_ALIASES, "bfloat16": "bfloat16", "bool": "bool"}


def factory(name: str, arguments: Arguments, keywords: Keywords) -> Tensor | None:
    """A tensor that a function of torch makes of sizes or numbers; None for any other function."""
    dtype = _dtype(keywords.get("dtype"))
    gradient = only(keywords.get("requires_grad", (Constant(False),)))
    gradient = gradient if isinstance(gradient, bool) else None
    if name in _FACTORIES:
        if name == "randint":
            sizes = keywords.get("size") or next((a for a in arguments[1:] if isinstance(a[0], Object)), UNKNOWN)
            return Tensor(_sizes([sizes]), dtype or "int64", gradient)
        if name == "full":
            return Tensor(_sizes(arguments[:1]), dtype or _kind(arguments[1:2]), gradient)
        sizes_given = arguments or [keywords.get("size", UNKNOWN)]
        return Tensor(_sizes(sizes_given), dtype or "float32", gradient)
    if name in _LIKE and arguments and (like := tensor(arguments[0])) is not None:
        return Tensor(like.shape, dtype or like.dtype, gradient)
    if name in ("tensor", "as_tensor", "FloatTensor", "LongTensor"):
        shape, kind = _literal(arguments[0]) if arguments else (None, None)
        made = Tensor(shape, dtype or kind, gradient)
        made.numbers = written.numbers_of(arguments[0]) if arguments else None
        return made
    if name in ("arange", "linspace"):
        row = arithmetic.spaced(name, arguments, keywords)
        length = arithmetic.row(arguments) if name == "arange" else None
        size = len(row) if row is not None else len(length) if length is not None else None
        whole = row is not None and name == "arange" and all(isinstance(one, int) for one in row)
        made = Tensor((size,), dtype or ("int64" if whole or length is not None else None), gradient)
        made.numbers = row
        return made
    if name == "randperm":
        return Tensor((_size(arguments[0]) if arguments else None,), dtype or "int64", gradient)
    if name == "eye":
        size = _size(arguments[0]) if arguments else None
        return Tensor((size, size), dtype or "float32", gradient)
    return None


def operation(name: str, operands: Arguments, keywords: Keywords, result: Returns | None) -> Values:
    """The result of an operation of torch, as a function or as a method of its first operand. `result` is what is known
    of it in general."""
    first = tensor(operands[0]) if operands else None
    handler = _OPERATIONS.get(name)
    if handler is not None and operands:
        return handler(operands, keywords)
    if first is None:
        return UNKNOWN
    if name in _DTYPES:
        return (Tensor(first.shape, _DTYPES[name], first.gradient, first.contiguous),)
    if name in ("detach", "requires_grad_"):
        made = first if name == "requires_grad_" else Tensor(first.shape, first.dtype, False, first.contiguous)
        if name == "requires_grad_":
            made.gradient = only(operands[1]) is not False if len(operands) > 1 else True
        return (made,)
    if name in _SAME:
        if name.endswith("_"):
            first.numbers = None
            return (first,)
        dtype = None if _SAME[name] or (name in _WIDENS and not _floats(first.dtype)) else first.dtype
        others = [one for one in map(tensor, operands[1:]) if one is not None]
        if name in _BROADCASTS and others:
            shape, dtypes = first.shape, {first.dtype, *(one.dtype for one in others)}
            for one in others:
                shape = _broadcast(shape, one.shape)
            return (Tensor(shape, dtype if len(dtypes) == 1 else None, first.gradient, None),)
        if name == "to":
            given = [d for d in (_dtype(v) for v in (*operands[1:], *keywords.values())) if d]
            dtype = given[0] if given else first.dtype
        return (Tensor(first.shape, dtype, first.gradient, None if name != "clone" else first.contiguous),)
    return sizes_written.result(name, operands, keywords) or _general(result, name, operands, keywords, first.gradient)


def _general(
    result: Returns | None, name: str, operands: Arguments, keywords: Keywords, gradient: bool | None
) -> Values:
    """Tensors as a function gives them in general: rank and dtype where the operands decide these."""
    if result is not None and result.is_tensor:
        return (_computed(name, operands, keywords, gradient),)
    if result is not None and result.kind == "tuple":
        fields = result.fields or (None,) * len(result.items)
        parts = [_part(one, field, gradient) for one, field in zip(result.items, fields, strict=True)]
        made = sequence(parts, name="builtins.tuple")
        made.attributes.update(zip(result.fields, parts, strict=False))
        return (made,)
    if result is not None and result.kind == "L":
        return (sequence([], (Tensor(None, None, gradient, None),), "builtins.tuple"),)
    return UNKNOWN


def _part(result: Returns, field: str | None, gradient: bool | None) -> Values:
    """One of several results; `field` is its name in a named tuple."""
    if not result.is_tensor:
        return UNKNOWN
    return (Tensor(None, "int64", False, None) if field == "indices" else Tensor(None, None, gradient, None),)


def _computed(name: str, operands: Arguments, keywords: Keywords, gradient: bool | None) -> Tensor:
    """One tensor, of which the interpreter's transfer functions know rank and dtype."""
    given = {key: _value(values) for key, values in keywords.items()}
    made = operations.operation(name, None, tuple(map(_value, operands)), given, ast.Constant(None))
    dtype = made.dtype if isinstance(made.dtype, str) and made.dtype not in ("int", "float", "complex") else None
    return Tensor(None if made.rank is None else (None,) * made.rank, dtype, gradient and dtype != "bool", None)


def _value(values: Values) -> Value:
    atom = values[0] if len(values) == 1 else None
    if isinstance(atom, Tensor):
        return TensorValue(None, None if atom.shape is None else len(atom.shape), atom.dtype)
    if isinstance(atom, Constant):
        return Const(raw_of(atom))
    return ExternalName(atom.name) if isinstance(atom, Named) else UNKNOWN_VALUE


def compared(together: Values) -> Values:
    """A comparison of two operands over elements, from what their sum is."""
    one = tensor(together)
    return (Tensor(one.shape, "bool", False, one.contiguous),) if one is not None else UNKNOWN


def binary(op: ast.operator, left: Values, right: Values) -> Values:
    """`left op right`, where one is a tensor."""
    a, b = tensor(left), tensor(right)
    if isinstance(op, ast.MatMult):
        shape = _product(a, b)
        return (Tensor(shape, a.dtype if a is not None else None, _either(a, b)),)
    if a is not None and b is not None:
        shape = _broadcast(a.shape, b.shape)
        kept = a.dtype == b.dtype and not (isinstance(op, ast.Div) and not _floats(a.dtype))
        return (Tensor(shape, a.dtype if kept else None, _either(a, b)),)
    one = a or b
    assert one is not None
    other = only(right if a is not None else left)
    scalar = isinstance(other, (int, float))
    same = scalar and one.dtype != "bool" and (one.dtype is None or _floats(one.dtype) or isinstance(other, int))
    dtype = one.dtype if same and not isinstance(op, ast.Div) else one.dtype if scalar and _floats(one.dtype) else None
    return (Tensor(one.shape if scalar else None, dtype, one.gradient if scalar else None, one.contiguous),)


def subscript(owner: Tensor, index: ast.expr, given: list[Arguments]) -> Values:
    """`owner[index]`, where indices are ints and slices. `given` is, for each of them, its value, or the bounds and the
    step of the slice."""
    if owner.shape is None or len(given) > len(owner.shape):
        return (Tensor(None, owner.dtype, owner.gradient, None),)
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    alone = given[0][0] if not isinstance(index, (ast.Tuple, ast.Slice)) else None
    picking = tensor(alone) if alone is not None else None
    if picking is not None:
        return (_picked(owner, picking),)
    left: list[Size] = []
    for part, values, size in zip(parts, given, owner.shape, strict=False):
        if isinstance(part, ast.Slice):
            left.append(_sliced(values, size))
        elif not isinstance(only(values[0]), int):
            return (Tensor(None, owner.dtype, owner.gradient, None),)
    picked = only(alone) if owner.numbers is not None and alone is not None else ...
    if owner.numbers is not None and isinstance(picked, int) and -len(owner.numbers) <= picked < len(owner.numbers):
        return (written.of_number(owner, owner.numbers[picked]),)
    first_only = not isinstance(index, ast.Tuple)
    shape = (*left, *owner.shape[len(parts) :])
    return (Tensor(shape, owner.dtype, owner.gradient, owner.contiguous if first_only else None),)


def _picked(owner: Tensor, index: Tensor) -> Tensor:
    """`owner[index]`: rows by their numbers, or those for which a mask holds."""
    if owner.shape is None or index.shape is None or index.dtype is None:
        return Tensor(None, owner.dtype, owner.gradient, None)
    if index.dtype == "bool":
        return owner.of_shape((None, *owner.shape[len(index.shape) :]))
    return owner.of_shape((*index.shape, *owner.shape[1:]))


def rows(owner: Tensor, most: int) -> list[Values] | None:
    """What a loop over a tensor binds; None where the number of its rows is not known."""
    if not owner.shape or owner.shape[0] is None:
        return None
    if owner.numbers is not None and len(owner.shape) == 1:
        return [(written.of_number(owner, number),) for number in owner.numbers[:most]]
    row = Tensor(owner.shape[1:], owner.dtype, owner.gradient, owner.contiguous)
    return [(row,)] * min(owner.shape[0], most)


def _either(a: Tensor | None, b: Tensor | None) -> bool | None:
    known = [one.gradient for one in (a, b) if one is not None]
    return True if True in known else None if None in known or len(known) < 2 else False


def _floats(dtype: str | None) -> bool:
    return dtype is not None and dtype.startswith(("float", "bfloat"))


def _size(values: Values) -> Size:
    found = only(values)
    return found if isinstance(found, int) else None


def _sizes(arguments: Arguments) -> Shape | None:
    if len(arguments) == 1 and len(arguments[0]) == 1 and isinstance(arguments[0][0], Object):
        held = arguments[0][0]
        if held.items is None or held.rest:
            return None
        return tuple(_size(values) for values in held.items)
    if len(arguments) == 1 and _size(arguments[0]) is None:
        return None  # one size, or all of them
    return tuple(_size(values) for values in arguments)


def _kind(arguments: Arguments) -> str | None:
    value = only(arguments[0]) if arguments else ...
    return {bool: "bool", int: "int64", float: "float32"}.get(type(value))


def _literal(values: Values, known: dict[Object, _Literal] | None = None) -> _Literal:
    """The sizes and the dtype of the tensor of a number, or of nested lists of numbers. `known` holds the lists that
    were met: one list may stand in many places, and in itself."""
    known = {} if known is None else known
    atom = values[0] if len(values) == 1 else None
    if isinstance(atom, Constant):
        return (), _kind([values])
    if isinstance(atom, Object) and atom in known:
        return known[atom]
    if isinstance(atom, Object) and atom.items is not None and not atom.rest:
        known[atom] = None, None
        inner = [_literal(values, known) for values in atom.items[:_LONGEST]] or [((), "float32")]
        kinds = {kind for _, kind in inner}
        dtype = next((kind for kind in ("float32", "int64", "bool") if kind in kinds), None)
        first = inner[0][0]
        known[atom] = ((len(atom.items), *first) if first is not None else None), None if None in kinds else dtype
        return known[atom]
    return None, None


def _dtype(values: Values | None) -> str | None:
    atom = values[0] if values is not None and len(values) == 1 else None
    if isinstance(atom, Named) and atom.name.startswith("torch."):
        name = atom.name[6:]
        return {"double": "float64", "float": "float32", "half": "float16", "long": "int64", "int": "int32"}.get(
            name, name
        )
    return None


def _broadcast(a: Shape | None, b: Shape | None) -> Shape | None:
    if a is None or b is None:
        return None
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    padded = (*(1,) * (len(longer) - len(shorter)), *shorter)
    return tuple(y if x == 1 else x if y == 1 or x == y else None for x, y in zip(longer, padded, strict=True))


def _product(a: Tensor | None, b: Tensor | None) -> Shape | None:
    if a is None or b is None or a.shape is None or b.shape is None or len(a.shape) < 2 or len(b.shape) != 2:
        return None
    return (*a.shape[:-1], b.shape[1])


def _sliced(given: Arguments, size: Size) -> Size:
    picked = arithmetic.part(given)
    if picked is None or size is None:
        return None
    return len(range(size)[picked])


def _turned(operands: Arguments, keywords: Keywords) -> Values:
    first = tensor(operands[0])
    if first is None:
        return UNKNOWN
    shape, dims = first.shape, [only(v) for v in operands[1:]]
    swapped: Shape | None = None
    if shape is not None and not dims and len(shape) == 2:
        swapped = shape[::-1]
    elif (
        shape is not None and len(dims) == 2 and all(isinstance(d, int) and -len(shape) <= d < len(shape) for d in dims)
    ):
        order = [*shape]
        a, b = dims
        assert isinstance(a, int)
        assert isinstance(b, int)
        order[a], order[b] = order[b], order[a]
        swapped = tuple(order)
    return (Tensor(swapped, first.dtype, first.gradient, False),)


def _unsqueezed(operands: Arguments, keywords: Keywords) -> Values:
    first = tensor(operands[0])
    dim = only(operands[1] if len(operands) > 1 else keywords.get("dim", UNKNOWN))
    if first is None or first.shape is None or not isinstance(dim, int):
        return (Tensor(),) if first is not None else UNKNOWN
    at = dim if dim >= 0 else len(first.shape) + 1 + dim
    return (first.of_shape((*first.shape[:at], 1, *first.shape[at:])),)


_OPERATIONS: dict[str, Function[[Arguments, Keywords], Values]] = {
    **joins.OPERATIONS, "t": _turned, "transpose": _turned, "swapaxes": _turned, "unsqueeze": _unsqueezed,
}  # fmt: skip


def attribute(owner: Tensor, name: str) -> Values:
    """An attribute of a tensor, other than its sizes."""
    if name in ("T", "mT"):
        return _turned([(owner,)], {}) if name == "T" else (Tensor(None, owner.dtype, owner.gradient, False),)
    if name == "data":
        return (Tensor(owner.shape, owner.dtype, False, owner.contiguous),)
    if name == "requires_grad":
        return (Constant(owner.gradient),) if owner.gradient is not None else UNKNOWN
    if name in ("ndim",):
        return (Constant(len(owner.shape)),) if owner.shape is not None else UNKNOWN
    if name in ("dtype", "device", "grad", "is_cuda", "grad_fn"):
        return UNKNOWN
    return (Method(owner, name),)
