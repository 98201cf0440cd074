"""Arithmetic and comparison of constants. What is computed from an input of a traced call stays one, and what is
computed from a number that was drawn is drawn."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable as Function
from collections.abc import Mapping
from typing import Any

from graphmend.analysis.driver.execution.objects import Constant, Values
from graphmend.analysis.driver.guards.atoms import Compute, Drawn, Input, only, raw_of

_BINARY: dict[type[ast.operator], Function[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}  # fmt: skip
_COMPARISONS: dict[type[ast.cmpop], Function[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], Function[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_, ast.Invert: operator.invert,
}  # fmt: skip
#: builtins and functions of `math` that compute a number from numbers
FUNCTIONS: dict[str, Function[..., Any]] = {
    "builtins.min": min, "builtins.max": max, "builtins.abs": abs, "builtins.round": round, "builtins.int": int,
    "builtins.float": float, "builtins.pow": pow, "builtins.divmod": divmod,
    **{f"math.{name}": getattr(math, name) for name in (
        "sqrt", "exp", "log", "log2", "log10", "cos", "sin", "tan", "tanh", "floor", "ceil", "pow", "fabs", "prod")},
}  # fmt: skip
#: numbers that have a name
CONSTANTS = {
    **{f"math.{name}": getattr(math, name) for name in ("pi", "e", "tau", "inf")},
    **{f"numpy.{name}": getattr(math, name) for name in ("pi", "e", "inf")},
}
#: numbers of a row that are told apart
_ROW = 64
#: numbers beyond which nothing is computed
_LARGEST = 1e12
#: and strings
_LONGEST = 200


def computed(function: Function[..., Any], operands: list[Values]) -> Values | None:
    """What a function makes of constants; None where one is none, or the result is no constant."""
    atoms = [values[0] if len(values) == 1 else None for values in operands]
    if not all(isinstance(atom, Constant) for atom in atoms):
        return None
    result = _applied(function, [raw_of(atom) for atom in atoms])
    if result is ...:
        return None
    inputs = [atom for atom in atoms if isinstance(atom, Input)]
    for one in inputs:
        one.trace.uses(one)
    if not inputs:
        drawn = type(result) in (int, float) and any(isinstance(atom, Drawn) for atom in atoms)
        return ((Drawn if drawn else Constant)(result),)
    paths = tuple(dict.fromkeys(path for one in inputs for path in one.paths))
    return (Input(result, paths, _again(function, [a for a in atoms if isinstance(a, Constant)]), inputs[0].trace),)


def binary(op: ast.operator, left: Values, right: Values) -> Values | None:
    """`left op right` of constants."""
    return computed(_BINARY[type(op)], [left, right]) if type(op) in _BINARY else None


def unary(op: ast.unaryop, operand: Values) -> Values | None:
    """`op operand` of a constant."""
    return computed(_UNARY[type(op)], [operand])


def comparison(op: ast.cmpop, left: Values, right: Values) -> Values | None:
    """`left op right` of constants."""
    return computed(_COMPARISONS[type(op)], [left, right]) if type(op) in _COMPARISONS else None


def bounds(values: list[Values]) -> list[int | None] | None:
    """The bounds of a slice or a range, on which nothing depends; None where one is not known."""
    found: list[int | None] = []
    for one in map(only, values):
        if one is not None and not isinstance(one, int):
            return None
        found.append(one)
    return found


def part(values: list[Values]) -> slice | None:
    """The slice of some bounds; None where one is not known, and where Python refuses them."""
    found = bounds(values)
    return slice(*found) if found is not None and found[2] != 0 else None


def row(values: list[Values]) -> range | None:
    """The range of some bounds; None where one is not known."""
    found = bounds(values)
    if not found or not all(isinstance(one, int) for one in found):
        return None
    try:
        return range(*(one for one in found if one is not None))
    except (TypeError, ValueError):  # not the arguments that a range takes
        return None


def spaced(name: str, values: list[Values], keywords: Mapping[str, Values]) -> tuple[int | float, ...] | None:
    """The numbers of `arange` and `linspace`; None where they are not known."""
    given = [only(one) for one in values]
    if name == "linspace":
        given += [only(keywords[key]) for key in ("num", "steps") if key in keywords]
        given += [50] if len(given) == 2 else []
    if not all(isinstance(one, (int, float)) and abs(one) < _LARGEST for one in given):
        return None
    bounds: list[Any] = given
    if not bounds:
        return None
    if name == "linspace":
        if len(bounds) != 3 or not isinstance(bounds[2], int) or not 1 < bounds[2] <= _ROW:
            return None
        first, last, count = bounds
        return tuple(first + (last - first) * i / (count - 1) for i in range(count))
    first, last, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1) if len(bounds) == 2 else bounds[:3]
    count = math.ceil((last - first) / step) if step else 0
    return tuple(first + i * step for i in range(count)) if 0 < count <= _ROW else None


def _again(function: Function[..., Any], atoms: list[Constant]) -> Compute:
    """The same computation with what another call brings."""
    fixed = [(atom.compute, None) if isinstance(atom, Input) else (None, raw_of(atom)) for atom in atoms]

    def compute(moment: Any) -> object:
        values = [known(moment) if known is not None else raw for known, raw in fixed]
        return ... if ... in values else _applied(function, values)

    return compute


def _applied(function: Function[..., Any], values: list[object]) -> object:
    if any(isinstance(v, (int, float)) and abs(v) > _LARGEST for v in values):
        return ...
    if function in (operator.pow, pow, operator.lshift) and any(
        isinstance(v, (int, float)) and abs(v) > 64 for v in values[1:]
    ):
        return ...
    if function is operator.mul and any(isinstance(v, str) for v in values):
        return ...
    if sum(len(v) for v in values if isinstance(v, str)) > _LONGEST:
        return ...
    try:
        result: object = function(*values)
    except (ArithmeticError, TypeError, ValueError):
        return ...
    return result if isinstance(result, (bool, int, float, str, type(None))) else ...
