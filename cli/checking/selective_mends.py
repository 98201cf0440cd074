"""Mends only some of a file's findings: those that no comment, baseline or unchanged line keeps out.

`transforms.mend_all` mends whatever it finds. Here one mend is made at a time and the file checked again, so that
what is wanted is asked of every text in between.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from graphmend.analysis.check import Result, check
from graphmend.analysis.syntax.source import Source
from graphmend.transforms.code.text_edits import apply
from graphmend.transforms.fix import Fix, TextEdit, Unmendable
from graphmend.transforms.mend import Applied, Mended, mend

if TYPE_CHECKING:
    from graphmend.analysis.finding import Finding
    from graphmend.analysis.program.project import Project
    from graphmend.analysis.settings import Settings

#: mends of one file; more are not known to be needed, and a rewrite that never ends would be a bug
_MOST = 500

Wanted = Callable[[Result], Iterable["Finding"]]


def mend_wanted(source: Source, project: Project, settings: Settings, wanted: Wanted, *, unsafe: bool) -> Mended:
    """`source` with every permitted mend of a wanted finding applied."""
    mended = Mended(source)
    tried: set[tuple[str, str, str]] = set()
    for _ in range(_MOST):
        result = check(mended.source, project, settings)
        step = _next(result, wanted(result), tried, unsafe)
        if step is None:
            break
        applied, edits = step
        after = Source(apply(mended.source.text, edits, mended.source), source.path)
        if after.tree is None:
            break
        mended.source = after
        mended.applied.append(applied)
    return mended


def _next(
    result: Result, findings: Iterable[Finding], tried: set[tuple[str, str, str]], unsafe: bool
) -> tuple[Applied, tuple[TextEdit, ...]] | None:
    """The first mend that may be made and was not tried on the same statement before."""
    for finding in findings:
        facts = result.facts(finding)
        fix = next((answer for answer in mend(finding, facts) if _permitted(answer, unsafe)), None)
        if not isinstance(fix, Fix) or facts is None:
            continue
        mark = (finding.key, fix.rewrite, ast.dump(facts.statement))
        if mark in tried:
            continue
        tried.add(mark)
        try:
            return Applied(finding, fix, result.source.text), fix.edits()
        except Unmendable:
            continue
    return None


def _permitted(answer: object, unsafe: bool) -> bool:
    return isinstance(answer, Fix) and (answer.applicability == "safe" or (unsafe and answer.applicability == "unsafe"))
