"""GM510: Python calls a method of the program's class where Dynamo does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from graphmend.analysis.interpreter.events import Call, Event, Operation, SetAttribute
from graphmend.analysis.lattice.values import Value, tensor_in
from graphmend.analysis.program.entities import Class, Function, Instance, Record
from graphmend.analysis.rules.rule import Break, Context, Rule
from graphmend.analysis.torch_facts import TorchFacts

#: by operation: what is done, and the break's id
_OBJECTS: Final[Mapping[str, tuple[str, str]]] = {
    "operand beside a tensor": ("an operator between a Tensor and an object", "GB0055"),
    "index of a tensor": ("an object as the index of a Tensor", "GB0055"),
    "math.floor": ("the whole part of an object", "GB0055"),
    "math.ceil": ("the whole part of an object", "GB0055"),
    "math.trunc": ("the whole part of an object", "GB0055"),
    "operator.length_hint": ("the length of an object that only hints at it", "GB0059"),
    "sorted": ("sorting objects by their own comparison", "GB0207"),
    "extreme": ("max() and min() of objects", "GB0059"),
    "~": ("`~` of an object", "GB0059"),
    "text": ("an object in a text without `!s` or str()", "GB0088"),
    "__getattribute__": ("attributes of an object with `__getattribute__`", "GB0147"),
    "functools.partialmethod": ("a method made by functools.partialmethod()", "GB0088"),
    "functools.singledispatchmethod": ("a method under functools.singledispatchmethod", "GB0811"),
}
_FUNCTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "functools.singledispatch": ("a function under functools.singledispatch", "GB0811"),
    ".cache_clear": ("the cache of a function", "GB0088"),
    ".cache_info": ("the cache of a function", "GB0088"),
    ".__qualname__": ("the qualified name of a function", "GB0088"),
}
_COPIERS = frozenset({"dataclasses.asdict", "dataclasses.astuple"})


class OwnObject(Rule):
    """
    What it does:
        Finds places where Python calls a method of the program's own class, or looks into its function, and TorchDynamo
        does not: an operator between a Tensor and an object (`scale * x` with `Scale.__mul__`), an object as an index,
        sorting objects by their `__lt__`, `functools.partialmethod` and `singledispatch`, an attribute set on a
        function, `dataclasses.asdict` of Tensors.

    Why it breaks:
        TorchDynamo hands both operands on to torch, or to a function that is written in C, and an object cannot be put
        into a graph (torch 2.13).

    Example:
        y = scale * x

    Use instead:
        y = scale.__mul__(x)

    Mends:
        the method is called by its name

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM510"
    name = "own-object"
    message = "TorchDynamo does not trace {what}: the graph breaks here"
    advice = "Call the method by its name."
    events = (Operation, SetAttribute, Call)
    valid: ClassVar = (
        """
import torch

class Scale:
    def __init__(self, by):
        self.by = by

    def __mul__(self, other):
        return other * self.by

    def __lt__(self, other):
        return self.by < other.by

    def __index__(self):
        return self.by

@torch.compile
def f(x):
    scales = sorted([Scale(2), Scale(1)], key=lambda scale: scale.by)
    half = Scale(3) * 2
    return x * half * scales[0].by if scales[0] < scales[1] else x

def example_inputs():
    return [(torch.ones(4),)]
""",
    )
    invalid: ClassVar = (
        """
import torch

class Scale:
    def __init__(self, by):
        self.by = by

    def __mul__(self, other):
        return other * self.by

@torch.compile
def f(x):
    y = x + 1
    return Scale(2) * y

def example_inputs():
    return [(torch.ones(4),)]
""",
        """
import torch

class Place:
    def __index__(self):
        return 1

@torch.compile
def f(x):
    y = x + 1
    return y[Place()]

def example_inputs():
    return [(torch.ones(4),)]
""",
        """
import torch

class Guess:
    def __init__(self, score):
        self.score = score

    def __lt__(self, other):
        return self.score < other.score

@torch.compile
def f(x):
    y = x + 1
    best = sorted([Guess(2), Guess(1)])
    return y * best[0].score

def example_inputs():
    return [(torch.ones(4),)]
""",
        """
import functools

import torch

class Norm:
    def norm(self, x, p):
        return x.abs().pow(p).sum()

    square = functools.partialmethod(norm, p=2)

@torch.compile
def f(x):
    y = x + 1
    return Norm().square(y)

def example_inputs():
    return [(torch.ones(4),)]
""",
        """
import torch

def tap(x):
    tap.last = 2
    return x * 2

@torch.compile
def f(x):
    return tap(x) + 1

def example_inputs():
    return [(torch.ones(4),)]
""",
    )

    def concerns(self, callee: str, torch: TorchFacts) -> bool:
        return callee in _COPIERS

    def judge(self, event: Event, context: Context) -> Break | None:
        if isinstance(event, Call):
            return _copied(event)
        if isinstance(event, SetAttribute):
            is_function = isinstance(event.owner, Function)
            return Break("GB0467", fill={"what": "an attribute set on a function"}) if is_function else None
        assert isinstance(event, Operation)
        found = _table(event.value).get(event.name)
        return Break(found[1], fill={"what": found[0]}) if found is not None else None


def _table(value: Value) -> Mapping[str, tuple[str, str]]:
    if isinstance(value, (Instance, Record)):
        return _OBJECTS
    if isinstance(value, Function):
        return _FUNCTIONS
    return {".mro": ("the bases of a class by mro()", "GB0156")} if isinstance(value, Class) else {}


def _copied(event: Call) -> Break | None:
    """A dataclass of tensors that is copied: the tensors are, too."""
    value = event.arguments[0] if event.arguments else None
    if not isinstance(value, Record) or not any(tensor_in(v) is not None for v in (value.fields or {}).values()):
        return None
    name = event.callee.rpartition(".")[2]
    return Break("GB4198", fill={"what": f"{name}() of a dataclass with Tensors"})
