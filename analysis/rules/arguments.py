"""Whether the arguments of a call are those that TorchDynamo refuses (`torch_facts/arguments.py`)."""

from __future__ import annotations

import ast
from collections.abc import Callable

from graphmend.analysis.interpreter.events import Call
from graphmend.analysis.lattice.external import ExternalInstance, ExternalName, Intrinsic, WrittenText
from graphmend.analysis.lattice.values import Const, Container, MarkedTensor, Static, Tensor, Value, tensor_in
from graphmend.analysis.program.entities import Class, Function, Instance, Method
from graphmend.analysis.syntax.traversal import walk
from graphmend.analysis.torch_facts.arguments import DEMANDS, DEVICES, Demand

_TYPES = {"int": "number", "float": "number", "bool": "number", "complex": "number", "str": "text", "NoneType": "none"}
#: methods by which a plain object takes part in operations of torch
_TAKES_PART = frozenset({"__torch_function__", "__torch_dispatch__", "__array__", "__index__", "__float__", "__int__"})


def refused_argument(event: Call) -> Demand | None:
    """The demand that the arguments of a call don't meet; None where they do, or too little is known of them."""
    demands = DEMANDS.get(event.callee)
    if demands is None or not isinstance(event.node, ast.Call) or _spreads(event.node):
        return None
    return next((demand for demand in demands if _refuses(demand, event)), None)


def _spreads(node: ast.Call) -> bool:
    """Whether a call has arguments that its text does not show."""
    return any(isinstance(a, ast.Starred) for a in node.args) or any(
        k.arg is None and not isinstance(k.value, ast.Dict) for k in node.keywords
    )


def _refuses(demand: Demand, event: Call) -> bool:
    if demand.which == "keywords":
        return bool(event.keywords.keys() - set(demand.words))
    if demand.which == "positional":
        (limit,) = demand.words
        count, bound = len(event.arguments), int(limit[1:])
        return (count > bound) if limit[0] == ">" else (count < bound and not event.keywords)
    position, _, name = demand.which.partition(" ")
    value = event.keywords.get(name or position)
    if position.isdecimal() and int(position) < len(event.arguments):
        value = event.arguments[int(position)]
    if value is None:
        return "missing" in demand.words
    if demand.words[0] == "not":
        return _is_another(value, demand.words[1:])
    if "partial-first" in demand.words:
        value = event.arguments[0]
    return any(_holds(word, value) for word in demand.words)


def _is_another(value: Value, known: tuple[str, ...]) -> bool:
    """Whether a value is of a known kind that is not among those."""
    kind = kind_of(value)
    return kind is not None and kind not in known


def _holds(word: str, value: Value) -> bool:
    special = _SPECIAL.get(word)
    if special is not None:
        return special(value)
    if word.startswith("of-"):
        items = value.items if isinstance(value, Container) else None
        return items is not None and any(_holds(word[3:], item) for item in items)
    return kind_of(value) == word


def kind_of(value: Value) -> str | None:
    """The kind of a value in a word; None where it is not known for certain."""
    if isinstance(value, Tensor):
        return "ndarray" if value.ndarray else "tensor" if not value.likely else None
    if isinstance(value, Static):
        return _TYPES.get(value.type or "")
    if isinstance(value, Container):
        return value.kind if value.kind in ("list", "tuple", "dict", "set") else None
    if isinstance(value, Instance):
        return "object" if is_plain(value) else None
    if isinstance(value, Function):
        return "function"
    return "partial" if isinstance(value, Intrinsic) and value.name == "functools.partial" else None


def is_plain(value: Instance) -> bool:
    """Whether an object's class has no bases, and no method by which it stands for a tensor or a number."""
    info = value.info
    return not info.node.bases and not info.node.decorator_list and not _TAKES_PART & info.methods.keys()


def reads_tensor(value: Value) -> bool:
    """Whether a function reads a tensor of the function around it."""
    if not isinstance(value, Function) or not value.closure:
        return False
    body = value.info.node.body
    nodes = [body] if isinstance(body, ast.expr) else body
    found = [n for part in nodes for n in walk(part) if isinstance(n, ast.Name)]
    own = {p.arg for p in value.info.parameters} | {n.id for n in found if isinstance(n.ctx, ast.Store)}
    names = {n.id for n in found} - own
    return any(tensor_in(value.closure[name]) is not None for name in names if name in value.closure)


#: what strict mode, in which hooks are traced, refuses of a tensor (torch 2.13)
_LAYOUT = frozenset({"layout", "is_neg", "is_conj", "is_pinned"})
_STRIDES = frozenset({"stride", "storage_offset", "is_contiguous"})


def _asks(value: Value, names: frozenset[str]) -> bool:
    """Whether a function reads one of these attributes of its first argument."""
    if not isinstance(value, Function) or not value.info.parameters:
        return False
    body = value.info.node.body
    first = value.info.parameters[0].arg
    return any(
        isinstance(n, ast.Attribute) and n.attr in names and isinstance(n.value, ast.Name) and n.value.id == first
        for part in ([body] if isinstance(body, ast.expr) else body)
        for n in walk(part)
    )


def _is_empty(value: Value) -> bool:
    """Whether a tensor has no elements along its first dimension."""
    shape = value.shape if isinstance(value, Tensor) else None
    return isinstance(shape, tuple) and bool(shape) and shape[0] == 0 and all(isinstance(n, int) for n in shape)


_SPECIAL: dict[str, Callable[[Value], bool]] = {
    "given": lambda value: True,
    "no-device": lambda value: isinstance(value, Const)
    and isinstance(value.value, str)
    and value.value.partition(":")[0] not in DEVICES,
    "missing": lambda value: False,
    "true": lambda value: isinstance(value, Const) and value.value is True,
    "empty": lambda value: isinstance(value, Container) and value.kind in ("list", "tuple") and value.items == (),
    "written": lambda value: isinstance(value, WrittenText),
    "partial-first": lambda value: isinstance(value, Intrinsic) and value.name == "functools.partial",
    "partial-of-tensor": lambda value: isinstance(value, Intrinsic) and any(
        tensor_in(v) is not None for v in value.holds
    ),
    "global-function": lambda value: isinstance(value, Function) and not value.closure and value.bound is None,
    "reads-tensor": reads_tensor,
    "reads-layout": lambda value: _asks(value, _LAYOUT),
    "reads-strides": lambda value: _asks(value, _STRIDES),
    "empty-tensor": _is_empty,
    "strided-tensor": lambda value: isinstance(value, MarkedTensor) and value.mark("strided") is not None,
    "external-function": lambda value: isinstance(value, ExternalName) and value.name.startswith("torch."),
    "tensor-method": lambda value: isinstance(value, Method) and isinstance(value.receiver, Tensor),
    "the-class-Tensor": lambda value: isinstance(value, ExternalName) and value.name == "torch.Tensor",
    "class": lambda value: isinstance(value, (Class, ExternalName)),
    "external-object": lambda value: isinstance(value, ExternalInstance),
}  # fmt: skip
