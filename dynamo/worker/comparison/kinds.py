"""The kinds of differences. The list is closed: whoever reads a report may rely on it."""

from __future__ import annotations

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
    """One thing that differs: its kind, the run and the place, and what is there instead of what."""

    kind: str
    run: str
    place: str
    detail: str

    def line(self) -> str:
        return f"{self.run}: {self.place} {self.detail}" if self.place else f"{self.run}: {self.detail}"

    def data(self) -> dict[str, str]:
        where = f"{self.run}: {self.place}" if self.place else self.run
        return {"kind": self.kind, "where": where, "detail": self.detail}
