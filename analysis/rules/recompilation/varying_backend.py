"""GM712: a function that is compiled by one backend and then by another."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Event, Recompiles
from graphmend.analysis.rules.rule import Break, Context, Rule


class VaryingBackend(Rule):
    """
    What it does:
        Finds compile sites whose backend, mode or options differ from those with which the same function was compiled
        before: most of all a backend that is made anew each time, by a lambda, a nested function, a
        `functools.partial` or a call.

    Why it breaks:
        It does not break the graph: a graph belongs to the backend that made it (`BACKEND_MATCH failure: torch.compile
        detected different backend callables`). TorchDynamo compares names, modes and options by value, but functions,
        partials and objects by identity (torch 2.13), so a backend that is made anew finds no graph, and after
        `recompile_limit` (8) of them the function runs eagerly.

    Example:
        def run(fn, x):
            return torch.compile(fn, backend=lambda graph, inputs: graph.forward)(x)

    Use instead:
        def forward_only(graph, inputs):
            return graph.forward

        def run(fn, x):
            return torch.compile(fn, backend=forward_only)(x)

    Mends:
        the backend made once, at the top of the file, where it needs nothing that stands around it

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.recompilation.html
    """

    code = "GM712"
    name = "varying-backend"
    message = "`{function}` is compiled by {before}, then by {after}: compiled {again}"
    advice = "Make the backend once, and compile each function with one backend, mode and set of options."
    events = (Recompiles,)
    valid: ClassVar = (
        """
import torch

def forward_only(graph, inputs):
    return graph.forward

def double(x):
    return x * 2

def calls():
    for _ in range(3):
        torch.compile(double, backend=forward_only)(torch.ones(4))
""",
        """
import torch

def double(x):
    return x * 2

def calls():
    for _ in range(3):
        torch.compile(double, mode="default", fullgraph=True)(torch.ones(4))
""",
    )
    invalid: ClassVar = (
        """
import torch

def double(x):
    return x * 2

def calls():
    for _ in range(3):
        torch.compile(double, backend=lambda graph, inputs: graph.forward)(torch.ones(4))
""",
        """
import torch

def double(x):
    return x * 2

def calls():
    for backend in ("eager", "aot_eager", "eager"):
        torch.compile(double, backend=backend)(torch.ones(4))
""",
    )

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Recompiles)
        if event.variation.kind != "backend":
            return None
        return Break(None, fill=event.variation.filled(), effect="recompiles")
