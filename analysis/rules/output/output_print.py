"""GM201: text is written while tracing."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Call, Event
from graphmend.analysis.lattice.values import Const, Tensor
from graphmend.analysis.rules.rule import Break, Context, Rule
from graphmend.analysis.torch_facts import TorchFacts

_CALLS = {
    "builtins.print": "GB0059",
    "builtins.input": "GB0059",
    "pprint.pprint": "GB0156",
    "pprint.pp": "GB0156",
    "sys.stdout.write": "GB0156",
    "sys.stdout.flush": "GB0156",
    "sys.stderr.write": "GB0156",
    "sys.stderr.flush": "GB0156",
    "rich.print": "GB0007",
}


class Print(Rule):
    """
    What it does:
        Finds `print`, `pprint` and writes to standard output or standard error in code that is traced.

    Why it breaks:
        Writing is a side effect that TorchDynamo does not put into a graph: it ends the graph, prints, and starts
        another one.

    Example:
        print("loss", loss)

    Use instead:
        graphmend.runtime.emit(print, "loss", loss)

    Mends:
        printing from inside the graph, or only while not compiling

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM201"
    name = "print"
    message = "{call}() writes output: the graph breaks here"
    advice = "Print from inside the graph (torch._higher_order_ops.print, graphmend.runtime.emit), or in eager only."
    events = (Call,)
    valid: ClassVar = (
        """
import torch

@torch.compile
def f(x):
    verbose = False
    if verbose:
        print("x", x)
    if not torch.compiler.is_compiling():
        print("eager", x)
    return x + 1

def example_inputs():
    return [(torch.ones(4),)]
""",
    )
    invalid: ClassVar = (
        """
import torch

@torch.compile
def f(x):
    y = x + 1
    print("y", y.sum())
    return y * 2

def example_inputs():
    return [(torch.ones(4),)]
""",
    )

    def concerns(self, callee: str, torch: TorchFacts) -> bool:
        return callee in _CALLS

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Call)
        if f"reorders {event.callee.rpartition('.')[2]}" in context.mode.options and not event.keywords:
            plain = all(isinstance(a, (Const, Tensor)) for a in event.arguments)
            if plain:  # it is said behind the graph, see `torch._dynamo.config.reorderable_logging_functions`
                return None
        return Break(_CALLS[event.callee], fill={"call": event.callee.removeprefix("builtins.")})
