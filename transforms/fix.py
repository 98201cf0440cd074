"""What a rewrite answers: a `Fix` that may be applied, or a `Refusal` that says why not."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeVar

from graphmend.analysis.syntax.span import Span

Applicability = Literal["safe", "unsafe", "display"]

#: the applicabilities, the one that promises most first
RANK: dict[Applicability, int] = {"safe": 0, "unsafe": 1, "display": 2}

#: in which way a mended program may differ from the original; `DIFFERENCES` says what each means
DifferenceKind = Literal[
    "rounding",
    "overflow",
    "nan",
    "dtype",
    "shape",
    "strides",
    "aliasing",
    "type",
    "exception",
    "gradients",
    "zero-gradients",
    "evaluation",
    "random",
    "output",
    "output-order",
    "state",
    "specialised",
    "private",
    "callers",
]

DIFFERENCES: dict[DifferenceKind, str] = {
    "rounding": "numbers are computed in another order or precision, so that their last digits may differ",
    "overflow": "a number beyond the range of its dtype, which Python's have not, wraps around or becomes infinite",
    "nan": "where a NaN is compared or sorted, the result may be another one",
    "dtype": "a tensor may have another dtype, which what takes it may refuse",
    "shape": "a tensor may have another shape",
    "strides": "a tensor may have another memory layout",
    "aliasing": "a tensor that was another one, or shared its memory, is a copy, or the other way round",
    "type": "a value is a tensor where it was a Python number, or the other way round, and is written as one",
    "exception": "an exception, or a warning of torch, may come, not come, be another one, or come at another time",
    "gradients": "gradients, or whether a result has any, may differ",
    "zero-gradients": "a gradient that was None is zero",
    "evaluation": "code runs that did not run, or does not run any more; nothing but time tells",
    "random": "other random numbers are drawn, or of another generator",
    "output": "what is printed, logged or warned of may differ",
    "output-order": "what is printed, logged or warned of may come in another order",
    "state": "an attribute, a name or another object that lives on may have another value",
    "specialised": "what is compiled holds for the values seen while compiling alone",
    "private": "it relies on what torch does not publish",
    "callers": "it holds for the calls and classes in sight; another call, or an override, may be answered otherwise",
}


class TextEdit(NamedTuple):
    """Replace the text of `span` (code-point columns) with `text`."""

    span: Span
    text: str


class Difference(NamedTuple):
    """One way in which a mended program may differ, as a kind that programs can decide by and a sentence for people."""

    kind: DifferenceKind
    says: str


@dataclass(frozen=True, slots=True)
class Fix:
    """One way to mend a finding.

    `safe`: same values, gradients, side effects and exceptions. `unsafe`: differs in the ways that `differences` name.
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
    differences: tuple[Difference, ...] = ()
    """How the mended program may differ; none for a safe fix."""
    narrows: bool = False
    """The break goes for some values that are known while tracing, and stays for others."""
    leaves_size: bool = False
    """What is left of the break is a size that nothing needs to know while tracing: none where sizes are captured."""
    prepares: bool = False
    """It only gives code the form that other mends are about, and is made along with them or not at all."""
    computes_more: bool = False
    """More is computed than where a program keeps sizes that tensors decide in its graphs."""
    redraws: bool = False
    """Compiled code draws the random numbers of plain Python, where it drew others before."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a rewrite does not apply: the proof that is missing, in one sentence."""

    rewrite: str
    reason: str


class Unmendable(Exception):
    """An edit that was offered cannot be made after all; the message says why."""


class Ranked(Protocol):
    """What is safe, unsafe or only shown, and why."""

    @property
    def applicability(self) -> Applicability: ...

    @property
    def reason(self) -> str: ...


_R = TypeVar("_R", bound=Ranked)


def offered_by_both(one: Iterable[_R], other: Iterable[_R], name: Callable[[_R], Hashable]) -> list[tuple[_R, _R]]:
    """The mends of one place that two checks of it offer, each as both word it: first the one that promises less."""
    there = {name(mend): mend for mend in other}
    pairs = ((mend, there[name(mend)]) for mend in one if name(mend) in there)
    return [(a, b) if RANK[a.applicability] >= RANK[b.applicability] else (b, a) for a, b in pairs]


def joined_reason(weaker: Ranked, stronger: Ranked) -> str:
    """Why a mend is no safer than `weaker`, which `stronger` may add to."""
    if weaker.applicability != stronger.applicability or weaker.applicability == "safe":
        return weaker.reason
    return "; ".join(dict.fromkeys((*weaker.reason.split("; "), *stronger.reason.split("; "))))
