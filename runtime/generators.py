"""torch's default random number generators, read and set by the graph: what a side of a branch drew that was not taken
is taken back.

A graph may be rewound only where it is run node by node, in the order of the program (`eager`, `aot_eager`).
TorchInductor 2.13 draws the seeds of a whole graph at its first random operation: set back behind that, the generator
would give the same numbers in every call. So the operators look at who calls them, when they run, and do nothing where
that is other code than that of an FX graph.

Knows the generators of the CPU and of CUDA devices.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import torch

TAKEN = "random_state(Tensor like) -> Tensor"
SET = "set_random_state(Tensor state, Tensor? where) -> ()"

_GRAPH = "<eval_with_key>"
"""How torch.fx names the code of a graph."""


def taken(like: torch.Tensor) -> torch.Tensor:
    """The states of all generators, as bytes; zeros where the graph is not run node by node."""
    if not _runs_by_node():
        return fake(like).zero_()
    return torch.cat([generator.get_state() for generator in _generators()])


def put(state: torch.Tensor, where: torch.Tensor | None) -> None:
    """Sets the states of all generators, where a tensor of one element holds, if one is given."""
    if not _runs_by_node() or (where is not None and not where):
        return
    begin = 0
    for generator in _generators():
        now = generator.get_state()
        one = state[begin : begin + now.numel()]
        begin += now.numel()
        if not torch.equal(now, one):  # setting is slow
            generator.set_state(one.clone())


def fake(like: torch.Tensor) -> torch.Tensor:
    """A tensor for the states."""
    return torch.empty(sum(_sizes()), dtype=torch.uint8, device="cpu")


def _generators() -> Iterator[Any]:
    yield torch.default_generator
    if _has_cuda():
        yield from torch.cuda.default_generators


def _has_cuda() -> bool:
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


def _sizes() -> list[int]:
    return [generator.get_state().numel() for generator in _generators()]


def _runs_by_node() -> bool:
    """Is the operator called by the code of an FX graph, and not while a CUDA graph records?"""
    if _has_cuda() and torch.cuda.is_current_stream_capturing():
        return False
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename.startswith(_GRAPH):
            return True
        name = str(frame.f_globals.get("__name__"))
        if name.partition(".")[0] != "torch" or name.startswith("torch._inductor"):
            return False
        frame = frame.f_back  # type: ignore[assignment]
    return False
