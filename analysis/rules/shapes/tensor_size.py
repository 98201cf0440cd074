"""GM403: a size, bound or length that is a tensor."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Call, Event, Subscript
from graphmend.analysis.lattice.evidence import Evidence
from graphmend.analysis.lattice.values import Container, Tensor, Value, dtype_kind, is_known_input, tensor_in
from graphmend.analysis.rules.rule import Break, Context, Rule, break_at_draw, drawn, evidence
from graphmend.analysis.torch_facts import TorchFacts
from graphmend.analysis.torch_facts.number_arguments import NUMBER_ARGUMENTS
from graphmend.analysis.torch_facts.overloads import Returns

#: what hands its numbers to operators without a look, though it is written in Python
_FUNCTIONAL = frozenset({
    "torch.nn.functional.pad", "torch.nn.functional.interpolate", "torch.nn.functional.one_hot",
    "torch.nn.functional.unfold", "torch.nn.functional.release_trees",
})  # fmt: skip
#: their bounds take numbers of any kind, which the signatures of others say of what may be a tensor too
_RANGES = frozenset({"torch.arange", "torch.range"})
#: operators that take a tensor and read its numbers by themselves: the place of it
_READS = {
    "torch.tensor_split": (1, "tensor_indices_or_sections"),
    "torch.Tensor.tensor_split": (0, "tensor_indices_or_sections"),
    "torch.narrow": (2, "start"),
    "torch.Tensor.narrow": (1, "start"),
}
#: a parameter of that name takes a sequence of tensors
_SEQUENCES = frozenset({"tensors", "operands", "matrices"})


class TensorSize(Rule):
    """
    What it does:
        Finds tensors that stand for a size, or for another number that an operator takes: slice bounds, `arange(n)`,
        `zeros(n)`, `split(sizes)`, `tensor_split(places)`, `pad`, `view`, `roll(x, n)`, `topk(n)`, `chunk(n)`,
        `full_like(x, n)`, `add(x, y, alpha=n)`, `leaky_relu(x, n)`; and numbers that `random.randint` or
        `random.uniform` draws in their place.

    Why it breaks:
        The operator needs a number that does not exist while TorchDynamo traces. One that comes into the graph from
        outside is read by a guard (torch 2.13).

    Example:
        y = x[:lengths.max()]

    Use instead:
        y = x * (torch.arange(x.shape[0]) < lengths.max())

    Mends:
        compute with the tensor (`tensor_argument`), where the operator has such a form; else say the size as a Python
        int, or compile with capture_scalar_outputs

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM403"
    name = "tensor-size"
    message = "a size that is a Tensor is read as a Python number: the graph breaks here"
    advice = "Pass the size as a Python int, or keep the full shape and a mask."
    events = (Call, Subscript)
    valid: ClassVar = (
        """
import torch

@torch.compile
def f(x, n):
    k = x.shape[0] // 2
    return x[:k] + torch.zeros(k) + torch.arange(k)

def example_inputs():
    return [(torch.ones(4), torch.tensor(3))]
""",
        """
import torch

@torch.compile
def f(x, y):
    return torch.zeros(3, 3).index_put_((y, x.argmax(-1)), torch.ones_like(y, dtype=torch.float), accumulate=True)

def example_inputs():
    return [(torch.rand(3, 3), torch.tensor([0, 1, 2]))]
""",
        """
import torch

@torch.compile
def f(x):
    top = x.max()
    y = torch.stack([top, x.min()]) + torch.full((2,), top) + torch.add(top, top) + torch.linspace(0, top, 2)
    return y.clamp(max=top).masked_fill(y > top, top) + torch.roll(x, x.shape[0] - 1)[:2]

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
    n = random.randint(1, 2)
    return torch.full((2,), n) + torch.zeros(n).sum() + x.roll(n)[:2]

def example_inputs():
    return [(torch.ones(5),)]
""",
        """
import torch

@torch.compile
def f(x, n):
    return x[:n] + 1

def example_inputs():
    return [(torch.ones(5), torch.tensor(3))]
""",
        """
import torch

@torch.compile
def f(x):
    y = x * 2
    return torch.arange(y.max()) + 1

def example_inputs():
    return [(torch.tensor([1, 2]),)]
""",
        """
import torch

@torch.compile
def f(x):
    n = x.max()
    return torch.full((2, n), 0.5), torch.ones(4).roll(n), torch.ones(4).topk(k=n)

def example_inputs():
    return [(torch.tensor([1, 2]),)]
""",
        """
import torch

@torch.compile
def f(x, lengths):
    sizes = [lengths[i] - 1 for i in range(2)]
    return torch.split(x, sizes)

def example_inputs():
    return [(torch.ones(5), torch.tensor([3, 4]))]
""",
        """
import torch

@torch.compile
def f(x, cuts: torch.Tensor):
    return [part.sum() for part in x.tensor_split(cuts)]

def example_inputs():
    return [(torch.ones(5), torch.tensor([2, 4]))]
""",
    )

    def concerns(self, callee: str, torch: TorchFacts) -> bool:
        if callee in _READS or callee in NUMBER_ARGUMENTS or callee == "builtins.range":
            return True
        if callee.startswith("torch.nn."):
            return callee in _FUNCTIONAL
        if not callee.startswith("torch.") or callee.startswith("torch.autograd."):
            return False
        return callee in _RANGES or any(o.no_tensors and _gives_tensors(o.returns) for o in torch.overloads(callee))

    def judge(self, event: Event, context: Context) -> Break | None:
        if context.mode.scalars:
            return None
        if isinstance(event, Subscript):
            return _bounds(event, context.torch)
        assert isinstance(event, Call)
        if event.callee == "builtins.range":
            number = next(filter(drawn, event.arguments), None)
            return break_at_draw("GB4841", number, context.torch) if number is not None else None
        if event.callee in _READS and (found := _read(event.argument(*_READS[event.callee]))) is not None:
            return found
        given: list[tuple[int | str, Value]] = [*enumerate(event.arguments), *event.keywords.items()]
        for place, value in given:
            why = _computed(value) or _given_float(value)
            if why is not None and _reads_number(event, place, context.torch):
                return Break("GB0033", *why)
        return None


def _read(value: Value | None) -> Break | None:
    """The break of an operator that reads numbers of a tensor; those of an input without dimensions a guard reads."""
    why, tensor = (evidence(value), tensor_in(value)) if value is not None else (None, None)
    if why is None or tensor is None or (tensor.graph_input and tensor.rank == 0):
        return None
    return Break("GB0033", why[0], why[1] or (tensor.graph_input and tensor.rank is None), default_only=True)


def _gives_tensors(result: Returns) -> bool:
    """Whether a function computes one tensor or several: an operator, and none that asks for something."""
    return result.is_tensor or result.kind == "L" or (result.kind == "tuple" and all(map(_gives_tensors, result.items)))


def _reads_number(event: Call, place: int | str, torch: TorchFacts) -> bool:
    """Whether a tensor at one place of a call is read for its number."""
    if event.callee in _RANGES or place in NUMBER_ARGUMENTS.get(event.callee, ()):
        return True
    in_python = event.callee.startswith("torch.nn.") and event.callee not in _FUNCTIONAL
    return not in_python and _wants_number(event, place, torch)


def _wants_number(event: Call, place: int | str, torch: TorchFacts) -> bool:
    """Whether a call takes no tensor at one place, in any of the ways that it may be meant."""
    count, names = len(event.arguments), frozenset(event.keywords)
    ways = [o for o in torch.overloads(event.callee) if o.accepts(count, names, {place: False})]
    puts = event.callee.rpartition(".")[2].startswith("index_put")
    if any(o.parameter(place) in _SEQUENCES or (puts and o.parameter(place) == "indices") for o in ways):
        return False
    return bool(ways) and not any(o.accepts(count, names, {place: True}) for o in torch.overloads(event.callee))


def _computed(value: Value) -> tuple[Evidence | None, bool] | None:
    """The evidence for a tensor made inside the graph, or a number drawn there, in a value or a list of sizes."""
    if drawn(value):
        return value.origin, value.likely
    if isinstance(value, Container):
        wide = next((p for p in value.items or () if isinstance(p, Tensor) and p.rank), None)
        if wide is not None:  # a tensor with dimensions is no number, wherever it comes from
            return evidence(wide)
        parts = value.items or ((value.of,) if value.of is not None else ())
        return next((why for why in map(_computed, parts) if why is not None), None)
    tensor = tensor_in(value)
    if tensor is None or tensor.graph_input or tensor.constant:
        return None
    return evidence(value) if tensor.rank in (0, None) or _has_one_element(tensor) else None


def _given_float(value: Value) -> tuple[Evidence | None, bool] | None:
    """The evidence for a floating number that comes into the graph as a tensor: no guard reads it."""
    tensor = tensor_in(value)
    known = tensor is not None and tensor.graph_input and tensor.rank == 0 and dtype_kind(tensor.dtype) == "float"
    return evidence(value) if known else None


def _has_one_element(tensor: Tensor) -> bool:
    """Whether a tensor with dimensions can stand for a number."""
    return isinstance(tensor.shape, tuple) and all(size == 1 for size in tensor.shape)


def _bounds(event: Subscript, torch: TorchFacts) -> Break | None:
    parts = event.index.items if isinstance(event.index, Container) and event.index.kind == "tuple" else (event.index,)
    for part in parts or ():
        if isinstance(part, Container) and part.kind == "slice":
            bounds = map(tensor_in, part.items or ())
            tensor = next((t for t in bounds if t is not None and not is_known_input(t)), None)
            if tensor is not None:
                return Break("GB0124", tensor.origin, tensor.likely, default_only=True)
            for number in filter(drawn, part.items or ()):
                return break_at_draw("GB0124", number, torch, default_only=True)
    return None
