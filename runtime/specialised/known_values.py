"""Takes as known what small integer inputs decide, where a frame cannot be compiled otherwise.

A size that a tensor holds, a branch on a mask: Dynamo gives such a number a symbol, and where it must be known it gives
up. Here the number is computed from the inputs of this call, and a guard holds what they decide (`decision`): another
batch that decides otherwise compiles the frame anew, as another shape does. That is done where Dynamo would give up,
and nowhere else, in attempts (`captures.attempt`) that may specialise.

Where the graph breaks all the same, nothing is taken as known. Once a call has had other numbers, or a third set of
truths, no more are for that code, and in no other code at the same line, until `torch._dynamo.reset()`; where an
attempt may specialise all the same, after `COMPILATIONS`. While a backend compiles nothing is learned.

Knows Dynamo as it is in torch 2.13.
"""

from __future__ import annotations

import dis
import functools
import logging
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch._dynamo import symbolic_convert
from torch._dynamo.exc import TorchRuntimeError, Unsupported, UserError
from torch._dynamo.guards import install_guard
from torch._dynamo.output_graph import OutputGraph
from torch._dynamo.variables import ConstantVariable
from torch._dynamo.variables import builder as variable_builder
from torch._dynamo.variables.base import VariableTracker
from torch._dynamo.variables.tensor import TensorVariable
from torch._guards import Guard
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode, ShapeEnv, expect_true
from torch.utils._python_dispatch import _disable_current_modes

from ..captures.attempt import current, varied
from ..captures.numbers import pending, symbols
from ..captures.read_first import unread
from .decision import Held, Used, question
from .replay import Replay, given, replay

#: opcodes that branch on a value and drop it, by Python version
_POPS = ("POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_FORWARD_IF_FALSE")

#: opcodes that branch on a value and keep it where it is that, before Python 3.12
_KEEPS = {"JUMP_IF_TRUE_OR_POP": True, "JUMP_IF_FALSE_OR_POP": False}

_log = logging.getLogger(__name__)


def install() -> Callable[[], None]:
    """Hooks into the places where Dynamo gives up; the result puts Dynamo's own functions back."""
    tables = [kind.dispatch_table for kind in _subclasses(symbolic_convert.InstructionTranslatorBase)]
    saved = [list(table) for table in tables]
    evaluate, listing = ShapeEnv.evaluate_expr, TensorVariable.method_tolist
    computing = variable_builder.get_fake_value  # type: ignore[attr-defined]
    ending = OutputGraph.compile_subgraph

    def remove() -> None:
        ShapeEnv.evaluate_expr = evaluate  # type: ignore[method-assign]
        TensorVariable.method_tolist = listing  # type: ignore[method-assign]
        variable_builder.get_fake_value = computing  # type: ignore[attr-defined]
        OutputGraph.compile_subgraph = ending  # type: ignore[method-assign]
        for table, before in zip(tables, saved, strict=True):
            table[:] = before

    ShapeEnv.evaluate_expr = _evaluating(evaluate)  # type: ignore[method-assign]
    TensorVariable.method_tolist = _listing(listing)  # type: ignore[method-assign]
    variable_builder.get_fake_value = _computing(computing)  # type: ignore[attr-defined]
    OutputGraph.compile_subgraph = _ending(ending)  # type: ignore[method-assign]
    for table in tables:
        for name in (*_POPS, *_KEEPS):
            if (code := dis.opmap.get(name)) is not None:
                table[code] = _jumping(table[code], keeps=_KEEPS.get(name))
    return remove


def _specialises() -> bool:
    attempt = current()
    return attempt is not None and attempt.specialises and not attempt.compiles


def _subclasses(kind: Any) -> Iterator[Any]:
    yield kind
    for each in kind.__subclasses__():
        yield from _subclasses(each)


# The places


def _evaluating(original: Callable[..., Any]) -> Callable[..., Any]:
    """A decision about sizes and numbers."""

    @functools.wraps(original)
    def evaluate_expr(self: ShapeEnv, expression: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(self, expression, *args, **kwargs)
        except GuardOnDataDependentSymNode:
            if not _learn(self, expression):
                raise
        return original(self, expression, *args, **kwargs)

    return evaluate_expr


def _computing(original: Callable[..., Any]) -> Callable[..., Any]:
    """An operation whose result has a size that depends on values."""

    @functools.wraps(original)
    def get_fake_value(node: Node, tx: Any, *args: Any, **kwargs: Any) -> Any:
        count, asked = len(pending(tx)), unread(node)
        try:
            value = original(node, tx, *args, **kwargs)
        except (Unsupported, UserError, TorchRuntimeError):
            if not _specialises():
                raise
            del pending(tx)[count:]
            if not _learn(tx.fake_mode.shape_env, *symbols(node)) and not _learn_numbers(tx, node):
                if (value := _value(node, _tensors, _layouts)) is None:
                    raise
                _meets(tx)
                return pytree.tree_map(functools.partial(tx.fake_mode.from_tensor, static_shapes=True), value)
        else:
            made = pending(tx)[count:]
            if not (made and _specialises() and _learn_buffers(tx, asked)):
                return value
            del pending(tx)[count:]
        _meets(tx)
        return original(node, tx, *args, **kwargs)

    return get_fake_value


def _jumping(original: Callable[..., Any], keeps: bool | None) -> Callable[..., Any]:
    """A branch on a tensor."""

    @functools.wraps(original)
    def jump(self: Any, instruction: Any) -> Any:
        top = self.stack[-1].realize()
        if top.is_tensor() and (value := _value(top.as_proxy().node, _number, bool)) is not None:
            _meets(self)
            if bool(value) is keeps:
                return self.jump(instruction)
            self.stack[-1] = ConstantVariable.create(bool(value))
        return original(self, instruction)

    return jump


def _listing(original: Callable[..., Any]) -> Callable[..., Any]:
    """A list of numbers, which is looped over or says how something is cut: each would get a symbol of its own."""

    @functools.wraps(original)
    def method_tolist(self: Any, tx: Any) -> Any:
        value = _value(self.as_proxy().node, _whole, torch.Tensor.tolist)
        if value is None:
            return original(self, tx)
        _meets(tx)
        return VariableTracker.build(tx, value.tolist())

    return method_tolist


def _meets(tx: Any) -> None:
    if (attempt := current()) is not None:
        attempt.meets(tx)


def _ending(original: Callable[..., Any]) -> Callable[..., Any]:
    """A graph that ends, because the frame returns or because it breaks."""

    @functools.wraps(original)
    def compile_subgraph(self: OutputGraph, tx: Any, reason: Any, *args: Any, **kwargs: Any) -> Any:
        if reason.graph_break and (attempt := current()) is not None:
            attempt.breaks(tx.speculation_log)
        return original(self, tx, reason, *args, **kwargs)

    return compile_subgraph


def _tensors(value: Any) -> bool:
    leaves = pytree.tree_leaves(value)
    return bool(leaves) and all(isinstance(leaf, torch.Tensor) and not leaf.is_meta for leaf in leaves)


def _layouts(value: Any) -> list[Any]:
    return [(each.shape, each.stride(), each.dtype, each.device) for each in pytree.tree_leaves(value)]


def _number(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not value.is_meta and value.numel() == 1


def _whole(value: Any) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and not value.is_meta
        and not value.is_floating_point()
        and not value.is_complex()
    )


# Values


def _value(node: Node, wanted: Callable[[Any], bool], used: Used, *, of_modules: bool = False) -> Any:
    """The value of a node of the graph, from here on held by guards as far as it is `used`; None where it is not known,
    or not as wanted, or not decided by what is `of_modules` alone, where that is asked for.
    """
    if not _specialises() or _has_varied(node):
        return None
    try:
        found = replay(node)
    except Exception as error:  # `Unknown`, or a graph that is not understood, which must not end the program
        _log.debug("%s is not known: %s: %s", node, type(error).__name__, error)
        return None
    if not wanted(found.value) or (of_modules and not all(map(_is_of_module, found.inputs))):
        return None
    _hold(found, used, _line(node))
    return found.value


def _is_of_module(node: Node) -> bool:
    """Is an input a buffer or a parameter?"""
    source = node.meta["grapharg"].source
    return bool(source.guard_source.is_unspecialized_nn_module() or source.guard_source.is_specialized_nn_module())


def _line(node: Node) -> str:
    """Where the program computes a node. What follows a break in a function has another name, not other lines."""
    frames = [line for line in (node.stack_trace or "").splitlines() if line.lstrip().startswith("File ")]
    return frames[-1].strip().rpartition(", in ")[0] if frames else ""


def _has_varied(node: Node) -> bool:
    attempt = current()
    return attempt is not None and not attempt.in_parts and _line(node) in varied() - {""}


def _learn(environment: ShapeEnv, *expressions: Any) -> bool:
    """Gives symbols of expressions their values. False where none is known."""
    tx = getattr(symbolic_convert.tls, "current_tx", None) if _specialises() else None
    if tx is None or tx.fake_mode is None or tx.fake_mode.shape_env is not environment:
        return False
    symbols = {symbol for each in expressions for symbol in environment.replace(each).free_symbols}
    learned = False
    for node in tx.output.graph.nodes:
        bindings = node.meta.get("unbacked_bindings") or {}
        for symbol in sorted(symbols & bindings.keys(), key=str):
            used = functools.partial(pytree.key_get, kp=bindings[symbol])
            if (value := _value(node, lambda _: True, used)) is not None:
                learned |= _set(environment, symbol, used(value))
    return learned


def _learn_numbers(tx: Any, node: Node) -> bool:
    """Gives tensors of one number, which an operation takes for the number, their values. False where none is known."""
    learned = False
    for argument in node.all_input_nodes:
        stand_in = argument.meta.get("example_value")
        if not isinstance(stand_in, FakeTensor) or stand_in.constant is not None or stand_in.dim():
            continue
        if (value := _value(argument, _whole, torch.Tensor.tolist)) is not None:
            _is_constant(tx, stand_in, value)
            learned = True
    return learned


def _learn_buffers(tx: Any, asked: list[Node]) -> bool:
    """The same of those whose numbers an operation has read, where buffers and sizes alone decide them: these are as
    they are in each batch, and what is padded by such a number has a size that is known. False unless all are known.
    """
    read = [each for each in asked if each.meta["example_value"].item_memo is not None]
    values = [_value(each, _whole, torch.Tensor.tolist, of_modules=True) for each in read]
    known = [value for value in values if value is not None]
    if not read or len(known) < len(read):
        return False
    for each, value in zip(read, known, strict=True):
        each.meta["example_value"].item_memo = None
        _is_constant(tx, each.meta["example_value"], value)
    return True


def _is_constant(tx: Any, stand_in: FakeTensor, value: torch.Tensor) -> None:
    """From now on a tensor holds a value."""
    stand_in.constant = value
    tx.fake_mode.fake_tensor_converter.add_constant_storage_mapping(stand_in)


def _set(environment: ShapeEnv, symbol: Any, value: Any) -> bool:
    """From now on a symbol has a value."""
    environment.size_like.discard(symbol)  # of which 0 and 1 are not taken as known
    if isinstance(value, float):
        return expect_true(environment.create_symfloatnode(symbol, hint=None) == value)
    return expect_true(environment.create_symintnode(symbol, hint=None) == int(value))


def _hold(found: Replay, used: Used, line: str) -> None:
    """Guards what the inputs decide, and their sizes."""
    attempt = current()
    assert attempt is not None
    attempt.used |= bool(found.inputs or found.sizes)
    attempt.tried = True
    for size in found.sizes:
        int(size)
    asked = question(found, used)
    if found.inputs:
        attempt.plan.holds(line, is_truth=asked is not None and _is_truth(found.value))
    for node in found.inputs:
        if node not in attempt.held:
            value = given(node)
            assert value is not None
            with _disable_current_modes():
                attempt.held[node] = Held(value.clone(), attempt.plan)
            install_guard(Guard(node.meta["grapharg"].source, attempt.held[node].guard))
        attempt.held[node].asks(asked, line)


def _is_truth(value: Any) -> bool:
    return value.dtype is torch.bool and value.numel() == 1 if isinstance(value, torch.Tensor) else type(value) is bool
