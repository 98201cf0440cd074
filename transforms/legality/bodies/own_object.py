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
from graphmend.transforms.code.liveness import writes
from graphmend.transforms.legality.bodies.changed import MAKERS
from graphmend.transforms.legality.bodies.layers import asks_in_place, layer_gives_new, passes_on
from graphmend.transforms.legality.bodies.local_names import root_of
from graphmend.transforms.legality.bodies.new_memory import Returned, returned
from graphmend.transforms.legality.bodies.replaced_modules import (
    is_defined_twice,
    is_made_by_argument,
    is_put_elsewhere,
    is_rearranged,
)
from graphmend.transforms.legality.operations import aliases
from graphmend.transforms.legality.operations import names as known

_DEEPEST = 12


class OwnObject:
    """The first parameter of a method; of a function that is none, nothing."""

    def __init__(self, info: FunctionInfo, owner: ClassInfo | None, depth: int = 0) -> None:
        self._owner, self._depth, self._module = owner, depth, info.module
        self.name = next((p.arg for p in info.parameters), None) if owner is not None else None
        node = info.node
        self._locals = {p.arg for p in info.parameters} | writes(*([] if isinstance(node, ast.Lambda) else node.body))

    def is_new(self, value: ast.expr) -> bool | None:
        """Does an expression give a tensor or a number that nothing else has? None for a name. What local names stand
        for is taken to be tensors and numbers.
        """
        match value:
            case ast.BinOp(left=left, right=right):
                return self._is_plain(left) and self._is_plain(right)
            case ast.Compare(left=left, comparators=rights):
                return all(map(self._is_plain, (left, *rights)))
            case ast.Constant(value=bool() | int() | float()):
                return True
            case ast.Name():
                return None
            case ast.Call(func=ast.Attribute(attr=attr) as function, keywords=keywords):
                if any(k.arg in (None, "out") for k in keywords):
                    return False
                if self.name is not None and root_of(function) == self.name:
                    called = None if self._may_be_another(function) else self.attribute(function)
                    return called is not None and all(gives_new(one, self._depth + 1) for one in options(called))
                listed = attr in aliases.NEW or attr in MAKERS
                return listed and self._is_of_torch(function) and not asks_in_place(value, attr)
        return False

    def computes(self, value: ast.expr) -> bool:
        """Is an expression an operation, or a call of one of torch's functions, whose result nothing else can have?"""
        match value:
            case ast.BinOp() | ast.Compare():
                return True
            case ast.Call(func=ast.Attribute() as function):
                return root_of(function) not in self._locals and self._is_of_torch(function)
        return False

    def _is_of_torch(self, function: ast.Attribute) -> bool:
        """Is a function one of torch's, or a method of what a local name stands for, or of something computed?"""
        root = root_of(function)
        if root is None or root in self._locals:
            return True
        bound = root in self._module.globals or root in self._module.classes or root in self._module.functions
        return not bound and (self._module.qualified(function) or "").rpartition(".")[0] in known.FUNCTIONAL

    def _is_plain(self, operand: ast.expr) -> bool:
        """Is an operand a tensor or a number, and no object whose operators may give something else?"""
        root = root_of(operand) if isinstance(operand, ast.Attribute) else None
        if isinstance(operand, ast.Name) or (root is not None and root != self.name):
            name = operand.id if isinstance(operand, ast.Name) else root
            path = self._module.qualified(operand) or ""
            values = self._module.globals.get(name or "", [])
            constant = bool(values) and all(isinstance(v, ast.Constant) for v in values)
            return name in self._locals or constant or path.startswith("math.")
        return not self.is_object(operand)

    def _may_be_another(self, function: ast.expr) -> bool:
        """May code put another module where the object holds one?"""
        while isinstance(function, ast.Subscript):
            function = function.value
        tree = self._module.source.tree
        return (
            not isinstance(function, ast.Attribute)
            or is_put_elsewhere(function.attr, tree)
            or is_rearranged(function.attr, tree)
        )

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
    return returned(node, own.is_new, own.passes_on, own.computes)


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
