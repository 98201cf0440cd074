"""Transfer functions of dict operations. A dict has values by constant key; a key may be set on some paths only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from graphmend.analysis.lattice.arguments import Arguments, Keywords
from graphmend.analysis.lattice.values import (
    ABSENT,
    NONE,
    STATIC,
    UNKNOWN,
    Choice,
    Const,
    Container,
    Static,
    Value,
    join,
    join_all,
    present,
)

if TYPE_CHECKING:
    from graphmend.analysis.interpreter.interface import Walk


def looked_up(value: Value, default: Value) -> Value:
    """`get(key, default)`, from the value under the key."""
    if value is ABSENT:
        return default
    return join(present(value), default) if isinstance(value, Choice) and ABSENT in value.options else value


def spread(fields: dict[Any, Value], more: Mapping[Any, Value]) -> None:
    """Update `fields` in place with the entries of `**more`."""
    for key, value in more.items():
        fields[key] = looked_up(value, fields.get(key, ABSENT))


def method(value: Container, name: str, args: Arguments) -> Value:
    """The value of a method call of a dict that adds nothing to it."""
    known = value.fields or {}
    element = join_all(map(present, known.values())) if value.of is None and known else value.of or UNKNOWN
    if name in ("get", "pop"):
        default = args[1] if len(args) > 1 else NONE
        if args and isinstance(args[0], Const) and args[0].value in known:
            return looked_up(known[args[0].value], default)
        if value.of is None and not known:
            return widened(default) if default is not NONE else UNKNOWN
        return UNKNOWN if args and isinstance(args[0], Const) else join(element, default)
    if name == "items":
        return Container("generator", of=Container("tuple", (STATIC, element)))
    if name == "values":
        return Container("generator", of=element)
    if name == "keys":
        return Container("generator", of=STATIC)
    return value if name == "copy" else UNKNOWN


def widened(value: Value) -> Value:
    """A value that may be another constant of its type."""
    return Static(value.type) if isinstance(value, Const) else value


def fill(w: Walk, path: str, value: Container, name: str, args: Arguments, keywords: Keywords) -> Value:
    """The value of `update` and `setdefault` of the dict that `path` names, which is rebound."""
    fields = dict(value.fields or {})
    added = [value.of] if value.of is not None else []
    given: Value = NONE
    if name == "update":
        more = args[0] if args else None
        if isinstance(more, Container) and more.kind == "dict":
            spread(fields, more.fields or {})
            added += [more.of] if more.of is not None else []
        elif more is not None:
            added.append(UNKNOWN)
        spread(fields, keywords)
        added += keywords.values()
    else:
        given = args[1] if len(args) > 1 else NONE
        added.append(given)
        if args and isinstance(args[0], Const):
            before = fields.get(args[0].value, ABSENT if value.of is not UNKNOWN else UNKNOWN)
            given = fields[args[0].value] = looked_up(before, given)
    w.env[path] = Container("dict", None, join_all(added) if added else None, fields)
    return given
