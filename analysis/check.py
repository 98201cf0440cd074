"""The pure check: a source in, findings out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graphmend.analysis.finding import Finding
from graphmend.analysis.settings import Settings

if TYPE_CHECKING:
    from graphmend.analysis.facts import FunctionFacts
    from graphmend.analysis.project import Project
    from graphmend.analysis.source import Source


@dataclass
class Result:
    """The findings of one file, in the order of its text, and what a rewrite may ask about each."""

    source: Source
    findings: tuple[Finding, ...] = ()
    settings: Settings = field(default_factory=Settings)

    def facts(self, finding: Finding) -> FunctionFacts:
        """What the walk knows about the function that `finding` stands in. Walks that function again."""
        raise NotImplementedError


def check(source: Source, project: Project | None = None, settings: Settings | None = None) -> Result:
    """Findings of one file. A text that does not parse has none; `source.problem` says why.

    `project` gives the facts of other modules; without one, each import from outside torch and the standard library is unknown.
    """
    return Result(source, (), settings or Settings())
