"""Conditions: their truth value where it is known, and the values of names refined for each side of the branch."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.interpreter.events import Branch, BranchKind, Operation
from graphmend.analysis.interpreter.operations.objects import used
from graphmend.analysis.interpreter.operations.special_methods import by_builtin
from graphmend.analysis.lattice.environment import Environment, merge
from graphmend.analysis.lattice.evidence import Evidence
from graphmend.analysis.lattice.external import ExternalName
from graphmend.analysis.lattice.values import (
    NONE,
    UNKNOWN,
    Choice,
    Const,
    Container,
    Scalar,
    Static,
    Tensor,
    Value,
    join_all,
    options,
    tensor_in,
    without_none,
)
from graphmend.analysis.program.entities import Class, Function, Instance, Record, class_of
from graphmend.analysis.resolution.classes import mro
from graphmend.analysis.resolution.tensor_usage import is_flag
from graphmend.analysis.syntax.nodes import dotted

if TYPE_CHECKING:
    from graphmend.analysis.interpreter.interface import Walk


def _path(w: Walk, node: ast.expr) -> str | None:
    """The name or dotted path whose value a condition refines."""
    path = dotted(node.target if isinstance(node, ast.NamedExpr) else node)
    if path is not None and isinstance(node, ast.Attribute):
        w.path_ends.add(node.attr)
    return path


Outcome = tuple[bool | None, "Environment", "Environment"]


def condition(w: Walk, test: ast.expr, kind: BranchKind, message: Value | None = None) -> Outcome:
    """(truth or None, bindings where it holds, bindings where it does not). Emits a `Branch` event where Python needs
    the truth value of an object."""
    if isinstance(test, ast.BoolOp):
        return _connective(w, test, kind)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        truth, yes, no = condition(w, test.operand, "not" if kind == "assert" else kind)
        return (None if truth is None else not truth), no, yes
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        outcome = _none_test(w, test)
        if outcome is not None:
            return outcome
    if isinstance(test, ast.Call):
        outcome = _isinstance(w, test)
        if outcome is not None:
            return outcome
    value = w.eval(test)
    if value.opaque:
        used(w, test, "bool", value)
    if isinstance(w.statement, ast.Assert) and _decides(w.statement, test) and not isinstance(value, (Tensor, Static)):
        w.emit(Operation, test, "asserted", value)
    if value.dispatches:
        value = by_builtin(w, "bool", value, test) or value
    if (
        isinstance(test, ast.Name)
        and isinstance(value, Choice)
        and NONE in value.options
        and is_flag(w.session, w.info, test.id)
    ):
        return None, {}, {}
    if tensor_in(value) is not None or (isinstance(value, Scalar) and value.symbolic):
        # a chained comparison asks its first half as soon as it is evaluated, whatever stands around it
        w.emit(Branch, test, value, kind, message)
    path = _path(w, test)
    if path is None or not isinstance(value, Choice):
        present = _present(w, test) if isinstance(value, Tensor) else {}
        return truth_of(value), present, present
    return None, {path: without_none(value)}, {}


#: what is not evaluated as a whole on every run
_PARTLY = (ast.BoolOp, ast.IfExp, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _present(w: Walk, test: ast.expr) -> Environment:
    """The names that are not None on either side of a test, as it has taken an attribute or an element of them."""
    found: Environment = {}
    stack: list[ast.AST] = [test]
    while stack:
        node = stack.pop()
        if isinstance(node, _PARTLY):
            continue
        if (
            isinstance(node, (ast.Attribute, ast.Subscript))
            and isinstance(node.value, ast.Name)
            and not (isinstance(node, ast.Attribute) and hasattr(None, node.attr))
        ):
            value = w.env.get(node.value.id)
            if isinstance(value, Choice) and NONE in value.options:
                found[node.value.id] = without_none(value)
        stack += [node.left, node.comparators[0]] if isinstance(node, ast.Compare) else ast.iter_child_nodes(node)
    return found


def _decides(statement: ast.Assert, test: ast.expr) -> bool:
    """Whether a test is the last that an assertion asks, as it is, and the message is not computed: Dynamo makes an
    operation of it then, whatever its value is (torch 2.13)."""
    last = statement.test
    while isinstance(last, ast.BoolOp):
        last = last.values[-1]
    return last is test and (statement.msg is None or isinstance(statement.msg, ast.Constant))


def truth_of(value: Value) -> bool | None:
    """The truth value of a value where it is the same on every run; None where it is not known."""
    if isinstance(value, Const):
        return bool(value.value)
    if isinstance(value, (Function, Class, ExternalName)) or (
        isinstance(value, Container) and value.kind == "tuple" and value.items
    ):
        return True
    return None


def _connective(w: Walk, test: ast.BoolOp, kind: BranchKind) -> Outcome:
    conjunction = isinstance(test.op, ast.And)
    word: BranchKind = "and" if conjunction else "or"
    before = dict(w.env)
    passed: Environment = {}
    known = True
    decided: bool | None = conjunction
    settled: Environment | None = None  # what holds even where nothing behind the first open operand is asked
    resumed = 0
    with w.restoring():
        for operand in test.values:
            truth, yes, no = condition(w, operand, word if kind == "assert" else kind)
            if truth is None and settled is None:
                settled, resumed = dict(w.env), w.resumed
            going_on = yes if conjunction else no
            passed.update(going_on)
            w.env.update(going_on)
            if truth is None:
                known = False
                w.situation.conditional += 1
            elif truth is not conjunction:
                decided = truth
                known = True
                break
        else:
            decided = conjunction if known else None
    if settled is not None and w.resumed != resumed:
        w.env = merge(settled, w.env)
    w.env = {**{k: v for k, v in w.env.items() if k not in passed}, **{k: before[k] for k in passed if k in before}}
    if conjunction:
        return decided, passed, {}
    return decided, {}, passed


def _none_test(w: Walk, test: ast.Compare) -> Outcome | None:
    """`x is None`, `x is not None`, and the same with `==`, which Dynamo answers for tensors too (torch 2.13)."""
    op, right = test.ops[0], test.comparators[0]
    if not (
        isinstance(right, ast.Constant)
        and right.value is None
        and isinstance(op, (ast.Is, ast.IsNot, ast.Eq, ast.NotEq))
    ):
        return None
    left = test.left
    value = w.eval(left)
    if isinstance(op, ast.Eq):
        w.emit(Operation, test, "== None", value)
    path = _path(w, left)
    is_none: bool | None
    if value is NONE or (isinstance(value, Const) and value.value is None):
        is_none = True
    elif value is UNKNOWN or (isinstance(value, Static) and value.type is None):
        is_none = None
    elif isinstance(value, Choice):
        is_none = None if any(_may_be_none(o) for o in value.options) else False
    else:
        is_none = False
    there = {path: without_none(value)} if path is not None and isinstance(value, Choice) else {}
    absent: Environment = {path: NONE} if path is not None else {}
    if isinstance(op, (ast.Is, ast.Eq)):
        return is_none, absent, there
    return (None if is_none is None else not is_none), there, absent


def _may_be_none(value: Value) -> bool:
    return (isinstance(value, Const) and value.value is None) or (isinstance(value, Static) and value.type is None)


_TENSOR_CLASSES = frozenset(
    {"torch.Tensor", "torch.FloatTensor", "torch.LongTensor", "torch.nn.Parameter", "numpy.ndarray"}
)
_NUMBERS = {"builtins.int": "int", "builtins.float": "float", "builtins.bool": "bool", "builtins.str": "str"}
_TOWER = {
    "numbers.Number": ("int", "float", "bool", "complex"),
    "numbers.Complex": ("int", "float", "bool", "complex"),
    "numbers.Real": ("int", "float", "bool"),
    "numbers.Integral": ("int", "bool"),
}
_CONTAINERS = {"builtins.list": "list", "builtins.tuple": "tuple", "builtins.dict": "dict", "builtins.set": "set"}


def _isinstance(w: Walk, test: ast.Call) -> Outcome | None:
    """`isinstance(x, T)` and `torch.is_tensor(x)`: the options of `x` are divided between the sides."""
    callee = w.eval(test.func)
    if (
        not isinstance(callee, ExternalName)
        or callee.name not in ("builtins.isinstance", "torch.is_tensor")
        or not test.args
    ):
        return None
    value = w.eval(test.args[0])
    if value.opaque:
        used(w, test, "isinstance", value)
    if callee.name == "torch.is_tensor":
        classes: list[Value] = [ExternalName("torch.Tensor")]
    else:
        kind = w.eval(test.args[1]) if len(test.args) > 1 else UNKNOWN
        classes = list(kind.items) if isinstance(kind, Container) and kind.items is not None else list(options(kind))
    path = _path(w, test.args[0])
    fits: list[Value] = []
    others: list[Value] = []
    open_question = False
    for option in options(value):
        verdict = is_one_of(option, classes)
        open_question |= verdict is None
        if verdict is not False:
            fits.append(option)
        if verdict is not True:
            others.append(option)
    if path is None:
        return (None if open_question or (fits and others) else bool(fits)), {}, {}
    narrowed: Value = join_all(fits) if fits else UNKNOWN
    if (
        value is UNKNOWN
        and len(classes) == 1
        and isinstance(classes[0], ExternalName)
        and classes[0].name in _TENSOR_CLASSES
    ):
        narrowed = Tensor(Evidence("is a Tensor here: isinstance says so", test.args[0]))
    yes: Environment = {path: narrowed} if narrowed is not value else {}
    no: Environment = {path: join_all(others)} if others and len(others) < len(options(value)) else {}
    if open_question:
        return None, yes, no
    return (None if fits and others else bool(fits)), yes, no


def is_one_of(value: Value, classes: list[Value]) -> bool | None:
    """Whether a value is an instance of one of the classes; None where that is not known."""
    answers = [_fits_one(value, c) for c in classes]
    if True in answers:
        return True
    return None if None in answers or not answers else False


def _fits_one(value: Value, cls: Value) -> bool | None:
    if isinstance(cls, Class):
        own = class_of(value)
        if own is not None:
            fits = any(c is cls.info for c in mro(own))
            return fits if fits or isinstance(value, Instance) else None
        return (
            False
            if isinstance(value, (Tensor, Static)) and not (isinstance(value, Static) and value.type is None)
            else None
        )
    if not isinstance(cls, ExternalName):
        return None
    if isinstance(value, Tensor):
        if cls.name in _TENSOR_CLASSES:
            return (
                True
                if (cls.name in ("torch.Tensor", "numpy.ndarray")) and value.ndarray == (cls.name == "numpy.ndarray")
                else None
            )
        return False if cls.name.startswith("builtins.") or (cls.name in _TOWER and not value.ndarray) else None
    if isinstance(value, Static) and value.type is not None:
        if cls.name in _TOWER:
            return value.type in _TOWER[cls.name]
        wanted = _NUMBERS.get(cls.name)
        if wanted is None:
            return False if cls.name in _TENSOR_CLASSES or cls.name in _CONTAINERS else None
        return value.type == wanted or (value.type == "bool" and wanted == "int")
    if isinstance(value, Container):
        wanted = _CONTAINERS.get(cls.name)
        if isinstance(value, Record) and cls.name in _NUMBERS:
            return False
        if value.kind not in _CONTAINERS.values():
            return None
        return (
            value.kind == wanted
            if wanted is not None
            else (False if cls.name in _TENSOR_CLASSES or cls.name in _NUMBERS else None)
        )
    return None
