"""GM302: a tensor becomes text in a way that Dynamo does not trace."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Call, Event
from graphmend.analysis.lattice.values import Container, Value
from graphmend.analysis.rules.rule import Break, Context, Rule, evidence
from graphmend.analysis.torch_facts import TorchFacts

_CALLS = {
    "builtins.str": "GB0059",
    "builtins.repr": "GB0569",
    "builtins.str.__mod__": "GB0208",
    "builtins.ascii": "GB0059",
}


class TensorText(Rule):
    """
    What it does:
        Finds `str()`, `repr()` and `"%s" %` of a tensor, or of a list of tensors.

    Why it breaks:
        The text shows the tensor's values, which do not exist while TorchDynamo traces. An f-string or `format` of a
        tensor is traced (torch 2.13).

    Example:
        text = "loss %s" % loss

    Use instead:
        text = f"loss {loss}"

    Mends:
        none

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM302"
    name = "tensor-text"
    message = "{call} makes text of a Tensor's values: the graph breaks here"
    advice = "Make the text outside of the compiled function."
    events = (Call,)
    valid: ClassVar = (
        """
import torch

@torch.compile
def f(x):
    return x + 1, "v={}".format(x.sum()), f"{x.shape}", str(x.dtype)

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
    return y * 2, str([x])

def example_inputs():
    return [(torch.ones(4),)]
""",
    )

    def concerns(self, callee: str, torch: TorchFacts) -> bool:
        return callee in _CALLS

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Call)
        values: list[Value] = []
        for argument in event.arguments:
            values.append(
                argument.element if isinstance(argument, Container) and argument.kind in ("list", "tuple") else argument
            )
        why = next((e for e in map(evidence, values) if e is not None), None)
        word = "%" if event.callee.endswith("__mod__") else event.callee.removeprefix("builtins.") + "()"
        return Break(_CALLS[event.callee], *why, fill={"call": word}) if why is not None else None
