"""Classes whose calls make a record and do nothing else: named tuples, and dataclasses with the generated methods."""

from __future__ import annotations

import ast
from functools import lru_cache

from graphmend.analysis.program.definitions import ClassInfo
from graphmend.analysis.resolution.classes import mro
from graphmend.transforms.legality.objects.classes import is_as_written, plain_base

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
_NEW = frozenset({"builtins.list", "builtins.dict", "builtins.set", "builtins.tuple"})


@lru_cache(maxsize=256)
def is_record(info: ClassInfo) -> bool:
    """Is a class one whose calls bind its fields, and run nothing else of the program?"""
    chain = mro(info)
    if not all(_is_plain(cls) and is_as_written(cls) for cls in chain):
        return False
    return any(map(_is_named_tuple, chain)) or all(cls.is_dataclass() for cls in chain)


def _is_named_tuple(cls: ClassInfo) -> bool:
    return any(_named(cls, base) == "typing.NamedTuple" for base in cls.node.bases)


def _is_plain(cls: ClassInfo) -> bool:
    node, module = cls.node, cls.module
    if node.keywords or _RUN & (cls.methods.keys() | cls.names.keys()):
        return False
    if not all(_is_field(cls, default) for default in cls.names.values()):
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
    return cls.module.qualified(plain_base(node))


def _is_field(cls: ClassInfo, default: ast.expr) -> bool:
    """Is a default a number, a text or the like, or a new container of Python's for each record? Other objects may be
    descriptors, which are called.
    """
    match default:
        case ast.Constant() | ast.UnaryOp(operand=ast.Constant()):
            return True
        case ast.Tuple(elts=parts):
            return all(_is_field(cls, part) for part in parts)
        case ast.Call(func=function, args=[], keywords=options):
            factories = [k.value for k in options if k.arg == "default_factory"]
            plain = all(k.arg in ("default", "default_factory", "repr", "compare", "hash", "kw_only") for k in options)
            plain = plain and all(_is_field(cls, k.value) for k in options if k.arg == "default")
            known = cls.module.qualified(function) == "dataclasses.field"
            return known and plain and all(cls.module.qualified(f) in _NEW for f in factories)
    return False
