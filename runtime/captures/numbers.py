"""Where Dynamo makes symbols for numbers that tensors decide, where it needs their values, and where a graph is whole.

Knows Dynamo as it is in torch 2.13.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CodeType
from typing import Any

import torch.utils._pytree as pytree
from torch._dynamo import convert_frame
from torch._dynamo.exc import TorchRuntimeError, Unsupported, UserError, unimplemented
from torch._dynamo.output_graph import OutputGraph
from torch._dynamo.variables import builder as variable_builder
from torch._dynamo.variables.tensor import SymNodeVariable
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode, ShapeEnv, free_symbols

from .attempt import Attempt, current
from .backends import at_work
from .backends import install as install_in_backends
from .fallback import with_fallback
from .layers import asked_at, is_recurrent, keep_whole
from .layers import install as install_for_layers
from .read_first import read_first, shows_all, unread
from .recovery import Recovery, Unrecoverable, captured, raising, reads_only

_KNOWN = "its value must be known while tracing"
_ITEM = "Unsupported Tensor.item() call with capture_scalar_outputs=False"
_RAISES = "arithmetic with it may raise"


def install() -> Callable[[], None]:
    """Hooks into these places, above what takes values as known; the result undoes it."""
    evaluate, need = ShapeEnv.evaluate_expr, SymNodeVariable.evaluate_expr
    fake, compiler = variable_builder.get_fake_value, OutputGraph.call_user_compiler  # type: ignore[attr-defined]
    handle = convert_frame.register_bytecode_hook(_falling_back)
    leave_backends, leave_layers = install_in_backends(), install_for_layers()

    def remove() -> None:
        leave_backends()
        leave_layers()
        ShapeEnv.evaluate_expr = evaluate  # type: ignore[method-assign]
        SymNodeVariable.evaluate_expr = need  # type: ignore[method-assign]
        variable_builder.get_fake_value = fake  # type: ignore[attr-defined]
        OutputGraph.call_user_compiler = compiler  # type: ignore[method-assign]
        handle.remove()

    ShapeEnv.evaluate_expr = _asking(evaluate)  # type: ignore[method-assign]
    SymNodeVariable.evaluate_expr = _needing(need)  # type: ignore[method-assign]
    variable_builder.get_fake_value = _binding(fake)  # type: ignore[attr-defined]
    OutputGraph.call_user_compiler = _compiling(compiler)  # type: ignore[method-assign]
    return remove


def _asking(original: Callable[..., Any]) -> Callable[..., Any]:
    """A decision about sizes and numbers."""

    @functools.wraps(original)
    def evaluate_expr(self: ShapeEnv, expression: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(self, expression, *args, **kwargs)
        except GuardOnDataDependentSymNode:
            if (attempt := current()) is not None:
                attempt.needed |= self.replace(expression).free_symbols | expression.free_symbols
            raise

    return evaluate_expr


def _needing(original: Callable[..., Any]) -> Callable[..., Any]:
    """A number that has to be a Python number."""

    @functools.wraps(original)
    def evaluate_expr(self: Any, *args: Any, **kwargs: Any) -> Any:
        attempt = current()
        if attempt is not None:
            attempt.needed.clear()
        try:
            return original(self, *args, **kwargs)
        except (UserError, GuardOnDataDependentSymNode):
            if attempt is not None:
                attempt.needs(attempt.needed or free_symbols(self.sym_num), _KNOWN)
            raise

    return evaluate_expr


def _binding(original: Callable[..., Any]) -> Callable[..., Any]:
    """An operation, which may make a number or be decided by one."""

    @functools.wraps(original)
    def get_fake_value(node: Node, tx: Any, *args: Any, **kwargs: Any) -> Any:
        attempt = current()
        if attempt is None:
            return original(node, tx, *args, **kwargs)
        count = len(pending(tx))
        attempt.needed.clear()
        if is_recurrent(node):
            attempt.tried = True
            if (reason := keep_whole(node)) is not None:
                attempt.leaves(asked_at(tx), reason)
                _break(node)
        if not attempt.adds(tx, node):
            _break(node)
        asked = unread(node)
        try:
            value = original(node, tx, *args, **kwargs)
        except (Unsupported, UserError, TorchRuntimeError):
            del pending(tx)[count:]
            attempt.tried = True
            attempt.needs(attempt.needed or symbols(node), _KNOWN)
            raise
        if node.target == "item" and not pending(tx)[count:]:
            attempt.reads_at(tx)
        if not attempt.bind(tx, pending(tx)[count:]):
            del pending(tx)[count:]
            _break(node)
        if asked and pending(tx)[count:] and not shows_all(tx.fake_mode.shape_env, value):
            value = read_first(node, tx.fake_mode.shape_env, asked, lambda: original(node, tx, *args, **kwargs))
        return value

    return get_fake_value


def pending(tx: Any) -> list[Any]:
    """The symbols that were made and are not yet given to a node."""
    environment = tx.fake_mode.shape_env if tx.fake_mode is not None else None
    return environment.pending_fresh_unbacked_symbols if environment is not None else []


def symbols(node: Node) -> list[Any]:
    """The symbols in what an operation works on."""
    values = [argument.meta.get("example_value") for argument in node.all_input_nodes]
    found = {symbol for value in pytree.tree_leaves(values) for symbol in free_symbols(value)}
    return sorted(found, key=str)


def _break(node: Node) -> None:
    """The graph breaks here, as it does without us."""
    if is_recurrent(node):
        gb_type, why = "Attempted to wrap RNN, GRU, or LSTM", "no operator does what the layer is asked for"
    else:
        is_item = node.target == "item"
        gb_type = _ITEM if is_item else "Dynamic shape operator"
        why = "it gives a number or a size that tensors decide, and that is needed while tracing"
    unimplemented(gb_type=gb_type, context=str(node.target), explanation=f"`{node.target}`: {why}.", hints=[])


def _compiling(original: Callable[..., Any]) -> Callable[..., Any]:
    """A graph that is whole and is compiled now."""

    @functools.wraps(original)
    def call_user_compiler(self: OutputGraph, graph: Any, inputs: Any) -> Any:
        attempt = current()
        if attempt is None:
            return original(self, graph, inputs)
        attempt.recovery = None
        attempt.completes(self)
        bound = captured(graph)
        if bound:
            attempt.needs(raising(graph), _RAISES)
            try:
                attempt.recovery = Recovery(graph, functools.partial(_failed, attempt, frozenset(bound)))
            except Exception as error:
                known = isinstance(error, Unrecoverable)
                reason = str(error) if known else f"what the graph leaves behind is not understood ({error})"
                attempt.needs(bound, reason)
                raise Unrecoverable(reason) from error
        if reads_only(graph):
            compiled = graph.forward  # no backend has anything to gain from it
        else:
            with at_work(attempt, ahead=bool(bound)):
                compiled = original(self, graph, inputs)
        return attempt.recovery.around(compiled) if bound else compiled

    return call_user_compiler


def _failed(attempt: Attempt, bound: frozenset[Any], reason: str) -> None:
    attempt.plan.release({attempt.sites[symbol] for symbol in bound if symbol in attempt.sites}, reason)


def _falling_back(code: CodeType, new_code: CodeType) -> CodeType | None:
    """The code of a frame whose graph captures numbers."""
    attempt = current()
    if attempt is None or attempt.recovery is None or attempt.plan.code is not code:
        return None
    return with_fallback(new_code, code)
