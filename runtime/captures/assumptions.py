"""What a graph takes for granted of the numbers that it captures, checked by us.

Dynamo writes assertions into the graph. Not every backend keeps them: AOTAutograd 2.13 drops them where gradients are
computed, and takes a size that was asserted to be 5 for a 5, and what follows is wrong or fails in the backward pass.
So the tensors that the assertions are about become outputs of the graph, and whoever calls it asks here whether they
hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg


class Assumptions:
    """The assertions of a graph, which from now on has the tensors that decide them as further outputs."""

    def __init__(self, graph: GraphModule) -> None:
        self._inputs = [node for node in graph.graph.nodes if node.op == "placeholder"]
        self._conditions: list[tuple[Node, str]] = []
        self._tensors: list[Node] = []
        for node in list(graph.graph.nodes):
            if node.target is torch.ops.aten._assert_scalar.default and isinstance(condition := node.args[0], Node):
                self._conditions.append((condition, str(node.args[1])))
                _keep_what_is_read(graph, condition)
                self._tensors += [each for each in _tensors(condition) if each not in self._tensors]
        if self._tensors:
            _add_outputs(graph, self._tensors)

    def checked(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        """The outputs without ours. Raises RuntimeError where an assertion does not hold."""
        known = dict(zip(self._inputs, inputs, strict=True))
        if count := len(self._tensors):
            known |= zip(self._tensors, outputs[-count:], strict=True)
            outputs = outputs[:-count]
        for condition, message in self._conditions:
            if not _evaluate(condition, known):
                raise RuntimeError(message)
        return outputs


def _tensors(condition: Node) -> list[Node]:
    """The tensors that decide a condition, but for inputs of the graph."""
    return [node for node in _way(condition) if node.op != "placeholder" and not _is_number(node)]


def _keep_what_is_read(graph: GraphModule, condition: Node) -> None:
    """A tensor whose value is read may be written to later: it is read from a copy."""
    for node in _way(condition):
        if node.op != "call_method" or not _is_number(node):
            continue
        tensor: Any = node.args[0]
        if isinstance(_example(tensor), torch.Tensor) and tensor.target != "clone":
            with graph.graph.inserting_before(node):
                copy = graph.graph.call_method("clone", (tensor,))
            copy.meta["example_value"] = _example(tensor)
            node.args = (copy, *node.args[1:])


def _way(condition: Node) -> list[Node]:
    """A condition, the numbers that it is computed from, and the tensors that these are taken from."""
    found = [condition]
    for node in found:
        if _is_number(node):
            found += [each for each in node.all_input_nodes if each not in found]
    return found


def _is_number(node: Node) -> bool:
    """Is it a number, or the sizes of a tensor?"""
    return isinstance(node.meta.get("example_value"), (torch.SymInt, torch.SymFloat, torch.SymBool, torch.Size))


def _add_outputs(graph: GraphModule, tensors: list[Node]) -> None:
    output = graph.graph.output_node()
    before: Any = output.args[0]
    with graph.graph.inserting_before(output):
        ours = [graph.graph.call_method("detach", (each,)) for each in tensors]
    for each, tensor in zip(ours, tensors, strict=True):
        each.meta["example_value"] = _example(tensor)
    output.args = ((*before, *ours),)
    graph.recompile()


def _example(node: Node) -> Any:
    """Dynamo's stand-in for the value of a node; it makes none for the elements that `tolist` reads."""
    if "example_value" not in node.meta:
        node.meta["example_value"] = _called(node, *map_arg((node.args, node.kwargs), _example))
    return node.meta["example_value"]


def _evaluate(node: Node, known: dict[Node, Any]) -> Any:
    if node not in known:
        args, kwargs = map_arg((node.args, node.kwargs), lambda each: _evaluate(each, known))
        known[node] = _called(node, args, kwargs)
    return known[node]


def _called(node: Node, args: Any, kwargs: Any) -> Any:
    target: Any = node.target
    if node.op == "call_method":
        return getattr(args[0], target)(*args[1:], **kwargs)
    return target(*args, **kwargs)
