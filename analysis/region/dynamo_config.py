"""TorchDynamo's options as a program sets them: flags of `torch._dynamo.config`, the compiler's stance, and whether a
break is an error."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from graphmend.analysis.driver.words import may_compile
from graphmend.analysis.program.definitions import FunctionInfo, ModuleInfo
from graphmend.analysis.region.mode import DEFAULT, FULLGRAPH, Mode
from graphmend.analysis.syntax.nodes import statements_of
from graphmend.analysis.torch_facts.options import OPTIONS

_FLAGS = ("capture_scalar_outputs", "capture_dynamic_output_shape_ops")
#: options that decide whether some calls are traced (`torch_facts/options.py`), or with which breaks
_OPTIONS = frozenset(OPTIONS)
_CONFIG = "torch._dynamo.config."
_REORDERED = _CONFIG + "reorderable_logging_functions.add"
_PATCH = _CONFIG + "patch"
_ERROR = "torch._dynamo.error_on_graph_break"
_STANCE = frozenset({"torch.compiler.set_stance", "torch._dynamo.set_stance"})
#: variables of the environment that make everything run eagerly where they are "1"
_DISABLING = ("TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE")
#: without one of these words, a text switches nothing
FLAG_WORDS = (
    *_FLAGS, *OPTIONS, *_DISABLING, ".disable =", ".disable=", "set_stance", "reorderable_logging_functions",
)  # fmt: skip


def says_what_is_traced(text: str) -> bool:
    """Whether a part of a module may decide what is compiled, or in which mode."""
    return may_compile(text) or any(word in text for word in FLAG_WORDS)


def tracing_mode_of_program(module: ModuleInfo, scope: FunctionInfo | None) -> Mode | None:
    """The mode in which a compile site traces, by statements of the top level and of the function around the site; None
    where these make everything run eagerly."""
    mode, eager = DEFAULT, False
    if not any(word in module.source.text for word in FLAG_WORDS):
        return mode
    for statement in _said(module, scope):
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            for target in statement.targets:
                name = module.qualified(target) or ""
                if _disables(module, target) and statement in _unconditional(module, scope):
                    eager = statement.value.value in (True, "1")
                elif name.startswith(_CONFIG):
                    mode = _with_flag(mode, name.removeprefix(_CONFIG), statement.value)
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            call = statement.value
            if module.qualified(call.func) == _REORDERED and call.args and isinstance(call.args[0], ast.Name):
                mode = mode._replace(options=mode.options | {f"reorders {call.args[0].id}"})
            if module.qualified(call.func) in _STANCE and statement in _unconditional(module, scope):
                eager = _argument(call, "stance") == "force_eager"
    return None if eager else mode


def site_mode(program: Mode, fullgraph: bool, options: frozenset[str] = frozenset()) -> Mode:
    """The mode of a compile site, with the options that it sets itself."""
    mode = FULLGRAPH._replace(options=program.options) if fullgraph else program
    return mode._replace(options=mode.options | options) if options else mode


def decorated_mode(mode: Mode, module: ModuleInfo, decorators: Iterable[ast.expr]) -> Mode:
    """The mode in which a decorated function is traced: `config.patch(...)` and `error_on_graph_break(...)`.

    Under `fullgraph=True` the latter has no effect (torch 2.13).
    """
    for decorator in decorators:
        if not isinstance(decorator, ast.Call):
            continue
        name = module.qualified(decorator.func)
        if name == _PATCH:
            for keyword in decorator.keywords:
                mode = _with_flag(mode, keyword.arg or "", keyword.value)
        elif name == _ERROR and not (mode.scalars and mode.shapes and mode.raises):
            mode = mode._replace(raises=_argument(decorator, "error_on_graph_break") is True)
    return mode


def _disables(module: ModuleInfo, target: ast.expr) -> bool:
    """Whether an assignment says whether anything is traced."""
    if isinstance(target, ast.Subscript):
        named = isinstance(target.slice, ast.Constant) and target.slice.value in _DISABLING
        return named and module.qualified(target.value) == "os.environ"
    return module.qualified(target) == _CONFIG + "disable"


def _unconditional(module: ModuleInfo, scope: FunctionInfo | None) -> list[ast.stmt]:
    """The statements that run whatever the program is given."""
    assert module.source.tree is not None
    inner = scope.node.body if scope is not None and not isinstance(scope.node, ast.Lambda) else []
    return [*module.source.tree.body, *inner]


def _said(module: ModuleInfo, scope: FunctionInfo | None) -> Iterator[ast.stmt]:
    assert module.source.tree is not None
    yield from statements_of(module.source.tree.body)
    if scope is not None and not isinstance(scope.node, ast.Lambda):
        yield from statements_of(scope.node.body)


def _with_flag(mode: Mode, flag: str, value: ast.expr) -> Mode:
    if not isinstance(value, ast.Constant):
        return mode
    on = value.value is True
    if flag in _OPTIONS:
        return mode._replace(options=mode.options - {flag, f"no {flag}"} | {flag if on else f"no {flag}"})
    if flag == "capture_scalar_outputs":
        return mode._replace(scalars=on)
    return mode._replace(shapes=on) if flag == "capture_dynamic_output_shape_ops" else mode


def _argument(call: ast.Call, name: str) -> object:
    """The constant argument of a call with one argument; None for anything else."""
    given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == name), None)
    return given.value if isinstance(given, ast.Constant) else None
