"""GM507: an operation on an object that Dynamo models only in part."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from graphmend.analysis.interpreter.events import Event, Operation, SetAttribute
from graphmend.analysis.lattice.external import ExternalInstance, ExternalName, IdNumber, ManagedContext
from graphmend.analysis.lattice.values import UNKNOWN, Container, Static, Tensor, Value, tensor_in
from graphmend.analysis.program.entities import Class, Function, Instance, Method
from graphmend.analysis.rules.arguments import reads_tensor
from graphmend.analysis.rules.rule import Break, Context, Rule
from graphmend.analysis.torch_facts.objects import ID, ITERATOR, LOCAL_FUNCTION, METHOD, UNTRACED, UNTRACED_ATTRIBUTES

_EXCEPTION = re.compile(r"builtins\.\w*(?:Error|Exception|Warning|Interrupt|Exit|Iteration)")
_OF_EXCEPTIONS = frozenset({"__cause__", "__context__", "__traceback__", "__suppress_context__"})

_DONE = {
    "iterate": "iterating over", "subscript": "indexing", "store": "writing an element of", "contains": "a look into",
    "return": "returning", "set": "setting an attribute of", "delete": "deleting an attribute of",
    "hash": "the hash of", "load": "reading", "call": "a call of",
    "neg": "the sign of", "pos": "the sign of", "bool": "the truth value of",
    "subscript behind a change": "indexing, behind a change of a dictionary,",
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
        form = _form(event)
        if form is not None and (gb_id := context.torch.form(form)) is not None:
            return Break(gb_id, fill={"done": f"in torch {context.torch.minor}", "object": form})
        if isinstance(event, SetAttribute):
            value, operation = event.owner, "set"
            gb_id = _set(event)
            if gb_id is not None:
                return Break(gb_id, fill={"done": f"`.{event.name} = ...` of", "object": "an object"})
        else:
            assert isinstance(event, Operation)
            value, operation = event.value, event.name
            if operation == "__dict__":
                return _dictionary(value)
            if operation == "exported" and "export" in context.mode.options:
                parts = value.items or () if isinstance(value, Container) else (value,)
                is_function = any(isinstance(part, Function) and part.info.name != "<lambda>" for part in parts)
                is_closure = isinstance(value, Function)
                fill = {"done": "returning", "object": "a function from a program that is exported"}
                return Break("GB0092", fill=fill) if is_function or is_closure else None
        table, name = _known(value)
        gb_id = table.get(operation)
        if gb_id is None:
            return None
        shown = _DONE.get(operation, f"`{operation}` of")
        likely = isinstance(value, Tensor) and (value.likely or operation == ".grad_fn")
        origin = value.origin if isinstance(value, Tensor) else None
        return Break(gb_id, origin, likely, fill={"done": shown, "object": name.removeprefix("builtins.")})


def _form(event: Event) -> str | None:
    """The name of what some versions of torch trace and others do not, where an event is that."""
    if isinstance(event, SetAttribute):
        return "an attribute set on a class" if isinstance(event.owner, Class) else None
    assert isinstance(event, Operation)
    value, operation = event.value, event.name
    if isinstance(value, Tensor):
        return {"== None": "a tensor == None", "list.remove": "a tensor in list.remove"}.get(operation)
    if isinstance(value, Method) and value.name == "__dict__" and operation == "len":
        return "the length of a __dict__"
    if isinstance(value, ExternalName) and value.name == "sys.version_info" and operation == ">":
        return "sys.version_info > a tuple"
    return None


def _dictionary(value: Value) -> Break | None:
    """An object's `__dict__` that was replaced."""
    if not isinstance(value, Container) or value.kind != "dict":
        return None
    fill = {"done": "reading", "object": "a `__dict__` with keys that are no texts"}
    if any(not isinstance(key, str) for key in value.fields or {}):
        return Break("GB7637", fill=fill)
    is_keyed_by_others = not value.fields and value.of is not None and value.of is not UNKNOWN
    return Break("GB5849", fill=fill) if is_keyed_by_others else None


def _known(value: Value) -> tuple[Mapping[str, str], str]:
    """What is known of the class of a value, and how the value is called."""
    if isinstance(value, IdNumber):
        return ID, "the id of a Tensor that the graph computes"
    if isinstance(value, Method):
        return (METHOD if isinstance(value.receiver, Tensor) else {}), "a Tensor's method"
    if isinstance(value, Function):
        return (LOCAL_FUNCTION if reads_tensor(value) else {}), "a function that reads a Tensor around it"
    if isinstance(value, Container) and value.kind == "set":
        return ({"load": "GB0222"} if tensor_in(value.element) is not None else {}), "a set of Tensors"
    if isinstance(value, ManagedContext):
        return {"return": "GB2533"}, "a context manager that was not entered"
    if isinstance(value, Container):
        return (ITERATOR if value.kind == "generator" else {}), "an iterator"
    if isinstance(value, Tensor):
        kind = "ndarray" if value.ndarray else "tensor"
        attributes = {f".{name}": gb_id for name, gb_id in UNTRACED_ATTRIBUTES[kind].items()}
        return attributes, "an array" if value.ndarray else "a Tensor"
    if isinstance(value, Static):
        return ({"call": "GB0147"} if value.type == "size" else {}), "a size"
    name = _class(value)
    return UNTRACED.get(name, {}), name


def _set(event: SetAttribute) -> str | None:
    """The break of an attribute that is set, where its name decides."""
    if event.name == "__class__" and isinstance(event.owner, Instance):
        return "GB4271"
    of_exception = isinstance(event.owner, ExternalInstance) and _EXCEPTION.fullmatch(event.owner.cls) is not None
    return "GB0135" if of_exception and event.name not in _OF_EXCEPTIONS else None


def _class(value: Value) -> str:
    """The qualified name of the class without source that an object is of, or that its own class derives from."""
    if isinstance(value, ExternalInstance):
        return value.cls
    if isinstance(value, Instance):
        info = value.info
        names = (info.module.qualified(base) or "" for base in info.node.bases)
        return next((name for name in names if name in UNTRACED), "")
    return ""
