"""The value of a node of the graph that Dynamo is tracing, where small integer inputs and constants alone decide it.

Sizes of images in a batch, a mask, the positions of special tokens: such inputs are known when a frame is compiled. The
operations between them and a node are run on them, with what the graph writes to the same memory. Whatever depends on
another input, or on random numbers, is unknown: of such a tensor only the shape is carried on, by a tensor on the meta
device, and a node that needs more of it has no value.

Writes are found by the names of operations, and no list of those is complete. So the versions of Dynamo's stand-ins,
which count every write to a tensor, have to be those of the tensors here: a write that was missed leaves a value
unknown.

Knows Dynamo's graphs as they are in torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
import torch.utils._pytree as pytree
from torch._dynamo.utils import (
    numpy_attr_wrapper,
    numpy_method_wrapper,
    numpy_operator_wrapper,
    numpy_to_tensor_wrapper,
    preserve_rng_state,
)
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols, guarding_hint_or_throw
from torch.fx.node import map_arg
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from ..tracing.storages import storage, written

#: elements of an input; a comparison of so many costs less than the call that it stands before
LARGEST = 4096
#: operations; as many are run for each value that is asked for
LONGEST = 400
#: where functions live that compute and do nothing else
_WRAPPERS = (numpy_method_wrapper, numpy_operator_wrapper, numpy_to_tensor_wrapper)
_MODULES = ("_operator", "math", "builtins", "torch", "torch.functional", "torch.nn.functional", "torch._C")


class Unknown(Exception):
    """The value of a node is not known before the graph runs."""


class Replay(NamedTuple):
    """What a node computes, and the inputs that decide it. A meta tensor stands where only the shape is known."""

    node: Node
    value: Any
    inputs: tuple[Node, ...]
    sizes: tuple[torch.SymInt, ...]
    """What decides it as well, and is not yet guarded."""
    way: tuple[Node, ...]
    """What leads to it, and writes to its memory, in the graph's order."""
    numbers: dict[Node, int]
    """Those of them that are sizes."""
    shapes: dict[Node, torch.Tensor]
    """Those of which only the shape is taken, as meta tensors."""
    is_partial: bool
    """Are there such shapes, or numbers that are drawn?"""


def replay(node: Node) -> Replay:
    """Runs what leads to `node` on the values of the inputs. Raises `Unknown` where that cannot be done.

    A tensor holds what it does after everything that the graph does so far, not just after its own operation.
    """
    needed = _Way(node)
    values: dict[Node, Any] = {}
    with alone():
        for each in needed.nodes:
            try:
                values[each] = _shape(each) if each in needed.unknown else _run(each, values)
                _check(each, values[each])
            except Unknown:
                raise
            except Exception as error:  # what the program itself would raise comes when it runs
                raise Unknown(f"{each} raises {type(error).__name__}: {error}") from None
    for each in needed.nodes:
        if each not in needed.tainted:
            _check_version(each, values[each])
    inputs = [each for each in needed.nodes if each.op == "placeholder" and each not in needed.unknown]
    return Replay(
        node,
        values[node],
        inputs=tuple(each for each in inputs if given(each) is not None),
        sizes=tuple(size for each in needed.nodes for size in _sizes(each)),
        way=tuple(needed.nodes),
        numbers={each: values[each] for each in needed.nodes if _is_size(each)},
        shapes={each: values[each] for each in needed.nodes if each in needed.unknown},
        is_partial=any(isinstance(each, torch.Tensor) and each.is_meta for each in pytree.tree_leaves(values)),
    )


@contextmanager
def alone() -> Iterator[None]:
    """Operations in here are run by themselves, on what is known and on shapes."""
    with _disable_current_modes(), preserve_rng_state(), torch.no_grad(), _Known():  # type: ignore[no-untyped-call]
        yield


def given(node: Node) -> torch.Tensor | None:
    """The tensor that a graph input stands for in this call; None where it stands for something else."""
    argument = node.meta.get("grapharg")
    value = argument.example if argument is not None and argument.is_tensor else None
    return value if isinstance(value, torch.Tensor) else None


# Which operations


class _Way:
    """What a node is computed from, and what writes to the memory of any of that, in the graph's order."""

    def __init__(self, node: Node) -> None:
        graph = list(node.graph.nodes)
        self.tainted = _tainted(graph)
        self.unknown: set[Node] = set()
        """Nodes of which only the shape is taken."""
        changed = {part for each in graph if _version(each) for part in _memory(each)}
        needed, memory, count = {node}, _memory(node), 0
        while count != len(needed):
            count = len(needed)
            if count > LONGEST:
                raise Unknown("too long a way")
            for each in reversed(graph):
                # another name of memory that changes may have a version of its own
                touched = _memory(each) & changed | {part for argument in written(each) for part in _memory(argument)}
                if each not in needed and not touched & memory:
                    continue
                needed.add(each)
                if _is_size(each):
                    continue
                if each is not node and each in self.tainted and _plain(each) and not written(each):
                    self.unknown.add(each)
                    continue
                needed.update(each.all_input_nodes)
                memory |= {part for argument in each.all_input_nodes for part in _memory(argument)}
        self.nodes = [each for each in graph if each in needed]
        self._check_memory(graph, changed)

    def _check_memory(self, graph: list[Node], changed: set[int]) -> None:
        inputs = [each for each in self.nodes if each.op == "placeholder"]
        memory = [part for each in inputs for part in _memory(each)]
        if changed & set(memory) or any(map(written, self.nodes)):
            if len(memory) != len(set(memory)):
                raise Unknown("inputs share their memory, and are written to")
            if any(torch._debug_has_internal_overlap(value) for each in inputs if (value := given(each)) is not None):
                raise Unknown("elements of an input may share their memory, and are written to")
        known = {part for each in self.nodes if each not in self.tainted for part in _memory(each)}
        if any(_memory(each) & known & changed for each in self.unknown):
            raise Unknown("what is not known shares its memory with what is, and is written to")
        # in another call, what is apart in this one may share memory
        dtypes = {value.dtype for each in inputs if each not in self.unknown and (value := given(each)) is not None}
        others = [each for each in graph if each.op == "placeholder" and each not in self.nodes]
        for each in others:
            value = given(each)
            if value is not None and value.dtype in dtypes and _memory(each) & changed:
                raise Unknown(f"{each} is written to, and may be a part of an input")


def _tainted(nodes: list[Node]) -> set[Node]:
    """The nodes whose values depend on inputs that are not taken as known."""
    found: set[Node] = set()
    for each in nodes:
        if _is_size(each):
            continue
        known = _small(each) if each.op == "placeholder" else each.op in ("call_function", "call_method")
        if not known or any(argument in found for argument in each.all_input_nodes):
            found.add(each)
    return found


def _small(node: Node) -> bool:
    """Is an input a number, or a small tensor of integers or truth values?"""
    if isinstance(node.meta.get("example_value"), torch.SymInt):
        return True
    value = given(node)
    if type(value) is not torch.Tensor or torch._C._functorch.is_functorch_wrapped_tensor(value):
        return False
    return value.numel() <= LARGEST and not value.is_floating_point() and not value.is_complex()


def _is_size(node: Node) -> bool:
    """Is it a number that Dynamo knows, as a size of a tensor, whatever that holds?"""
    value = node.meta.get("example_value")
    return isinstance(value, (int, torch.SymInt)) and not free_unbacked_symbols(value)


def _plain(node: Node) -> bool:
    """Is the shape of a node known without running anything?"""
    value = node.meta.get("example_value")
    return isinstance(value, torch.Tensor) and not free_unbacked_symbols(value.shape)


def _memory(node: Node) -> set[int]:
    """The storage of a node's tensor, which Dynamo's stand-ins share where the tensors do."""
    known = storage(node.meta.get("example_value"))
    return set() if known is None else {known}


def _version(node: Node) -> int:
    """How often the tensor of a node was written to until now. It is not counted in inference mode."""
    value = node.meta.get("example_value")
    return value._version if isinstance(value, torch.Tensor) and not value.is_inference() else 0


# Running them


def _run(node: Node, values: dict[Node, Any]) -> Any:
    if _is_size(node):
        return guarding_hint_or_throw(node.meta["example_value"])
    if node.op == "placeholder":
        tensor = given(node)
        return tensor.clone() if tensor is not None else guarding_hint_or_throw(node.meta["example_value"])
    args, kwargs = map_arg((node.args, node.kwargs), values.__getitem__)
    if node.op == "call_method":
        return getattr(args[0], str(node.target))(*args[1:], **kwargs)
    if node.op == "call_function" and _computes(node.target):
        return node.target(*args, **kwargs)  # type: ignore[operator]
    raise Unknown(f"{node} is no operation on tensors")


def _computes(target: Any) -> bool:
    if isinstance(target, _WRAPPERS) or target is numpy_attr_wrapper:  # numpy's functions, as torch writes them
        return True
    if isinstance(target, torch._ops.OpOverload):  # one of the program's may do more than its dispatch shows
        return target.namespace in ("aten", "prims", "prim")
    module = getattr(target, "__module__", None)
    return module is None or module in _MODULES or module.startswith("torch._C.")


def _shape(node: Node) -> torch.Tensor:
    """A tensor that stands for one of which only the shape is known."""
    value = node.meta["example_value"]
    shape, strides = (tuple(map(guarding_hint_or_throw, sizes)) for sizes in (value.shape, value.stride()))
    return torch.empty_strided(shape, strides, dtype=value.dtype, device="meta")


def _sizes(node: Node) -> list[torch.SymInt]:
    """The symbols of sizes that `_run` and `_shape` took the numbers of."""
    value = node.meta.get("example_value")
    found = [*value.shape, *value.stride()] if isinstance(value, torch.Tensor) else [value]
    return [size for size in found if isinstance(size, torch.SymInt) and not free_unbacked_symbols(size)]


def _check(node: Node, value: Any) -> None:
    """A value has to be of the kind that Dynamo takes it for."""
    known = node.meta.get("example_value")
    if isinstance(known, torch.Tensor) and (not isinstance(value, torch.Tensor) or value.dtype != known.dtype):
        raise Unknown(f"{node} is something else when it is run by itself")


def _check_version(node: Node, value: Any) -> None:
    """All that was written to a tensor was written here, too."""
    known = node.meta.get("example_value")
    if isinstance(known, torch.Tensor) and (known.is_inference() or known._version != value._version):
        raise Unknown(f"{node} is written to by what is not known to write")


class _Known(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Keeps what is known apart from what is not: an operation on both is done on shapes."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.namespace not in ("aten", "prims", "prim"):
            raise Unknown(f"{func} is not one of torch's operations")
        if "batch_norm" in func.__name__ or "instance_norm" in func.__name__:
            raise Unknown(f"{func} writes statistics, which its schema does not say")
        draws = torch.Tag.nondeterministic_seeded in func.tags
        if draws and func._schema.is_mutable:
            raise Unknown(f"{func} draws what it writes")
        if any(leaf.is_meta for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)):
            if not all(each.is_meta for each in _written_by(func, args, kwargs)):
                raise Unknown(f"{func} writes what is not known")
            if func is torch.ops.aten.index.Tensor:
                args = (args[0], _positions(args[1]))
            args, kwargs = pytree.tree_map_only(torch.Tensor, lambda each: each.to("meta"), (args, kwargs))
            return func(*args, **kwargs)
        result = func(*args, **kwargs)
        if draws or func.__name__.startswith(("empty", "new_empty")):
            return pytree.tree_map_only(torch.Tensor, lambda each: each.to("meta"), result)
        return result


def _written_by(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """The tensors that an operation writes to."""
    declared = [each for each in func._schema.arguments if each.alias_info is not None and each.alias_info.is_write]
    order = [each.name for each in func._schema.arguments]
    given = {**dict(zip(order, args, strict=False)), **kwargs}
    written = [given.get(each.name) for each in declared]
    return [leaf for leaf in pytree.tree_leaves(written) if isinstance(leaf, torch.Tensor)]


def _positions(indices: list[torch.Tensor | None]) -> list[torch.Tensor | None]:
    """Indices, with masks written as positions: a mask's values decide the shape of what it picks."""
    found: list[torch.Tensor | None] = []
    for each in indices:
        if each is not None and each.dtype in (torch.bool, torch.uint8):
            found += each.nonzero().unbind(1)
        else:
            found.append(each)
    return found
