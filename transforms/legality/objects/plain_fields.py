"""Fields of objects that are there from the start, and of which reading and storing runs no code."""

from __future__ import annotations

import ast
from functools import lru_cache

from graphmend.analysis.lattice.values import Value
from graphmend.analysis.program.definitions import ClassInfo
from graphmend.analysis.program.entities import Instance, Record
from graphmend.analysis.resolution.classes import mro
from graphmend.analysis.syntax.traversal import nodes_in

#: bases outside of the program that run no code for fields; a module has its own for tensors, which keeps them fields
_PLAIN_BASES = frozenset(
    {"builtins.object", "abc.ABC", "typing.Generic", "typing.Protocol", "torch.nn.Module", "torch.nn.modules.Module"}
)
_RUN = frozenset("__setattr__ __getattribute__ __getattr__ __delattr__ __set_name__ __new__".split())


def is_plain_field(name: str, *owners: Value) -> bool:
    """Is a field of that name one that every object has once it is made, and nothing but a field? `owners` are all
    objects that it may be of."""
    return bool(owners) and all(isinstance(o, (Instance, Record)) and _has_field(o.info, name) for o in owners)


@lru_cache(maxsize=256)
def _has_field(info: ClassInfo, name: str) -> bool:
    chain = mro(info)
    if not all(map(_is_plain, chain)) or any(name in own for c in chain for own in (c.methods, c.setters, c.classes)):
        return False
    if any(_deletes(cls, name) for cls in chain):
        return False
    given = any(name in cls.annotations for cls in chain) and info.is_dataclass()
    return given or any(name in cls.registered or _is_set_first(cls, name) for cls in chain)


def _is_plain(cls: ClassInfo) -> bool:
    module, node = cls.module, cls.node
    if node.keywords or _RUN & cls.methods.keys():
        return False
    known = all(
        (isinstance(base, ast.Name) and base.id in module.classes) or module.qualified(_plain(base)) in _PLAIN_BASES
        for base in node.bases
    )
    return known and all(_is_unfrozen_dataclass(cls, d) for d in node.decorator_list)


def _plain(base: ast.expr) -> ast.expr:
    return base.value if isinstance(base, ast.Subscript) else base


def _is_unfrozen_dataclass(cls: ClassInfo, decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    options = decorator.keywords if isinstance(decorator, ast.Call) else []
    return cls.module.qualified(called) == "dataclasses.dataclass" and all(k.arg != "frozen" for k in options)


def _is_set_first(cls: ClassInfo, name: str) -> bool:
    """Does `__init__` give every object the field, whatever it is given?"""
    init = cls.methods.get("__init__")
    return init is not None and any(
        method is init and statement in getattr(init.node, "body", ())
        for method, statement, _ in cls.assigned.get(name, ())
    )


def _deletes(cls: ClassInfo, name: str) -> bool:
    tree = cls.module.source.tree
    deleted = (t for n in nodes_in(tree) if isinstance(n, ast.Delete) for t in n.targets) if tree is not None else ()
    return any(isinstance(t, ast.Attribute) and t.attr == name for t in deleted)
