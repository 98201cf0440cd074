"""GM501: a feature of Python or its standard library that Dynamo does not trace."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Call, Define, Event
from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Container, Value, tensor_in
from graphmend.analysis.program.entities import Class, Function, Instance
from graphmend.analysis.rules.rule import PYTHON, Break, Context, Rule, evidence, may_refuse, refusal
from graphmend.analysis.torch_facts import TorchFacts

#: refused only for some arguments
_COPIES = {"copy.copy": "GB0208", "copy.deepcopy": "GB4198"}
_POWER = "builtins.pow"
#: read only where its second argument is given by its name
_GROUPBY = "itertools.groupby"
#: refused only for what is written in C, or not in sight
_SIGNATURE = "inspect.signature"


class PythonFeature(Rule):
    """
    What it does:
        Finds class statements, `exec`, copies of tensors and modules, introspection and other parts of Python that
        TorchDynamo does not trace.

    Why it breaks:
        TorchDynamo interprets Python's bytecode and models its builtins one by one; these have no model (torch 2.13).

    Example:
        y = copy.copy(x)

    Use instead:
        y = x.clone()

    Mends:
        `clone` for copies; constants and classes moved out of the function; `groupby`'s key by its name

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM501"
    name = "python-feature"
    message = "TorchDynamo does not trace {call}: the graph breaks here"
    advice = "Move it out of the compiled function."
    events = (Call, Define)
    valid: ClassVar = (
        """
import copy
import functools
import inspect
import itertools

import torch

@torch.compile
def f(x):
    sizes = copy.deepcopy([1, 2])
    double = functools.partial(torch.mul, 2)
    groups = [size for size, _ in itertools.groupby(sizes, key=lambda size: size * 2)]
    return double(x) + groups[0] + inspect.isfunction(f)

def example_inputs():
    return [(torch.ones(4),)]
""",
    )
    invalid: ClassVar = (
        """
import torch

@torch.compile
def f(x):
    class Scale:
        by = 2
    return x * Scale.by

def example_inputs():
    return [(torch.ones(4),)]
""",
        """
import copy

import torch

@torch.compile
def f(x):
    y = x * 2
    return copy.copy(y) + 1

def example_inputs():
    return [(torch.ones(4),)]
""",
        """
import itertools

import torch

@torch.compile
def f(x):
    for size, group in itertools.groupby([1, 1, 2], lambda size: size * 2):
        x = x * size + len(list(group))
    return x

def example_inputs():
    return [(torch.ones(4),)]
""",
    )

    def concerns(self, callee: str, torch: TorchFacts) -> bool:
        root = callee.partition(".")[0]
        if callee in _COPIES or callee in (_POWER, _GROUPBY):
            return True
        ours = root in PYTHON or (root == "builtins" and callee not in _JUDGED_ELSEWHERE)
        return ours and may_refuse(callee, torch)

    def judge(self, event: Event, context: Context) -> Break | None:
        if isinstance(event, Define):
            return Break("GB8977", fill={"call": "a class statement"})
        assert isinstance(event, Call)
        call = event.callee.removeprefix("builtins.") + "()"
        if event.callee == _POWER:
            why = next((found for a in event.arguments if (found := evidence(a)) is not None), None)
            return Break("GB0059", *why, fill={"call": "pow() of a Tensor"}) if why is not None else None
        if event.callee in _COPIES:
            what = _copied(event.arguments[0]) if event.arguments else None
            gb_id = _COPIES[event.callee] if what is not None else None
            if event.callee == "copy.deepcopy" and what is None:
                gb_id, what = context.torch.form("a deep copy of a container"), "anything"
            return Break(gb_id, fill={"call": f"{call} of {what}"}) if gb_id is not None else None
        if event.callee == _GROUPBY:
            by_position = len(event.arguments) > 1
            return Break("GB0134", fill={"call": f"{call} with its key by position"}) if by_position else None
        if event.callee == _SIGNATURE and event.arguments and isinstance(event.arguments[0], (Function, Class)):
            return None  # read by a model of its own
        gb_id = refusal(event, context)
        return (
            Break(gb_id, fill={"call": call}, default_only=context.torch.default_only(event.callee))
            if gb_id is not None
            else None
        )


_JUDGED_ELSEWHERE = frozenset(
    "builtins.print builtins.input builtins.breakpoint builtins.str builtins.repr builtins.range builtins.int "
    "builtins.float builtins.bool builtins.any builtins.all builtins.sorted builtins.max builtins.min "
    "builtins.complex builtins.ascii".split()
)


def _copied(value: Value) -> str | None:
    """What is copied, if Dynamo refuses to copy it."""
    if tensor_in(value) is not None:
        return "a Tensor"
    if isinstance(value, Instance) or (isinstance(value, ExternalInstance) and value.cls.startswith("torch.nn.")):
        return "a module" if isinstance(value, ExternalInstance) or not value.made_inside else None
    if (
        isinstance(value, Container)
        and value.kind in ("list", "tuple", "dict")
        and tensor_in(value.element) is not None
    ):
        return "Tensors"
    return None
