"""GM506: a function of Python is called in a form that Dynamo does not trace."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Call, Event, Operation
from graphmend.analysis.lattice.external import ExternalInstance, ExternalName
from graphmend.analysis.lattice.values import NONE, Const, Container, Static, Tensor, Value, options
from graphmend.analysis.program.entities import Function, Instance, Record
from graphmend.analysis.rules.arguments import refused_argument
from graphmend.analysis.rules.rule import Break, Context, Rule, advice_on_draws, drawn
from graphmend.analysis.torch_facts import TorchFacts
from graphmend.analysis.torch_facts.arguments import DEMANDS


class RefusedForm(Rule):
    """
    What it does:
        Finds calls of Python's own functions that TorchDynamo traces, but not with these arguments: names of
        attributes that hold a tensor's value, options that have no name in its model, an assertion on a list of
        tensors, on a module or another object, arithmetic with a number that is drawn and no tensor, ...

    Why it breaks:
        TorchDynamo models builtins and the standard library one by one, for the usual arguments (torch 2.13).

    Example:
        getattr(module, f"layer{index_tensor}")

    Use instead:
        getattr(module, f"layer{index}")

    Mends:
        none: pass what the function takes while it is traced

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM506"
    name = "refused-form"
    message = "TorchDynamo does not trace {call} with this argument, it {reason}: the graph breaks here"
    advice = "Pass what the function takes while it is traced."
    events = (Call, Operation)
    valid: ClassVar = (
        """
import collections
import itertools

import torch

@torch.compile
def f(x):
    last = collections.deque([1, 2], 2)
    pairs = list(itertools.product(last, repeat=2))
    assert len(pairs), "no pairs"
    return x * len(pairs) + getattr(x, "ndim", 1)

def example_inputs():
    return [(torch.ones(4),)]
""",
    )
    invalid: ClassVar = (
        """
import random

import torch

@torch.compile
def f(x):
    return x * random.uniform(0.9, 1.1) + x * (1 + random.randint(0, 1))

def example_inputs():
    return [(torch.ones(4),)]
""",
        """
import torch

@torch.compile
def f(x):
    parts = [x, x + 1]
    assert parts, "no parts"
    return torch.cat(parts)

def example_inputs():
    return [(torch.ones(4),)]
""",
        """
import random

import torch

@torch.compile
def f(x):
    y = x + 1
    numbers = random.Random(x=1)
    return y * 2

def example_inputs():
    return [(torch.ones(4),)]
""",
    )

    def concerns(self, callee: str, torch: TorchFacts) -> bool:
        return callee in DEMANDS and not callee.startswith(("torch.", "numpy."))

    def judge(self, event: Event, context: Context) -> Break | None:
        if isinstance(event, Operation):
            if event.name == "arithmetic":
                return _of_draw(event, context)
            return _form(event) or _with_option(event, context.mode.options)
        assert isinstance(event, Call)
        demand = refused_argument(event)
        if demand is None:
            return None
        call = event.callee.removeprefix("builtins.") + "()"
        return Break(demand.gb_id, fill={"call": call, "reason": demand.reason})


def _of_draw(event: Operation, context: Context) -> Break | None:
    """Arithmetic with a number that is drawn while the program runs, and no tensor: Dynamo has no variable for what it
    gives (torch 2.13). With scalars captured such a number is a symbol like others.
    """
    if context.mode.scalars or not drawn(event.value):
        return None
    fill = {"call": "arithmetic", "reason": "takes a number that is drawn with tensors only"}
    number = event.value
    advice = advice_on_draws(number.origin, context.torch)
    return Break("GB0213", number.origin, number.likely, fill=fill, effect="skips-frame", advice=advice)


def _form(event: Operation) -> Break | None:
    """Statements that are refused by what stands in them."""
    value = event.value
    if event.name == "asserted":
        return _asserted(value)
    if event.name == "assert" and not (isinstance(value, Static) and value.type == "str"):
        fill = {"call": "an assertion that fails", "reason": "takes a text as message"}
        return Break("GB0171", fill=fill)
    if event.name == "except":
        parts = value.items or () if isinstance(value, Container) else (value,)
        if any(isinstance(part, Const) for part in parts):
            fill = {"call": "an exception handler", "reason": "takes classes of exceptions"}
            return Break("GB0050" if isinstance(value, Const) else "GB0051", fill=fill)
    if event.name == "bind":
        fill = {"call": "a function", "reason": "takes arguments that fit the signature"}
        return Break("GB7312", fill=fill)
    if event.name in _NO_HANDLER:
        return Break("GB0082", fill={"call": f"`{_NO_HANDLER[event.name]}`", "reason": "has no model of that"})
    if event.name == "call of a special method":
        fill = {"call": "a method that sets or deletes", "reason": "takes objects of the program there, and no Tensor"}
        return Break("GB0131", fill=fill)
    if event.name == "subscript by a tensor":
        return Break("GB9137", fill={"call": "a type", "reason": "takes constants"})
    if event.name == "decorate" and isinstance(value, ExternalName) and value.name in _OUTSIDE_ONLY:
        fill = {"call": f"{value.name}", "reason": "takes functions from outside the compiled one"}
        return Break("GB0078", fill=fill)
    return None


def _asserted(value: Value) -> Break | None:
    """What an assertion asks for its truth becomes the operand of an operation, whatever it is."""
    asked = [option for option in options(value) if option is not NONE]
    refusals = [_no_operand(option) for option in asked]
    if not asked or None in refusals:
        return None
    fill = {"call": "an assertion", "reason": "takes tensors and constants"}
    return Break(refusals[0], likely=asked != [value], fill=fill, effect="skips-frame")


def _no_operand(value: Value) -> str | None:
    """The break of an operation on a value that is neither a tensor nor a constant; None where it may be one."""
    if isinstance(value, Instance):
        bases = {value.info.module.qualified(base) or "" for base in value.info.node.bases}
        return "GB0055" if not any(base.startswith(_CONSTANT_CLASSES) for base in bases) else None
    if isinstance(value, ExternalInstance):
        return "GB0055" if value.cls.startswith("torch.nn.") else None
    if isinstance(value, Function):
        return "GB0055" if isinstance(value.bound, Instance) else None
    if not isinstance(value, Container):
        return None
    parts = [*(value.items or ()), *(value.fields or {}).values(), *(() if value.of is None else (value.of,))]
    if value.kind == "modules":
        return "GB0055" if parts else None
    if any(_no_operand(part) for part in parts):
        return "GB0055"
    if not any(isinstance(part, Tensor) for part in parts):
        return None
    return "GB0055" if isinstance(value, Record) else "GB0112"


#: the beginnings of bases whose instances Dynamo takes for constants, or models otherwise
_CONSTANT_CLASSES = ("enum.", "builtins.", "collections.", "typing.NamedTuple")

#: parts of the language that Dynamo has no handler for, by operation (torch 2.13)
_NO_HANDLER = {
    "await": "await", "async with": "async with", "asynchronous yield": "yield in an async function",
    "except*": "except*", "del": "del of a name that other functions see",
}  # fmt: skip

#: decorators that are traced on functions from outside only
_OUTSIDE_ONLY = frozenset({"torch._dynamo.nonstrict_trace"})

#: options of Dynamo's own tests: the operation that they make break
_OPTIONS = {
    "leaf return": ("debug_force_graph_break_on_leaf_return", "GB0269"),
    "set display": ("inject_BUILD_SET_unimplemented_TESTING_ONLY", "GB0200"),
}


def _with_option(event: Operation, options: frozenset[str]) -> Break | None:
    option, gb_id = _OPTIONS.get(event.name, ("", ""))
    if option not in options:
        return None
    return Break(gb_id, fill={"call": f"a {event.name}", "reason": f"breaks with {option}"})
