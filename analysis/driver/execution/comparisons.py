"""What comparisons in driver code come to, and what is true."""

from __future__ import annotations

import ast

from graphmend.analysis.driver.execution.objects import (
    ANY,
    UNKNOWN,
    Atom,
    Callable,
    ClassObject,
    Compiled,
    Constant,
    Named,
    Object,
    Package,
    Values,
    constant,
)
from graphmend.analysis.driver.frameworks import OLDEST_PYTHON


def compared(op: ast.cmpop, left: Values, right: Values) -> Values:
    """`left op right`."""
    known = _compared(op, left, right)
    return (Constant(known),) if known is not None else UNKNOWN


def _compared(op: ast.cmpop, left: Values, right: Values) -> bool | None:
    a, b = constant(left), constant(right)
    negated = isinstance(op, (ast.NotEq, ast.IsNot, ast.NotIn))
    same: bool | None = None
    if isinstance(op, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
        if a is not ... and b is not ...:
            same = a == b
        elif b is None and ANY not in left and not any(isinstance(x, Constant) for x in left):
            same = False
    elif isinstance(op, (ast.In, ast.NotIn)) and len(right) == 1 and isinstance(right[0], Object):
        held = right[0]
        if a is not ... and not held.rest and held.fields is not None:
            same = a in held.fields
        elif a is not ... and not held.rest and held.items is not None:
            items = [constant(i) for i in held.items]
            same = a in items if ... not in items else None
    elif isinstance(op, (ast.In, ast.NotIn)) and isinstance(a, str) and isinstance(b, str):
        same = a in b
    elif left == (Named("sys.version_info"),) and isinstance(op, (ast.GtE, ast.Lt)):
        return _is_newer_python(right, isinstance(op, ast.GtE))
    elif isinstance(a, (int, float)) and isinstance(b, (int, float)):
        if isinstance(op, ast.Gt):
            return a > b
        if isinstance(op, ast.GtE):
            return a >= b
        if isinstance(op, ast.Lt):
            return a < b
        if isinstance(op, ast.LtE):
            return a <= b
    return None if same is None else same != negated


def _is_newer_python(version: Values, at_least: bool) -> bool | None:
    """Whether the program runs on a Python of at least, or of less than, a version; None where either may be."""
    tuple_ = version[0] if len(version) == 1 else None
    parts = [constant(i) for i in tuple_.items or ()] if isinstance(tuple_, Object) and not tuple_.rest else []
    wanted = tuple(p for p in parts[:2] if isinstance(p, int))
    return at_least if len(wanted) == len(parts[:2]) and parts and wanted <= OLDEST_PYTHON else None


def truth_of(values: Values) -> bool | None:
    said = {_truth_of(atom) for atom in values}
    return said.pop() if len(said) == 1 else None


def _truth_of(atom: Atom) -> bool | None:
    if isinstance(atom, Constant):
        return bool(atom.value)
    if isinstance(atom, (Callable, ClassObject, Compiled, Named, Package)):
        return True
    if isinstance(atom, Object):
        if atom.items is None and atom.fields is None:
            return True if atom.info is not None else None
        return True if atom.items or atom.fields else None if atom.rest else False
    return None
