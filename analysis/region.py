"""Where tracing starts: the compile sites of a module, and the `forward` of its modules where nothing in sight compiles
them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

from graphmend.analysis.classes import find_method, is_module_class
from graphmend.analysis.definitions import FunctionInfo, ModuleInfo
from graphmend.analysis.entities import Class, Function, Instance
from graphmend.analysis.external_values import Object
from graphmend.analysis.finding import Span
from graphmend.analysis.mode import DEFAULT, FULLGRAPH, Mode
from graphmend.analysis.switches import FLAG_WORDS, decorated_mode, program_mode, site_mode
from graphmend.analysis.syntax import dotted
from graphmend.analysis.trees import push_children, walk
from graphmend.analysis.values import UNKNOWN, Container, Value

if TYPE_CHECKING:
    from graphmend.analysis.resolution_interface import ProgramView

COMPILE = frozenset({"torch.compile", "torch._dynamo.optimize", "torch.compiler.compile"})
EXPORT = frozenset({"torch.export.export", "torch.export.export_for_training"})


class Region(NamedTuple):
    """Why a function is traced, and how."""

    kind: Literal["compiled", "assumed"]
    evidence: str | None
    site: tuple[str, Span] | None
    mode: Mode = DEFAULT


class Root(NamedTuple):
    """A function that tracing starts at, and what its arguments are known to be."""

    function: Function
    region: Region
    given: tuple[Value, ...] | None = None


def roots(session: ProgramView, module: ModuleInfo) -> list[Root]:
    """All roots in a module, compiled ones first."""
    if program_mode(module, None) is None:
        return []
    found = list(_compiled(session, module))
    covered = {r.function.info for r in found}
    found += [r for r in _named(session, module) if r.function.info not in covered]
    everywhere = _compiled_by_trainer(module)
    if session.settings.assume_compiled == "modules" or everywhere is not None:
        covered = {r.function.info for r in found}
        found += [r for r in _forwards(session, module, everywhere) if r.function.info not in covered]
    return found


def _named(session: ProgramView, module: ModuleInfo) -> Iterator[Root]:
    """What the settings say is compiled."""
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
    """The `forward` of each module class; an inherited one too, where the class changes what it calls."""
    for cls in module.classes.values():
        if not is_module_class(session, cls):
            continue
        forward = cls.methods.get("forward")
        if forward is None and cls.methods.keys() - {"__init__"}:
            forward = find_method(session, cls, "forward")
        if forward is None or _untraced(forward):
            continue
        if site is not None:
            evidence = f"{cls.name} is compiled through {_short(site.func)}(...)"
            region = Region("compiled", evidence, (module.source.path, module.source.span(site)))
        else:
            evidence = f"{cls.name} is a torch.nn.Module; its forward is assumed to be compiled"
            region = Region("assumed", evidence, None)
        yield Root(Function(forward, bound=Instance(cls)), region)


#: options of trainers that compile the model they are given: keyword -> values that do not
_TRAINERS = {"torch_compile": (False, None), "dynamo_backend": ("no", "NO", None)}


def _compiled_by_trainer(module: ModuleInfo) -> ast.Call | None:
    """A call such as `TrainingArguments(torch_compile=True)` or `Accelerator(dynamo_backend="inductor")`."""
    text = module.source.text
    if not any(f"{name}=" in text for name in _TRAINERS):
        return None
    assert module.source.tree is not None
    for node in walk(module.source.tree):
        for keyword in node.keywords if isinstance(node, ast.Call) else ():
            off = _TRAINERS.get(keyword.arg or "")
            if off is not None and not (isinstance(keyword.value, ast.Constant) and keyword.value.value in off):
                assert isinstance(node, ast.Call)
                return node
    return None


def _untraced(info: FunctionInfo) -> bool:
    return info.decorated_with(
        "torch.compiler.disable", "torch._dynamo.disable", "torch.jit.unused", "torch.jit.ignore"
    )


def _compiled(session: ProgramView, module: ModuleInfo) -> Iterator[Root]:
    """The functions and modules that the module's own text compiles."""
    if not may_compile(module.source.text):
        return
    for scope, node, loops in _sites(module):
        program = program_mode(module, scope)
        if program is None:
            continue
        if isinstance(node, ast.Call):
            yield from _called(session, module, scope, node, loops, program)
            continue
        for decorator in node.decorator_list:
            site = _compile_call(session, module, decorator)
            function = session.reading.defined(module, scope, node) if site is not None else None
            if function is not None:
                yield _root(session, module, function, decorator, site_mode(program, site))


def may_compile(text: str) -> bool:
    """Whether a text may compile anything: a look at the words saves one through the whole syntax tree."""
    if not any(word in text for word in ("compile", "optimize", "export")):
        return False
    return any(_compiles(text, found.start()) for found in _WORDS.finditer(text))


def says_what_is_traced(text: str) -> bool:
    """Whether a part of a module may say what is compiled, and how."""
    return may_compile(text) or any(word in text for word in (*FLAG_WORDS, *(f"{name}=" for name in _TRAINERS)))


_WORDS = re.compile(r"(?:compile|optimize|export)\b")


def _compiles(text: str, at: int) -> bool:
    """Whether a word may name what compiles: a name that is imported, an attribute, a decorator; in no comment."""
    before = text[text.rfind("\n", 0, at) + 1 : at]
    if not before.endswith((".", "import ", "@", ", ")) or before.endswith((" re.", "regex.")):
        return False
    return not before.lstrip().startswith("#")


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
    elif isinstance(call.func, ast.Call) and _compile_call(session, module, call.func) is not None and call.args:
        target = call.args[0]
        call = call.func
    elif isinstance(call.func, ast.Attribute) and call.func.attr == "compile":
        value = session.reading.evaluate_in(module, scope, _of_all(call.func.value, loops))
        if isinstance(value, (Instance, Container)) or (
            isinstance(value, Object) and value.cls.startswith("torch.nn.")
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
    """The functions that compiling a value traces."""
    if isinstance(value, Function):
        yield value
    elif isinstance(value, Instance):
        forward = find_method(session, value.info, "forward") or find_method(session, value.info, "__call__")
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
    evidence = f"{function.info.qualname} is compiled: {_short(node)}"
    mode = decorated_mode(mode, function.info.module, function.info.decorators)
    region = Region("compiled", evidence, (module.source.path, module.source.span(node)), mode)
    return Root(function, region, session.reading.examples(function))


def _short(node: ast.expr) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else text[:57] + "..."


def _compile_call(session: ProgramView, module: ModuleInfo, node: ast.expr) -> ast.Call | None:
    """The call that holds the options, if an expression is `torch.compile` or makes it with options; else None."""
    for _ in range(len(module.globals) + 1):
        if module.qualified(node) in COMPILE:
            return ast.copy_location(ast.Call(node, [], []), node)
        if isinstance(node, ast.Call):
            name = module.qualified(node.func)
            is_partial = name == "functools.partial" and node.args and module.qualified(node.args[0]) in COMPILE
            return node if is_partial or (name in COMPILE and not node.args) else None
        if not (isinstance(node, ast.Name) and node.id in module.globals):
            return None
        node = module.globals[node.id][0]  # a name for it; names may stand in a circle
    return None


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


class _Site(NamedTuple):
    """A call that may compile something, or a decorated function."""

    scope: FunctionInfo | None
    """The function that it stands in."""
    node: ast.Call | ast.FunctionDef | ast.AsyncFunctionDef
    loops: list[ast.comprehension]
    """Those of the comprehension that it stands in."""


def _sites(module: ModuleInfo) -> Iterator[_Site]:
    assert module.source.tree is not None
    scopes: dict[ast.AST, FunctionInfo] = {f.node: f for f in module.all_functions()}
    names = {"compile", "optimize", "export", *(n for n, q in module.imports.items() if q in COMPILE | EXPORT)}
    stack: list[tuple[ast.AST, FunctionInfo | None, list[ast.comprehension]]] = [(module.source.tree, None, [])]
    while stack:
        node, scope, loops = stack.pop()
        decorators: list[ast.expr] = []
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            decorators = node.decorator_list
            if decorators:
                yield _Site(scope, node, loops)
            scope, loops = scopes.get(node, scope), []
        elif isinstance(node, ast.Call):
            text = dotted(node.func)
            if (text is not None and text.rpartition(".")[2] in names) or isinstance(node.func, ast.Call):
                yield _Site(scope, node, loops)
        elif isinstance(node, _COMPREHENSIONS):
            loops = node.generators
        below: list[ast.AST] = []
        push_children(node, below)
        stack.extend((child, scope, loops) for child in below if child not in decorators)
