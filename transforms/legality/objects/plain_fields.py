"""Fields of objects that are there from the start, and of which reading and storing runs no code."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache

from graphmend.analysis.lattice.values import Value
from graphmend.analysis.program.definitions import ClassInfo
from graphmend.analysis.program.entities import Instance, Record
from graphmend.analysis.resolution.classes import PLAIN_BASES, mro
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.legality.objects.classes import is_as_written, plain_base, subclasses

#: bases outside of the program that run no code for fields; a module has its own for tensors, which keeps them fields
_PLAIN_BASES = PLAIN_BASES | {"torch.nn.Module", "torch.nn.modules.Module"}
#: methods that run where a field is read, stored or deleted, or that make objects without `__init__`
_RUN = frozenset(
    "__setattr__ __getattribute__ __getattr__ __delattr__ __set_name__ __new__ __getstate__ __setstate__ __reduce__ "
    "__reduce_ex__ __copy__ __deepcopy__ __init_subclass__".split()
)
#: what else reaches the fields of any object
_REACHES = frozenset("__dict__ __class__ __setattr__ __delattr__ __setstate__".split())
_REACHING_CALLS = frozenset("setattr delattr vars".split())
_OPTIONS = frozenset("eq order repr slots kw_only match_args".split())


def is_plain_field(name: str, within: ast.AST, *owners: Value) -> bool:
    """Is a field of that name one that every object has when a function `within` a method of it runs, and nothing but a
    field? `owners` are all objects that it may be of.
    """
    method = getattr(within, "name", "")
    return bool(owners) and all(
        isinstance(o, (Instance, Record))
        and all(_has_field(cls, name, method) for cls in (o.info, *subclasses(o.info)))
        for o in owners
    )


@lru_cache(maxsize=256)
def _has_field(info: ClassInfo, name: str, method: str) -> bool:
    """Has an object of a class a field by the time a method runs that it does not run itself while it is made?"""
    chain = mro(info)
    if not all(is_plain(cls) and is_as_written(cls) for cls in chain) or is_reached(info):
        return False
    if any(name in own for c in chain for own in (c.methods, c.setters, c.classes)):
        return False
    if any(name in cls.names and not _is_field_of_record(cls, name) for cls in chain):
        return False
    inits = [cls.methods["__init__"].node for cls in chain if "__init__" in cls.methods]
    if any(isinstance(n, ast.Attribute) and n.attr == method for init in inits for n in nodes_in(init)):
        return False
    if not inits:
        return any(_is_field_of_record(cls, name) for cls in chain) and all(map(_is_record_or_bare, chain))
    return method != "__init__" and _is_set_first(chain, name)


def is_plain(cls: ClassInfo) -> bool:
    """Is a class made by nothing but its statements, and its objects by `__init__` alone?"""
    module, node = cls.module, cls.node
    if node.keywords or _RUN & (cls.methods.keys() | cls.names.keys()):
        return False
    known = all(
        (isinstance(base, ast.Name) and base.id in module.classes) or module.qualified(plain_base(base)) in _PLAIN_BASES
        for base in node.bases
    )
    return known and all(_is_unfrozen_dataclass(cls, d) for d in node.decorator_list)


def _is_unfrozen_dataclass(cls: ClassInfo, decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    options = decorator.keywords if isinstance(decorator, ast.Call) else []
    return cls.module.qualified(called) == "dataclasses.dataclass" and all(k.arg in _OPTIONS for k in options)


def _is_record_or_bare(cls: ClassInfo) -> bool:
    return cls.is_dataclass() or not (cls.annotations or cls.names)


def _is_field_of_record(cls: ClassInfo, name: str) -> bool:
    """Is a name one that the generated `__init__` of a dataclass gives each object?"""
    if not cls.is_dataclass() or name not in cls.annotations:
        return False
    if any(word in ast.unparse(cls.annotations[name]) for word in ("ClassVar", "InitVar", "KW_ONLY")):
        return False
    match cls.names.get(name):
        case None | ast.Constant():
            return True
        case ast.Call(func=function, keywords=options):
            known = cls.module.qualified(function) == "dataclasses.field"
            return known and all(k.arg in ("default", "default_factory", "repr", "compare", "hash") for k in options)
    return False


def _is_set_first(chain: Sequence[ClassInfo], name: str) -> bool:
    """Does the `__init__` of a class give every object the field, whatever it is given: by itself, or by that of its
    base, which it calls?
    """
    at = next((i for i, cls in enumerate(chain) if "__init__" in cls.methods), None)
    if at is None:
        return False
    cls = chain[at]
    init = cls.methods["__init__"]
    if not isinstance(init.node, ast.FunctionDef) or init.node.decorator_list:
        return False
    if any(isinstance(n, (ast.Return, ast.Yield, ast.YieldFrom)) for n in nodes_in(init.node)):
        return False
    whole = init.node.body
    if any(method is init and statement in whole for method, statement, _ in cls.assigned.get(name, ())):
        return True
    how = cls.registered.get(name)
    if how is not None and how[1] is init and any(isinstance(s, ast.Expr) and s.value is how[2] for s in whole):
        return True
    return any(_calls_base(s) for s in whole) and _is_set_first(chain[at + 1 :], name)


def _calls_base(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr="__init__"))):
            return True
    return False


def is_reached(info: ClassInfo) -> bool:
    """Does the file reach fields of objects otherwise than by their names?"""
    tree = info.module.source.tree
    return tree is not None and any(_reaching(tree))


def _reaching(tree: ast.AST) -> Iterator[bool]:
    for node in nodes_in(tree):
        match node:
            case ast.Attribute(attr=attr):
                yield attr in _REACHES
            case ast.Name(id=name):
                yield name in _REACHING_CALLS
            case ast.Delete(targets=targets):
                yield any(isinstance(t, ast.Attribute) for t in targets)
