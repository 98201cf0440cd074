"""Transfer functions of operators: `and` and `or`, arithmetic, comparisons; constants are folded."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from graphmend.analysis.interpreter.events import Branch, Call, Contains, Operation
from graphmend.analysis.interpreter.operations import errors, own_objects, special_methods
from graphmend.analysis.interpreter.operations.conditions import condition
from graphmend.analysis.interpreter.operations.objects import used
from graphmend.analysis.lattice.evidence import Evidence
from graphmend.analysis.lattice.external import ExternalName
from graphmend.analysis.lattice.values import (
    BOOL,
    BOTTOM,
    FALSE,
    MOST_ITEMS,
    NONE,
    STATIC,
    STR,
    TRUE,
    UNKNOWN,
    Choice,
    Const,
    Container,
    MarkedTensor,
    Scalar,
    SparseTensor,
    Static,
    Tensor,
    Value,
    beginning,
    join,
    join_all,
    options,
    tensor_in,
    without_none,
)
from graphmend.analysis.program.entities import Function
from graphmend.analysis.tensors import operations
from graphmend.analysis.tensors.layouts import product_layout

if TYPE_CHECKING:
    from graphmend.analysis.interpreter.interface import Walk


def boolop(w: Walk, node: ast.BoolOp) -> Value:
    """`a and b` as a value: the result is one of the operands; the truth values of all but the last are needed."""
    before = dict(w.env)
    result: list[Value] = []
    conjunction = isinstance(node.op, ast.And)
    with w.restoring():
        for operand in node.values[:-1]:
            simple = not isinstance(operand, (ast.BoolOp, ast.Compare, ast.UnaryOp, ast.Call))
            truth, yes, no = condition(w, operand, "and" if conjunction else "or")
            if truth is None or truth is not conjunction:
                value = w.env.get(operand.id, STATIC) if simple and isinstance(operand, ast.Name) else BOOL
                if _answers(operand):
                    value = FALSE if conjunction else TRUE  # the answer at which evaluation ends here
                elif isinstance(operand, ast.Call):
                    w.silent += 1
                    value = w.eval(operand)
                    w.silent -= 1
                result.append(without_none(value) if not conjunction else value)
            if truth is not None and truth is not conjunction:
                break
            w.env.update(yes if conjunction else no)
            if truth is None:
                w.situation.conditional += 1
        else:
            result.append(w.eval(node.values[-1]))
    w.env = {**w.env, **{k: before[k] for k in before if k in w.env}}
    return join_all(result) if result else STATIC


def _answers(node: ast.expr) -> bool:
    """Whether an expression is a test (a comparison, `not`, `isinstance`), whose value is taken for a bool."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass", "hasattr", "callable")
    return isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))


def unary(w: Walk, node: ast.UnaryOp) -> Value:
    if isinstance(node.op, ast.Not):
        truth, _, _ = condition(w, node.operand, "not")
        return BOOL if truth is None else Const(not truth)
    value = w.eval(node.operand)
    if value.opaque:
        used(w, node, node.op, value)
    if isinstance(value, Const) and not isinstance(value.value, str) and value.value is not None:
        try:
            return Const(
                -value.value
                if isinstance(node.op, ast.USub)
                else ~value.value
                if isinstance(node.op, ast.Invert)
                else value.value
            )
        except TypeError:
            return STATIC
    if isinstance(value, Tensor):
        return operations.unary(value, node)
    tensor = tensor_in(value)
    if tensor is not None:
        return operations.unary(tensor, node)
    if value.dispatches:
        own_objects.inverted(w, node, value)
        return special_methods.signed(w, node, value)
    if isinstance(value, Scalar) and value.symbolic:
        w.emit(Operation, node, "arithmetic", value)
    return value if isinstance(value, (Static, Scalar)) else UNKNOWN


def binop(w: Walk, node: ast.BinOp) -> Value:
    return binary(w, node, node.op, w.eval(node.left), w.eval(node.right))


#: a text that is put together from others is known up to this length
_LONGEST = 4096

_FOLD: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Div: lambda a, b: a / b,
    ast.Mod: lambda a, b: a % b,
    ast.BitAnd: lambda a, b: a & b,
    ast.BitOr: lambda a, b: a | b,
}


def binary(w: Walk, node: ast.expr | ast.AugAssign, op: ast.operator, left: Value, right: Value) -> Value:
    """`left op right`."""
    if left.opaque or right.opaque:
        used(w, node, op, left, right)
    text = isinstance(left, Static) and left.type == "str"
    if (isinstance(left, Tensor) or isinstance(right, Tensor)) and not text:
        if left.__class__ is MarkedTensor and right.__class__ is MarkedTensor:
            errors.together(w, node, left, right)
        if left.dispatches or right.dispatches:
            own_objects.met(w, node, special_methods.ARITHMETIC[op.__class__], left, right)
            answer = special_methods.arithmetic(w, node, op, left, right)
            if answer is not None:
                return answer
        value = operations.binary(node, op, without_none(left), without_none(right))
        if isinstance(left, SparseTensor) and isinstance(op, ast.MatMult):
            return product_layout(left, right, value)
        return value
    if isinstance(left, Const) and isinstance(right, Const):
        return _fold(op, left.value, right.value)
    if isinstance(left, Static) and isinstance(right, Static) and not text:
        return _number(op, left, right)
    for number, other in ((left, right), (right, left)):
        if isinstance(number, Scalar) and number.symbolic and isinstance(other, (Static, Scalar)) and not text:
            w.emit(Operation, node, "arithmetic", number)
            break
    if left.dispatches or right.dispatches:
        answer = special_methods.arithmetic(w, node, op, left, right)
        if answer is not None:
            return answer
    if isinstance(left, Choice) or isinstance(right, Choice):
        pairs = [(a, b) for a in options(without_none(left)) for b in options(without_none(right))]
        return join_all(binary(w, node, op, a, b) for a, b in pairs[:9])
    if isinstance(left, Container) and isinstance(right, Container) and isinstance(op, ast.Add):
        if left.items is not None and right.items is not None and len(left.items) + len(right.items) <= MOST_ITEMS:
            return Container(left.kind, left.items + right.items)
        known = beginning(left)
        if left.items is not None:
            known |= {len(left.items) + index: held for index, held in beginning(right).items()}
        of = join(left.element, right.element) if left.items != () else right.element
        return Container(left.kind, of=of, fields=known or None)
    if isinstance(left, Container) and isinstance(op, ast.Add):
        return Container(left.kind, of=UNKNOWN, fields=beginning(left) or None)
    if isinstance(left, Container) and isinstance(op, ast.Mult):
        if (
            isinstance(right, Const)
            and isinstance(right.value, int)
            and left.items is not None
            and 0 <= right.value * len(left.items) <= 16
        ):
            return Container(left.kind, left.items * right.value)
        return Container(left.kind, of=left.element)
    if isinstance(left, Static) and left.type == "str":
        if right.dispatches:
            own_objects.said(w, node, right)
        if isinstance(op, ast.Mod) and isinstance(node, ast.expr):
            w.emit(Call, node, "builtins.str.__mod__", left, (right,), {})
        return STR
    if isinstance(left, (Scalar, Static)) and isinstance(right, (Scalar, Static)):
        scalar = left if isinstance(left, Scalar) else right
        assert isinstance(scalar, Scalar)
        return scalar.derived(scalar.type)
    if left is BOTTOM or right is BOTTOM:
        return BOTTOM
    if isinstance(node, ast.BinOp) and _is_of_arrays(w, node, left, right):
        return Tensor(Evidence("is computed from a slice, as only arrays can be", node), likely=True)
    return UNKNOWN


#: operators that no sequence of Python has, on either side
_OF_ARRAYS = (ast.Sub, ast.Pow, ast.MatMult)


def _is_of_arrays(w: Walk, node: ast.BinOp, left: Value, right: Value) -> bool:
    """Whether only arrays can be what an operator gets: one operand is a slice, and nothing says what the other is but
    a number. `/` joins a path with a slice of a text, so there it is the slice that must be divided."""
    if not (
        (isinstance(node.op, (*_OF_ARRAYS, ast.Div)) and _is_part(node.left))
        or (isinstance(node.op, _OF_ARRAYS) and _is_part(node.right))
    ):
        return False
    sides = ((node.left, left), (node.right, right))
    return all(_may_be_array(value) and not _is_declared(w, operand) for operand, value in sides)


def _is_part(node: ast.expr) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)


def _may_be_array(value: Value) -> bool:
    """Whether a value without a known tensor in it may be an array, or a number that an array is computed with."""
    return value is UNKNOWN or isinstance(value, Scalar) or (isinstance(value, Static) and value.type in _NUMBERS)


_NUMBERS = (None, "bool", "int", "float", "complex")


def _is_declared(w: Walk, operand: ast.expr) -> bool:
    """Whether an operand is a parameter, or a part of one, that is annotated: as no tensor, or its value would be."""
    while isinstance(operand, ast.Subscript):
        operand = operand.value
    if not isinstance(operand, ast.Name):
        return False
    taken = ast.walk(w.info.node.args)
    return any(isinstance(p, ast.arg) and p.arg == operand.id and p.annotation is not None for p in taken)


def _fold(op: ast.operator, left: Any, right: Any) -> Value:
    folds = (
        isinstance(left, (int, float)) and isinstance(right, (int, float)) and abs(left) < 2**64 and abs(right) < 2**64
    )
    operation = _FOLD.get(op.__class__)
    if operation is None or not (
        folds or (isinstance(left, str) and isinstance(right, str) and isinstance(op, ast.Add))
    ):
        return STR if isinstance(left, str) else _number(op, Static(type(left).__name__), Static(type(right).__name__))
    try:
        result = operation(left, right)
    except (ArithmeticError, TypeError, ValueError):
        return STATIC
    return Const(result) if not isinstance(result, str) or len(result) <= _LONGEST else STR


def _number(op: ast.operator, left: Static, right: Static) -> Value:
    if isinstance(op, ast.Div):
        return Static("float")
    if left.type == right.type:
        return Static(left.type)
    return Static("float") if "float" in (left.type, right.type) else STATIC


def compare(w: Walk, node: ast.Compare) -> Value:
    left = w.eval(node.left)
    result: Value = BOOL
    asked: Value | None = None
    for i, (op, right_node) in enumerate(zip(node.ops, node.comparators, strict=True)):
        right = w.eval(right_node)
        if asked is not None and tensor_in(asked) is not None:
            w.emit(Branch, node, asked, "and")
        result = compared(w, node, op, left, right)
        asked = result
        left = right
        if i and not isinstance(result, (Tensor, Const)):
            result = BOOL
    return result


def compared(w: Walk, node: ast.expr, op: ast.cmpop, left: Value, right: Value) -> Value:
    """`left < right` and the like, for one operator."""
    if isinstance(op, (ast.Is, ast.IsNot)):
        return BOOL
    if isinstance(op, (ast.In, ast.NotIn)):
        if right.dispatches:
            answer = special_methods.call_special_method(w, right, ("__contains__",), (left,), node)
            if answer is not None and tensor_in(answer) is not None:
                w.emit(Branch, node, answer, "if")
            return BOOL
        w.emit(Contains, node, left, right)
        if right.opaque:
            used(w, node, "contains", right)
        if (
            isinstance(left, Const)
            and isinstance(right, Container)
            and right.kind == "dict"
            and right.of is None
            and not right.fields
        ):
            return Const(isinstance(op, ast.NotIn))  # an empty **kwargs
        return BOOL
    if left.opaque or right.opaque:
        used(w, node, op, left, right)
    if isinstance(left, ExternalName) and isinstance(op, (ast.Gt, ast.GtE)):
        w.emit(Operation, node, ">", left)
    if isinstance(left, Function) and isinstance(right, Function) and left is not right:
        w.emit(Operation, node, "==", left)
    if left.dispatches or right.dispatches:
        answer = special_methods.compared(w, node, op, left, right)
        if answer is not None:
            return answer
    a, b = tensor_in(left), tensor_in(right)
    if a is not None or b is not None:
        other = right if a is not None else left
        if other is NONE:
            if isinstance(op, ast.Eq) and a is not None:
                w.emit(Operation, node, "== None", left)
            return BOOL  # Dynamo answers `t == None` by itself (torch 2.13)
        if isinstance(other, Const) and isinstance(other.value, str) and isinstance(op, (ast.Eq, ast.NotEq)):
            return BOOL  # no tensor equals a text: Python answers that itself
        return operations.compare(node, left, right)
    if isinstance(left, Const) and isinstance(right, Const):
        return _fold_compare(op, left.value, right.value)
    if isinstance(left, Container) and isinstance(right, Container):
        w.emit(Contains, node, left, right)
        return BOOL
    scalar = left if isinstance(left, Scalar) else right
    return scalar.derived("bool") if isinstance(scalar, Scalar) else BOOL


def _fold_compare(op: ast.cmpop, left: Any, right: Any) -> Value:
    try:
        if isinstance(op, ast.Eq):
            return Const(bool(left == right))
        if isinstance(op, ast.NotEq):
            return Const(bool(left != right))
        if isinstance(op, ast.Lt):
            return Const(bool(left < right))
        if isinstance(op, ast.LtE):
            return Const(bool(left <= right))
        if isinstance(op, ast.Gt):
            return Const(bool(left > right))
        if isinstance(op, ast.GtE):
            return Const(bool(left >= right))
    except TypeError:
        pass
    return BOOL
