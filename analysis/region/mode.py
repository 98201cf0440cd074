"""The tracing mode: TorchDynamo's options that decide whether something breaks the graph."""

from __future__ import annotations

from typing import NamedTuple


class Mode(NamedTuple):
    """Which of TorchDynamo's options are on (torch 2.13)."""

    scalars: bool = False
    """`capture_scalar_outputs`: numbers taken out of tensors stay in the graph, as symbols."""
    shapes: bool = False
    """`capture_dynamic_output_shape_ops`: so do operations whose result has a shape that depends on values."""
    raises: bool = False
    """A break is an error: `fullgraph=True`, or `error_on_graph_break(True)`."""
    options: frozenset[str] = frozenset()
    """Other options of `torch._dynamo.config` that the program sets, those that it switches off as "no NAME"."""


DEFAULT = Mode()
#: `fullgraph=True` switches the capture flags on
FULLGRAPH = Mode(True, True, True)
