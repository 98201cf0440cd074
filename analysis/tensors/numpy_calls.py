"""Transfer functions of NumPy as Dynamo traces it (torch 2.13): its functions run as those of torch._numpy, so arrays
are tensors, and so are the arrays of `np.random` and the results of functions of plain numbers.

Of the latter, Dynamo still knows the value if an elementwise function computed it: it can be a size, and a float also
the argument of int() and float(), though a branch on it breaks. The result of a reduction of a sequence is opaque.
Measured for each kind of function as a size, an index, a branch, and under int() and float().
"""

from __future__ import annotations

import ast

from graphmend.analysis.lattice.arguments import Arguments, Keywords
from graphmend.analysis.lattice.evidence import Evidence
from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import STATIC, Const, Container, Scalar, Static, Tensor, Value
from graphmend.analysis.tensors import operations
from graphmend.analysis.torch_facts.draws import kind_drawn
from graphmend.analysis.torch_facts.measured_numpy import hands_out_number

_ARRAYS = frozenset(
    "zeros ones empty full array asarray arange linspace eye zeros_like ones_like full_like empty_like meshgrid".split()
)
#: elementwise, with a floating result whatever they are given
_FLOATING = frozenset(
    "sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh arcsin arccos arctan arctan2 hypot cbrt "
    "deg2rad rad2deg radians degrees true_divide divide".split()
)
#: elementwise, with a result of the kind that they are given
_ELEMENTWISE = frozenset(
    "abs absolute fabs negative square sign add subtract multiply power floor_divide mod remainder maximum minimum "
    "fmax fmin clip ceil floor round around rint trunc fix gcd lcm".split()
)
#: of a whole array they give a number, and no array without dimensions
REDUCTIONS = frozenset(
    "prod sum max min amax amin mean median average std var ptp argmax argmin any all count_nonzero product".split()
)
_SCALAR_TYPES = {
    "int8": "int", "int16": "int", "int32": "int", "int64": "int", "uint8": "int", "float16": "float",
    "float32": "float", "float64": "float",
}  # fmt: skip


def numpy_call(name: str, receiver: Value | None, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    """The value of a call of a NumPy function, or of an array's method."""
    last = name.rpartition(".")[2]
    first = receiver if isinstance(receiver, Tensor) else operations.any_of((*args, *keywords.values()))
    if last in _SCALAR_TYPES:
        return _number(_SCALAR_TYPES[last], node) if first is None else operations.result(first, node)
    if last == "array" and args and _holds_text(args[0]):
        return ExternalInstance("an array of texts")
    if last[:1].isupper():
        return STATIC if first is None else operations.result(first, node)
    if last in ("tolist", "item"):
        return Scalar(Evidence("takes a Python value out of an array", node, first.origin if first else None))
    kind = kind_drawn(name, len(args), keywords)
    if kind is not None and (first is None or hands_out_number(name, len(args), keywords)):
        return Scalar(Evidence("is drawn while the program runs", node), kind)
    if first is None and not (last in _ARRAYS or name.startswith("numpy.random.")):
        return _of_numbers(last, args, keywords, node)
    value = operations.operation(last, receiver if isinstance(receiver, Tensor) else None, args, keywords, node)
    return Tensor(value.origin, value.rank, value.dtype, value.shape, likely=value.likely, ndarray=True)


def _holds_text(value: Value) -> bool:
    items = value.items if isinstance(value, Container) else None
    return bool(items) and all(isinstance(i, Static) and i.type == "str" for i in items or ())


def _of_numbers(name: str, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    """The result of a function of plain numbers, or of a sequence of them; STATIC where it is not known."""
    if name in REDUCTIONS and len(args) == 1 and not keywords and not _is_none(args[0]):
        kind = "int" if name in ("argmax", "argmin", "count_nonzero") else None
        return _number(kind, node, reduced=True, likely=not _is_sequence(args[0]))
    if not args or keywords or not all(isinstance(a, Static) and not _is_none(a) for a in args):
        return STATIC
    kinds = {a.type for a in args if isinstance(a, Static)}
    if not kinds <= {"int", "float", None} or not (name in _FLOATING or name in _ELEMENTWISE):
        return STATIC
    if name in _FLOATING or "float" in kinds:
        return _number("float", node)
    return _number(None if None in kinds else "int", node)  # what a configuration holds is a number all the same


def _number(kind: str | None, node: ast.AST, reduced: bool = False, likely: bool = False) -> Tensor:
    origin = Evidence("is a NumPy number, so a 0-d Tensor of the graph", node)
    dtype = {"int": "int64", "float": "float"}.get(kind or "")
    return Tensor(origin, 0, dtype, (), likely=likely, ndarray=True, constant=not reduced)


def _is_sequence(value: Value) -> bool:
    """Whether a value is a shape, or a sequence of plain numbers."""
    if isinstance(value, Container):
        return value.kind in ("list", "tuple") and isinstance(value.element, Static)
    return isinstance(value, Static) and value.type == "size"


def _is_none(value: Value) -> bool:
    return isinstance(value, Const) and value.value is None
