"""GM204: a progress bar in traced code."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Call, Event
from graphmend.analysis.rules.rule import Break, Context, Rule
from graphmend.analysis.torch_facts import TorchFacts

_LIBRARIES = frozenset({"tqdm", "alive_progress", "progressbar", "rich.progress"})
#: a name that the file does not define comes from a star import or another cell of a notebook; these mean one thing
#: everywhere
_UNBOUND = frozenset({"builtins.tqdm", "builtins.trange"})


class ProgressBar(Rule):
    """
    What it does:
        Finds progress bars (`tqdm` and its like) in code that is traced.

    Why it breaks:
        TorchDynamo does not trace into these libraries (torch 2.13), and a break at the head of a loop loses the whole
        frame.

    Example:
        for layer in tqdm(self.layers):
            x = layer(x)

    Use instead:
        for layer in self.layers:
            x = layer(x)

    Mends:
        the bar only while not compiling

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM204"
    name = "progress-bar"
    message = "{call} draws a progress bar: the graph breaks here"
    advice = "Draw the bar around the compiled call, or only while not compiling."
    events = (Call,)
    valid: ClassVar = (
        """
import torch

@torch.compile
def f(x):
    for i in range(2):
        x = x + i
    return x

def example_inputs():
    return [(torch.ones(4),)]
""",
    )

    def concerns(self, callee: str, torch: TorchFacts) -> bool:
        return callee.partition(".")[0] in _LIBRARIES or callee.startswith("rich.progress.") or callee in _UNBOUND

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Call)
        return Break("GB0008", likely=event.callee in _UNBOUND, fill={"call": event.callee.removeprefix("builtins.")})
