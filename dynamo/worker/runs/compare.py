"""The mended text beside the original: the same inputs and weights, each run eagerly and compiled, then what differs.

Two processes do it, one for each text. The first keeps what came of its runs in a file; the second makes the same
runs and compares. What the original does differently when compiled already is not the mend's doing and is left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch

from ..inputs import variants
from . import outcome
from .outcome import Outcome

TOLERANCE = {torch.float16: 1e-3, torch.bfloat16: 1e-2, torch.float32: 1e-5, torch.float64: 1e-9}
"""Compiled against eager; eager against eager must be equal to the bit."""

Runs = list[dict[str, Any]]


def file_for(folder: str, target: str) -> str:
    return os.path.join(folder, "".join(c if c.isalnum() else "_" for c in target) + ".pt")


def keep(folder: str, target: str, data: dict[str, Any]) -> None:
    torch.save(data, file_for(folder, target))


def kept(folder: str, target: str) -> dict[str, Any] | None:
    """What the first process kept; None where it did not get so far."""
    path = file_for(folder, target)
    return torch.load(path, weights_only=True) if os.path.exists(path) else None


def state(instance: Any) -> dict[str, Any]:
    """A copy of a module's tensors, except of those that get their shape in the first call."""
    if not isinstance(instance, torch.nn.Module):
        return {}
    tensors = {name: v for name, v in instance.state_dict().items() if isinstance(v, torch.Tensor)}
    return {name: v.detach().clone() for name, v in tensors.items() if not torch.nn.parameter.is_lazy(v)}


def restore(instance: Any, tensors: dict[str, Any]) -> None:
    if tensors:
        instance.load_state_dict(tensors, strict=False)


class Maker:
    """Makes the runs of one text. `arguments` and `call` come from the session."""

    def __init__(self, instance: Any, tensors: dict[str, Any], arguments: Callable[[Any], Any]) -> None:
        self.instance = instance
        self.tensors = tensors
        self.arguments = arguments

    def run(self, call: Callable[..., Any], run: Any, eager: bool) -> Outcome:
        restore(self.instance, self.tensors)
        outcome.forget_cached(lambda path: True)
        arguments = self.arguments(run)
        variants.seed(0)
        with variants.applied(self.instance, run.variant):
            if eager:
                with torch.compiler.set_stance("force_eager"):
                    return outcome.of_call(call, arguments, self.instance)
            return outcome.of_call(call, arguments, self.instance)


def differences(before: Runs, after: Runs, labels: list[str]) -> dict[str, Any]:
    """The comparison of all runs, as the report has it."""
    found = Differences()
    for label, old, new in zip(labels, before, after):  # noqa: B905
        found.add(label, "", old["eager"], new["eager"], exact=True)
        own = Differences()
        own.add(label, "compiled", old["eager"], old["compiled"], exact=False)
        mended = Differences()
        mended.add(label, "compiled", old["eager"], new["compiled"], exact=False)
        found.take(mended, own)
        found.silenced += [line for line in _lost(old, new) if line not in found.silenced]
    return {
        "runs": len(after),
        "differences": found.lines,
        "silenced": found.silenced,
        "gradients": found.gradients,
        "largest": found.largest,
    }


def _lost(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Lines that the original prints, eagerly and compiled, and the mended text does not print when compiled."""
    printed = new["compiled"]["text"].splitlines()
    own = old["compiled"]["text"].splitlines()
    return [line for line in old["eager"]["text"].splitlines() if line.strip() and line in own and line not in printed]


class Differences:
    """Collects what differs, a line each."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.silenced: list[str] = []
        self.gradients = 0
        self.largest = 0.0

    def take(self, other: Differences, except_: Differences) -> None:
        self.lines += [line for line in other.lines if line not in except_.lines]
        self.largest = max(self.largest, other.largest)

    def add(self, label: str, how: str, old: Outcome, new: Outcome, exact: bool) -> None:
        where = f"{label}{', ' + how if how else ''}"
        if old["raised"] != new["raised"]:
            self.lines.append(f"{where}: {_did(new)} where the original {_did(old)}")
            return
        if exact and old["text"] != new["text"]:
            self.lines.append(f"{where}: prints {_first_difference(old['text'], new['text'])}")
        if len(old["values"]) != len(new["values"]) or old["structure"] != new["structure"]:
            self.lines.append(f"{where}: another structure of results")
            return
        for number, (a, b) in enumerate(zip(old["values"], new["values"])):  # noqa: B905
            self._value(f"{where}: value {number}", a, b, exact)
        for name in old["gradients"]:
            self.gradients += exact
            self._value(f"{where}: gradient of {name}", old["gradients"][name], new["gradients"].get(name), exact)

    def _value(self, where: str, a: Any, b: Any, exact: bool) -> None:
        if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
            if type(a) is not type(b) or a != b:
                self.lines.append(f"{where} is {_short(b)} instead of {_short(a)}")
            return
        if a.shape != b.shape or a.dtype != b.dtype:
            self.lines.append(f"{where} is {b.dtype} {list(b.shape)} instead of {a.dtype} {list(a.shape)}")
            return
        largest = _distance(a, b)
        size = float(a[torch.isfinite(a)].abs().max()) if a.is_floating_point() and torch.isfinite(a).any() else 1.0
        allowed = 0.0 if exact else TOLERANCE.get(a.dtype, 0.0) * max(size, 1.0)
        self.largest = max(self.largest, largest)
        if not largest <= allowed:
            self.lines.append(f"{where} differs by up to {largest:.3g}")


def _distance(a: torch.Tensor, b: torch.Tensor) -> float:
    """The largest difference; infinite where one is NaN or infinite and the other is not."""
    if a.numel() == 0:
        return 0.0
    if a.is_complex():
        a, b = torch.view_as_real(a), torch.view_as_real(b)
    wide_a, wide_b = a.double(), b.double()
    same = (wide_a == wide_b) | (wide_a.isnan() & wide_b.isnan())
    gap = (wide_a - wide_b).abs().masked_fill(same, 0.0)
    return float(gap.nan_to_num(nan=float("inf")).max())


def _did(result: Outcome) -> str:
    return f"raises {result['raised']}" if result["raised"] else "returns"


def _short(value: Any) -> str:
    text = f"{value.dtype} {list(value.shape)}" if isinstance(value, torch.Tensor) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _first_difference(old: str, new: str) -> str:
    for a, b in zip([*old.splitlines(), ""], [*new.splitlines(), ""]):  # noqa: B905
        if a != b:
            return f"{_short(b)!r} instead of {_short(a)!r}"
    return "a different number of lines"
