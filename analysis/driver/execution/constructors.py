"""Instances as driver code makes them, and what a trainer does with the modules that its constructor is given."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.driver import frameworks as facts
from graphmend.analysis.driver.execution.builtins import fill
from graphmend.analysis.driver.execution.expressions import rounds
from graphmend.analysis.driver.execution.interface import Machine
from graphmend.analysis.driver.execution.members import external_base, is_enumeration, is_module, member, near_chain
from graphmend.analysis.driver.execution.objects import (
    UNKNOWN,
    Callable,
    ClassObject,
    Object,
    Scope,
    Site,
    Values,
    constant,
    union,
)

if TYPE_CHECKING:
    from graphmend.analysis.driver.execution.builtins import Arguments, Keywords


def construct(
    m: Machine, cls: ClassObject, arguments: Arguments, keywords: Keywords, node: ast.expr, scope: Scope
) -> Values:
    """An instance, initialised."""
    info = cls.info
    if is_enumeration(m, info):
        return member(m, info, constant(arguments[0]) if len(arguments) == 1 else ..., scope)
    made = m.make(info, "", cls.scope)
    chain = near_chain(m, info)
    for one in chain:
        init = one.methods.get("__init__")
        if init is not None:
            around = m.class_object(one).scope or m.top_level(one.module)
            m.run(Callable(init, around, made), arguments, keywords)
            return (made,)
    base = external_base(m, info)
    if any(one.is_dataclass() for one in chain) or base == "typing.NamedTuple":
        _fill_fields(m, made, cls, arguments, keywords)
    if base is not None:
        initialise(m, made, base, arguments, keywords, node, scope)
    return (made,)


def _fill_fields(m: Machine, made: Object, cls: ClassObject, arguments: Arguments, keywords: Keywords) -> None:
    """A dataclass's fields, by position, keyword or default."""
    chain = near_chain(m, cls.info)
    names = list(dict.fromkeys(n for one in reversed(chain) for n in one.annotations))
    given = dict(zip(names, arguments, strict=False))
    for name in names:
        values = given.get(name, keywords.get(name))
        if values is None:
            default = next((one.names[name] for one in chain if name in one.names), None)
            owner = next((one for one in chain if name in one.names), cls.info)
            around = m.class_object(owner).scope or m.top_level(owner.module)
            values = m.evaluate(default, around) if default is not None else UNKNOWN
        made.attributes[name] = values
    for one in chain:
        if (method := one.methods.get("__post_init__")) is not None:
            around = m.class_object(one).scope or m.top_level(one.module)
            m.run(Callable(method, around, made), [], {})
            return


def initialise(
    m: Machine, made: Object, base: str, arguments: Arguments, keywords: Keywords, node: ast.expr, scope: Scope
) -> None:
    """What the constructor of an external class makes of its arguments."""
    if base in facts.SEQUENCES:
        made.items = []
        inner = arguments
        if len(arguments) == 1 and len(arguments[0]) == 1 and isinstance(arguments[0][0], Object):
            only = arguments[0][0]
            if only.fields is not None and not is_module(m, only):
                inner = [*only.fields.values(), *([only.rest] if only.rest else [])]
            elif only.items is not None and (base.endswith("List") or not is_module(m, only)):
                inner = [values for values, certain in rounds(m, arguments[0]) if certain]
                made.rest = only.rest
        made.items += inner
        return
    if base in facts.MAPPINGS:
        made.fields = {}
        fill(made, arguments, keywords)
        return
    if base in facts.WRAPPERS:
        module = arguments[0] if arguments else keywords.get("module", keywords.get("model", UNKNOWN))
        if "Averaged" in base or "EMA" in base or "Ema" in base:
            module = tuple(a.copied() if isinstance(a, Object) else a for a in module)
        made.attributes["module"] = made.rest = module
        return
    _options(m, made, base, keywords, node, scope)
    given = [*arguments, *keywords.values()]
    if any(isinstance(a, Object) and a.on for values in given for a in values):
        compile_given(m, given, keywords, node, scope, f"{base.rpartition('.')[2]}(...)")
    if base.startswith("torch.nn.") or made.info is None:
        made.rest = union(made.rest, tuple(a for values in given for a in values if is_module(m, a)))


def _options(m: Machine, made: Object, base: str, keywords: Keywords, node: ast.expr, scope: Scope) -> None:
    """Note whether a trainer's options say that it compiles."""
    needed = facts.PLUGIN_CLASSES.get(base)
    if needed is not None:
        made.on = needed in keywords and constant(keywords[needed]) not in (None, "no", "NO")
    for name, values in keywords.items():
        off = facts.OPTIONS.get(name)
        if off is not None and constant(values) not in off:
            made.on = True
        if name in facts.PLUGINS and any(isinstance(a, Object) and a.on for a in values):
            made.on = True


def compile_given(m: Machine, given: list[Values], keywords: Keywords, node: ast.expr, scope: Scope, how: str) -> None:
    """A trainer compiles the modules that it is given."""
    modules = [a for values in given for a in values if is_module(m, a)]
    for name in facts.MAKERS & keywords.keys():
        modules += [a for a in m.call(keywords[name], [], {}, node, scope) if is_module(m, a)]
    site = Site(scope.module, scope.function, node, False, how)
    m.compiles(tuple(modules), site)
