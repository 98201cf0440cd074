"""How a whole file is mended, until no mend is left that may be applied."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graphmend.analysis.check import Result, check
from graphmend.analysis.syntax.source import Source
from graphmend.transforms.fix import Fix
from graphmend.transforms.offers import Applied as Applied
from graphmend.transforms.offers import mend as mend
from graphmend.transforms.rounds import OtherFiles as OtherFiles
from graphmend.transforms.rounds import Permitted, Run, Wanted

if TYPE_CHECKING:
    from graphmend.analysis.finding import Finding
    from graphmend.analysis.program.project import Project
    from graphmend.analysis.settings import Settings


@dataclass
class Mended:
    """A text after mending."""

    source: Source
    """The mended text; the one that came in where nothing was applied."""
    applied: list[Applied] = field(default_factory=list)
    """In this file and in others; `finding.path` says where."""
    left: list[tuple[Finding, str]] = field(default_factory=list)
    """Findings of the last round in this file that no permitted mend answers, and why."""
    looked_at: str = ""
    """The text of the last round: those findings stand in it."""

    @property
    def changed(self) -> bool:
        return bool(self.applied)

    @property
    def mends(self) -> int:
        """How many mends were made: one may answer several findings."""
        made: list[tuple[Fix, str]] = []
        for one in self.applied:
            if (one.fix, one.text) not in made:
                made.append((one.fix, one.text))
        return len(made)


def mend_all(
    source: Source,
    project: Project | None = None,
    settings: Settings | None = None,
    *,
    unsafe: bool,
    prefer_runtime: bool = False,
    others: OtherFiles | None = None,
    wanted: Wanted | None = None,
) -> Mended:
    """`source` with every permitted mend applied that removes a break: a fixed point, reached in a few rounds.

    Safe mends are made first, and none that stands in the way of an unsafe one: so the end is the same whether both
    are permitted at once or one after the other. A mend that silences output is permitted only with `unsafe`;
    with `prefer_runtime` it is not permitted at all, as there the runtime keeps every line. What a program prints is
    never silenced here. What is found in `others` is mended there. `wanted` says which findings of the file are to be
    mended, by default all.
    """
    result = Mended(source)
    if source.tree is None:
        return result

    def look(text: Source, changed: bool) -> Result:
        if changed and project is not None:  # what was read of the text's module holds on to the others as they were
            project.forget(text.path)
        return check(text, project, settings)

    run = Run(source, look, others, wanted)
    for allowed in (False, True) if unsafe else (False,):
        permitted = Permitted(allowed, prefer_runtime)
        while run.step(permitted):
            pass
    result.source, result.applied = run.state.own, run.applied
    result.left, result.looked_at = run.left(permitted), run.state.own.text
    return result
