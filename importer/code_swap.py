"""Gives functions that are loaded already the code of a mended text: what they are bound to, and all state, stays.

Knows two texts of one file and the modules in which functions of it may be found; not why the texts differ.

Before:  a helper was imported, and only then a caller that shows what in it breaks
After:   the helper's functions run the mended text; objects, defaults, closures and globals are the same as before
Legal when: the texts differ in bodies of functions only; a function keeps its parameters, its kind and its free
    variables
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from graphmend.importer import mended_code

Definition = (ast.FunctionDef, ast.AsyncFunctionDef)
#: what must stay for a function's callers and its closure
_KIND = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR | inspect.CO_COROUTINE
_KIND |= inspect.CO_ASYNC_GENERATOR


class Unswappable(Exception):
    """The loaded module cannot take the new text; the message says why."""


class Texts(NamedTuple):
    """One file: on disk, as it is loaded, and as it is to be."""

    disk: str
    loaded: str
    mended: str


def swap(path: str, texts: Texts, modules: Iterable[ModuleType]) -> int:
    """Gives the functions of the file at `path` that are found from `modules` their new code; says how many.

    All or nothing: raises `Unswappable`, with nothing changed, where one of them cannot take it.
    """
    modules = list(modules)
    loaded, mended = (mended_code.tree(texts.disk, text) for text in (texts.loaded, texts.mended))
    if _outside_functions(loaded) != _outside_functions(mended):
        raise Unswappable("its mends change more than the bodies of functions")
    old, code = (compile(tree, path, "exec", dont_inherit=True) for tree in (loaded, mended))
    new = _changes(old, code)
    functions = [f for f in _functions(path, modules) if _name(f.__code__) in new]
    for function in functions:
        _check(function.__code__, new[_name(function.__code__)])
    for function in functions:
        function.__code__ = new[_name(function.__code__)]
    return len(functions)


# What differs


def _outside_functions(tree: ast.Module) -> str:
    """What a module says without the bodies of the functions in it and in its classes."""
    tree = ast.parse(ast.unparse(tree))
    for node in ast.walk(tree):
        if isinstance(node, Definition):
            node.body = [ast.Pass()]
    return ast.dump(tree)


def _changes(old: CodeType, new: CodeType) -> dict[tuple[str, int], CodeType]:
    """The new code of every function that differs, by the old one's name and line."""
    changes: dict[tuple[str, int], CodeType] = {}
    before, after = list(_inner(old)), list(_inner(new))
    known: dict[str, list[CodeType]] = {}
    for path, code in after:
        known.setdefault(path, []).append(code)
    seen: dict[str, int] = {}
    for path, code in before:
        index = seen[path] = seen.get(path, -1) + 1
        candidates = known.get(path, [])
        if index < len(candidates) and candidates[index] != code and not code.co_name.startswith("<"):
            changes[_name(code)] = candidates[index]
    return changes


def _inner(code: CodeType, prefix: str = "") -> Iterator[tuple[str, CodeType]]:
    """Every code object inside another, by the names around it."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            path = f"{prefix}.{constant.co_name}"
            yield path, constant
            yield from _inner(constant, path)


def _name(code: CodeType) -> tuple[str, int]:
    return code.co_name, code.co_firstlineno


def _check(old: CodeType, new: CodeType) -> None:
    """Would callers and closures notice?"""
    count = old.co_argcount + old.co_kwonlyargcount
    same = (
        (old.co_argcount, old.co_posonlyargcount, old.co_kwonlyargcount)
        == (new.co_argcount, new.co_posonlyargcount, new.co_kwonlyargcount)
        and old.co_varnames[:count] == new.co_varnames[:count]
        and old.co_flags & _KIND == new.co_flags & _KIND
        and old.co_freevars == new.co_freevars
    )
    if not same:
        raise Unswappable(f"`{old.co_name}` has other parameters or free variables when mended")


# What is loaded


def _functions(path: str, modules: Iterable[ModuleType]) -> Iterator[FunctionType]:
    """The functions of a file that can be reached from modules: by name, in classes, wrapped, or in closures."""
    seen: set[int] = set()
    stack: list[Any] = [value for module in modules for value in list(vars(module).values())]
    while stack:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, FunctionType):
            if value.__code__.co_filename == path:
                yield value
            stack += _contents(value)
            stack.append(getattr(value, "__wrapped__", None))
        elif isinstance(value, type):
            stack += [v for v in vars(value).values() if not isinstance(v, type) or v.__module__ == value.__module__]
        elif isinstance(value, (staticmethod, classmethod)):
            stack.append(value.__func__)
        elif isinstance(value, property):
            stack += [value.fget, value.fset, value.fdel]


def _contents(function: FunctionType) -> Iterator[Any]:
    """The functions that a closure holds."""
    for cell in function.__closure__ or ():
        try:
            content = cell.cell_contents
        except ValueError:  # not set yet
            continue
        if isinstance(content, FunctionType):
            yield content
