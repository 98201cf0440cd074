"""How a whole file is mended, until no mend is left that may be applied."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from graphmend.analysis.check import Result, check
from graphmend.analysis.syntax.source import Source
from graphmend.transforms.offers import Applied as Applied
from graphmend.transforms.offers import distinct
from graphmend.transforms.offers import mend as mend
from graphmend.transforms.rounds import Run, Wanted

if TYPE_CHECKING:
    from graphmend.analysis.finding import Finding
    from graphmend.analysis.program.project import Project
    from graphmend.analysis.settings import Settings
    from graphmend.transforms.fix import Difference, Fix
    from graphmend.transforms.state import State


class OtherFiles(Protocol):
    """Other files that may be mended along with one: a break in a helper may only be seen from its caller."""

    def source(self, path: str) -> Source | None:
        """The text as it is now, which is also the one that the project reads; None where it is to stay."""

    def replace(self, source: Source) -> None:
        """Takes a mended text. From now on the project reads it."""


@dataclass
class Mended:
    """A text after mending."""

    source: Source
    """The mended text; the one that came in where nothing was applied."""
    applied: list[Applied] = field(default_factory=list)
    """In this file and in others; `finding.path` says where."""
    left: list[tuple[Finding, str]] = field(default_factory=list)
    """Findings of the last round in this file that no permitted mend answers, and why."""
    gone: int = 0
    """How many of the findings that there were in this file are not there any more."""
    looked_at: str = ""
    """The text of the last round: those findings stand in it."""

    @property
    def changed(self) -> bool:
        return bool(self.applied)

    @property
    def mends(self) -> int:
        """How many mends were made: one may answer several findings."""
        return len(distinct(self.applied))


def mend_all(
    source: Source,
    project: Project | None = None,
    settings: Settings | None = None,
    *,
    unsafe: bool,
    prefer_runtime: bool = False,
    others: OtherFiles | None = None,
    wanted: Wanted | None = None,
    accept: Collection[str] = frozenset(),
    captures: bool = False,
    late: bool = False,
) -> Mended:
    """`source` with every permitted mend applied that removes a break: a fixed point, reached in a few rounds.

    Safe mends are made first, and none that stands in the way of an unsafe one: so the end is the same whether both
    are permitted at once or one after the other. A mend that silences output is permitted only with `unsafe`;
    with `prefer_runtime` it is not permitted at all, as there the runtime keeps every line. What a program prints is
    never silenced here. What is found in `others` is mended there. `wanted` says which findings of the file are to be
    mended, by default all. A mend whose differences are all of kinds in `accept` counts as safe. With `captures` a mend
    also stays where all that is left of its break is a size that nothing needs to know while tracing. With `late` the
    mended code gets into a program that may have made its objects before: how they are made stays.
    """
    result = Mended(source)
    if source.tree is None:
        return result

    run = Run(OneFile(source, project, settings, others, accept), wanted, captures=captures, late=late)
    found = run.state.findings(source.path)
    permitted = run.to_the_end(unsafe, prefer_runtime)
    kept = _kept(found, run.state.findings(source.path))
    result.gone = sum(finding.key not in kept for finding in found)
    result.source, result.applied = run.state.sources[source.path], run.applied
    result.left, result.looked_at = run.left(source.path, permitted), result.source.text
    return result


@dataclass(frozen=True)
class Outcome:
    """What mending a text would come to, for the findings in it by key."""

    safe: frozenset[str]
    """Those that safe mends remove."""
    unsafe: frozenset[str]
    """Those that only go when unsafe mends are made too."""
    narrowed: frozenset[str]
    """Those that safe mends make go for some values that are known while tracing, and that stay for others."""
    left: dict[str, str]
    """Those that stay, and why."""
    along: dict[tuple[str, str], tuple[Difference, ...]]
    """How mends differ that are made after another one, which is there for them: by that one's finding and title."""
    finally_by: dict[str, Fix]
    """The unsafe mend that removes what safe mends only wrote otherwise, by the finding as it was at first."""


def _kept(before: Sequence[Finding], after: Iterable[Finding], answered: Collection[str] = ()) -> dict[str, str]:
    """The findings that are still there, with those whose code a mend wrote otherwise (a test that has a name now
    breaks as it did): their keys, and those that they have now. Of findings that are alike the first one of those left
    is numbered as the first one of all was; those that mends have `answered` are gone before others are.
    """
    alike: dict[str, list[Finding]] = {}
    left: dict[str, list[Finding]] = {}
    for groups, findings in ((alike, before), (left, after)):
        for finding in findings:
            groups.setdefault(_unnumbered(finding.key), []).append(finding)
    keys: dict[str, str] = {}
    for key, group in alike.items():
        now = left.get(key, [])
        stay = sorted(group, key=lambda finding: finding.key in answered)[: len(now)]
        keys |= {f.key: new.key for f, new in zip((f for f in group if f in stay), now, strict=False)}
        left[key] = now[len(stay) :]
    gone = [finding for finding in before if finding.key not in keys]
    for new in (finding for findings in left.values() for finding in findings):
        same = next((g for g in gone if (g.code, g.function) == (new.code, new.function)), None)
        if same is not None:
            gone.remove(same)
            keys[same.key] = new.key
    return keys


def _unnumbered(key: str) -> str:
    base, _, number = key.rpartition("-")
    return base if base and number.isdigit() else key


def outcome(
    source: Source,
    project: Project | None = None,
    settings: Settings | None = None,
    *,
    wanted: Wanted | None = None,
    accept: Collection[str] = frozenset(),
) -> Outcome:
    """Mends a text as `mend_all` does, safe mends first, and says which findings go; the text stays as it is."""
    run = Run(OneFile(source, project, settings, None, accept), wanted)
    before = [finding.key for finding in run.state.findings(source.path)]
    still = {key: key for key in before}

    def follow(old: State, new: State) -> None:
        nonlocal still
        kept = _kept(old.findings(source.path), new.findings(source.path), run.answered(old.sources[source.path]))
        still = {key: kept[now] for key, now in still.items() if now in kept}

    run.when_kept = follow
    run.to_the_end(unsafe=False)
    narrowed = frozenset(one.finding.key for one in run.applied if one.fix.narrows)
    behind, safely = still, len(run.applied)
    permitted = run.to_the_end(unsafe=True)
    reasons = {finding.key: reason for finding, reason in run.left(source.path, permitted)}
    return Outcome(
        frozenset(key for key in before if key not in behind),
        frozenset(key for key in before if key in behind and key not in still),
        narrowed & behind.keys(),
        {key: reasons.get(still[key], "") for key in before if key in still},
        {
            (first.finding.key, first.fix.title): tuple(dict.fromkeys(d for one in behind for d in one.fix.differences))
            for first, behind in run.chains
        },
        _finally_by(behind, still, run.applied[safely:]),
    )


def _finally_by(behind: Mapping[str, str], still: Container[str], unsafe: Sequence[Applied]) -> dict[str, Fix]:
    """By which unsafe mend each finding goes that safe mends wrote otherwise and left, where one says so."""
    by = {one.finding.key: one.fix for one in unsafe}
    written_otherwise = ((key, now) for key, now in behind.items() if key != now and key not in still)
    return {key: by[now] for key, now in written_otherwise if now in by}


class OneFile:
    """A text that is checked alone, and others that may be mended along with it: the files of a `Run`."""

    def __init__(
        self,
        source: Source,
        project: Project | None = None,
        settings: Settings | None = None,
        others: OtherFiles | None = None,
        accept: Collection[str] = frozenset(),
    ) -> None:
        self.checked, self._accept = (source.path,), accept
        self._own, self._project, self._settings, self._others = source, project, settings, others
        self._is_stale = False

    def check(self, path: str) -> Result:
        if self._is_stale and self._project is not None:  # the module that was read holds on to the others as they were
            self._project.forget(path)
        self._is_stale = False
        return check(self._own, self._project, self._settings, recorded=True)

    def accepted(self, path: str) -> Collection[str]:
        return self._accept

    def source(self, path: str) -> Source | None:
        if path == self._own.path:
            return self._own
        return self._others.source(path) if self._others is not None else None

    def replace(self, source: Source) -> None:
        if source.path == self._own.path:
            self._own = source
        elif self._others is not None:
            self._others.replace(source)
            self._is_stale = True
