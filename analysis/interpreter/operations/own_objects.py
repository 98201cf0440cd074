"""Operations on objects of the program's own classes that TorchDynamo hands on as they are, where Python would call a
method of the class: the rules are told of each.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphmend.analysis.interpreter.events import Operation
from graphmend.analysis.interpreter.operations import special_methods
from graphmend.analysis.lattice.external import ExternalName
from graphmend.analysis.lattice.values import Tensor, Value, options
from graphmend.analysis.program.definitions import ModuleInfo
from graphmend.analysis.program.entities import Class, Function, Instance, Record, class_of
from graphmend.analysis.resolution.classes import PLAIN_BASES, bases, find_method, is_module_class, mro

if TYPE_CHECKING:
    from graphmend.analysis.interpreter.interface import Walk
    from graphmend.analysis.lattice.arguments import Arguments, Keywords

#: methods by which objects are put in order
_ORDERS = ("__lt__", "__gt__")
_DISPATCH = "functools.singledispatch"
#: members of classes by what makes them, which Dynamo does not bind as Python does
_MAKERS = ("functools.partialmethod", "functools.singledispatchmethod", _DISPATCH)


def is_own(w: Walk, value: Value, *methods: str) -> bool:
    """Is it an object of a class in sight, with no base but such (no tensor, number, tuple or enumeration), that has
    one of these methods?
    """
    if methods and not any(_has(w, value, name) for name in methods):
        return False
    if isinstance(value, Record):
        return value.items is None and not value.info.node.bases
    if not isinstance(value, Instance):
        return False
    if is_module_class(w.session, value.info):
        return True
    return all(
        isinstance(base, Class) or (isinstance(base, ExternalName) and base.name in PLAIN_BASES)
        for cls in mro(value.info, w.session)
        for base in bases(w.session, cls)
    )


def _has(w: Walk, value: Value, name: str) -> bool:
    own = class_of(value)
    if own is None:
        return False
    ordered = name in _ORDERS and any(_is_ordered(d) for d in own.node.decorator_list)
    return ordered or find_method(w.session, own, name) is not None


def _is_ordered(decorator: ast.expr) -> bool:
    """Does `@dataclass(order=True)` give a class its comparisons?"""
    given = decorator.keywords if isinstance(decorator, ast.Call) else ()
    return any(k.arg == "order" and isinstance(k.value, ast.Constant) and k.value.value is True for k in given)


def met(w: Walk, node: ast.AST, operator: str, left: Value, right: Value) -> None:
    """An operator, by the middle of its method's name, is given a tensor and an object, in either order."""
    methods = (f"__{operator}__", f"__i{operator}__"), (f"__r{operator}__",)
    for value, other, names in ((left, right, methods[0]), (right, left, methods[1])):
        if isinstance(other, Tensor) and is_own(w, value, *names):
            _tell(w, node, "operand beside a tensor", value)


def indexes(w: Walk, node: ast.AST, value: Value, index: Value) -> None:
    """A tensor, or a list, is indexed by an object, whose method says where."""
    if is_own(w, index, "__index__"):
        if isinstance(value, Tensor):
            _tell(w, node, "index of a tensor", index)
        special_methods.call_special_method(w, index, ("__index__",), (), node)


def sorted_by_themselves(w: Walk, node: ast.AST, element: Value, keywords: Keywords) -> None:
    """Objects are put in order, by their own comparison where there is no key."""
    first = options(element)[0]
    if "key" not in keywords and all(is_own(w, o, *_ORDERS) for o in options(element)):
        _tell(w, node, "sorted", first)


def inverted(w: Walk, node: ast.UnaryOp, value: Value) -> None:
    if isinstance(node.op, ast.Invert) and is_own(w, value, "__invert__"):
        _tell(w, node, "~", value)


def written(w: Walk, node: ast.JoinedStr, part: ast.expr, value: Value) -> None:
    """An object is written into an f-string, without `!r` or `!s`."""
    if isinstance(part, ast.FormattedValue) and part.conversion == -1:
        said(w, node, value)


def said(w: Walk, node: ast.AST, value: Value) -> None:
    """An object becomes a part of a text."""
    if is_own(w, value) and not (isinstance(value, Instance) and is_module_class(w.session, value.info)):
        _tell(w, node, "text", value)


def given(w: Walk, node: ast.AST, name: str, args: Arguments) -> None:
    """A function that is written in C, and asks its arguments' classes, is called with an object."""
    own = next((value for arg in args for value in options(arg) if is_own(w, value)), None)
    if own is not None:
        _tell(w, node, name, own)


def member(w: Walk, node: ast.AST, value: Instance, name: str) -> None:
    """An attribute of an object is read that the class has made otherwise than by `def`."""
    for cls in mro(value.info, w.session):
        if "__getattribute__" in cls.methods:
            _tell(w, node, "__getattribute__", value)
            return
        made, method = cls.names.get(name), cls.methods.get(name)
        makers: Sequence[ast.expr] = method.decorators if method is not None else ()
        if isinstance(made, ast.Call):
            makers = [made]
        if maker := next(filter(None, (_maker(cls.module, each) for each in makers)), None):
            _tell(w, node, maker, value)
        if made is not None or method is not None:
            return


def called(w: Walk, node: ast.AST, callee: Function) -> None:
    """A function under `functools.singledispatch` is called."""
    info = callee.info
    if callee.bound is None and any(_maker(info.module, d) == _DISPATCH for d in info.decorators):
        _tell(w, node, _DISPATCH, callee)


def _maker(module: ModuleInfo, node: ast.expr | None) -> str | None:
    """What makes a member of a class, or decorates it, where the rules want to know that."""
    name = module.qualified(node.func if isinstance(node, ast.Call) else node) if node is not None else None
    return name if name in _MAKERS else None


def _tell(w: Walk, node: ast.AST, name: str, value: Value) -> None:
    if isinstance(node, (ast.expr, ast.stmt)):
        w.emit(Operation, node, name, value)
