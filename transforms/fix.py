"""What a rewrite answers: a `Fix` that may be applied, or a `Refusal` that says why not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from graphmend.analysis.syntax.span import Span

Applicability = Literal["safe", "unsafe", "display"]


class TextEdit(NamedTuple):
    """Replace the text of `span` (code-point columns) with `text`."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """One way to mend a finding.

    `safe`: same values, gradients, side effects and exceptions. `unsafe`: differs in the way that `reason` names.
    `display`: shown, never applied. `edits` does the work (libcst is imported then) and returns edits that do not
    overlap, in order of the text; it raises `Unmendable` where the edited definition would not parse.
    """

    rewrite: str
    title: str
    applicability: Applicability
    reason: str
    edits: Callable[[], tuple[TextEdit, ...]]
    silences: bool = False
    """Output of the program is lost while compiled."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a rewrite does not apply: the proof that is missing, in one sentence."""

    rewrite: str
    reason: str


class Unmendable(Exception):
    """An edit that was offered cannot be made after all; the message says why."""
