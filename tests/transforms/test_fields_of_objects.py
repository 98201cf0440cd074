"""Branches that store to fields of objects, make records, or call methods that change their object."""

from __future__ import annotations

from typing import Any

import pytest
from judge import judge, mend_text, torch

_HEAD = """
import torch
from dataclasses import dataclass, replace
from typing import NamedTuple
"""

_KEPT = {
    "the_best_so_far": """
class Keeper:
    def __init__(self, best):
        self.best = best
        self.bad = torch.zeros(())

    def is_better(self, loss):
        return loss < self.best - 0.1

    def step(self, loss):
        if self.is_better(loss):
            self.best = loss
            self.bad = torch.zeros_like(self.bad)
        else:
            self.bad = self.bad + 1
        return self.best

@torch.compile
def case(x: torch.Tensor):
    keeper = Keeper(torch.tensor(float("inf")))
    return torch.stack([keeper.step(loss) for loss in x]), keeper.bad
""",
    "a_field_of_unknown_kind": """
class Controller:
    def __init__(self, beta, target):
        self.beta = beta
        self.target = target

    def update(self, kl):
        if kl > 1.5 * self.target:
            self.beta = self.beta * 2.0
        elif kl < self.target / 1.5:
            self.beta = self.beta / 2.0

@torch.compile
def case(x: torch.Tensor):
    controller = Controller(x[0], 0.5)
    controller.update(x.mean())
    return controller.beta * x
""",
    "named_tuples": """
class State(NamedTuple):
    scale: torch.Tensor
    good: torch.Tensor

def update(state, bad):
    if bad:
        return State(state.scale * 0.5, torch.zeros_like(state.good))
    elif state.good + 1 >= 2:
        return State(state.scale * 2.0, torch.zeros_like(state.good))
    return State(state.scale, state.good + 1)

@torch.compile
def case(x: torch.Tensor):
    state = State(x[0], torch.tensor(1))
    for value in x:
        state = update(state, value.sum() < 0)
    return state.scale, state.good
""",
    "replaced_records": """
@dataclass(frozen=True)
class Track:
    mean: torch.Tensor
    misses: torch.Tensor

def update(track, z):
    if float((z - track.mean).abs().sum()) > 1.5:
        return replace(track, misses=track.misses + 1)
    return replace(track, mean=track.mean * 0.5 + z * 0.5)

@torch.compile
def case(x: torch.Tensor):
    track = Track(x[0], torch.tensor(0))
    for z in x:
        track = update(track, z)
    return track.mean, track.misses
""",
    "a_method_that_changes_its_object": """
class Norm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("ready", torch.tensor(False))
        self.register_buffer("loc", torch.zeros(()))

    def initialize(self, x):
        mean = x.mean()
        self.loc.copy_(-mean)

    def forward(self, x):
        if not self.ready:
            self.initialize(x)
            self.ready.fill_(True)
        return x + self.loc

norm = Norm()

@torch.compile
def case(x: torch.Tensor):
    norm.ready.fill_(bool(len(x) > 3))
    with torch.no_grad():
        return norm(x)
""",
}

_ASIS = {
    "a_property": """
class Keeper:
    def __init__(self):
        self.kept = []

    @property
    def best(self):
        return self.kept[-1]

    @best.setter
    def best(self, value):
        self.kept.append(value)

    def step(self, loss):
        if loss.sum() > 0:
            self.best = loss

@torch.compile
def case(x: torch.Tensor):
    keeper = Keeper()
    keeper.best = x - 1
    keeper.step(x)
    return keeper.best
""",
    "a_field_that_may_not_be_there": """
class Keeper:
    def __init__(self, given):
        if given is not None:
            self.best = given

    def step(self, loss):
        if loss.sum() > 0:
            self.best = loss

@torch.compile
def case(x: torch.Tensor):
    keeper = Keeper(None)
    keeper.step(x)
    return x + (keeper.best if hasattr(keeper, "best") else 1)
""",
    "an_object_that_is_there": """
@dataclass
class Pair:
    a: torch.Tensor
    b: torch.Tensor

def pick(x):
    pair = Pair(x, x)
    if x.sum() > 0:
        return pair
    return Pair(x + 1, x)

@torch.compile
def case(x: torch.Tensor):
    pair = pick(x)
    pair.a = x * 9
    return pair.a, pair.b
""",
    "a_body_that_logs": """
import logging
log = logging.getLogger("fields")

class Layer:
    def __init__(self, s):
        self.s = s

    def fill(self, x):
        log.warning("filled")
        self.s = x + 1

    def step(self, x):
        if x.sum() > 0:
            self.fill(x)

@torch.compile
def case(x: torch.Tensor):
    layer = Layer(x)
    layer.step(x)
    return layer.s
""",
}


def inputs() -> list[tuple[Any, ...]]:
    rows = [1.0, 0.8, 0.6, 0.5], [1.0, 1.1, 1.2], [-1.0, 2.0, 3.0, -4.0], [0.0, 0.0, 0.0]
    return [(torch.tensor(row),) for row in rows]


@pytest.mark.torch
@pytest.mark.parametrize("text", _KEPT.values(), ids=_KEPT)
def test_one_graph_keeps_what_the_branch_stores(text: str) -> None:
    judge(_HEAD + text, inputs)


@pytest.mark.parametrize("text", _ASIS.values(), ids=_ASIS)
def test_objects_that_may_tell_are_left_alone(text: str) -> None:
    assert mend_text(_HEAD + text).source.text.count("    if ") == text.count("    if ")
