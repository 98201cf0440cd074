"""Is something else put in the place of a function: of the module, or of torch, by a statement or by code that writes
names as data? What other files do is not in sight.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.qualified_names import constant
from graphmend.transforms.legality.operations import names as known

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SETS = frozenset({"setattr", "delattr"})
_PATCHES = frozenset({"patch", "object", "setattr", "delattr", "setitem"})


@dataclass
class _Written:
    """The names of a module's top level, and what is written into modules."""

    times: Counter[str] = field(default_factory=Counter)
    """How often a name is bound at the top level, or by a function that says `global`."""
    by_text: set[str] = field(default_factory=set)
    """Names that are written as data: `globals()["f"] = g`, `setattr(module, "f", g)`, `patch("module.f")`."""
    any_name: bool = False
    """Is a name that is not known written so?"""


def is_lasting(name: str, tree: ast.Module | None) -> bool:
    """Is a name bound once at the top level of a file, if it is at all, and does no code put something else there?"""
    return tree is not None and _written(tree).times[name] <= 1 and not is_written_as_data(name, tree)


def is_free(name: str, tree: ast.Module | None) -> bool:
    """Does no code of a file bind a name of the module, so that a builtin is what it says?"""
    return tree is not None and not _written(tree).times[name] and not is_written_as_data(name, tree)


def is_written_as_data(name: str, tree: ast.Module | None) -> bool:
    """May code of a file bind a name of a module by its text?"""
    return tree is None or _written(tree).any_name or name in _written(tree).by_text


@lru_cache(maxsize=8)
def replaced_in_torch(tree: ast.Module | None, names: tuple[tuple[str, str], ...]) -> str | None:
    """What a file puts in the place of a function of torch; `names` are its imports."""
    imports = dict(names)
    for node in nodes_in(tree) if tree is not None else ():
        match node:
            case ast.Attribute(value=owner, ctx=ast.Store() | ast.Del()) if _is_of_torch(owner, imports):
                return ast.unparse(node)
            case ast.Call(args=[owner, _, *_]) if _last(node.func) in _PATCHES and _is_of_torch(owner, imports):
                return ast.unparse(node)
            case ast.Call(args=[ast.Constant(value=str() as text), *_]) if _last(node.func) in _PATCHES:
                if text.rpartition(".")[0] in known.FUNCTIONAL:
                    return ast.unparse(node)
    return None


def _is_of_torch(owner: ast.expr, imports: Mapping[str, str]) -> bool:
    """Is it a module of torch with functions that are known, or a class of its layers or tensors?"""
    name = named_in(owner, imports)
    return name in known.FUNCTIONAL or name in known.LAYERS


def named_in(node: ast.expr, imports: Mapping[str, str]) -> str:
    """The qualified name of a path, by the imports of a file."""
    match node:
        case ast.Name(id=name):
            return imports.get(name, name)
        case ast.Attribute(value=value, attr=attr):
            return f"{named_in(value, imports)}.{attr}"
    return ""


@lru_cache(maxsize=2)
def _written(tree: ast.Module) -> _Written:
    found, modules = _Written(), _modules(tree)
    for node in _top_level(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.ExceptHandler(name=str() as name):
                found.times[name] += 1
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.times[name] += 1
            case ast.alias(name=name, asname=alias):
                found.times[alias or name.partition(".")[0]] += 1
    for node in nodes_in(tree):
        if isinstance(node, ast.Global):
            found.times.update(node.names)
        else:
            _note(found, node, modules)
    return found


def _top_level(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes of the code that runs with the names of the module."""
    waiting: list[ast.AST] = [*tree.body]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*_SCOPES, *_COMPREHENSIONS)):
            waiting += ast.iter_child_nodes(node)


def _modules(tree: ast.Module) -> frozenset[str]:
    """Names that imports bind, which may be modules."""
    aliases = (n for n in nodes_in(tree) if isinstance(n, ast.alias))
    return frozenset(a.asname or a.name.partition(".")[0] for a in aliases)


def _note(found: _Written, node: ast.AST, modules: frozenset[str]) -> None:
    """What a node writes into the names of a module."""
    match node:
        case ast.Attribute(value=owner, attr=attr, ctx=ast.Store() | ast.Del()) if _is_module(owner, modules):
            found.by_text.add(attr)
        case ast.Subscript(value=owner, slice=key, ctx=ast.Store() | ast.Del()) if _is_namespace(owner, modules):
            _name(found, key)
        case ast.Call(func=ast.Attribute(value=owner, attr="update" | "setdefault" | "__setitem__" | "pop")) if (
            _is_namespace(owner, modules)
        ):
            found.by_text |= {k.arg for k in node.keywords if k.arg}
            found.any_name |= any(k.arg is None for k in node.keywords)
            for given in node.args:
                for written in given.keys if isinstance(given, ast.Dict) else [given]:
                    _name(found, written)
        case ast.Call(func=ast.Name(id="exec"), args=[code, *others]):
            if not others or _is_namespace(others[0], modules):
                _code(found, code)
        case ast.Call(func=ast.Name(id=function), args=[owner, key, *_]) if function in _SETS and _is_module(
            owner, modules
        ):
            _name(found, key)
        case ast.Call(func=ast.Attribute(attr=attr), args=[first, *others]) if attr in _PATCHES:
            if isinstance(text := constant(first), str):
                found.by_text.add(text.rpartition(".")[2])
            elif others and _is_module(first, modules):
                _name(found, others[0])


def _name(found: _Written, key: ast.expr | None) -> None:
    if isinstance(text := constant(key), str):
        found.by_text.add(text)
    else:
        found.any_name = True


def _code(found: _Written, code: ast.expr) -> None:
    text = constant(code)
    try:
        run = ast.parse(text) if isinstance(text, str) else None
    except SyntaxError:
        return  # it raises
    if run is None:
        found.any_name = True
    else:
        found.by_text |= {*_written(run).times}


def _is_module(node: ast.expr, modules: frozenset[str]) -> bool:
    """May an expression be a module: an import, or `sys.modules[...]`?"""
    match node:
        case ast.Name(id=name):
            return name in modules
        case ast.Subscript(value=ast.Attribute(attr="modules")):
            return True
        case ast.Call(func=function):
            return _last(function) in ("import_module", "__import__")
    return False


def _is_namespace(node: ast.expr, modules: frozenset[str]) -> bool:
    """May an expression be the dictionary of a module's names?"""
    match node:
        case ast.Call(func=ast.Name(id="globals")) | ast.Call(func=ast.Name(id="vars" | "locals"), args=[]):
            return True
        case ast.Call(func=ast.Name(id="vars"), args=[owner]) | ast.Attribute(value=owner, attr="__dict__"):
            return _is_module(owner, modules)
    return False


def _last(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
