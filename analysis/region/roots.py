"""Roots: the functions at which tracing starts. Those of compile sites, and the `forward` of each module class that no
known compile site compiles."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import UNKNOWN, Container, Value
from graphmend.analysis.program.definitions import FunctionInfo, ModuleInfo
from graphmend.analysis.program.entities import Class, Function, Instance
from graphmend.analysis.region.compile_sites import (
    COMPILE,
    EXPORT,
    compile_call,
    compile_sites,
    compiled_by_trainer,
    may_compile,
    shortened,
)
from graphmend.analysis.region.dynamo_config import decorated_mode, site_mode, tracing_mode_of_program
from graphmend.analysis.region.mode import DEFAULT, FULLGRAPH, Mode
from graphmend.analysis.resolution.classes import find_method, is_module_class
from graphmend.analysis.syntax.span import Span

if TYPE_CHECKING:
    from graphmend.analysis.resolution.interface import ProgramView


class Region(NamedTuple):
    """Why functions are traced (a compile site, or an assumption), and in which mode."""

    kind: Literal["compiled", "assumed"]
    evidence: str | None
    site: tuple[str, Span] | None
    mode: Mode = DEFAULT


class Root(NamedTuple):
    """A function at which tracing starts, with its arguments where they are known."""

    function: Function
    region: Region
    example_arguments: tuple[Value, ...] | None = None


def roots(session: ProgramView, module: ModuleInfo) -> list[Root]:
    """All roots in a module, compiled ones first."""
    if tracing_mode_of_program(module, None) is None:
        return []
    found = list(_compiled(session, module))
    covered = {r.function.info for r in found}
    found += [r for r in _named(session, module) if r.function.info not in covered]
    everywhere = compiled_by_trainer(module)
    if session.settings.assume_compiled == "modules" or everywhere is not None:
        covered = {r.function.info for r in found}
        found += [r for r in _forwards(session, module, everywhere) if r.function.info not in covered]
    return found


def _named(session: ProgramView, module: ModuleInfo) -> Iterator[Root]:
    """The roots that the settings name."""
    for name in session.settings.compiled:
        head, _, method = name.partition(".")
        value = session.reading.evaluate_in(module, None, ast.Name(head, ast.Load()))
        if method:
            receiver = Instance(value.info) if isinstance(value, Class) else value
            info = find_method(session, receiver.info, method) if isinstance(receiver, Instance) else None
            value = Function(info, bound=receiver) if info is not None else UNKNOWN
        for function in _targets(session, value):
            mode = decorated_mode(DEFAULT, function.info.module, function.info.decorators)
            region = Region("compiled", f"{name} is named as compiled", None, mode)
            yield Root(function, region, session.reading.examples(function))


def _forwards(session: ProgramView, module: ModuleInfo, site: ast.Call | None) -> Iterator[Root]:
    """The `forward` of each module class; an inherited one too, where the class overrides what it calls."""
    for cls in module.classes.values():
        if not is_module_class(session, cls):
            continue
        forward = cls.methods.get("forward")
        if forward is None and cls.methods.keys() - {"__init__"}:
            forward = find_method(session, cls, "forward")
        if forward is None or _untraced(forward):
            continue
        if site is not None:
            evidence = f"{cls.name} is compiled through {shortened(site.func)}(...)"
            region = Region("compiled", evidence, (module.source.path, module.source.span(site)))
        else:
            evidence = f"{cls.name} is a torch.nn.Module; its forward is assumed to be compiled"
            region = Region("assumed", evidence, None)
        called = find_method(session, cls, "__call__")  # in place of torch.nn.Module's, which calls `forward`
        yield Root(Function(called or forward, bound=Instance(cls)), region)


def _untraced(info: FunctionInfo) -> bool:
    return info.decorated_with("torch.compiler.disable", "torch._dynamo.disable")


def _compiled(session: ProgramView, module: ModuleInfo) -> Iterator[Root]:
    """The roots of the compile sites in the module's text."""
    if not may_compile(module.source.text):
        return
    for scope, node, loops in compile_sites(module):
        program = tracing_mode_of_program(module, scope)
        if program is None:
            continue
        if isinstance(node, ast.Call):
            yield from _called(session, module, scope, node, loops, program)
            continue
        for decorator in node.decorator_list:
            site = compile_call(session, module, decorator)
            function = session.reading.defined(module, scope, node) if site is not None else None
            if function is not None:
                yield _root(session, module, function, decorator, site_mode(program, site))


def _called(
    session: ProgramView,
    module: ModuleInfo,
    scope: FunctionInfo | None,
    call: ast.Call,
    loops: list[ast.comprehension],
    program: Mode,
) -> Iterator[Root]:
    """`torch.compile(X)`, `X.compile()`, `torch.export.export(X, ...)`; `loops` are the comprehension's around it."""
    name = module.qualified(call.func)
    target: ast.expr | None = None
    if name in COMPILE or name in EXPORT:
        target = (
            call.args[0]
            if call.args
            else next((k.value for k in call.keywords if k.arg in ("model", "mod", "f")), None)
        )
    elif isinstance(call.func, ast.Call) and compile_call(session, module, call.func) is not None and call.args:
        target = call.args[0]
        call = call.func
    elif isinstance(call.func, ast.Attribute) and call.func.attr == "compile":
        value = session.reading.evaluate_in(module, scope, _of_all(call.func.value, loops))
        if isinstance(value, (Instance, Container)) or (
            isinstance(value, ExternalInstance) and value.cls.startswith("torch.nn.")
        ):
            target = call.func.value
    if target is None:
        return
    strict = name not in EXPORT or any(
        k.arg == "strict" and isinstance(k.value, ast.Constant) and k.value.value is True for k in call.keywords
    )
    if not strict:
        return
    for function in _targets(session, session.reading.evaluate_in(module, scope, _of_all(target, loops))):
        yield _root(session, module, function, call, FULLGRAPH if name in EXPORT else site_mode(program, call))


def _of_all(target: ast.expr, loops: list[ast.comprehension]) -> ast.expr:
    """What stands in a comprehension, of all its rounds."""
    return ast.copy_location(ast.ListComp(target, loops), target) if loops else target


def _targets(session: ProgramView, value: Value) -> Iterator[Function]:
    """The functions that are traced where a value is compiled."""
    if isinstance(value, Function):
        yield value
    elif isinstance(value, Instance):
        forward = find_method(session, value.info, "__call__") or find_method(session, value.info, "forward")
        if forward is not None:
            yield Function(forward, bound=value)
    elif isinstance(value, Class):
        forward = find_method(session, value.info, "forward")
        if forward is not None:
            yield Function(forward, bound=Instance(value.info))
    elif isinstance(value, Container):
        for item in value.items if value.items is not None else (value.element,):
            yield from _targets(session, item)


def _root(session: ProgramView, module: ModuleInfo, function: Function, node: ast.expr, mode: Mode) -> Root:
    evidence = f"{function.info.qualname} is compiled: {shortened(node)}"
    mode = decorated_mode(mode, function.info.module, function.info.decorators)
    region = Region("compiled", evidence, (module.source.path, module.source.span(node)), mode)
    return Root(function, region, session.reading.examples(function))
