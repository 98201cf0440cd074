"""GM603: a recurrent module is called."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Call, Event
from graphmend.analysis.rules.rule import Break, Context, Rule
from graphmend.analysis.torch_facts import TorchFacts

_MODULES = frozenset({"torch.nn.LSTM.forward", "torch.nn.GRU.forward", "torch.nn.RNN.forward"})


class RecurrentModule(Rule):
    """
    What it does:
        Finds calls of `nn.LSTM`, `nn.GRU` and `nn.RNN`.

    Why it breaks:
        TorchDynamo does not put them into a graph unless `torch._dynamo.config.allow_rnn` is set (torch 2.13). Their
        cells (`nn.LSTMCell`) are fine.

    Example:
        out, state = self.lstm(x)

    Use instead:
        torch._dynamo.config.allow_rnn = True at program start

    Mends:
        none in the source

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM603"
    name = "recurrent-module"
    message = "TorchDynamo does not trace {call}: the graph breaks here"
    advice = "Set torch._dynamo.config.allow_rnn = True when the program starts."
    events = (Call,)
    valid: ClassVar = (
        """
import torch
from torch import nn

@torch.compile
def f(m, x):
    return m(x)[0] + 1

def example_inputs():
    return [(nn.LSTMCell(4, 4), torch.rand(2, 4))]
""",
    )
    invalid: ClassVar = (
        """
import torch
from torch import nn

@torch.compile
def f(m, x):
    y = x + 1
    return m(y)[0] * 2

def example_inputs():
    return [(nn.GRU(4, 4), torch.rand(3, 2, 4))]
""",
    )

    def concerns(self, callee: str, torch: TorchFacts) -> bool:
        return callee in _MODULES

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Call)
        return Break("GB0014", fill={"call": event.callee.removesuffix(".forward").replace("torch.nn.", "nn.")})
