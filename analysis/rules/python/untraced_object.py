"""GM507: an operation on an object that Dynamo models only in part."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Event, Operation, SetAttribute
from graphmend.analysis.lattice.external import ExternalInstance, IdNumber
from graphmend.analysis.lattice.values import Value
from graphmend.analysis.program.entities import Instance
from graphmend.analysis.rules.rule import Break, Context, Rule
from graphmend.analysis.torch_facts.objects import ID, UNTRACED

_DONE = {
    "iterate": "iterating over", "subscript": "indexing", "store": "writing an element of", "contains": "a look into",
    "return": "returning", "set": "setting an attribute of", "delete": "deleting an attribute of",
    "hash": "the hash of", "neg": "the sign of", "pos": "the sign of", "bool": "the truth value of",
}  # fmt: skip


class UntracedObject(Rule):
    """
    What it does:
        Finds operations that TorchDynamo has no model of: elements of an `array.array` or `memoryview`, arithmetic with
        dates and decimals, texts of objects that are written in C, fields of a `ctypes.Structure`, numbers made from
        the `id` of a tensor, ...

    Why it breaks:
        The operation is written in C, and TorchDynamo interprets Python only; what it knows of classes written in C it
        knows one operation at a time (torch 2.13).

    Example:
        for value in array: ...

    Use instead:
        for value in array.tolist(): ...

    Mends:
        none: convert the object outside of the compiled function

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM507"
    name = "untraced-object"
    message = "TorchDynamo does not trace {done} {object}: the graph breaks here"
    advice = "Convert it outside of the compiled function."
    events = (Operation, SetAttribute)
    valid: ClassVar = (
        """
import array

import torch

sizes = list(array.array("i", [1, 2]))

@torch.compile
def f(x):
    return x * len(sizes) + sizes[0]

def example_inputs():
    return [(torch.ones(4),)]
""",
    )
    invalid: ClassVar = (
        """
import array

import torch

sizes = array.array("i", [1, 2])

@torch.compile
def f(x):
    y = x + 1
    n = len(sizes)
    return y * n

def example_inputs():
    return [(torch.ones(4),)]
""",
        """
import torch

@torch.compile
def f(x):
    y = torch.relu(x)
    number = abs(id(y))
    return y + 1

def example_inputs():
    return [(torch.ones(4),)]
""",
    )

    def judge(self, event: Event, context: Context) -> Break | None:
        if isinstance(event, SetAttribute):
            value, operation = event.owner, "set"
        else:
            assert isinstance(event, Operation)
            value, operation = event.value, event.name
        if isinstance(value, IdNumber):
            gb_id, name = ID.get(operation), "the id of a Tensor that the graph computes"
        else:
            name = _class(value)
            gb_id = UNTRACED.get(name, {}).get(operation)
        if gb_id is None:
            return None
        shown = _DONE.get(operation, f"`{operation}` of")
        return Break(gb_id, fill={"done": shown, "object": name.removeprefix("builtins.")})


def _class(value: Value) -> str:
    """The qualified name of the class without source that an object is of, or that its own class derives from."""
    if isinstance(value, ExternalInstance):
        return value.cls
    if isinstance(value, Instance):
        info = value.info
        names = (info.module.qualified(base) or "" for base in info.node.bases)
        return next((name for name in names if name in UNTRACED), "")
    return ""
