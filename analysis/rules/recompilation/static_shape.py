"""GM706: sizes that differ although they are declared static."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Event, Recompiles
from graphmend.analysis.rules.rule import Break, Context, Rule


class StaticShape(Rule):
    """
    What it does:
        Finds sizes that differ between the calls in sight of a function that is compiled with `dynamic=False`, or
        of a tensor that is given to `torch._dynamo.mark_static`.

    Why it breaks:
        It does not break the graph: each size is compiled by itself (`tensor 'x' size mismatch at index 0. expected
        4, actual 8`), for `dynamic=False` and `mark_static` forbid the graph for any size that TorchDynamo makes
        otherwise after the first change. After `recompile_limit` (8, torch 2.13) the function runs eagerly.

    Example:
        @torch.compile(dynamic=False)
        def net(x): ...

    Use instead:
        @torch.compile
        def net(x): ...

    Mends:
        `dynamic=True`, or `maybe_mark_dynamic` in the place of `mark_static`

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.recompilation.html
    """

    code = "GM706"
    name = "static-shape"
    message = (
        "`{subject}` is declared static and has other sizes "
        "in another call of `{function}` ({before}, then {after}): compiled {again}"
    )
    advice = "Leave out `dynamic=False` or `mark_static`, or pad to one size."
    events = (Recompiles,)
    valid: ClassVar = (
        """
import torch

@torch.compile(dynamic=False)
def net(x):
    return x.relu() * 2

def calls():
    for seed in (4, 8, 16):
        net(torch.ones(5, 3) * seed)
""",
    )
    invalid: ClassVar = (
        """
import torch

@torch.compile(dynamic=False)
def net(x):
    return x.relu() * 2

def calls():
    for batch in (4, 8, 16):
        net(torch.ones(batch, 3))
""",
        """
import torch

@torch.compile
def net(x):
    return x.relu() * 2

def calls():
    for batch in (4, 8, 16):
        x = torch.ones(batch, 3)
        torch._dynamo.mark_static(x, 0)
        net(x)
""",
    )

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Recompiles)
        variation = event.variation
        if variation.of_another_model:
            return None
        if variation.kind not in ("size", "rank") or not variation.static:
            return None
        return Break(None, fill=variation.filled(), effect="recompiles")
