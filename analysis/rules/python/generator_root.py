"""GM505: a generator function is compiled."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Event, Generator
from graphmend.analysis.rules.rule import Break, Context, Rule


class GeneratorRoot(Rule):
    """
    What it does:
        Finds `torch.compile` on a function that yields.

    Why it breaks:
        TorchDynamo does not compile the frame of a generator at the top level: it runs eagerly (torch 2.13). Generators
        that a compiled function consumes are traced.

    Example:
        @torch.compile
        def chunks(x):
            yield x + 1

    Use instead:
        @torch.compile
        def chunks(x):
            return [x + 1]

    Mends:
        none

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM505"
    name = "generator-root"
    message = "a generator is not compiled: it runs eagerly"
    advice = "Return a list or tuple, or compile the function that consumes the generator."
    events = (Generator,)
    valid: ClassVar = (
        """
import torch

def parts(x):
    for i in range(3):
        yield x + i

@torch.compile
def f(x):
    return sum(parts(x))

def example_inputs():
    return [(torch.ones(4),)]
""",
    )

    def judge(self, event: Event, context: Context) -> Break | None:
        return Break("GB0003", effect="skips-frame")
