"""GM708: calls with and without gradients, or another mode of torch."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Event, Recompiles
from graphmend.analysis.rules.rule import Break, Context, Rule


class VaryingMode(Rule):
    """
    What it does:
        Finds functions that are called with gradients and without, inside and outside of `torch.autocast`, or in
        another mode of torch, in the calls in sight.

    Why it breaks:
        It does not break the graph: every graph is guarded by torch's global state (`GLOBAL_STATE changed:
        grad_mode`), so a training step and a validation under `torch.no_grad()` are two compilations of the same
        model.

    Example:
        fast(x).sum().backward()
        with torch.no_grad():
            fast(x)

    Use instead:
        fast(x).sum().backward()
        fast(x).detach()

    Mends:
        none: two graphs are right where both modes are used often

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.recompilation.html
    """

    code = "GM708"
    name = "varying-mode"
    message = "`{function}` is called with {subject} {before} and {after}: compiled {again}"
    advice = "Two graphs are right where both modes are used often; else call it in one mode."
    events = (Recompiles,)
    valid: ClassVar = (
        """
import torch

@torch.compile
def features(x):
    return x.exp().sum(0)

def calls():
    with torch.no_grad():
        for i in range(3):
            features(torch.ones(2, 3))
""",
    )
    invalid: ClassVar = (
        """
import torch

@torch.compile
def features(x):
    return x.exp().sum(0)

def calls():
    x = torch.ones(2, 3)
    features(x)
    with torch.no_grad():
        features(x)
    features(x)
""",
    )

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Recompiles)
        variation = event.variation
        if variation.kind != "mode":
            return None
        return Break(None, fill=variation.filled(), effect="recompiles")
