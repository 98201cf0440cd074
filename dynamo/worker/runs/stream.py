"""A target on a stream of batches: how many graphs are compiled so far, and how many each call executes."""

from __future__ import annotations

from typing import Any

import torch
import torch._dynamo

from ..comparison import compare
from ..errors import describe
from ..inputs.examples import Arguments
from ..inputs.variation import structure, variants
from . import batches, devices
from .fitting import Fit


class Counting:
    """A backend that runs graphs as they are, and counts them."""

    def __init__(self) -> None:
        self.compiled = self.executed = 0

    def __call__(self, graph: Any, inputs: Any, **_: Any) -> Any:
        self.compiled += 1

        def run(*arguments: Any) -> Any:
            self.executed += 1
            return graph.forward(*arguments)

        return run


def measure(fit: Fit, call: Any, counting: Counting, number: int, lengths: bool) -> list[dict[str, Any]]:
    """Calls `call`, compiled with `counting`, on `number` batches. One item for each."""
    torch._dynamo.reset()
    found = []
    for index in range(number):
        way = _way(fit, index, lengths)
        compare.restore(fit.instance, fit.state)
        counting.executed = 0
        raised = None
        try:
            arguments = _arguments(fit, index, way)
            variants.seed(0)
            call(*arguments[0], **arguments[1])
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            raised = describe(error, fit.contains)
        found.append(
            {
                "changes": [] if index == 0 else list(way),
                "compiled": counting.compiled,
                "executed": counting.executed,
                "raised": raised,
            }
        )
    return found


def _way(fit: Fit, index: int, lengths: bool) -> tuple[str, ...]:
    """The most changes that the target takes in eager mode."""
    ways = batches.ways(lengths)
    for way in ways[:-1] if index else ():
        compare.restore(fit.instance, fit.state)
        try:
            arguments = _arguments(fit, index, way)
            variants.seed(0)
            with torch.compiler.set_stance("force_eager"):
                fit.callable(*arguments[0], **arguments[1])
        except torch.OutOfMemoryError:
            raise
        except Exception:  # it does not take such integers, or such lengths
            continue
        return way
    return ways[-1]


def _arguments(fit: Fit, index: int, way: tuple[str, ...]) -> Arguments:
    made = batches.batch(lambda: fit.example.inputs()[0], index, way)
    if fit.parts > 1:
        made = structure.part_of_batch(made, fit.parts)
    return devices.move(made, fit.device)  # type: ignore[no-any-return]
