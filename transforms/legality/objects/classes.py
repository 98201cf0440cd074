"""Classes of the program as they are used: whether they stay as they are written, and what derives from them."""

from __future__ import annotations

import ast
from functools import lru_cache

from graphmend.analysis.program.definitions import ClassInfo
from graphmend.analysis.resolution.classes import mro
from graphmend.analysis.syntax.traversal import nodes_in


@lru_cache(maxsize=256)
def is_as_written(cls: ClassInfo) -> bool:
    """Does no code of the file bind a class's name to something else, or change the class behind its definition?"""
    tree = cls.module.source.tree
    if tree is None or cls.is_inner:
        return False
    for node in nodes_in(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=cls.name), ctx=ast.Store() | ast.Del()):
                return False
            case ast.Name(id=cls.name, ctx=ast.Store() | ast.Del()):
                return False
            case ast.Call(func=ast.Name(id="setattr" | "delattr" | "type"), args=[ast.Name(id=cls.name), *_]):
                return False
            case ast.FunctionDef(name=cls.name) | ast.AsyncFunctionDef(name=cls.name):
                return False
            case ast.ClassDef(name=cls.name) if node is not cls.node:
                return False
    return True


def subclasses(info: ClassInfo) -> list[ClassInfo]:
    """The classes of the same file that derive from a class."""
    return [cls for cls in info.module.classes.values() if cls is not info and info in mro(cls)]


def plain_base(base: ast.expr) -> ast.expr:
    """A base without its type arguments."""
    return base.value if isinstance(base, ast.Subscript) else base
