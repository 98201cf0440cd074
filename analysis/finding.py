"""The result of the analysis: a `Finding` at a place in a file. Plain data: no editor, no protocol, no rewrite."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from graphmend.analysis.syntax.span import Span

RegionKind = Literal["compiled", "assumed"]
Certainty = Literal["certain", "likely"]
Effect = Literal["splits", "skips-frame", "recompiles", "raises"]


class Related(NamedTuple):
    """Another place that belongs to a finding: a caller, or the compile site."""

    path: str
    span: Span
    message: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One place where TorchDynamo will break the graph (or a GM0 remark on GraphMend's own comments).

    `span` begins in the statement that breaks. `key` names the finding through edits elsewhere: code, function,
    normalised text and an ordinal among equals; it is opaque to everyone else. `evidence` runs from the parameter,
    annotation or torch call that makes the value a tensor down to the place itself.
    """

    code: str
    name: str
    message: str
    path: str
    span: Span
    function: str
    region: RegionKind
    certainty: Certainty
    effect: Effect
    evidence: tuple[str, ...]
    advice: str = ""
    gb_id: str | None = None
    default_flags_only: bool = False
    related: tuple[Related, ...] = ()
    key: str = ""
    facts: dict[str, str] = field(default_factory=dict, hash=False, compare=False)
