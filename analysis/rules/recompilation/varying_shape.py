"""GM705: a tensor whose sizes differ from call to call."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Event, Recompiles
from graphmend.analysis.rules.rule import Break, Context, Rule


class VaryingShape(Rule):
    """
    What it does:
        Finds tensors that reach compiled code in other sizes, or with another number of dimensions, in another call
        in sight: batches, windows, caches that grow by `torch.cat`.

    Why it breaks:
        It does not break the graph: TorchDynamo compiles for the sizes it sees first, and once more for any size
        where one changes (`tensor 'x' size mismatch at index 0. expected 4, actual 8`). The sizes 0 and 1 are
        compiled by themselves, and so is each size that the trace needs: in a loop over the rows, in a condition.
        Another number of dimensions is another graph.

    Example:
        for batch in loader:  # the last one is smaller
            model(batch)

    Use instead:
        for batch in loader:
            torch._dynamo.mark_dynamic(batch, 0)
            model(batch)

    Mends:
        the size marked dynamic at the call, or `dynamic=True`

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.recompilation.html
    """

    code = "GM705"
    name = "varying-shape"
    message = "`{subject}` has other sizes in another call of `{function}` ({before}, then {after}): compiled {again}"
    advice = "Mark the dimension with torch._dynamo.mark_dynamic, or pad to one size."
    events = (Recompiles,)
    valid: ClassVar = (
        """
import torch

@torch.compile
def net(x):
    return x.relu() * 2

def calls():
    for batch in (4, 8, 16):
        x = torch.ones(batch, 3)
        torch._dynamo.mark_dynamic(x, 0)
        net(x)
""",
    )
    invalid: ClassVar = (
        """
import torch

@torch.compile
def net(x):
    return x.relu() * 2

def calls():
    for batch in (4, 8, 16):
        net(torch.ones(batch, 3))
""",
        """
import torch

@torch.compile
def attend(q, k, cache):
    cache = torch.cat([cache, k])
    return (q @ cache.T).softmax(-1), cache

def calls():
    cache = torch.zeros(2, 4)
    for i in range(3):
        _, cache = attend(torch.ones(1, 4), torch.ones(1, 4), cache)
""",
    )

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Recompiles)
        variation = event.variation
        if variation.of_another_model:
            return None
        if variation.kind not in ("size", "rank", "many") or variation.static:
            return None
        return Break(None, fill=variation.filled(), effect="recompiles")
