"""What a graph that captures numbers may leave behind when it fails, and how that is undone.

Knows Dynamo's graphs as they are in torch 2.13.
"""

from __future__ import annotations

import math
import operator
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch._dynamo.guards import DeletedGuardManagerWrapper
from torch._higher_order_ops.effects import _get_effect
from torch._higher_order_ops.triton_kernel_wrap import triton_kernel_wrapper_mutation
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import GraphModule, Node
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols, statically_known_true

from .. import mechanism
from ..templates.sites import held, make
from ..tracing.storages import STATISTICS, storage
from .assumptions import Assumptions
from .fallback import Failed

#: elements that are copied before a graph runs which writes to them
LARGEST = 1 << 16
DIVISIONS = frozenset({operator.truediv, operator.floordiv, operator.mod, operator.pow, operator.ipow})
#: where functions live that change how what follows is computed, and change it back only where nothing fails between
_MODES = ("torch._functorch", "torch._C._functorch", "torch._dynamo.variables.higher_order_ops")
#: those of them that leave nothing but levels of functorch's stack, which are taken off again: `torch.vmap`
_LEVELS = frozenset(
    {
        "lazy_load_decompositions",
        "_vmap_increment_nesting",
        "_vmap_decrement_nesting",
        "_add_batch_dim",
        "_remove_batch_dim",
    }
)
#: what hands a number or a result of some size on, or asserts something of it
_HANDED_ON = frozenset({torch.ops.aten._assert_scalar.default, torch._check, torch.scalar_tensor, "detach"})


class Unrecoverable(Exception):
    """A graph leaves something behind that cannot be undone."""


def captured(graph: GraphModule) -> set[Any]:
    """The symbols that a graph binds to numbers which its tensors decide."""
    return {symbol for node in _nodes(graph) for symbol in node.meta.get("unbacked_bindings") or {}}


def reads_only(graph: GraphModule) -> bool:
    """Does a graph only ask its inputs for numbers and sizes? Without us Python does, and there is no graph."""
    return all(_reads(node) for node in _nodes(graph) if node.op not in ("placeholder", "get_attr", "output"))


def _reads(node: Node) -> bool:
    if node.meta.get("unbacked_bindings") or node.target in _HANDED_ON:
        return True
    if node.target is operator.getitem and not isinstance(_value(node.args[0]), torch.Tensor):
        return True  # one of several results
    return isinstance(_value(node), (torch.SymInt, torch.SymFloat, torch.SymBool))


def raising(graph: GraphModule) -> set[Any]:
    """The symbols of numbers on which Python's arithmetic may raise: a compiled kernel's would not."""
    found: set[Any] = set()
    nodes = [*_nodes(graph)]
    asserted = _asserted_only(nodes)
    for node in nodes:
        if node.op != "call_function" or isinstance(_value(node), torch.Tensor) or node in asserted:
            continue
        if node.target in DIVISIONS:
            if not _is_never_zero(node.args[1]):
                found |= _symbols(node.args[1])
        elif getattr(node.target, "__module__", None) == math.__name__ or _is_conversion(node.target):
            found |= {symbol for each in node.all_input_nodes for symbol in _symbols(each)}
    return found


def _asserted_only(nodes: list[Node]) -> set[Node]:
    """Which nodes compute numbers for assertions alone? `Assumptions` computes those, in Python."""
    found: set[Node] = set()
    for node in reversed(nodes):  # what uses a node stands behind it
        if node.users and all(u.target is torch.ops.aten._assert_scalar.default or u in found for u in node.users):
            found.add(node)
    return found


def _is_never_zero(divisor: Any) -> bool:
    value = _value(divisor) if isinstance(divisor, Node) else divisor
    return isinstance(value, torch.SymInt) and statically_known_true(value != 0)


def _is_conversion(target: Any) -> bool:
    """Is it a function of torch's that takes a symbolic float to another number?"""
    name = getattr(target, "__name__", "")
    return name.startswith("_sym_") or name == "sym_sqrt"


def _symbols(argument: Any) -> set[Any]:
    value = _value(argument) if isinstance(argument, Node) else argument
    return (
        set(free_unbacked_symbols(value)) if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)) else set()
    )


class Recovery:
    """Undoes what a graph did, and lets the original code run."""

    def __init__(self, graph: GraphModule, failed: Callable[[str], None]) -> None:
        self._written = _written(graph)
        self._failed = failed
        self._autocast = sorted({str(n.args[0]) for n in _nodes(graph) if _name(n) == "_enter_autocast"})
        self._assumptions = Assumptions(graph)
        self._only_reads = reads_only(graph)
        self._calls_host = any(node.target is mechanism.host_operator for node in _nodes(graph))
        self.guards: Any = None
        """The guard manager of the compiled code."""

    def around(self, compiled: Callable[..., Any]) -> Callable[..., Any]:
        """The compiled graph, which raises `Failed` with everything put back where it cannot go on."""

        def read(*inputs: Any) -> Any:
            try:
                return self._assumptions.checked(inputs, compiled(*inputs))
            except torch.OutOfMemoryError:
                raise
            except Exception as error:
                reason = f"{type(error).__name__}: {error}".splitlines()[0]
            self._fails(reason)
            raise Failed(reason)

        def run(*inputs: Any) -> Any:
            state = self._state(inputs)
            try:
                with held() as output:  # where the graph cannot go on, the program's own code makes it
                    result = self._assumptions.checked(inputs, compiled(*inputs))
            except BaseException as error:
                if isinstance(error, torch.OutOfMemoryError) or not isinstance(error, Exception):
                    make(output)  # no other code comes to make it
                    raise
                reason = f"{type(error).__name__}: {error}".splitlines()[0]
            else:
                make(output)
                return result
            self._restore(inputs, state)
            self._fails(reason)
            raise Failed(reason)

        return read if self._only_reads else run

    def _fails(self, reason: str) -> None:
        self._invalidate(reason)
        self._failed(f"the graph could not go on with the values of a call ({reason})")

    def _state(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        copies = [inputs[index].detach().clone() for index in self._written]
        generators = [torch.default_generator, *_generators(inputs)]
        autocast = [(kind, torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in self._autocast]
        return (
            copies,
            [(each, each.get_state()) for each in generators],
            torch.is_grad_enabled(),
            autocast,
            (torch.is_autocast_cache_enabled(), _nesting()),
            torch._C._functorch.get_dynamic_layer_stack_depth(),
            _host_generators() if self._calls_host else [],
        )

    def _restore(self, inputs: tuple[Any, ...], state: tuple[Any, ...]) -> None:
        copies, generators, grad, autocast, (cache, nesting), levels, on_host = state
        for set_state, saved in on_host:
            set_state(saved)
        if torch._C._functorch.get_dynamic_layer_stack_depth() > levels:
            torch._C._functorch.pop_dynamic_layer_stack_and_undo_to_depth(levels)
        while _nesting() > nesting:
            torch.autocast_decrement_nesting()
        torch.set_autocast_cache_enabled(cache)
        for kind, enabled, dtype in autocast:
            torch.set_autocast_enabled(kind, enabled)
            torch.set_autocast_dtype(kind, dtype)
        for generator, saved in generators:
            generator.set_state(saved)
        with torch.no_grad():
            for index, saved in zip(self._written, copies, strict=True):
                inputs[index].copy_(saved)
        torch._C._set_grad_enabled(grad)

    def _invalidate(self, reason: str) -> None:
        """The compiled code is not used again."""
        guards, self.guards = self.guards, None
        entry, extra = getattr(guards, "cache_entry", None), getattr(guards, "extra_state", None)
        if entry is not None and extra is not None:
            extra.invalidate(entry, DeletedGuardManagerWrapper(f"graphmend: {reason}"))


def _generators(inputs: tuple[Any, ...]) -> Iterator[torch.Generator]:
    devices = {each.device for each in inputs if isinstance(each, torch.Tensor) and each.device.type == "cuda"}
    for device in devices:
        yield torch.cuda.default_generators[device.index]


def _host_generators() -> list[tuple[Callable[[Any], None], Any]]:
    """What puts the generators of Python and NumPy back, and their states."""
    found: list[tuple[Callable[[Any], None], Any]] = [(random.setstate, random.getstate())]
    if (numpy := sys.modules.get("numpy")) is not None:
        found.append((numpy.random.set_state, numpy.random.get_state()))
    return found


def _nesting() -> int:
    torch.autocast_increment_nesting()
    return int(torch.autocast_decrement_nesting())


# What is written


def _written(graph: GraphModule) -> list[int]:
    """The inputs that a graph writes to, by number. Raises `Unrecoverable` where it leaves more behind."""
    inputs = [node for node in graph.graph.nodes if node.op == "placeholder"]
    found = [n for n, each in enumerate(inputs) if getattr(_value(each), "_version", 0)]
    storages = [_storages(each) for each in inputs]
    for node in _nodes(graph):
        _check(node)
        # not every write is counted by the version of the input: `x.data.add_(1)`, `torch._foreach_add_`
        into = {each for argument in _written_into(node) for each in _storages(argument)}
        found += [n for n, of in enumerate(storages) if into & of]
        if _name(node) in STATISTICS:
            found += [inputs.index(each) for each in node.args[1:3] if each in inputs]
    found = sorted(set(found))
    sizes = [_value(inputs[index]).shape for index in found]
    if any(free_unbacked_symbols(size) for size in sizes) or sum(math.prod(map(int, size)) for size in sizes) > LARGEST:
        raise Unrecoverable("the graph writes to tensors that are too large to be put back if it cannot go on")
    return found


def _written_into(node: Node) -> Iterable[Node]:
    """The arguments that an operation may write to, by the names that torch gives to those that write."""
    name = str(node.target) if node.op == "call_method" else _name(node)
    if name == "setitem" or (name.endswith("_") and not name.endswith("__")):
        first = node.args[:1] if node.op == "call_method" or name == "setitem" else node.all_input_nodes
        return [each for each in first if isinstance(each, Node)]
    out = node.kwargs.get("out")
    return [each for each in (out if isinstance(out, (tuple, list)) else [out]) if isinstance(each, Node)]


def _storages(node: Node) -> set[int]:
    """What holds the elements of a node's tensors; views of a tensor have its own."""
    leaves = (each for each in pytree.tree_leaves(_value(node)) if type(each) is FakeTensor)
    return {known for each in leaves if (known := storage(each)) is not None}


def _check(node: Node) -> None:
    target: Any = node.target
    if node.op == "call_module":
        raise Unrecoverable("the graph calls a module")
    if node.op != "call_function":
        return
    has_effect = isinstance(target, (torch._ops.OpOverload, torch._ops.HigherOrderOperator)) and _get_effect(target)
    if has_effect and target not in mechanism.operators:
        raise Unrecoverable("the graph writes output, which cannot be taken back if it cannot go on")
    if target is triton_kernel_wrapper_mutation:
        raise Unrecoverable("the graph runs a Triton kernel, whose writes are not known")
    if isinstance(target, torch._ops.OpOverload) and "c10d" in target.namespace:
        raise Unrecoverable("the graph talks to other processes")
    if str(getattr(target, "__module__", "")).startswith(_MODES) and _name(node) not in _LEVELS:
        raise Unrecoverable(f"the graph changes a mode ({_name(node)})")


def _nodes(graph: GraphModule) -> Iterator[Node]:
    """The nodes of a graph and of the bodies of its operators."""
    for module in graph.modules():
        if isinstance(module, GraphModule):
            yield from module.graph.nodes


def _name(node: Node) -> str:
    return str(getattr(node.target, "__name__", "")) if node.op == "call_function" else ""


def _value(node: Any) -> Any:
    return node.meta.get("example_value")
