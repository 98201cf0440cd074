"""The roots of what driver code compiles: objects that reach a compiling call become functions with known receivers."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING

from graphmend.analysis.driver.execution.members import descendants, is_module
from graphmend.analysis.driver.execution.objects import (
    Atom,
    Callable,
    ClassObject,
    Compiled,
    Constant,
    Method,
    Object,
    Partial,
    Scope,
    Values,
)
from graphmend.analysis.driver.frameworks import CALLS, MAPPINGS, STEP_CLASSES, STEPS
from graphmend.analysis.driver.guards.atoms import Tensor
from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import DEEPEST, NONE, UNKNOWN, Container, Value, join_all
from graphmend.analysis.lattice.values import Tensor as TensorValue
from graphmend.analysis.program.definitions import FunctionInfo
from graphmend.analysis.program.entities import Class, Function, Instance
from graphmend.analysis.region.dynamo_config import decorated_mode, site_mode, tracing_mode_of_program
from graphmend.analysis.region.region import Region, Root, shortened
from graphmend.analysis.resolution.classes import find_method, mro, outside_bases

if TYPE_CHECKING:
    from graphmend.analysis.driver.driven import Driven
    from graphmend.analysis.resolution.interface import ProgramView


def compiled_roots(session: ProgramView, driven: Driven) -> Iterator[Root]:
    """The roots of all compile sites that were executed."""
    known: set[Hashable] = set()
    for compiled in driven.compiled:
        site = compiled.site
        if site.is_dropped:
            continue
        program = tracing_mode_of_program(site.module, site.function)
        if program is None:
            continue
        mode = site_mode(program, site.fullgraph, site.options)
        for function in _traced(session, driven, compiled.target, set()):
            given = _given(session, driven, function, compiled)
            key = (function.info, mode, tuple(value.key for value in given or ()))
            if key in known:
                continue
            known.add(key)
            how = f"through {site.reason}" if site.reason else ""
            evidence = f"{function.info.qualname} is compiled{':' if not how else ''} {how or shortened(site.node)}"
            place = (site.module.source.path, site.module.source.span(site.node))
            its = decorated_mode(mode, function.info.module, function.info.decorators)
            yield Root(function, Region("compiled", evidence, place, its), given)


def _traced(session: ProgramView, driven: Driven, target: Atom, met: set[Object]) -> Iterator[Function]:
    """The functions at which tracing starts where something is compiled. `met` holds the objects that were asked: a
    container may hold itself."""
    if isinstance(target, Compiled):
        yield from _traced(session, driven, target.target, met)
    elif isinstance(target, Callable):
        value = as_value(target, {}, session)
        if isinstance(value, Function):
            yield value
    elif isinstance(target, Method) and target.name in CALLS:
        yield from _traced(session, driven, target.receiver, met)
    elif isinstance(target, Partial):
        for atom in target.function:
            yield from _traced(session, driven, atom, met)
    elif isinstance(target, ClassObject):
        forward = find_method(session, target.info, "forward")
        if forward is not None:
            yield Function(forward, bound=Instance(target.info))
    elif isinstance(target, Object) and target not in met:
        met.add(target)
        yield from _of_object(session, driven, target, met)


def _of_object(session: ProgramView, driven: Driven, target: Object, met: set[Object]) -> Iterator[Function]:
    machine = driven.machine
    for one in descendants(machine, target):
        if isinstance(one, Object):
            for hook in one.hooks:
                yield from _traced(session, driven, hook, met)
    forward = None
    if target.info is not None:
        forward = find_method(session, target.info, "__call__")  # in place of torch.nn.Module's, which calls `forward`
        forward = forward or find_method(session, target.info, "forward")
        bound = Instance(target.info)
        named = [*outside_bases(session, target.info), *(cls.name for cls in mro(target.info, session))]
        if any(name.rpartition(".")[2] in STEP_CLASSES for name in named):
            for name in STEPS:
                if (step := find_method(session, target.info, name)) is not None:
                    yield Function(step, bound=bound)
        if forward is not None:
            yield Function(forward, bound=bound)
    if forward is None:  # a container or wrapper of torch, which calls what it holds
        for values in (*target.attributes.values(), target.held):
            for atom in values:
                if is_module(machine, atom):
                    yield from _traced(session, driven, atom, met)


def _argument(driven: Driven, info: FunctionInfo, name: str, compiled: Compiled) -> Values:
    """What a parameter is: by calls in sight, else by its default."""
    default = info.defaults.get(name)
    if name in compiled.arguments or default is None or isinstance(default, ast.Constant):
        return compiled.arguments.get(name, ())
    return driven.machine.evaluate(default, driven.machine.top_level(info.module))


def _given(session: ProgramView, driven: Driven, function: Function, compiled: Compiled) -> tuple[Value, ...] | None:
    """The arguments that calls in sight pass, as far as they are of the program: by position, behind the receiver."""
    examples = session.reading.examples(function)
    if examples is not None:
        return examples
    names = [p.arg for p in function.info.parameters]
    if function.bound is not None and names:
        names = names[1:]
    values = [as_join(_argument(driven, function.info, name, compiled), {}, session) for name in names]
    return tuple(values) if any(value is not UNKNOWN for value in values) else None


def as_join(values: Values, closures: dict[Scope, dict[str, Value]], session: ProgramView, around: int = 0) -> Value:
    """What the interpreter takes something for: the objects and functions of the program among all that it may be.
    `around` counts the containers in which it stands."""
    found = [as_value(atom, closures, session, around) for atom in values]
    known = [value for value in found if value is not UNKNOWN and value is not NONE]
    return join_all(known) if known else UNKNOWN


def as_value(atom: Atom, closures: dict[Scope, dict[str, Value]], session: ProgramView, around: int = 0) -> Value:
    if isinstance(atom, Compiled):
        return as_value(atom.target, closures, session)
    if isinstance(atom, Callable):
        bound = as_value(atom.receiver, closures, session) if atom.receiver is not None else None
        closure = _closure(atom, closures, session) if atom.scope is not None and atom.scope.function else None
        if bound is None and atom.info.owner is not None and not atom.info.is_static:
            bound = Instance(atom.info.owner)
        return Function(atom.info, bound=None if bound is UNKNOWN else bound, closure=closure)
    if isinstance(atom, ClassObject):
        return Class(atom.info)
    if isinstance(atom, Constant) and isinstance(atom.value, (bool, int, float, str)):
        return UNKNOWN
    if isinstance(atom, Tensor):
        return TensorValue(None, None if atom.shape is None else len(atom.shape), atom.dtype)
    if isinstance(atom, Object):
        if atom.info is not None:
            return Instance(atom.info)
        if around == DEEPEST:  # nor does the lattice hold it; one that is held by itself has no end
            return UNKNOWN
        if atom.name in ("torch.nn.Sequential", "torch.nn.ModuleList") and atom.items is not None:
            items = tuple(as_join(values, closures, session, around + 1) for values in atom.items)
            rest = as_join(atom.rest, closures, session, around + 1) if atom.rest else None
            return Container("modules", None if rest is not None else items, rest)
        if atom.name in ("builtins.tuple", "builtins.list") and atom.items is not None and not atom.rest:
            held = tuple(as_join(values, closures, session, around + 1) for values in atom.items)
            return Container(atom.name[9:], held) if any(value is not UNKNOWN for value in held) else UNKNOWN
        if (atom.name in MAPPINGS or atom.name == "builtins.dict") and atom.fields is not None:
            fields = {key: as_join(values, closures, session, around + 1) for key, values in atom.fields.items()}
            if atom.name not in MAPPINGS and all(value is UNKNOWN for value in fields.values()):
                return UNKNOWN
            element = as_join(atom.held, closures, session, around + 1)
            return Container("dict", None, element, fields if not atom.rest else {})
        if atom.name.startswith("torch.nn.") and not atom.rest:
            return ExternalInstance(atom.name)
    return UNKNOWN


def _closure(function: Callable, closures: dict[Scope, dict[str, Value]], session: ProgramView) -> Mapping[str, Value]:
    """The variables around a function, as far as they are known."""
    scope = function.scope
    assert scope is not None
    assert scope.function is not None
    if scope in closures:
        return closures[scope]
    found = closures[scope] = {}
    around: Scope | None = scope
    chain: list[Scope] = []
    while around is not None and around.function is not None:
        chain.append(around)
        around = around.outer
    for one in reversed(chain):
        assert one.function is not None
        if not isinstance(one.function.node, ast.Lambda):
            found.update(session.reading.locals_of(one.function))
        for name, values in one.variables.items():
            value = as_join(values, closures, session)
            if value is not UNKNOWN:
                found[name] = value
    return found
