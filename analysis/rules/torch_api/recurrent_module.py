"""GM603: a recurrent module is called."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.finding import Effect
from graphmend.analysis.interpreter.events import Call, Event, Load
from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import SparseTensor, options
from graphmend.analysis.program.entities import Instance
from graphmend.analysis.rules.rule import Break, Context, Rule
from graphmend.analysis.torch_facts import TorchFacts

_MODULES = frozenset({"torch.nn.LSTM.forward", "torch.nn.GRU.forward", "torch.nn.RNN.forward"})


class RecurrentModule(Rule):
    """
    What it does:
        Finds calls of `nn.LSTM`, `nn.GRU` and `nn.RNN`, and all other uses of such a module: `self.lstm.hidden_size`,
        `self.lstm.flatten_parameters()`, `self.lstm is None`.

    Why it breaks:
        TorchDynamo does not take them in unless `torch._dynamo.config.allow_rnn` is set (torch 2.13): already reading
        the attribute that holds one ends the graph, and the function is not traced any further. Their cells
        (`nn.LSTMCell`) are fine.

    Example:
        out, state = self.lstm(x)

    Use instead:
        the layer between two compiled parts; `torch._dynamo.config.allow_rnn` only for short sequences: Inductor
        compiles a node for each step in time (128 s for 80 steps of a GRU), and AOTAutograd fails for an LSTM on a CPU
        where gradients are recorded (torch 2.13)

    Mends:
        none in the source; under `graphmend run` the layer is one operation of the graph

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM603"
    name = "recurrent-module"
    message = "TorchDynamo does not trace {call}: the graph breaks here"
    advice = "Call it between two compiled parts; `graphmend run` keeps it in the graph as one operation."
    events = (Call, Load)
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
        if isinstance(event, Load):
            held = options(event.value)
            if any(isinstance(o, SparseTensor) for o in held):
                return None
            cls = next(
                (o.cls.rpartition(".")[2] for o in held if isinstance(o, ExternalInstance)), "a recurrent module"
            )
            doubtful = len(held) > 1
            return Break("GB0014", None, doubtful, fill={"call": f"nn.{cls}"}, effect="skips-frame")
        assert isinstance(event, Call)
        effect: Effect | None = "skips-frame" if isinstance(event.receiver, Instance) else None  # `super().forward(x)`
        return Break(
            "GB0014", effect=effect, fill={"call": event.callee.removesuffix(".forward").replace("torch.nn.", "nn.")}
        )
