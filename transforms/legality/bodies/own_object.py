"""What a function knows of the object whose method it is: the modules and tensors that it holds, and what calling one
gives: memory of its own, or what it is given.
"""

from __future__ import annotations

import ast
from functools import lru_cache

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Container, Static, Tensor, Value, options
from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo
from graphmend.analysis.program.entities import Instance
from graphmend.analysis.resolution.classes import mro
from graphmend.transforms.legality.bodies.changed import MAKERS
from graphmend.transforms.legality.bodies.layers import asks_in_place, layer_gives_new, passes_on
from graphmend.transforms.legality.bodies.local_names import root_of
from graphmend.transforms.legality.bodies.new_memory import Returned, returned
from graphmend.transforms.legality.bodies.replaced_modules import is_defined_twice, is_made_by_argument
from graphmend.transforms.legality.operations import aliases

_DEEPEST = 12


class OwnObject:
    """The first parameter of a method; of a function that is none, nothing."""

    def __init__(self, info: FunctionInfo, owner: ClassInfo | None, depth: int = 0) -> None:
        self._owner, self._depth = owner, depth
        self.name = next((p.arg for p in info.parameters), None) if owner is not None else None

    def is_new(self, value: ast.expr) -> bool | None:
        """Does an expression give a tensor or a number that nothing else has? None for a name."""
        match value:
            case ast.BinOp() | ast.Compare():
                return True
            case ast.Constant(value=bool() | int() | float()):
                return True
            case ast.Name():
                return None
            case ast.Call(func=ast.Attribute(attr=attr) as function):
                if self.name is not None and root_of(function) == self.name:
                    called = self.attribute(function)
                    return called is not None and all(gives_new(one, self._depth + 1) for one in options(called))
                return (attr in aliases.NEW or attr in MAKERS) and not asks_in_place(value, attr)
        return False

    def passes_on(self, value: ast.expr) -> ast.expr | None:
        """What a call of a module that the object holds may give back instead of memory of its own."""
        match value:
            case ast.Call(func=ast.Attribute() as function, args=[given, *_]) if root_of(function) == self.name:
                called = self.attribute(function)
                return given if called is not None and any(map(passes_on, options(called))) else None
        return None

    def attribute(self, node: ast.expr) -> Value | None:
        """What `self.name`, or a part of it, holds; None where that is not known, or hangs on who made the object."""
        match node:
            case ast.Attribute(value=ast.Name(id=me), attr=attr) if me == self.name and self._owner is not None:
                cached = (cls.attribute_cache.get(attr) for cls in mro(self._owner))
                value = next((value for value in cached if value is not None), None)
                return None if value is None or is_made_by_argument(self._owner, attr) else value
            case ast.Subscript(value=value):
                return self.attribute(value)
        return None

    def is_method(self, attr: str) -> bool:
        return self._owner is not None and any(attr in cls.methods for cls in mro(self._owner))

    def is_of_tensor(self, node: ast.expr) -> bool:
        """Is what a method belongs to a tensor that the object holds, or something computed?"""
        if not isinstance(node, (ast.Attribute, ast.Name)):
            return True
        value = self.attribute(node)
        return value is not None and all(isinstance(v, Tensor) for v in options(value))

    def is_object(self, node: ast.expr) -> bool:
        value = self.attribute(node)
        return value is not None and any(isinstance(v, (Instance, ExternalInstance)) for v in options(value))

    def may_run_code(self, node: ast.Attribute) -> bool:
        """May indexing an attribute of the object run code of a class?"""
        if not (isinstance(node.value, ast.Name) and node.value.id == self.name):
            return False
        value = self.attribute(node)
        return value is None or not all(isinstance(v, (Tensor, Container, Static)) for v in options(value))


def gives_new(value: Value, depth: int = 0) -> bool:
    """Does calling a module give memory of its own, whatever it is given, if it gives a tensor?"""
    return result_of_module(value, depth) is not Returned.ANY


def result_of(function: FunctionInfo, owner: ClassInfo | None, depth: int = 0) -> Returned:
    """What a function of the program, or a method of a class, returns."""
    node = function.node
    if depth > _DEEPEST or not isinstance(node, ast.FunctionDef) or node.decorator_list:
        return Returned.ANY
    if owner is not None and is_defined_twice(function):
        return Returned.ANY
    own = OwnObject(function, owner, depth)
    return returned(node, own.is_new, own.passes_on)


@lru_cache(maxsize=256)
def result_of_module(value: Value, depth: int = 0) -> Returned:
    """What calling a module gives."""
    match value:
        case ExternalInstance():
            return Returned.MADE if layer_gives_new(value) else Returned.ANY
        case Container(kind="modules", items=tuple() as items):
            last = next((item for item in reversed(items) if not passes_on(item)), None)
            return result_of_module(last, depth + 1) if last is not None else Returned.ANY
        case Instance(info=info):
            method = next((cls.methods["forward"] for cls in mro(info) if "forward" in cls.methods), None)
            called = any("__call__" in cls.methods for cls in mro(info))
            return result_of(method, info, depth + 1) if method is not None and not called else Returned.ANY
    return Returned.ANY
