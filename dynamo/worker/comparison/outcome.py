"""What came of one call, as data that can be kept and compared: result, state, gradients, exception, output."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map_only

from ..inputs.examples import Arguments
from . import generators, reach, switches
from .output import captured
from .snapshot import Walk

Outcome = dict[str, Any]

MOST_COPIED = 1 << 28
"""Bytes of arguments that are copied, to see whether the call changed them."""


class Scene:
    """What surrounds a call: the module that is called, the file's variables, and what tensors of both held before."""

    def __init__(self, instance: Any, variables: Callable[[], Mapping[str, Any]], copies: dict[int, Any]) -> None:
        self.instance = instance
        self.variables = variables
        self.copies = copies

    def roots(self, arguments: Arguments) -> dict[str, Any]:
        own = {"self": self.instance} if isinstance(self.instance, torch.nn.Module) else {}
        return {**own, **self.variables(), **dict(_named(arguments))}


def _named(arguments: Arguments) -> Iterator[tuple[str, Any]]:
    for number, value in enumerate(arguments[0]):
        yield f"argument {number}", value
    for name, value in arguments[1].items():
        yield f"argument {name}", value


def of_call(call: Callable[..., Any], arguments: Arguments, scene: Scene, *, inputs_want: bool = False) -> Outcome:
    """Calls, looks at everything, then goes backwards through whatever of the result has a gradient.

    `inputs_want`: the floating-point arguments want gradients. They are no leaves then, and may be written.
    """
    wanting = _parameters(scene.instance)
    for _, leaf in wanting:
        leaf.grad = None
    if inputs_want:
        arguments, leaves = _wanting(arguments)
        wanting = wanting + leaves
    outcome: Outcome = {"raised": None, "message": "", "result": {}, "changed": {}, "gradients": {}}
    value: Any = None
    before, modes = Walk(scene.roots(arguments), scene.copies), switches.Kept()
    copies = {**scene.copies, **_copies(arguments)}
    with captured() as output:
        began = time.process_time()
        try:
            value = call(*arguments[0], **arguments[1])
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            outcome["raised"] = type(error).__name__
            outcome["message"] = reach.lasting(" ".join(str(error).split())[:200])
        outcome["seconds"] = time.process_time() - began
    outcome["random"], outcome["switches"] = generators.states(), switches.states()
    modes.restore()
    roots = scene.roots(arguments)
    after = Walk({**roots, "result": value}, copies, values=True, earlier=before)
    outcome["changed"] = after.changed(("self", "global ", "argument "))
    if outcome["raised"] is None:
        outcome["result"] = after.under("result")
        try:
            outcome["gradients"] = _gradients(after.tensors("result"), wanting)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            outcome["raised"] = f"{type(error).__name__} in the backward pass"
            outcome["message"] = reach.lasting(" ".join(str(error).split())[:200])
    outcome["text"], outcome["records"] = output.text, output.records
    for _, leaf in wanting:
        leaf.grad = None
    return outcome


def _copies(arguments: Arguments) -> dict[int, torch.Tensor]:
    """What the tensors of the arguments hold, modules' included, as far as there is room."""
    left, found = MOST_COPIED, {}
    for tensor in Walk(dict(_named(arguments)), {}).tensors(""):
        left -= tensor.numel() * tensor.element_size()
        if left > 0:
            found[id(tensor)] = tensor.detach().clone()
    return found


def _parameters(instance: Any) -> list[tuple[str, torch.Tensor]]:
    if not isinstance(instance, torch.nn.Module):
        return []
    return [(name, parameter) for name, parameter in instance.named_parameters() if parameter.requires_grad]


def _wanting(arguments: Arguments) -> tuple[Arguments, list[tuple[str, torch.Tensor]]]:
    """The arguments made from leaves that want gradients, and these leaves. One tensor twice stays one tensor."""
    made: dict[int, torch.Tensor] = {}
    leaves: list[tuple[str, torch.Tensor]] = []

    def replaced(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point() or not tensor.is_leaf or isinstance(tensor, torch.nn.Parameter):
            return tensor
        if id(tensor) not in made:
            leaf = tensor.detach().requires_grad_()
            leaves.append((f"input {len(leaves)}", leaf))
            made[id(tensor)] = leaf.clone()
        return made[id(tensor)]

    return tree_map_only(torch.Tensor, replaced, arguments), leaves


def has_inputs(arguments: Arguments) -> bool:
    """Whether any argument may want gradients."""
    tensors = [t for t in tree_flatten(arguments)[0] if isinstance(t, torch.Tensor)]
    return any(t.is_floating_point() and t.is_leaf and not isinstance(t, torch.nn.Parameter) for t in tensors)


def _gradients(results: list[torch.Tensor], wanting: list[tuple[str, torch.Tensor]]) -> dict[str, Any]:
    """Gradients of a weighted sum: a plain sum has none through a softmax."""
    outputs = [t for t in results if t.requires_grad and t.is_floating_point() and t.layout == torch.strided]
    if not outputs or not wanting:
        return {}
    total = sum((o.float() * torch.arange(o.numel(), device=o.device).cos().reshape(o.shape)).sum() for o in outputs)
    still = [leaf for _, leaf in wanting if leaf.requires_grad]  # the call may have frozen others
    found = torch.autograd.grad(total, still, allow_unused=True) if still else ()  # type: ignore[arg-type]
    kept = {id(leaf): g for leaf, g in zip(still, found)}  # noqa: B905
    gradients = {name: kept.get(id(leaf)) for name, leaf in wanting}
    return {n: None if g is None else g.detach().to_dense().to("cpu", copy=True) for n, g in gradients.items()}
