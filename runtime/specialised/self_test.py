"""Compiles small programs and looks whether each hook into Dynamo does its work, before any program relies on it."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import torch


def _branches(x: Any, n: Any) -> Any:
    x = x * 2  # so that a break makes two graphs
    return x + 1 if (n > 1).any() else x - 1


def _lists(x: Any, n: Any) -> Any:
    x = x * 2
    return torch.stack([part.sum() for part in x.split(n.tolist())])


def _decides(x: Any, n: Any) -> Any:
    x = x * 2
    kept = x[n > 1]
    return kept * 2 if kept.shape[0] > 1 else kept - 1


def _sizes(x: Any, n: Any) -> Any:
    image = (x * 2).reshape(1, 1, 2, 2)
    return torch.nn.functional.interpolate(image, size=(n[0], n[0]), mode="bilinear", align_corners=True)


PROBES = (_branches, _lists, _decides, _sizes)


def passes() -> bool:
    """Whether each program is one graph, and right for other values of its inputs, too."""
    from torch._dynamo import config

    # a frame of torch's around each program would count as compiled anew too often; graphs are modules
    with _uncounted(), _without_hooks(), config.patch(wrap_top_frame=False):
        return all(_holds(probe) for probe in PROBES) and _keeps_layers()


def _holds(probe: Callable[[Any, Any], Any]) -> bool:
    seen: list[Any] = []

    def count(graph: Any, _: Any) -> Any:
        seen.append(graph)
        return graph.forward

    own = FunctionType(probe.__code__.replace(), probe.__globals__)  # its code holds nothing of an earlier try
    compiled = torch.compile(own, backend=count)
    x = torch.arange(4.0)
    for graphs, n in enumerate((torch.tensor([2, 2, 0, 0]), torch.tensor([1, 1, 1, 1])), 1):
        if not torch.equal(compiled(x, n), probe(x, n)) or len(seen) != graphs:
            return False
    return True


def _keeps_layers() -> bool:
    """Whether a recurrent layer is one operation."""
    layer = torch.nn.GRU(4, 1, device="meta").to_empty(device="cpu")  # draws no random numbers
    for parameter in layer.parameters():
        parameter.fill_(0.5)
    found: list[Any] = []

    def count(graph: Any, _: Any) -> Any:
        found.extend(node.target for node in graph.graph.nodes if "recurrent" in str(node.target))
        return graph.forward

    def call(x: Any) -> Any:
        return layer(x * 2)[0] + 1

    x = torch.arange(8.0).reshape(2, 4)
    return torch.equal(torch.compile(call, backend=count)(x), call(x)) and len(found) == 1


@contextlib.contextmanager
def _without_hooks() -> Iterator[None]:
    """The program's hooks on all modules do not run meanwhile."""
    every = torch.nn.modules.module
    all_hooks = (every._global_forward_pre_hooks, every._global_forward_hooks)
    before = [dict(hooks) for hooks in all_hooks]
    try:
        for hooks in all_hooks:
            hooks.clear()
        yield
    finally:
        for hooks, known in zip(all_hooks, before, strict=True):
            hooks.update(known)


@contextlib.contextmanager
def _uncounted() -> Iterator[None]:
    """A program finds Dynamo's counters as if nothing had been compiled."""
    from torch._dynamo.utils import counters

    before = {name: Counter(count) for name, count in counters.items()}
    try:
        with torch.no_grad():
            yield
    finally:
        for name in list(counters):  # in place: who holds a count sees it restored
            counters[name].clear()
            counters[name].update(before.get(name, ()))
            if name not in before:
                del counters[name]
