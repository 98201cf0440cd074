"""A mended text beside the original, as the worker compared them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple


class Difference(NamedTuple):
    """One thing that differs. `kind` is one of `dynamo.verdict.KINDS`; `where` names the run and the place.

    `bare` is the same line without anything that the checked code printed, raised, stored or named.
    """

    kind: str
    where: str
    detail: str
    bare: str = ""

    @property
    def line(self) -> str:
        return f"{self.where}: {self.detail}" if self.where else self.detail


@dataclass(frozen=True, slots=True)
class Comparison:
    """The mended text beside the original, on the same inputs and weights. Empty `differences` means equal.

    `silenced` holds printed or logged lines that the original shows and the mended text, compiled, does not. `found`
    is all of it by kinds; `dynamo.verdict` judges it.
    """

    runs: int
    differences: tuple[str, ...] = ()
    silenced: tuple[str, ...] = ()
    gradients: int = 0
    """How many gradients were compared."""
    largest: float = 0.0
    """The largest difference of a value or gradient; 0.0 means equal to the bit."""
    rounding: float = 0.0
    """The largest difference that rounding explains, relative to the value."""
    found: tuple[Difference, ...] = ()
    remarks: tuple[str, ...] = ()
    """What is told and not judged: the words of exceptions."""
    seconds: tuple[float, float] = (0.0, 0.0)
    """Processor time of all calls in eager mode, of the original and of the mended text."""

    @property
    def equal(self) -> bool:
        return not self.differences and not self.silenced


def read(data: Mapping[str, Any]) -> Comparison:
    """From the worker's JSON."""
    return Comparison(
        data["runs"],
        tuple(data["differences"]),
        tuple(data["silenced"]),
        data["gradients"],
        data["largest"],
        data["rounding"],
        tuple(Difference(d["kind"], d["where"], d["detail"], d["bare"]) for d in data["found"]),
        tuple(data["remarks"]),
        (data["seconds"][0], data["seconds"][1]),
    )
