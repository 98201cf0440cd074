"""Calls of compiled code: which graph a call uses, or what it is compiled anew for."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.driver.execution.members import is_module
from graphmend.analysis.driver.execution.objects import (
    ANY,
    NOTHING,
    UNKNOWN,
    Atom,
    Callable,
    ClassObject,
    Compiled,
    Constant,
    Named,
    Object,
    Partial,
    Scope,
    Values,
    mapping,
    sequence,
)
from graphmend.analysis.driver.guards.atoms import Path, Tensor, only
from graphmend.analysis.driver.guards.backends import backend
from graphmend.analysis.driver.guards.facts import LEFT_OUT, LIMIT, START
from graphmend.analysis.driver.guards.moment import Moment
from graphmend.analysis.driver.guards.trace import Frame, Guard, Trace
from graphmend.analysis.driver.guards.variation import Place, Variation
from graphmend.analysis.driver.history import layers
from graphmend.analysis.driver.history.interface import HELD

if TYPE_CHECKING:
    from graphmend.analysis.driver.history.interface import Recorder

Arguments = list[Values]
Keywords = dict[str, Values]


class _Target(NamedTuple):
    """What a site compiled: the key by which TorchDynamo finds its graphs, its name, and what is executed."""

    key: object
    name: str
    function: Callable | None
    owner: Object | None
    partial: Partial | None = None


def call(
    m: Recorder, atom: Atom | None, arguments: Arguments, keywords: Keywords, node: ast.expr, scope: Scope
) -> Values | None:
    """A call of something that is compiled, or of an object; None for any other."""
    if isinstance(atom, Object):
        in_place = m.in_place.get(id(atom))
        if in_place is not None and m.trace is None:
            return _compiled(m, in_place, arguments, keywords, node, scope)
        if atom.info is not None:
            return m.eager(atom, arguments, keywords, node, scope)
        return layers.call(m, atom, arguments) if is_module(m, atom) else None
    if isinstance(atom, Partial) and m.trace is not None and (path := m.trace.path(atom)) is not None:
        bound = [m.trace.given(v, (*path, ("keyword", i))) for i, v in enumerate(atom.arguments)]
        named = {k: m.trace.given(v, (*path, ("keyword", k))) for k, v in atom.keywords.items()}
        return m.call(atom.function, [*bound, *arguments], {**named, **keywords}, node, scope)
    if isinstance(atom, Compiled):
        if m.trace is not None:
            return m.call((atom.target,), arguments, keywords, node, scope)
        return _compiled(m, atom, arguments, keywords, node, scope)
    return None


def _compiled(
    m: Recorder, compiled: Compiled, arguments: Arguments, keywords: Keywords, node: ast.expr, scope: Scope
) -> Values:
    target = _target(m, compiled, scope)
    if target is None:
        return UNKNOWN
    frame = m.frames.setdefault(target.key, Frame(_dynamic(m, compiled, scope)))
    named = _named(m, target, arguments, keywords)
    around = target.function.scope if target.function is not None else None
    moment = Moment(m, named, around, m.modes, backend(compiled.site))
    frame.called(node, m.place(node, scope), named)
    failed = _failed(frame, moment, m.choices)
    records = not frame.skipped and (not frame.graphs or failed is not None) and len(frame.graphs) <= LIMIT
    if failed is not None and records:
        _report(m, compiled, target, frame, moment, failed, m.place(node, scope), node)
    m.trace = trace = Trace(m, frame, moment, records)
    trace_choices = m.choices
    try:
        trace.guard(_BACKEND)
        for mode in START:
            trace.guard((("mode", mode),))
        values = _execute(m, trace, target, arguments, keywords, named, node, scope)
    finally:
        m.trace = None
    guards = trace.close()
    if records and not (frame.graphs or trace.computes):
        frame.skipped = True
    elif records:
        frame.graphs.append(guards)
        frame.choices.append(trace_choices)
    for known in m.variations:
        if known.name == target.name and known.program == m.program_number:
            _extend(known, target, frame)
    return values


def _extend(known: Variation, target: _Target, frame: Frame) -> None:
    """One more call of a function is in sight."""
    known.calls = frame.calls
    if known.kind == "size":
        known.dimensions = frame.open_sizes(known.path[:-1])
    for call, place in frame.places.items():
        if call not in known.at:
            argument = _argument(target, call, known.path) if isinstance(call, ast.Call) else None
            known.at[call] = place if argument is None else place._replace(node=argument)


def _target(m: Recorder, compiled: Compiled, scope: Scope) -> _Target | None:
    atom: Atom = compiled.target
    while isinstance(atom, Compiled):
        atom = atom.target
    if isinstance(atom, Callable):
        return _Target(atom.info.node, atom.info.qualname, atom, None)
    if isinstance(atom, Partial):
        inner = atom.function[0] if len(atom.function) == 1 else None
        return _Target(inner.info.node, inner.info.qualname, inner, None, atom) if isinstance(inner, Callable) else None
    if isinstance(atom, Object):
        if atom.info is None:
            key = _OF_TORCH if atom.name.startswith("torch.nn.") else id(atom)
            return _Target(key, atom.name.rpartition(".")[2], None, atom)
        for forward in m.attribute(atom, "forward" if is_module(m, atom) else "__call__", scope):
            if isinstance(forward, Callable):
                return _Target(forward.info.node, forward.info.qualname, forward, atom)
        return None
    if isinstance(atom, Named):
        return _Target(compiled, atom.name.rpartition(".")[2], None, None)
    given = compiled.site.node.args if isinstance(compiled.site.node, ast.Call) else ()
    return _Target(compiled, ast.unparse(given[0]), None, None) if atom is ANY and given else None


def _dynamic(m: Recorder, compiled: Compiled, scope: Scope) -> bool | None:
    """The option `dynamic` of a compile site."""
    node = compiled.site.node
    for keyword in node.keywords if isinstance(node, ast.Call) else ():
        if keyword.arg == "dynamic" and isinstance(keyword.value, ast.Constant):
            value = keyword.value.value
            return value if isinstance(value, bool) else None
    return None


def _named(m: Recorder, target: _Target, arguments: Arguments, keywords: Keywords) -> dict[str, Values]:
    """The arguments of a call by parameter; those that nothing names by their place."""
    if target.partial is not None:
        return {_PARTIAL: (target.partial,), **_by_parameter(target.function, arguments, keywords)}
    if target.function is None:
        owner: dict[str, Values] = {_MODULE: (target.owner,)} if target.owner is not None else {}
        return {**owner, **{f"args[{i}]": v for i, v in enumerate(arguments)}, **keywords}
    function = target.function
    named = _by_parameter(function, arguments, keywords)
    if function.receiver is not None and function.info.parameters:
        named[function.info.parameters[0].arg] = (function.receiver,)
    scope = function.scope or m.top_level(function.info.module)
    for name, default in function.info.defaults.items():
        if name not in named:
            named[name] = m.evaluate(default, scope)
    return named


_BACKEND: Path = (("backend", "backend"),)
_PARTIAL = "functools.partial"
#: as TorchDynamo calls it
_MODULE = "fn"
#: the key of every module of torch that is compiled: TorchDynamo compiles one function, which calls the module
_OF_TORCH = "torch.nn"


def _by_parameter(function: Callable | None, arguments: Arguments, keywords: Keywords) -> dict[str, Values]:
    if function is None:
        return dict(keywords)
    info = function.info
    names = [p.arg for p in info.parameters]
    if function.receiver is not None:
        names = names[1:]
    named = dict(zip(names, arguments, strict=False))
    known = {*names, *(p.arg for p in info.node.args.kwonlyargs)}
    named.update({k: v for k, v in keywords.items() if k in known})
    rest, extra = info.node.args.vararg, info.node.args.kwarg
    if rest is not None:
        named[rest.arg] = (sequence(arguments[len(names) :], name="builtins.tuple"),)
    if extra is not None:
        named[extra.arg] = (mapping({k: v for k, v in keywords.items() if k not in known}),)
    return named


def _failed(frame: Frame, moment: Moment, choices: tuple[tuple[ast.AST, bool], ...]) -> Guard | None:
    """The guard for which no graph can be used; None where one can, as far as known."""
    failed: Guard | None = None
    for guards, made_in in zip(frame.graphs, frame.choices, strict=True):
        first = next((guard for guard in guards if not guard.holds(moment)), None)
        sides = dict(made_in)
        if first is None or any(sides.get(node, side) is not side for node, side in choices):
            return None
        failed = first
    return failed


def _execute(
    m: Recorder,
    trace: Trace,
    target: _Target,
    arguments: Arguments,
    keywords: Keywords,
    named: dict[str, Values],
    node: ast.expr,
    scope: Scope,
) -> Values:
    given = {name: trace.given(values, (("argument", name),)) for name, values in named.items()}
    if target.function is None:
        inputs = [given[f"args[{i}]"] for i in range(len(arguments))]
        owner = target.owner
        of_torch = owner is not None and is_module(m, owner)
        for values in (*inputs, *(given[name] for name in keywords)):
            trace.touch_all(values, numbers=of_torch)  # whether other code computes with a number is not known
        if owner is None:
            return UNKNOWN
        trace.touch_class(owner)
        return layers.call(m, owner, inputs) if of_torch else UNKNOWN
    function = target.function
    if target.partial is not None:
        path: Path = (("argument", _PARTIAL),)
        bound = [trace.given(v, (*path, ("keyword", i))) for i, v in enumerate(target.partial.arguments)]
        named_bound = {k: trace.given(v, (*path, ("keyword", k))) for k, v in target.partial.keywords.items()}
        inner = {k: given.get(k, v) for k, v in keywords.items()}
        return m.run(function, [*bound, *arguments], {**named_bound, **inner})
    names = [p.arg for p in function.info.parameters]
    if function.receiver is not None:
        names = names[1:]
    passed = [given.get(names[i], v) if i < len(names) else v for i, v in enumerate(arguments)]
    rest, extra = function.info.node.args.vararg, function.info.node.args.kwarg
    if rest is not None:
        passed = [*passed[: len(names)], *_held(trace, given[rest.arg])]
    if extra is not None:
        trace.touch_keys(given[extra.arg])
    own = {p.arg for p in (*function.info.parameters, *function.info.node.args.kwonlyargs)}
    left = {k: v for k, v in given.items() if k in own and k not in names[: len(passed)]}
    if function.receiver is not None and function.info.parameters:
        left.pop(function.info.parameters[0].arg, None)
    return m.run(function, passed, {**{k: v for k, v in keywords.items() if k not in own}, **left})


def _held(trace: Trace, values: Values) -> list[Values]:
    """The items of `*args`."""
    held, path = values[0], trace.path(values[0])
    assert isinstance(held, Object)
    assert path is not None
    trace.touch(held)
    return [trace.given(v, (*path, ("item", i))) for i, v in enumerate(held.items or ())]


def opened(trace: Trace, function: Callable, scope: Scope, given: int, keywords: Keywords) -> None:
    """A function is called while tracing: its variables are no inputs, but its defaults may be."""
    trace.opened(scope)
    path = trace.path(function)
    if path is None:
        return
    trace.reaches(function.scope, path)
    if trace.machine.program.torch.minor in LEFT_OUT["default"]:
        return
    names = [p.arg for p in function.info.parameters]
    for index, name in enumerate(names):
        if name in function.info.defaults and index >= given and name not in keywords:
            default = scope.variables.get(name, NOTHING)
            fixed = only(default)
            values = (Constant(fixed),) if fixed is not ... else default
            scope.variables[name] = trace.given(values, (*path, ("default", name)))


def entering(m: Recorder, trace: Trace, name: str, scope: Scope, values: Values) -> Values:
    """The value of a variable in traced code; one from outside of it is an input."""
    if len(values) != 1 or not isinstance(values[0], (Constant, Tensor, Object, ClassObject)):
        return values
    holder: Scope | None = scope
    inside = True
    chain: list[Scope] = []
    while holder is not None:
        chain.append(holder)
        if name in holder.variables and name not in holder.shared:
            break
        holder = holder.outer
    inside = any(id(one) in trace.scopes for one in chain[-1:]) if holder is not None else False
    if inside:
        return values
    top = m.top_level(scope.module)
    where = holder if holder is not None else top
    if (id(where), name) in trace.written or name not in where.variables:
        return values
    if where is top or where.function is None:
        return trace.given(values, (("global", where.module, name),))
    root = trace.around(where)
    return trace.given(values, (*root, ("closure", name)))


def _report(
    m: Recorder,
    compiled: Compiled,
    target: _Target,
    frame: Frame,
    moment: Moment,
    failed: Guard,
    place: Place,
    node: ast.expr,
) -> None:
    owner, name = _owner(m, moment, failed.path)
    write = m.write(owner, name) if owner is not None else None
    if write is not None and failed.path[-1][0] in ("length", "keys", "contains"):
        changed = (m.write(held, HELD) for held in moment.values(failed.path[:-1]))
        write = next(filter(None, changed), write)
    site = compiled.site
    if failed.path == _BACKEND:
        write = Place(site.node, site.function, site.module)
    now = failed.compute(moment)
    for known in m.variations:
        if known.path == failed.path and known.name == target.name and known.program == m.program_number:
            known.changes.append((failed.value, now))
            return
    argument = _argument(target, node, failed.path) if isinstance(node, ast.Call) else None
    marked = any(
        isinstance(a, Tensor) and a.marks.get(int(str(failed.path[-1][1]))) == "static"
        for a in (moment.values(failed.path[:-1]) if failed.path[-1][0] == "size" else ())
    )
    m.variations.append(
        Variation(
            target.name,
            failed.path,
            site,
            place if argument is None else place._replace(node=argument),
            write,
            [(failed.value, now)],
            frame.calls,
            static=marked or frame.dynamic is False,
            in_module=isinstance(owner, Object) and is_module(m, owner),
            target=target.function.info if target.function is not None else None,
            owner=owner.info if isinstance(owner, Object) else None,
            program=m.program_number,
            drawn=moment.is_drawn(failed.path),
        )
    )


def _owner(m: Recorder, moment: Moment, path: Path) -> tuple[Atom | Scope | None, str]:
    """What holds the value at the end of a path, and under which name."""
    while path and path[-1][0] in ("size", "dtype", "rank", "gradient", "contiguous", "length", "keys", "type", "many"):
        path = path[:-1]
    if not path:
        return None, ""
    step = path[-1]
    if step[0] == "global":
        return m.top_level(step[1]), str(step[2])  # type: ignore[arg-type]
    if step[0] == "closure":
        scope = moment.around
        while scope is not None and step[1] not in scope.variables:
            scope = scope.outer
        return scope, str(step[1])
    if step[0] in ("attribute", "item"):
        owners = moment.values(path[:-1])
        name = str(step[1]) if step[0] == "attribute" else repr(step[1])
        return (owners[0], name) if len(owners) == 1 else (None, "")
    return None, ""


def _argument(target: _Target, node: ast.Call, path: Path) -> ast.expr | None:
    """The expression of a call that gives an argument; None where none does."""
    if path[0][0] != "argument":
        return None
    name = str(path[0][1])
    for keyword in node.keywords:
        if keyword.arg == name:
            return keyword.value
    names = [f"args[{i}]" for i in range(len(node.args))]
    if target.function is not None:
        names = [p.arg for p in target.function.info.parameters]
        names = names[1:] if target.function.receiver is not None else names
    for given, argument in zip(names, node.args, strict=False):
        if isinstance(argument, ast.Starred):
            return None
        if given == name:
            return argument
    return None
