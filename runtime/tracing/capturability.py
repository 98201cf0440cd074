"""Whether a call that Dynamo is tracing would find, when the graph runs, the world that it finds in plain Python.

Tracing delays what the program does to Python objects until the graph has run, and a graph has no `with`, no handled
exception and no stack. Knows Dynamo's tracer, as it is in torch 2.10 to 2.13.
"""

from __future__ import annotations

import itertools
import logging
import sys
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch._dynamo.exc import RestartAnalysis, TorchRuntimeError
from torch._dynamo.polyfills import getattr_and_trace
from torch._dynamo.source import LocalSource
from torch._dynamo.variables.base import AttributeMutationExisting, ValueMutationExisting
from torch._dynamo.variables.ctx_manager import CatchWarningsCtxManagerVariable
from torch.utils._pytree import tree_leaves

from ..torch_version import version
from .storages import storage, written

_BODIES = ("autograd.Function",) if version() >= (2, 12) else ()
"""Operators with a body in which effects happen as in plain Python. Checkpointing is none: it would not repeat them.

In the body of an `autograd.Function` AOTAutograd 2.10 drops them.
"""

_WORLD = (sys, torch._tensor_str.PRINT_OPTS)
"""Objects that all output depends on."""


_LONGEST_MATCH = 100
"""Instructions in which a handler says what it catches."""
_FAILED = "graphmend_failed"
"""Marks Dynamo's record of one frame, which it keeps when it traces the frame again."""


class Uncapturable(Exception):
    """The call must be made outside the graph."""


def check(tx: Any) -> None:
    """Raises `Uncapturable` where the frame `tx` of `emit` traces code that no output can leave in order."""
    if getattr(tx.speculation_log, _FAILED, False):
        raise Uncapturable("what stands behind it fails while it is traced, before the graph has run")
    if tx.parent is None or tx.export:
        raise Uncapturable("an exported program finds no table")
    if torch._C._functorch.peek_interpreter_stack() is not None:
        raise Uncapturable("vmap and the gradient transforms have no rule for our operator")
    tracer = tx.output.current_tracer
    if tracer.parent is not None and tracer.source_target not in _BODIES:
        raise Uncapturable("in the body of an operator such as torch.cond, AOTAutograd drops effects")
    if _overlap(_inputs(tx.output)):
        raise Uncapturable("AOTAutograd loses effects where inputs share memory and one of them is written to")
    for thing in _WORLD:
        check_unchanged(tx, thing)
    for frame in _frames(tx):
        if not _is_torchs(frame) and _is_handled(frame):
            raise Uncapturable("what fails in the graph would not reach the handler")
        if frame.f_code is getattr_and_trace.__code__ and _caches(frame.symbolic_locals["args"].items[0]):
            raise Uncapturable("a function that is called once for equal arguments is traced for every call")


def _inputs(output: Any) -> list[torch.Tensor]:
    """The tensors that a frame was called with, and what its graph takes in besides."""
    placeholders = (n.meta.get("grapharg") for n in output.root_tracer.graph.nodes if n.op == "placeholder")
    taken = (argument.example for argument in placeholders if argument is not None)
    given = tree_leaves([*output.root_tx.f_locals.values(), *taken])
    return list({id(v): v for v in given if isinstance(v, torch.Tensor) and v.layout == torch.strided}.values())


def _overlap(tensors: list[torch.Tensor]) -> bool:
    """Do two tensors have bytes in common, from the first one of each to its last one?"""
    reaches: dict[int, list[tuple[int, int]]] = {}
    for tensor in tensors:
        if tensor.numel() and tensor.device.type != "meta":
            first = int(tensor.storage_offset())
            last = first + sum(int((n - 1) * step) for n, step in zip(tensor.shape, tensor.stride(), strict=True))
            bounds = first * tensor.itemsize, (last + 1) * tensor.itemsize
            reaches.setdefault(tensor.untyped_storage()._cdata, []).append(bounds)
    pairs = (pair for shared in reaches.values() for pair in itertools.combinations(shared, 2))
    return any(a[0] < b[1] and b[0] < a[1] for a, b in pairs)


def break_if_tracing_fails(tx: Any) -> None:
    """Lets the output of a frame come before the error of an operation that fails while it is traced.

    The graph, and what it would write, is lost then. So the frame is traced again, and output breaks the graph.
    """
    output = tx.output
    if output.root_tx.one_graph or any(isinstance(hook, _TraceAgain) for hook in output.cleanup_hooks):
        return
    output.cleanup_hooks.insert(0, _TraceAgain(tx))  # they are called from behind: this one, which may raise, is last


@dataclass(frozen=True, slots=True)
class _TraceAgain:
    tx: Any

    def __call__(self) -> None:
        if isinstance(sys.exc_info()[1], TorchRuntimeError):
            log = self.tx.speculation_log
            log.clear()
            setattr(log, _FAILED, True)
            self.tx.output.cleanup_hooks.clear()
            raise RestartAnalysis(restart_reason="output stands in front of an operation that fails")


def check_unchanged(tx: Any, value: Any) -> None:
    """Raises where the traced code has written to an attribute of `value`: it is written only after the graph."""
    for variable, changes in tx.output.side_effects.store_attr_mutations.items():
        if changes and getattr(variable, "value", None) is value:
            raise Uncapturable(f"the region changes {value!r}")


def check_computing() -> None:
    """Raises for a call that computes with tensors what the program goes on with where a graph computes otherwise."""
    if any(map(torch.is_autocast_enabled, ("cpu", "cuda"))):
        raise Uncapturable("AOTAutograd runs graphs without autocast")


def check_raising(tx: Any) -> None:
    """Raises for a call whose exception would come before the region's changes are seen: they are made when the graph
    has run.
    """
    effects = tx.output.side_effects
    for variable in effects.id_to_variable.values():
        existed = isinstance(variable.mutation_type, (AttributeMutationExisting, ValueMutationExisting))
        if existed and effects.is_modified(variable):
            raise Uncapturable("the region changes an object, and the call may raise")
    for node in tx.output.root_tracer.graph.nodes:
        argument = node.meta.get("grapharg")
        value = node.meta.get("example_value")
        given = argument is not None and isinstance(argument.source, LocalSource)
        if given and isinstance(value, torch.Tensor) and not value.is_inference() and value._version:
            raise Uncapturable("the region changes what it was given, and the call may raise")


def check_writes(tx: Any) -> None:
    """Raises for a call whose exception would lose what the region has written to memory that it did not make itself:
    AOTAutograd copies it back when the graph has run.
    """
    nodes = tx.output.root_tracer.graph.nodes
    given = {storage(node.meta.get("example_value")) for node in nodes if node.op == "placeholder"} - {None}
    for node in nodes:
        if any(storage(each.meta.get("example_value")) in given for each in written(node)):
            raise Uncapturable("the region writes to memory that it was given, and the call may raise")


def check_function(tx: Any, function: Any, kwargs: dict[str, Any]) -> None:
    """Raises for a function that looks at what a graph does not have."""
    if function is warnings.warn:
        blocks = (block for frame in _frames(tx) for block in frame.block_stack)
        if any(isinstance(block.with_context, CatchWarningsCtxManagerVariable) for block in blocks):
            raise Uncapturable("the graph runs outside of catch_warnings")
    elif getattr(function, "__module__", None) in ("warnings", "_warnings", traceback.__name__):
        raise Uncapturable("it changes the filters of warnings, or shows the exception that is handled")
    if function is logging.exception or getattr(function, "__func__", None) is logging.Logger.exception:
        raise Uncapturable("it shows the exception that is handled")
    if kwargs.get("exc_info") or kwargs.get("stack_info"):
        raise Uncapturable("it shows the exception that is handled, or the stack")


def _frames(tx: Any) -> Iterator[Any]:
    """The traced frames, innermost first."""
    while tx is not None:
        yield tx
        tx = tx.parent


def _is_torchs(frame: Any) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] == "torch"


def _is_handled(frame: Any) -> bool:
    """Is there an `except` for what the instruction raises that a frame is at? `with` and `finally` are none."""
    if sys.version_info < (3, 11):
        blocks = (block for block in frame.block_stack if block.with_context is None)
        return any(block.target.opname in ("DUP_TOP", "POP_TOP") for block in blocks)
    entry = frame.current_instruction.exn_tab_entry
    while entry is not None:
        handler = frame.instructions[frame.indexof[entry.target] :]
        names = [instruction.opname for instruction in handler[:_LONGEST_MATCH] if instruction.opname != "NOP"]
        if names[:2] == ["PUSH_EXC_INFO", "POP_TOP"]:
            return True  # `except:`
        expression = itertools.takewhile(lambda name: name.startswith(("PUSH", "LOAD", "BUILD", "COPY")), names)
        if "".join(names[len(list(expression)) :][:1]).startswith(("CHECK_EXC_MATCH", "CHECK_EG_MATCH")):
            return True
        outer = entry.target.exn_tab_entry
        entry = outer if outer is not entry else None
    return False


def _caches(wrapper: Any) -> bool:
    """Is what Dynamo traces past the cache of `functools.lru_cache`?"""
    return hasattr(getattr(wrapper.realize(), "wrapper_obj", None), "cache_info")
