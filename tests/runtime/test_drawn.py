"""Numbers that are drawn outside of torch: the graph draws what plain Python draws, in the same order, each time."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")
from graphmend.runtime import mechanism  # noqa: E402

if tuple(map(int, torch.__version__.split(".")[:2])) < mechanism.OLDEST:
    pytest.skip("the runtime calls nothing from the graph of this torch", allow_module_level=True)

from graphmend.runtime import later, number_on_host  # noqa: E402

pytestmark = pytest.mark.torch
CALLS: dict[str, Callable[[float], Any]] = {
    "gauss": lambda s: number_on_host(torch.float64, random.gauss, 0.0, s),
    "beta": lambda s: number_on_host(torch.float64, numpy.random.beta, s, 2.0),
    "randint": lambda s: number_on_host(torch.int64, random.randint, 0, 5),
    "choice": lambda s: number_on_host(torch.float64, random.choice, [0.5, 0.75, 3.0]),
    "weighed": lambda s: number_on_host(torch.float64, numpy.random.choice, [0.5, 3.0], p=[0.25, 0.75]),
    "sample": lambda s: number_on_host(torch.float64, operator.getitem, later(random.sample, [0.5, 3.0], 1), 0),
}


def drawn(function: Callable[..., Any], *scales: float) -> list[Any]:
    """What some calls give, and what is drawn next."""
    random.seed(0)
    numpy.random.seed(0)
    found = [function(torch.arange(4.0), scale).tolist() for scale in scales]
    return [*found, random.random(), numpy.random.rand()]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", CALLS)
def test_the_graph_draws_as_plain_python(name: str, backend: str) -> None:
    def f(x: Any, scale: float) -> Any:
        first = CALLS[name](scale)
        return x * first + CALLS[name](scale)

    torch._dynamo.reset()
    compiled = torch.compile(f, backend=backend, fullgraph=True)
    assert drawn(compiled, 1.0, 1.0, 1.0) == drawn(f, 1.0, 1.0, 1.0)


def test_arguments_are_those_of_the_call() -> None:
    def f(x: Any, scale: float) -> Any:
        return x * CALLS["gauss"](scale)

    compiled = torch.compile(f, backend="eager", fullgraph=True, dynamic=True)
    assert drawn(compiled, 1.0, 2.0, 0.5, 8.0) == drawn(f, 1.0, 2.0, 0.5, 8.0)


@pytest.mark.parametrize("dynamic", [True, False])
def test_an_exception_finds_the_objects_as_they_were_left(dynamic: bool) -> None:
    class Counter:
        calls = 0

    def f(x: Any, scale: float, counter: Counter) -> Any:
        counter.calls += 1
        return x * CALLS["beta"](scale)

    counter = Counter()
    compiled = torch.compile(f, backend="eager", dynamic=dynamic)
    for scale in (1.0, 2.0, 3.0):
        compiled(torch.ones(2), scale, counter)
    with pytest.raises(ValueError, match="a <= 0"):
        compiled(torch.ones(2), -1.0, counter)
    assert counter.calls == 4
