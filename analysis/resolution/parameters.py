"""Values of parameters: as the function declares them, as a call passes them, and from example inputs."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.arguments import Arguments, Keywords
from graphmend.analysis.lattice.environment import Environment
from graphmend.analysis.lattice.evidence import Evidence
from graphmend.analysis.lattice.external import ExternalInstance, ExternalName
from graphmend.analysis.lattice.values import (
    ABSENT,
    NONE,
    UNKNOWN,
    Choice,
    Const,
    Container,
    Static,
    Tensor,
    Value,
    join,
    join_all,
    present,
)
from graphmend.analysis.program.definitions import FunctionInfo
from graphmend.analysis.program.entities import Class, Function, Instance
from graphmend.analysis.resolution.annotations import annotated
from graphmend.analysis.resolution.docstrings import documented
from graphmend.analysis.resolution.tensor_usage import inferred

if TYPE_CHECKING:
    from graphmend.analysis.resolution.interface import ProgramView


def parameters(
    session: ProgramView, info: FunctionInfo, receiver: Value | None, examples: tuple[Value, ...] | None = None
) -> Environment:
    """The values of a function's parameters without a call: declared, inferred from use, or from examples."""
    env: Environment = {}
    arguments = info.node.args
    where = info.qualname
    positional = list(info.parameters)
    if receiver is not None and positional:
        env[positional.pop(0).arg] = receiver
    for i, parameter in enumerate(positional):
        if examples is not None and i < len(examples) and examples[i] is not UNKNOWN:
            env[parameter.arg] = examples[i]
        else:
            env[parameter.arg] = declared(session, info, parameter)
    for parameter in arguments.kwonlyargs:
        env[parameter.arg] = declared(session, info, parameter)
    if arguments.vararg is not None:
        of = annotated(session, info.module, arguments.vararg.annotation, arguments.vararg.arg, where)
        extra = examples[len(positional) :] if examples is not None else ()
        env[arguments.vararg.arg] = Container("tuple", extra) if extra else Container("tuple", of=of)
    if arguments.kwarg is not None:
        # an example that passes no keywords shows that there are none; otherwise anything may be among them
        of = annotated(session, info.module, arguments.kwarg.annotation, arguments.kwarg.arg, where)
        env[arguments.kwarg.arg] = Container("dict", None, None if examples is not None else of, {})
    return env


def declared(session: ProgramView, info: FunctionInfo, parameter: ast.arg) -> Value:
    """The value of a parameter by its annotation or default and, without these, by its use or the docstring."""
    key = (info, parameter.arg)
    known = session.known_parameters.get(key)
    if known is None:
        known = session.known_parameters[key] = _read(session, info, parameter)
    return known


def _read(session: ProgramView, info: FunctionInfo, parameter: ast.arg) -> Value:
    value = annotated(session, info.module, parameter.annotation, parameter.arg, info.qualname)
    default = info.defaults.get(parameter.arg)
    if value is not UNKNOWN:
        if isinstance(default, ast.Constant) and default.value is None and not isinstance(value, Static):
            return join(value, NONE)
        return value
    if parameter.annotation is not None and not isinstance(parameter.annotation, ast.Constant):
        return UNKNOWN
    if default is not None:
        known = session.reading.evaluate(info.module, default)
        if isinstance(known, Const) and known.value is not None:
            return Static(known.type)
        if isinstance(known, (Function, Class)) or (isinstance(known, Static) and not isinstance(known, Const)):
            return known
        if isinstance(known, ExternalName) and known.name.startswith("torch.nn."):  # a layer's class, or a function
            return known
    guess = inferred(session, info, parameter.arg) or documented(info, parameter.arg)
    if guess is not None and isinstance(default, ast.Constant) and default.value is None:
        return join(guess, NONE)
    return guess if guess is not None else UNKNOWN


def bind(session: ProgramView, function: Function, args: Arguments, keywords: Keywords) -> Environment:
    """The parameters bound to the arguments of one call, with evidence of where these come from."""
    info = function.info
    arguments = info.node.args
    if function.bound is not None:
        args = (function.bound, *args)
    env: Environment = {}
    for parameter, value in zip(info.parameters, args, strict=False):
        env[parameter.arg] = _passed(value, parameter.arg, info)
    extra: dict[str, Value] = {}
    names = {p.arg for p in (*info.parameters, *arguments.kwonlyargs)}
    left_out: list[str] = []
    for name, value in keywords.items():
        if name not in names:
            extra[name] = value
            continue
        if isinstance(value, Choice) and ABSENT in value.options:
            left_out.append(name)
            value = present(value)
        env[name] = _passed(value, name, info)
    for parameter in (*info.parameters, *arguments.kwonlyargs):
        name = parameter.arg
        if name not in env:
            default = info.defaults.get(name)
            env[name] = (
                session.reading.evaluate(info.module, default)
                if default is not None
                else declared(session, info, parameter)
            )
        elif env[name] is UNKNOWN:
            env[name] = declared(session, info, parameter)
    for name in left_out:  # by some callers' paths
        if (default := info.defaults.get(name)) is not None:
            env[name] = join(env[name], session.reading.evaluate(info.module, default))
    if arguments.vararg is not None:
        env[arguments.vararg.arg] = Container("tuple", args[len(info.parameters) :])
    if arguments.kwarg is not None:
        env[arguments.kwarg.arg] = Container("dict", None, None, extra)
    return env


def is_refused(function: Function, args: Arguments, keywords: Keywords, node: ast.Call) -> bool:
    """Whether Python refuses a call, all of whose arguments stand in the text: they do not fit the signature."""
    spread = any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords)
    whole = len(args) == len(node.args) and len(keywords) == len(node.keywords)
    return whole and not (spread or function.info.decorators or _fits(function, len(args), keywords))


def _fits(function: Function, given: int, keywords: Keywords) -> bool:
    """Whether `given` positional arguments and some keywords fit a function's signature."""
    arguments = function.info.node.args
    names = [p.arg for p in function.info.parameters]
    given += function.bound is not None
    if given > len(names) and arguments.vararg is None:
        return False
    named = {*names[len(arguments.posonlyargs) :], *(p.arg for p in arguments.kwonlyargs)}
    if arguments.kwarg is None and not keywords.keys() <= named - {*names[:given]}:
        return False
    needed = {*names[given:], *(p.arg for p in arguments.kwonlyargs)} - keywords.keys()
    return needed <= function.info.defaults.keys()


def _passed(value: Value, name: str, info: FunctionInfo) -> Value:
    """An argument as the callee sees it: its evidence goes on with the parameter's name."""
    if isinstance(value, Tensor) and value.origin is not None:
        origin = Evidence(
            f"is passed to {info.qualname} as {name}" if not _same_link(value.origin, name) else value.origin.says,
            value.origin.node,
            value.origin,
        )
        return value.__class__(
            origin,
            value.rank,
            value.dtype,
            value.shape,
            likely=value.likely,
            graph_input=value.graph_input,
            ndarray=value.ndarray,
        )
    return value


def _same_link(origin: Evidence, name: str) -> bool:
    return origin.node == name


def example_arguments(session: ProgramView, info: FunctionInfo, made: Value) -> tuple[Value, ...] | None:
    """The arguments of a function by a list of example tuples; None where these do not fit.

    A tuple may leave out parameters at the end that have a default.
    """
    rows = made.items or (made.element,) if isinstance(made, Container) else ()
    known = [row.items for row in rows if isinstance(row, Container) and row.items is not None]
    width = max(map(len, known), default=0)
    if not known or len(known) < len(rows) or width > len(info.parameters):
        return None
    arguments = []
    for i, parameter in enumerate(info.parameters[:width]):
        shown = [as_example(row[i], parameter.arg) for row in known if len(row) > i]
        if len(shown) < len(known):
            default = info.defaults.get(parameter.arg)
            if default is None:
                return None
            shown.append(as_example(session.reading.evaluate(info.module, default), parameter.arg))
        arguments.append(join_all(shown))
    return tuple(arguments)


def as_example(value: Value, name: str, says: str = "is a Tensor, as example_inputs() shows") -> Value:
    """An example argument as the value of a parameter: a tensor gets shape and dtype tokens of its own, any other value
    is no constant. `says` is the evidence that it is one."""
    if isinstance(value, Tensor):
        origin = Evidence(says, name)
        dtype = value.dtype if value.dtype is not None else ("dtype", name)
        return Tensor(
            origin,
            value.rank,
            dtype,
            () if value.rank == 0 else ("shape", name),
            graph_input=True,
            ndarray=value.ndarray,
        )
    if isinstance(value, Const):
        return value if value.value is None else Static(value.type)
    if isinstance(value, Container):
        items = None if value.items is None else tuple(as_example(v, name, says) for v in value.items)
        of = None if value.of is None else as_example(value.of, name, says)
        fields = None if value.fields is None else {k: as_example(v, name, says) for k, v in value.fields.items()}
        return value.with_parts(items, of, fields)
    if isinstance(value, Instance):
        return Instance(value.info)
    if isinstance(value, ExternalInstance):
        return ExternalInstance(value.cls)
    return value


def as_computed(value: Value) -> Value:
    """A result declared by an annotation: it is computed, so it is no input of the graph."""
    if isinstance(value, Tensor) and value.graph_input:
        return Tensor(value.origin, value.rank, None, None, likely=value.likely, ndarray=value.ndarray)
    return value
