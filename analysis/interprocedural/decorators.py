"""Decorators: the function that they return, and those that keep TorchDynamo from tracing a function."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from graphmend.analysis.interpreter.calls.gradient_mode import switches_gradients_off
from graphmend.analysis.interpreter.walk.statements import Walker
from graphmend.analysis.lattice.arguments import Arguments
from graphmend.analysis.lattice.values import Value
from graphmend.analysis.program.definitions import FunctionInfo, ModuleInfo
from graphmend.analysis.program.entities import Function
from graphmend.analysis.resolution.names import named

if TYPE_CHECKING:
    from graphmend.analysis.interprocedural.interface import Analysis

#: a function under one of these is called as it is; Dynamo does not trace its body (torch 2.13)
OPAQUE = frozenset({
    "torch.library.custom_op", "torch.compiler.allow_in_graph", "torch._dynamo.allow_in_graph",
    "triton.jit", "numba.jit", "numba.njit", "torch.compiler.assume_constant_result",
    "torch._dynamo.assume_constant_result", "torch._dynamo.nonstrict_trace", "torch.library.triton_op",
    "torch._dynamo.decorators.leaf_function",
})  # fmt: skip
#: those of them that ask something of arguments and results, with the name by which rules know their calls
OPAQUE_CALLS = {
    "torch._dynamo.nonstrict_trace": "torch._dynamo.nonstrict_trace",
    "torch._dynamo.decorators.leaf_function": "torch._dynamo.decorators.leaf_function",
    "torch.compiler.assume_constant_result": "torch._dynamo.assume_constant_result",
    "torch._dynamo.assume_constant_result": "torch._dynamo.assume_constant_result",
}
DISABLED = frozenset({"torch.compiler.disable", "torch._dynamo.disable", "torch._disable_dynamo"})
#: what a decorator must mention before it is worth a walk: operations of torch, output
_TELLING = re.compile(
    r"\btorch\.(?!nn\.Module|compiler|jit|fx|onnx)\w+\(|\bprint\(|\.(?:item|tolist|any|all|max|dumps|debug|info|warning)\("
    r"|\btime\.\w+\("
)
#: where an expression stands that no function holds
MODULE_SCOPE = ast.Lambda(ast.parse("lambda: 0", mode="eval").body.args, ast.Constant(0))  # type: ignore[attr-defined]


def wrapped(session: Analysis, info: FunctionInfo) -> Function | None:
    """The function that the decorators return, if it is another one whose source is available."""
    value: Value = Function(info)
    for node in reversed(info.decorators):
        name = named(session, info.module, node.func if isinstance(node, ast.Call) else node)
        if not isinstance(name, Function) or _looks_transparent(name.info):
            continue
        maker = session.reading.evaluate(info.module, node)
        if isinstance(maker, Function):
            with session.stack.region(traced=False):
                made = _silent_call(session, maker, (value,), info.module)
            value = made if isinstance(made, Function) else value
    assert isinstance(value, Function)
    return value if value.info is not info else None


def gradients_off(info: FunctionInfo) -> bool:
    """Whether the innermost decorator that has a say in it switches gradients off for certain."""
    for node in reversed(info.decorators):
        name = info.module.qualified(node.func if isinstance(node, ast.Call) else node)
        if (off := switches_gradients_off(name, node)) is not None:
            return off
    return False


def _silent_call(session: Analysis, function: Function, args: Arguments, module: ModuleInfo) -> Value:
    w = Walker(session, FunctionInfo(MODULE_SCOPE, module), {}, None, session.stack.depth)
    w.silent = 1
    return session.enter(function, args, {}, w, MODULE_SCOPE)


def _looks_transparent(decorator: FunctionInfo) -> bool:
    """Whether a decorator's text has nothing that a rule could judge: then it is ignored."""
    if decorator.is_passthrough is None:
        text = decorator.source.segment(decorator.source.span(decorator.node))
        decorator.is_passthrough = _TELLING.search(text) is None
    return decorator.is_passthrough
