"""Gives functions that are loaded already the code of a mended text: what they are bound to, and all state, stays.

Knows two codes of one module and finds the functions made from the first; not why they differ.

Before:  a module runs the text of its file
After:   its functions run the mended text; objects, defaults, closures and globals are the same as before
Legal when: the codes differ in bodies of functions only; a function keeps its parameters, its kind and its free
    variables
"""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any

#: what must stay for a function's callers and its closure
_KIND = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR | inspect.CO_COROUTINE
_KIND |= inspect.CO_ASYNC_GENERATOR

Place = tuple[str, int]
"""The names around a code, and its first line."""


class Unswappable(Exception):
    """The loaded module cannot take the new code; the message says why."""


def replacements(old: CodeType, new: CodeType) -> dict[CodeType, CodeType]:
    """What every function of a module gets in place of the code that it has.

    Raises `Unswappable` where one of them cannot take it, or the module and its classes would be others.
    """
    if _outside_functions(old) != _outside_functions(new):
        raise Unswappable("its mends change more than the bodies of functions")
    found: dict[CodeType, CodeType] = {}
    before, after = _functions_in(old), _functions_in(new)
    for place, codes in before.items():
        others = after.get(place, [])
        # of several in one line (lambdas) it is not known which is which: they stay, and so does what they do
        if len(codes) == len(others) == 1 and codes[0] != others[0]:
            _check(codes[0], others[0])
            found[codes[0]] = others[0]
    return found


def swap(functions: Iterable[FunctionType], codes: Mapping[CodeType, CodeType]) -> int:
    """Gives functions the code that takes the place of theirs; says how many it were."""
    count = 0
    for function in functions:
        if (code := codes.get(function.__code__)) is not None:
            function.__code__ = code
            _stay_skipped(function)
            count += 1
    return count


# What differs


def _outside_functions(code: CodeType) -> object:
    """What a module does while it is imported: its own code and that of its classes, without bodies of functions."""
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code, names, tuple(map(_constant, code.co_consts))


def _constant(constant: object) -> object:
    if isinstance(constant, CodeType):
        return constant.co_name if _is_function(constant) else _outside_functions(constant)
    if isinstance(constant, (tuple, frozenset)):
        return type(constant)(map(_constant, constant))
    if isinstance(constant, (float, complex)):
        return repr(constant)  # 0.0 and -0.0 are equal
    return type(constant), constant  # 1 and True are equal


def _is_function(code: CodeType) -> bool:
    """Is this the code of a function, and not that of a class?"""
    return bool(code.co_flags & inspect.CO_OPTIMIZED)


def _functions_in(code: CodeType) -> dict[Place, list[CodeType]]:
    found: dict[Place, list[CodeType]] = {}
    for names, inner in _inner(code):
        if _is_function(inner):
            found.setdefault((names, inner.co_firstlineno), []).append(inner)
    return found


def _inner(code: CodeType, around: str = "") -> Iterator[tuple[str, CodeType]]:
    """Every code inside another, by the names around it."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names = f"{around}.{constant.co_name}"
            yield names, constant
            yield from _inner(constant, names)


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


def functions_of(paths: Collection[str]) -> dict[str, list[FunctionType]]:
    """The functions that were made from these files, wherever they are held, by path."""
    by_path: dict[str, list[FunctionType]] = {}
    for value in _all_objects():
        if type(value) is FunctionType and value.__code__.co_filename in paths:
            by_path.setdefault(value.__code__.co_filename, []).append(value)
    return by_path


def _all_objects() -> Iterable[Any]:
    """All that may hold others. No object is asked for anything: one that is made when it is needed stays unmade."""
    objects = gc.get_objects()
    if not gc.get_freeze_count():
        return objects
    # `gc.freeze` takes what is there out of the collector's sight, and not what that refers to
    found = {id(value): value for value in (*objects, *sys.modules.values(), *sys._current_frames().values())}
    news = list(found.values())
    while news:
        reached = {id(value): value for value in gc.get_referents(*news) if gc.is_tracked(value)}
        news = [value for key, value in reached.items() if key not in found]
        found |= reached
    return found.values()


def _stay_skipped(function: FunctionType) -> None:
    """Dynamo marks the code that it is told to skip (`torch._dynamo.skip`, torch 2.13), and the function."""
    frames = sys.modules.get("torch._dynamo.eval_frame")
    if frames is not None and getattr(function, "_torchdynamo_disable", False):
        frames.skip_code(function.__code__)
