"""The kinds of differences. The list is closed: whoever reads a report may rely on it."""

from __future__ import annotations

import re
from typing import NamedTuple

VALUE = "value"
ROUNDING = "rounding"
DTYPE = "dtype"
SHAPE = "shape"
STRIDES = "strides"
DEVICE = "device"
ALIASING = "aliasing"
REQUIRES_GRAD = "requires-grad"
GRADIENTS = "gradients"
ZERO_GRADIENTS = "zero-gradients"
STATE = "state"
ARGUMENT_STATE = "argument-state"
FLAGS = "flags"
RANDOM = "random"
EXCEPTION = "exception"
OUTPUT_TEXT = "output-text"
OUTPUT_ORDER = "output-order"
OTHER_INPUTS = "other-inputs"

KINDS = (
    VALUE,
    ROUNDING,
    DTYPE,
    SHAPE,
    STRIDES,
    DEVICE,
    ALIASING,
    REQUIRES_GRAD,
    GRADIENTS,
    ZERO_GRADIENTS,
    STATE,
    ARGUMENT_STATE,
    FLAGS,
    RANDOM,
    EXCEPTION,
    OUTPUT_TEXT,
    OUTPUT_ORDER,
    OTHER_INPUTS,
)


class Difference(NamedTuple):
    """One thing that differs: its kind, the run and the place, and what is there instead of what.

    `bare` is the detail without anything that the checked code printed, raised, stored or named: what it says may hold
    what nobody else is to read.
    """

    kind: str
    run: str
    place: str
    detail: str
    bare: str

    def line(self) -> str:
        return f"{self.run}: {self.place} {self.detail}" if self.place else f"{self.run}: {self.detail}"

    def data(self) -> dict[str, str]:
        where = f"{self.run}: {self.place}" if self.place else self.run
        bare = f"{self.run}: {_named(self.place)} {self.bare}" if self.place else f"{self.run}: {self.bare}"
        return {"kind": self.kind, "where": where, "detail": self.detail, "bare": bare}


def _named(place: str) -> str:
    """A place as far as the program's text names it: keys come about while it runs."""
    found = _NAMES.match(place)
    names = found[0] if found else ""
    return names if names == place else f"{names}[...]"


_NAMES = re.compile(r"[\w' ]+(?:\.[^\W\d]\w*|\[\d+\]|\.\d+)*")
