"""How a program with `emit` is run: in plain Python and compiled, each with what it wrote and how it ended."""

from __future__ import annotations

import functools
import io
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the helpers beside these tests are imported by name


class Outcome(NamedTuple):
    written: str
    result: Any
    gradients: list[Any]


def _copy(value: Any) -> Any:
    import torch

    return value.detach().clone().requires_grad_(value.requires_grad) if isinstance(value, torch.Tensor) else value


def watch(function: Callable[..., Any], inputs: tuple[Any, ...]) -> Outcome:
    """Calls a program on copies of its inputs, and `backward` where the result has a history."""
    import torch

    inputs = tuple(map(_copy, inputs))
    stream = io.StringIO()
    with redirect_stdout(stream), redirect_stderr(stream):
        try:
            result = function(*inputs)
            if isinstance(result, torch.Tensor) and result.requires_grad:
                result.sum().backward()
        except Exception as error:
            result = type(error)
    gradients = [value.grad for value in inputs if isinstance(value, torch.Tensor) and value.requires_grad]
    return Outcome(stream.getvalue(), result, gradients)


@pytest.fixture
def check() -> Iterator[Callable[..., int]]:
    """Compares two compiled calls with two plain ones and returns how often the graph broke."""
    import torch
    from torch._dynamo.utils import counters

    def check(
        function: Callable[..., Any], *inputs: Any, backend: str = "aot_eager", before: Any = None, **options: Any
    ) -> int:
        def twice(function: Callable[..., Any]) -> list[Outcome]:
            if before is not None:
                before()
            return [watch(function, inputs), watch(function, inputs)]

        expected = twice(function)
        torch._dynamo.reset()
        counters.clear()
        for got, want in zip(twice(torch.compile(function, backend=backend, **options)), expected, strict=True):
            assert got.written == want.written
            torch.testing.assert_close(got.gradients, want.gradients)
            if isinstance(want.result, torch.Tensor):
                torch.testing.assert_close(got.result, want.result)
            else:
                assert got.result == want.result
        return sum(counters["graph_break"].values())

    yield check
    torch._dynamo.reset()


@functools.cache
def passes_once(self_test: Callable[[], bool]) -> bool:
    return self_test()


@pytest.fixture
def captures() -> Iterator[None]:
    """The switches that keep numbers in graphs, on, with nothing compiled yet."""
    import torch

    from graphmend.runtime import switches

    if not switches.install(passes=passes_once):
        pytest.skip("this torch is not known")
    torch._dynamo.reset()
    yield
    switches.uninstall()  # other tests judge what TorchDynamo does without
    torch._dynamo.reset()
