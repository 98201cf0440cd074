"""The static side of `graphmend verify`: a file's mended text, and its findings with TorchDynamo's verdict on each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.check import check
from graphmend.analysis.finding import Finding
from graphmend.analysis.syntax.source import Source
from graphmend.cli.failures import UsageError
from graphmend.cli.places import row
from graphmend.dynamo.merge import merge, same_file
from graphmend.dynamo.report import Report
from graphmend.workspace import files
from graphmend.workspace.analysed_file import AnalysedFile
from graphmend.workspace.config import Configurations
from graphmend.workspace.importers import MANY, all_importers

if TYPE_CHECKING:
    from graphmend.transforms.mend import Applied


class Judged(NamedTuple):
    """A finding; `state` is one of `dynamo.merge.State`, or `only TorchDynamo`: the analysis missed it."""

    finding: Finding
    state: str
    reason: str


class Mending(NamedTuple):
    """A file's mended text; how many mends it has in the targets, and how many more there are that are unsafe."""

    text: str
    made: int
    unsafe: int
    named: tuple[str, ...] = ()
    """The kinds of ways in which the mends say that the text differs."""
    applied: int = 0
    """How many mends it has anywhere."""


class Static(AnalysedFile):
    """One file on disk, seen by the analysis. Targets that are named count as compiled: that is how they are run."""

    def __init__(
        self, path: Path, configurations: Configurations, python: str | None, names: tuple[str, ...] = ()
    ) -> None:
        super().__init__(path, configurations.of_file(path), python, names)
        self.names, self._python, self._configurations = names, python, configurations
        try:
            self.read  # noqa: B018  # whoever asks for the text later need not expect that it cannot be read
        except files.FileProblem as problem:
            raise UsageError(f"{self.path}: {problem}") from None

    def mended(self, unsafe: bool, *, further: bool = True, callers: bool = True) -> Mending:
        """The text with every permitted mend applied, those that only `callers` ask for as well, as `check --fix` makes
        them; the text as it is where none applies. How many more unsafe ones there are takes as long again, and is left
        out where it is not asked for.
        """
        from graphmend.transforms.mend import mend_all

        accept = self.configuration["accept"]
        done = mend_all(self.source, self.project, self.settings, unsafe=unsafe, accept=accept)
        source, applied = done.source, done.applied
        if callers:
            source, applied = self._for_callers(source, applied, unsafe=unsafe)
        made = list(self._named(applied))
        kinds = tuple(dict.fromkeys(each.kind for one in applied for each in one.fix.differences))
        if unsafe or not further:
            return Mending(source.text, len(made), 0, kinds, len(applied))
        more = mend_all(source, self.project, self.settings, unsafe=True)
        left = self._for_callers(more.source, more.applied, unsafe=True)[1] if callers else more.applied
        return Mending(source.text, len(made), sum(1 for _ in self._named(left)), kinds, len(applied))

    def _for_callers(self, source: Source, applied: list[Applied], *, unsafe: bool) -> tuple[Source, list[Applied]]:
        """A mended text with the mends that the files ask for that import it."""
        from graphmend.cli.verifying.with_callers import mended_for

        texts = {source.path: source.text}
        callers = [
            AnalysedFile(path, self._configurations.of_file(path), self._python, texts=texts)
            for path in self._importing
        ]
        callers = [caller for caller in callers if self._finds_here(caller)]
        if not callers:
            return source, applied
        mended, more = mended_for(source, self, callers, texts, unsafe=unsafe)
        return mended, [*applied, *more]

    def _finds_here(self, caller: AnalysedFile) -> bool:
        """Whether the check of another file finds something in this one."""
        try:
            return any(same_file(path, self.source.path) for path in caller.look(caller.source).elsewhere)
        except files.FileProblem:
            return False

    @cached_property
    def _importing(self) -> list[Path]:
        found = all_importers([self.path], MANY)
        return found if len(found) <= MANY else []

    def _named(self, applied: list[Applied]) -> Iterator[Applied]:
        return (each for each in applied if each.finding.path == self.source.path and self._in_target(each.finding))

    def _in_target(self, finding: Finding) -> bool:
        """Whether a finding stands in a target that was named, or in what one calls; any does where none was named."""
        around = f"{finding.function}."
        inside = any(around.startswith(f"{name.partition('.')[0]}.") for name in self.names)
        return not self.names or inside or finding.function in self._called

    @cached_property
    def _called(self) -> frozenset[str]:
        """The functions with findings that are reached where the other modules of the file are not compiled."""
        alone = replace(self.settings, assume_compiled="never")
        return frozenset(found.function for found in check(self.source, self.project, alone).findings)

    def _findings(self) -> list[Finding]:
        """The findings in the file: of its own check, and of those of the files that import it, as `check` has them."""
        found = {(each.span, each.code): each for each in check(self.source, self.project, self.settings).findings}
        for path in self._importing:
            caller = AnalysedFile(path, self._configurations.of_file(path), self._python)
            try:
                elsewhere = caller.look(caller.source).elsewhere
            except files.FileProblem:
                continue
            here = (those for there, those in elsewhere.items() if same_file(there, self.source.path))
            for each in chain.from_iterable(here):
                known = found.get((each.span, each.code))
                if known is None or (known.region, each.region) == ("assumed", "compiled"):
                    found[each.span, each.code] = each
        return sorted(found.values(), key=lambda each: each.span)

    def judged(self, report: Report) -> list[Judged]:
        """Findings of the file in order of the text, those that only TorchDynamo saw included.

        Where targets were named, what they neither contain nor reach is left out.
        """
        findings = self._findings()
        merged = merge(self.source, findings, report, lambda number: row(str(self.path), number))
        judged = [Judged(f, v.state, v.reason) for f, v in zip(findings, merged.verdicts, strict=True)]
        judged = [each for each in judged if each.state != "not reached" or self._in_target(each.finding)]
        judged += [Judged(f, "only TorchDynamo", "the analysis did not foresee it") for f in merged.only_dynamo]
        return sorted(judged, key=lambda item: item.finding.span)
