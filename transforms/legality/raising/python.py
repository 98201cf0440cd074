"""When Python's own operations raise: arithmetic of numbers, comparisons, builtins, `math`, places of containers."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import ABSENT, UNKNOWN, Const, Container, Scalar, Static, Tensor, options
from graphmend.transforms.code.bindings import reaching
from graphmend.transforms.code.qualified_names import constant
from graphmend.transforms.legality.dtypes import kinds
from graphmend.transforms.legality.operations import domains
from graphmend.transforms.legality.raising.containers import loses_entries

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

MAY = "may raise where its side was not taken"
_NUMBERS = frozenset({"bool", "int", "float"})
_ALWAYS = frozenset("isinstance issubclass type id callable repr hasattr slice".split())


def number(facts: FunctionFacts, node: ast.expr) -> str | None:
    """The type of a Python number that is no tensor for certain."""
    literal = constant(node)
    if isinstance(literal, (bool, int, float)):
        return type(literal).__name__
    value = facts.value(node)
    if isinstance(value, (Static, Scalar)) and value.type in _NUMBERS:
        return value.type
    if isinstance(value, (Static, Scalar)) or value is UNKNOWN:
        return _built(facts, node)
    return None


def _built(facts: FunctionFacts, node: ast.expr) -> str | None:
    """The type of a number from its parts."""
    match node:
        case ast.BinOp(left=left, op=op, right=right):
            one, other = number(facts, left), number(facts, right)
            if one and other and isinstance(op, (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)):
                return "float" if "float" in (one, other) else "int"
            return "float" if one and other and isinstance(op, ast.Div) else None
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            found = number(facts, operand)
            return "int" if found == "bool" else found
        case ast.UnaryOp(op=ast.Not()):
            return "bool"
        case ast.Name():
            bound = reaching(facts, node)
            return number(facts, bound) if bound is not None else None
    return None


def arithmetic(facts: FunctionFacts, node: ast.BinOp) -> str | None:
    """An operator between what is no tensor."""
    value = facts.value(node)
    if isinstance(value, Const):
        return None  # the analysis has computed it
    left, right = number(facts, node.left), number(facts, node.right)
    if left and right:
        return _of_numbers(node, left, right)
    one, other = facts.value(node.left), facts.value(node.right)
    if isinstance(node.op, ast.Add) and isinstance(one, Static) and isinstance(other, Static):
        return None if one.type == other.type == "str" else MAY
    if isinstance(node.op, ast.Add) and isinstance(one, Container) and isinstance(other, Container):
        return None if one.kind == other.kind and one.kind in ("list", "tuple") else MAY
    return MAY


def _of_numbers(node: ast.BinOp, left: str, right: str) -> str | None:
    power = constant(node.right)
    match node.op:
        case ast.Add() | ast.Sub() | ast.Mult():
            return None
        case ast.Div() | ast.FloorDiv() | ast.Mod():
            return None if power not in (None, 0, False) else "divides by zero where its side was not taken"
        case ast.Pow():
            whole = isinstance(power, int) and 0 <= power <= 64
            if isinstance(constant(node.left), (int, float)) and power is not None:
                return None if constant(node.left) not in (0, 0.0) and not isinstance(power, float) and whole else MAY
            return None if left in ("int", "bool") and whole else MAY
        case ast.BitAnd() | ast.BitOr() | ast.BitXor():
            return MAY if "float" in (left, right) else None
        case ast.LShift() | ast.RShift():
            short = isinstance(power, int) and 0 <= power <= 64
            return None if short and "float" not in (left, right) else MAY
    return MAY


def comparison(facts: FunctionFacts, op: ast.cmpop, left: ast.expr, right: ast.expr) -> str | None:
    """One comparison between what is no tensor."""
    if isinstance(op, (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)):
        return None
    if isinstance(op, (ast.In, ast.NotIn)):
        value = facts.value(right)
        plain = isinstance(right, (ast.Tuple, ast.List, ast.Set)) or isinstance(value, Container)
        texts = all(isinstance(v, Static) and v.type == "str" for v in (facts.value(left), value))
        return None if (plain and not _holds_tensor(value)) or texts else MAY
    if number(facts, left) and number(facts, right):
        return None
    one, other = facts.value(left), facts.value(right)
    same = isinstance(one, Static) and isinstance(other, Static) and one.type == other.type == "str"
    return None if same or all(isinstance(v, Const) for v in (one, other)) else MAY


def _holds_tensor(value: object) -> bool:
    if not isinstance(value, Container):
        return False
    held = value.items if value.items is not None else (value.element,)
    return any(not isinstance(v, (Static, Scalar)) for v in held)


def place(facts: FunctionFacts, node: ast.Subscript) -> str | None:
    """`container[key]`, where the container is no tensor."""
    base, found, key = facts.value(node.value), facts.value(node), constant(node.slice)
    if isinstance(node.slice, ast.Slice) or (isinstance(found, Const) and isinstance(base, Static)):
        return None if isinstance(base, (Container, Static)) else MAY
    if isinstance(node.value, ast.Attribute) and node.value.attr == "shape" and isinstance(key, int):
        owner = facts.value(node.value.value)
        rank = owner.rank if isinstance(owner, Tensor) else None
        return None if rank is not None and -rank <= key < rank else "may ask for a dimension that is not there"
    if isinstance(base, Container) and not loses_entries(facts.source.tree, node.value):
        if base.kind == "dict" and base.fields is not None and key is not None and key in base.fields:
            return None if ABSENT not in options(base.fields[key]) else MAY
        if base.items is not None and isinstance(key, int) and -len(base.items) <= key < len(base.items):
            return None
    return MAY


def builtin(facts: FunctionFacts, node: ast.Call, last: str) -> str | None:
    """A call of a builtin function."""
    arguments = node.args
    if last in _ALWAYS:
        return None
    if any(isinstance(a, ast.Starred) for a in arguments) or any(k.arg is None for k in node.keywords):
        return MAY
    values = [facts.value(a) for a in arguments]
    types = [number(facts, a) for a in arguments]
    tensors = [isinstance(v, Tensor) for v in values]
    if any(tensors):
        return of_tensor(facts, node, last) if len(arguments) == 1 else MAY
    if isinstance(facts.value(node), Const):
        return None
    whole = bool(types) and all(t in ("int", "bool") for t in types)
    match last:
        case "bool" | "str":
            plain = all(isinstance(v, (Static, Scalar, Container)) for v in values)
            return None if plain or not arguments else MAY
        case "getattr":
            return None if len(arguments) == 3 else MAY
        case "len":
            return None if all(isinstance(v, Container) or _is_type(v, "str") for v in values) else MAY
        case "abs" | "float" | "complex":
            return None if all(types) or not arguments else MAY
        case "int" | "round":
            return None if whole or not arguments else "raises for NaN and infinity"
        case "min" | "max":
            if len(arguments) > 1:
                return None if all(types) else MAY
            display = arguments and isinstance(arguments[0], (ast.List, ast.Tuple)) and arguments[0].elts
            return None if display and all(number(facts, e) for e in display) else "raises where there is nothing"
        case "range":
            step = constant(arguments[2]) if len(arguments) == 3 else 1
            return None if whole and step not in (None, 0) else MAY
        case "tuple" | "list" | "set" | "zip" | "enumerate" | "reversed" | "any" | "all" | "sum":
            items = [v for v in values if isinstance(v, Container)]
            safe = len(items) == len(values) and (last != "sum" or not any(map(_holds_tensor, items)))
            return None if safe and (last not in ("any", "all", "set") or not any(map(_holds_tensor, items))) else MAY
    return MAY


def _is_type(value: object, name: str) -> bool:
    return isinstance(value, Static) and value.type == name


def of_tensor(facts: FunctionFacts, node: ast.Call, last: str) -> str | None:
    """A builtin of one tensor, or `item` of it."""
    operand = node.func.value if last == "item" and isinstance(node.func, ast.Attribute) else node.args[0]
    value = facts.value(operand)
    rank = value.rank if isinstance(value, Tensor) else None
    if last in ("str", "repr"):
        return None
    if last in ("len", "list", "tuple", "iter", "enumerate", "zip", "reversed"):
        return None if rank else "raises for a tensor without dimensions"
    if last == "abs":
        return None if "bool" not in kinds(facts, operand) else "raises for bool"
    if last in ("item", "bool", "int", "float"):
        if rank != 0:
            return "raises for more or fewer elements than one"
        if last == "int" and not kinds(facts, operand) <= {"bool", "uint8", "int"}:
            return "raises for NaN and infinity"
        return "raises for a complex number" if last == "float" and "complex" in kinds(facts, operand) else None
    return MAY


def mathematical(facts: FunctionFacts, node: ast.Call, last: str) -> str | None:
    """A call of `math`."""
    if isinstance(facts.value(node), Const):
        return None
    numbers = all(number(facts, a) for a in node.args) and not node.keywords
    if numbers and last in domains.MATH:
        return None
    return "raises outside its domain, or for what is no number"
