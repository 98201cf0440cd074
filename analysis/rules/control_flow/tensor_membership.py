"""GM104: a comparison that goes through the elements of a container of tensors, or of a tensor."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Call, Contains, Event
from graphmend.analysis.lattice.values import Choice, Container, Tensor, Value, join_all, tensor_in
from graphmend.analysis.rules.rule import Break, Context, Rule, evidence
from graphmend.analysis.torch_facts import TorchFacts

_TRUTHS = frozenset({"builtins.any", "builtins.all"})
_ORDERING = frozenset({"builtins.sorted", "builtins.max", "builtins.min"})
_ASKING = frozenset(
    {"builtins.filter", "itertools.filterfalse", "itertools.takewhile", "itertools.dropwhile", "itertools.groupby"}
)


class TensorMembership(Rule):
    """
    What it does:
        Finds `value in tensor`, `tensor in [...]`, `==` and `.index()` on containers of tensors, `any()`, `all()` and
        `sorted()` over tensors, `filter()` and the like whose predicate answers with a tensor, and `max(..., key=...)`
        of tensors.

    Why it breaks:
        Python compares element by element and asks each answer for its truth, which is a branch on data.

    Example:
        if 0.0 in mask:
            x = x * mask

    Use instead:
        x = torch.where((mask == 0.0).any(), x * mask, x)

    Mends:
        `(tensor == value).any()`, `torch.isin`, `torch.stack(...).any()`

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM104"
    name = "tensor-membership"
    message = "{what} asks each Tensor for its truth: the graph breaks here"
    advice = "Compare with == and reduce with .any() or .all(); the answer stays a Tensor."
    events = (Contains, Call)
    valid: ClassVar = (
        """
import torch

@torch.compile
def f(x, k: str):
    return x + 1 if k in ("a", "b") and any(t is x for t in [x]) else sum([x, x])

def example_inputs():
    return [(torch.ones(4), "a")]
""",
    )
    invalid: ClassVar = (
        """
import torch

@torch.compile
def f(x, m):
    if 0.0 in m:
        x = x * m
    return x + 1

def example_inputs():
    return [(torch.ones(3), torch.ones(3))]
""",
        """
import torch

@torch.compile
def f(ts):
    return ts[0] + 1 if any(t.sum() > 0 for t in ts) else ts[0]

def example_inputs():
    return [([torch.ones(2), -torch.ones(2)],)]
""",
        """
import torch

@torch.compile
def f(ts):
    kept = list(filter(lambda t: t.sum() > 0, ts))
    return kept[0] + 1

def example_inputs():
    return [([torch.ones(2), -torch.ones(2)],)]
""",
    )

    def concerns(self, callee: str, torch: TorchFacts) -> bool:
        return callee in _TRUTHS or callee in _ORDERING or callee in _ASKING

    def judge(self, event: Event, context: Context) -> Break | None:
        if isinstance(event, Call):
            return _reduced(event)
        assert isinstance(event, Contains)
        if isinstance(event.container, Tensor):
            why = evidence(event.container)
            return Break("GB0124", *why, default_only=False, fill={"what": "`in`"}) if why is not None else None
        why = evidence(_of(event.container)) or (evidence(event.item) if _may_hold(event.container) else None)
        return (
            Break("GB0170", *why, fill={"what": "the comparison with the container's elements"})
            if why is not None
            else None
        )


def _of(value: Value) -> Value:
    """What a container holds, if it is one and holds anything."""
    if isinstance(value, Choice):
        value = next((o for o in value.options if isinstance(o, Container)), value)
    if isinstance(value, Container) and value.kind in ("list", "tuple", "set", "generator"):
        return value.element
    return Container("none")


def _may_hold(container: Value) -> bool:
    """Whether a tensor that is looked for in a container is compared with an element at all."""
    return isinstance(container, Container) and container.kind in ("list", "tuple") and container.items != ()


def _reduced(event: Call) -> Break | None:
    """`any(...)`, `sorted(...)`, `filter(...)` and the like over tensors."""
    if not event.arguments:
        return None
    name = event.callee.rpartition(".")[2]
    over = event.arguments[0]
    element = over.element if isinstance(over, Container) else over if isinstance(over, Tensor) else None
    if isinstance(over, Container) and over.kind == "dict":
        element = None  # what is iterated over are its keys
    key = event.answer
    if event.callee in _TRUTHS:
        asked, gb_id = element if element is not None and tensor_in(element) is not None else None, "GB0170"
    elif event.callee in _ASKING:
        asked, gb_id = key, "GB0170" if name != "groupby" else "GB0152"
    elif name == "sorted":
        asked, gb_id = key if key is not None else element, "GB0207"
    elif key is None:
        return None  # max() and min() of tensors become torch.maximum and torch.minimum
    else:
        compared = element if len(event.arguments) == 1 else join_all(event.arguments)
        asked, gb_id = key if tensor_in(key) is not None else compared, "GB0193"
    why = evidence(asked) if asked is not None else None
    return Break(gb_id, *why, fill={"what": f"{name}()"}) if why is not None else None
