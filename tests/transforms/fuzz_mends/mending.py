"""Asks GraphMend for the mends of a text, through the doors that stay."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any

from graphmend.transforms.fix import Fix, Unmendable
from graphmend.transforms.mend import mend, mend_all


def _source() -> Any:
    """The class of a text, wherever its module stands."""
    for name in ("graphmend.analysis.source", "graphmend.analysis.syntax.source"):
        try:
            return importlib.import_module(name).Source
        except ModuleNotFoundError:
            continue
    raise ModuleNotFoundError("graphmend.analysis has no Source")


Source = _source()
check = importlib.import_module("graphmend.analysis.check").check


@dataclass
class Text:
    """A mended text and the mends that made it."""

    text: str
    fixes: list[Fix] = field(default_factory=list)

    @property
    def rewrites(self) -> list[str]:
        return [fix.rewrite for fix in self.fixes]


def mended(text: str, *, unsafe: bool) -> Text:
    """All mends that are permitted, as `check --fix` makes them."""
    result = mend_all(Source(text, "program.py"), unsafe=unsafe)
    fixes: list[Fix] = []
    for one in result.applied:
        if one.fix not in fixes:
            fixes.append(one.fix)
    return Text(result.source.text, fixes)


def offered(text: str) -> list[Text]:
    """One text for each mend that an editor offers: the first of a finding, which `--fix` takes, and all others."""
    source = Source(text, "program.py")
    result = check(source)
    found: list[Text] = []
    for finding in result.findings:
        for fix in mend(finding, result.facts(finding)):
            if not isinstance(fix, Fix) or fix.applicability == "display":
                continue
            try:
                found.append(Text(_edited(text, fix), [fix]))
            except Unmendable:
                continue
    return found


def shown(text: str) -> list[str]:
    """The rewrites that are shown for a text and never applied."""
    result = check(Source(text, "program.py"))
    answers = [a for finding in result.findings for a in mend(finding, result.facts(finding))]
    return sorted({a.rewrite for a in answers if isinstance(a, Fix) and a.applicability == "display"})


def _edited(text: str, fix: Fix) -> str:
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    for edit in sorted(fix.edits(), reverse=True):
        span = edit.span
        begin, end = starts[span.line - 1] + span.column, starts[span.end_line - 1] + span.end_column
        text = text[:begin] + edit.text + text[end:]
    return text
