"""By what a site compiles, as TorchDynamo tells backends apart: a graph is used by the backend that made it alone.

Measured with torch 2.13.0: names, modes and options are compared by value, functions, partials and objects by identity,
methods by function and object. `fullgraph` is no part of it, `dynamic` is.
"""

from __future__ import annotations

from collections.abc import Mapping

from graphmend.analysis.driver.execution.objects import (
    Atom,
    Callable,
    Constant,
    Named,
    Object,
    Partial,
    Site,
    Values,
    constant,
)
from graphmend.analysis.driver.guards.atoms import Same, raw_of


def backend(site: Site) -> object:
    """What is compared of the backend, mode and options of a site; `...` where they are not known."""
    if site.reason:
        return ...
    given = site.given
    found = (
        _compared(given["backend"]) if "backend" in given else "inductor",
        _plain(given, "mode"),
        _options(given.get("options")),
        _plain(given, "dynamic"),
    )
    return ... if ... in found else found


def is_made_anew(key: object) -> bool:
    """Whether what `backend` gave is of an object, which another one of the same make does not equal."""
    return isinstance(key, tuple) and isinstance(key[0], Same)


def shown(key: object) -> str:
    """A backend, as messages show it."""
    assert isinstance(key, tuple)
    name, mode, options, dynamic = key
    text = repr(name) if isinstance(name, str) else "a backend of the program"
    more = [f"mode={mode!r}"] if mode is not None else []
    more += [f"options={dict(options)!r}"] if options is not None else []
    more += [f"dynamic={dynamic!r}"] if dynamic is not None else []
    return f"{text} ({', '.join(more)})" if more else text


def _compared(values: Values) -> object:
    atom = values[0] if len(values) == 1 else None
    if isinstance(atom, Constant):
        return raw_of(atom)
    if isinstance(atom, Named):
        return atom.name
    if isinstance(atom, Callable) and _lasts(atom):
        return atom.info.qualname, Same(atom.info), Same(atom.receiver)
    return Same(atom) if isinstance(atom, (Callable, Partial, Object)) and not _compares(atom) else ...


def _lasts(function: Callable) -> bool:
    """Whether there is one function of that definition: it stands at a top level, or is a method."""
    return function.info.outer is None and bool(function.info.name) and function.info.name != "<lambda>"


def _compares(atom: Atom) -> bool:
    """Whether an object's class says what it equals."""
    return isinstance(atom, Object) and atom.info is not None and "__eq__" in atom.info.methods


def _plain(given: Mapping[str, Values], name: str) -> object:
    value = constant(given[name]) if name in given else None
    return None if value == "default" else value


def _options(values: Values | None) -> object:
    if values is None or constant(values) is None:
        return None
    held = values[0] if len(values) == 1 else None
    if not isinstance(held, Object) or held.fields is None or held.rest:
        return ...
    items = [(key, constant(value)) for key, value in held.fields.items()]
    return ... if any(value is ... for _, value in items) else tuple(sorted(items, key=repr))
