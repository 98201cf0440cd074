"""The gates that look at a replaced text: the analysis once more, then TorchDynamo beside the original.

What they say is for the model, the assistant and every output: it holds nothing that the run code printed, raised,
stored or named, which may be a secret. Whoever wants to read that runs `graphmend verify`.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.check import Result
from graphmend.dynamo import mend_verdict
from graphmend.dynamo.verdict import KINDS, judge
from graphmend.model.gates.original import Original
from graphmend.model.gates.statements import own_statements
from graphmend.model.gates.text import Function, Unfit
from graphmend.model.subject import Extent
from graphmend.transforms.fix import DIFFERENCES, Difference, DifferenceKind

if TYPE_CHECKING:
    from graphmend.analysis.check import Result
    from graphmend.analysis.finding import Finding
    from graphmend.dynamo.comparison import Comparison
    from graphmend.dynamo.comparison import Difference as Seen
    from graphmend.dynamo.report import Report, TargetReport

_OTHERS: frozenset[DifferenceKind] = frozenset({"callers"})
"""What is named, and no reason to refuse."""
_SLOWER, _SLOWER_SECONDS = 5, 0.25
"""How much longer an answer may take in eager mode: so many times, or so many seconds over all runs."""


class Verified(NamedTuple):
    """What a check of a replacement showed."""

    differences: tuple[Difference, ...]
    """What differed, as far as it may: rounding, with its size."""
    runs: int
    breaks: tuple[int, int]
    """In how many places the graphs of the targets broke, before and after."""


class Rechecked(NamedTuple):
    """What the analysis finds in the replaced text."""

    gone: tuple[Finding, ...]
    new: tuple[Finding, ...]
    """For TorchDynamo to judge."""


def recheck(before: Result, wanted: Sequence[Finding], after: Result) -> Rechecked:
    """Raises `Unfit` where none of the wanted findings is gone."""
    if after.source.tree is None:
        raise Unfit("the file does not parse with the answer in it")
    known = {item.key for item in _all(before)}
    found = {item.key: item for item in _all(after)}
    gone = tuple(item for item in wanted if item.key not in found)
    if not gone:
        raise Unfit("GraphMend still finds the break in the answer")
    return Rechecked(gone, tuple(item for key, item in found.items() if key not in known))


def _all(result: Result) -> Iterator[Finding]:
    yield from result.findings
    for found in result.elsewhere.values():
        yield from found


def verified(
    report: Report, finding: Finding, doubtful: tuple[Finding, ...], where: Extent, lines: int, rounding: bool
) -> Verified:
    """What a check of both texts shows; raises `Unfit`.

    `doubtful` are findings that the analysis has of the replaced text alone, `where` the lines of the function in the
    original and `lines` how many the replacement has. With `rounding` numbers may differ by it, and that is named.
    """
    allowed = _OTHERS | ({"rounding"} if rounding else frozenset())
    after = report.after
    if report.problem is not None or after is None:
        raise Unfit(f"nothing could be run: {report.bare}")
    after = dataclasses.replace(after, named=tuple(allowed))
    report = dataclasses.replace(report, after=after)
    if after.problem is None:
        for target in after.targets:
            if target.comparison is not None:
                _equal(target.comparison, allowed)
    unverified = mend_verdict.why(report, finding)
    if unverified is not None:
        raise Unfit(unverified.bare)
    covering = [t for t in after.targets if t.comparison is not None]
    _traced(covering, finding.path, range(where.first, where.first + lines))
    for item in doubtful:
        if any(b.path == item.path and b.span.line == item.span.line for b in after.breaks):
            raise Unfit(f"the answer has a new break in its place: {item.message}")
    _quick(covering)
    again = sum(len(target.recompiles) for target in covering)
    if again > sum(len(target.recompiles) for target in report.targets):
        raise Unfit("the answer is compiled more often than the original")
    counts = len({*_places(report)}), len({*_places(after)})
    if counts[1] >= counts[0] > 0:
        raise Unfit("TorchDynamo breaks the graph in as many places as before: the break has moved to another file")
    runs = min(target.comparison.runs for target in covering if target.comparison is not None)
    return Verified(tuple(_named(covering, allowed)), runs, counts)


def _equal(comparison: Comparison, allowed: Collection[str]) -> None:
    unnamed = judge(comparison, allowed).unnamed
    if unnamed:
        kinds = tuple(dict.fromkeys(item.kind for item in unnamed))
        said = "; ".join(_kind(kind, comparison) for kind in kinds)
        raise Unfit(f"the answer behaves differently: {said}; first: {unnamed[0].bare}")


def _kind(kind: str, comparison: Comparison) -> str:
    """A kind of difference in our own words."""
    if kind == "value":
        return f"values differ, by up to {comparison.largest:.3g}"
    covered = sorted(word for word in KINDS.get(kind, ()) if word in DIFFERENCES)
    return f"{kind} ({DIFFERENCES[covered[0]]})" if covered else kind


def _quick(targets: list[TargetReport]) -> None:
    """Equal is not enough: what spins until the limit of a check would spin in training."""
    for target in targets:
        assert target.comparison is not None
        before, after = target.comparison.seconds
        if after - before > _SLOWER_SECONDS and after > _SLOWER * before:
            raise Unfit(f"the answer takes {after / max(before, 1e-3):.0f} times as long in eager mode")


def _traced(targets: list[TargetReport], path: str, lines: range) -> None:
    """A function that leaves the graph has no break, and nothing was won."""
    for target in targets:
        untraced = (target.executed[path] - target.traced[path]) & set(lines)
        if untraced:
            raise Unfit("TorchDynamo does not trace the whole answer")


def reached(report: Report, function: Function, original: Original, path: str, first: int) -> None:
    """Raises `Unfit` where the replacement has a statement of its own that no run came to: nobody knows what it does.

    The first line of the function's text is line `first` of the file.
    """
    after = report.after
    executed = {line for target in after.targets for line in target.executed[path]} if after is not None else set()
    if not executed:
        return
    for statement in own_statements(function, original):
        lines = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
        if not any(first + line - 1 in executed for line in lines):
            raise Unfit(f"no run came to `{ast.unparse(statement).splitlines()[0][:80]}`, which the original has not")


def _places(report: Report) -> Iterator[tuple[str, int]]:
    compared = {target.name for target in report.targets}
    return ((item.path, item.span.line) for t in report.targets if t.name in compared for item in t.breaks)


def _named(targets: list[TargetReport], allowed: Collection[str]) -> Iterator[Difference]:
    seen: dict[DifferenceKind, Seen] = {}
    for target in targets:
        assert target.comparison is not None
        for item in judge(target.comparison, allowed).named:
            seen.setdefault("rounding" if item.kind == "rounding" else "callers", item)
    for kind, item in seen.items():
        yield Difference(kind, f"{DIFFERENCES[kind]}: {item.bare}")
