"""Regions and roots: why functions are traced, and where that starts."""

from __future__ import annotations

import ast
from typing import Literal, NamedTuple

from graphmend.analysis.lattice.values import Value
from graphmend.analysis.program.entities import Function
from graphmend.analysis.region.mode import DEFAULT, Mode
from graphmend.analysis.syntax.span import Span


class Region(NamedTuple):
    """Why functions are traced (a compile site, or an assumption), and in which mode."""

    kind: Literal["compiled", "assumed"]
    evidence: str | None
    site: tuple[str, Span] | None
    mode: Mode = DEFAULT
    alone: bool = False
    """Whether it counts for a function only where no other region reaches that."""


class Root(NamedTuple):
    """A function at which tracing starts, with its arguments where they are known."""

    function: Function
    region: Region
    example_arguments: tuple[Value, ...] | None = None


def shortened(node: ast.expr) -> str:
    """The text of an expression, on one line of evidence."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else text[:57] + "..."
