"""Classes whose calls make a record and do nothing else: named tuples, and dataclasses with the generated methods."""

from __future__ import annotations

import ast
from functools import lru_cache

from graphmend.analysis.program.definitions import ClassInfo
from graphmend.analysis.resolution.classes import mro
from graphmend.analysis.syntax.traversal import nodes_in

#: what they inherit that runs no code of its own where one is made
_PLAIN_BASES = frozenset(
    {
        "typing.NamedTuple",
        "typing.Generic",
        "typing.Protocol",
        "builtins.object",
        "abc.ABC",
        "typing_extensions.Generic",
    }
)
#: methods that run where a record is made, a field is stored, or that put another object in its place
_RUN = frozenset("__init__ __post_init__ __new__ __setattr__ __init_subclass__ __class_getitem__".split())
_DECORATORS = frozenset({"dataclasses.dataclass", "typing.final"})
_NEW = frozenset({"list", "dict", "set", "tuple"})


@lru_cache(maxsize=256)
def is_record(info: ClassInfo) -> bool:
    """Is a class one whose calls bind its fields, and run nothing else of the program?"""
    chain = mro(info)
    tuples = [_is_named_tuple(cls) for cls in chain]
    return all(map(_is_plain, chain)) and (any(tuples) or any(cls.is_dataclass() for cls in chain))


def _is_named_tuple(cls: ClassInfo) -> bool:
    return any(_named(cls, base) == "typing.NamedTuple" for base in cls.node.bases)


def _is_plain(cls: ClassInfo) -> bool:
    node, module = cls.node, cls.module
    if node.keywords or _RUN & cls.methods.keys() or not all(map(_is_field, cls.names.values())):
        return False
    if not all(_named(cls, d) in _DECORATORS for d in node.decorator_list):
        return False
    return all(
        _named(cls, base) in _PLAIN_BASES or (isinstance(base, ast.Name) and base.id in module.classes)
        for base in node.bases
    )


def _named(cls: ClassInfo, node: ast.expr) -> str | None:
    match node:
        case ast.Call(func=function):
            return cls.module.qualified(function)
        case ast.Subscript(value=value):
            return cls.module.qualified(value)
    return cls.module.qualified(node)


def _is_field(default: ast.expr) -> bool:
    """Is a default computed where the class is defined, or a new container of Python's for each record?"""
    if not isinstance(default, ast.Call):
        return not any(isinstance(n, ast.Lambda) for n in nodes_in(default))  # a descriptor would be called for
    factories = [k.value for k in default.keywords if k.arg == "default_factory"]
    return all(isinstance(f, ast.Name) and f.id in _NEW for f in factories)
