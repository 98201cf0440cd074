"""The base of rules: a rule has documentation, examples, the events that it subscribes to, and a judgement."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, NamedTuple, TypeGuard

from graphmend.analysis.finding import Effect
from graphmend.analysis.interpreter.events import Call, Event
from graphmend.analysis.lattice.evidence import Evidence
from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Choice, Container, Scalar, Static, Tensor, Value, options, tensor_in
from graphmend.analysis.program.definitions import ClassInfo
from graphmend.analysis.program.entities import Class, Function, Instance
from graphmend.analysis.region.mode import Mode
from graphmend.analysis.torch_facts import TorchFacts
from graphmend.analysis.torch_facts.options import may_refuse as may_refuse_with_options
from graphmend.analysis.torch_facts.options import refused_with, traced_with


class Context(NamedTuple):
    """What a rule may know besides the event: torch's tables and the tracing mode, in which a break may not happen."""

    torch: TorchFacts
    mode: Mode
    is_module: Callable[[Instance], bool]
    """Whether an instance is an nn.Module."""
    classes: Callable[[ClassInfo], Sequence[ClassInfo]]
    """A class and its bases with available source."""


class Break(NamedTuple):
    """A rule's answer that TorchDynamo breaks the graph at an event."""

    gb_id: str | None
    origin: Evidence | None = None
    """The evidence: why the value is a tensor. None where the callee alone decides."""
    likely: bool = False
    default_only: bool = False
    fill: Mapping[str, str] = {}
    """The values of the message's placeholders."""
    effect: Effect | None = None
    """The effect, where it does not follow from the enclosing statements."""
    advice: str = ""
    """What to do, where it is not the rule's `advice`."""


class Rule:
    """Base of all rules.

    `message` may hold placeholders that a `Break` fills. `valid` and `invalid` are whole modules with a compiled
    function and an `example_inputs()`; TorchDynamo itself judges them in the tests. A rule of `Call` events overrides
    `concerns`.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    message: ClassVar[str]
    advice: ClassVar[str] = ""
    events: ClassVar[tuple[type[Event], ...]]
    preview: ClassVar[bool] = False
    versions: ClassVar[str] = "2.13"
    valid: ClassVar[tuple[str, ...]] = ()
    invalid: ClassVar[tuple[str, ...]] = ()

    def concerns(self, callee: str, torch: TorchFacts) -> bool:
        """Whether the rule wants the calls of a qualified name. Asked once for each name."""
        return False

    def judge(self, event: Event, context: Context) -> Break | None:
        """A `Break` where TorchDynamo breaks the graph at the event; None where it does not, or nothing is known."""
        raise NotImplementedError


def evidence(value: Value) -> tuple[Evidence | None, bool] | None:
    """(why a value is a tensor, whether that is only likely); None where it is no tensor as far as known.

    A value that may also be something else than a tensor or None makes the finding likely.
    """
    tensor = tensor_in(value)
    if tensor is None:
        return None
    mixed = isinstance(value, Choice) and any(not isinstance(o, Tensor) for o in value.options if not _is_none(o))
    return tensor.origin, tensor.likely or mixed


def scalar_evidence(value: Value) -> tuple[Evidence | None, bool] | None:
    """As `evidence`, for a Python number that is a symbol of the graph."""
    for option in options(value):
        if isinstance(option, Scalar) and option.symbolic:
            return option.origin, option.likely or option is not value
    return None


def drawn(value: Value) -> TypeGuard[Scalar]:
    """Is a number drawn while the program runs, as `random.randint` does, so that it is a symbol of the graph?"""
    return isinstance(value, Scalar) and value.symbolic


_DRAWN = (
    "Draw the number outside of the compiled function and pass it in, or compute both ways and choose with torch.where."
)


def advice_on_draws(origin: Evidence | None, torch: TorchFacts) -> str:
    """What to do where what a rule judges comes from a random draw, which depends on no data; "" elsewhere."""
    first = origin.first.node if origin is not None else None
    if not isinstance(first, ast.Call):
        return ""
    name = ast.unparse(first.func)
    is_draw = name.startswith("random.") or (name.startswith("torch.") and torch.is_random(name))
    return _DRAWN if is_draw else ""


def break_at_draw(gb_id: str, number: Scalar, torch: TorchFacts, *, default_only: bool = False) -> Break:
    """The break where a number that is drawn must be known."""
    advice = advice_on_draws(number.origin, torch)
    return Break(gb_id, number.origin, number.likely, default_only, advice=advice)


def argument_kind(event: Call) -> str | None:
    """The kind of a call's first argument by which `TorchFacts.refusal` decides: "tensor", "module", "container",
    "class", "str", "alone"; "input" where the receiver is a tensor from outside the graph."""
    first = event.arguments[0] if event.arguments else None
    of_class = event.receiver is None and event.callee.startswith("torch.Tensor.")
    receiver = first if of_class else event.receiver
    if isinstance(receiver, Tensor) and receiver.graph_input:
        return "input"
    if first is None:
        return None
    tensor = tensor_in(first)
    if tensor is not None:
        return "tensor" if not (tensor.ndarray and tensor.constant) else None  # a number whose value Dynamo knows
    if isinstance(first, Instance) or (isinstance(first, ExternalInstance) and first.cls.startswith("torch.nn.")):
        return "module"
    if isinstance(first, Container) or (isinstance(first, Static) and first.type == "size"):
        return "container"
    if isinstance(first, (Class, Function)):
        return "class"
    if isinstance(first, Static) and first.type == "str":
        return "str"
    return "alone" if len(event.arguments) == 1 and not event.keywords else None


_KINDS = (None, "tensor", "module", "container", "class", "str", "alone", "input")


def may_refuse(callee: str, torch: TorchFacts) -> bool:
    """Whether Dynamo refuses an external call with some kind of argument."""
    return any(torch.refusal(callee, kind) is not None for kind in _KINDS) or may_refuse_with_options(callee)


def refusal(event: Call, context: Context) -> str | None:
    """The id of the break that an external call makes; None where Dynamo traces it, or nothing is known."""
    mode = context.mode
    if mode.options and (with_options := refused_with(mode.options, event.callee)) is not None:
        return with_options
    if context.torch.is_captured(event.callee, mode.scalars, mode.shapes) or traced_with(mode.options, event.callee):
        return None
    return context.torch.refusal(event.callee, argument_kind(event))


def _is_none(value: Value) -> bool:
    return getattr(value, "type", None) == "NoneType"


#: features of the language rather than of the world around the program: GM501
PYTHON = frozenset({
    "copy", "inspect", "importlib", "dataclasses", "functools", "types", "typing", "decimal", "fractions",
    "contextlib", "weakref", "operator", "itertools", "collections", "enum", "abc", "numbers", "statistics", "heapq",
    "bisect", "json", "re", "string", "textwrap", "struct", "asyncio", "contextvars", "ast", "traceback", "ctypes",
    "array",
})  # fmt: skip
