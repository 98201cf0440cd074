"""Asks GraphMend for the mends of a text, through the doors that stay."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from graphmend.transforms.fix import Fix, Refusal, Unmendable
from graphmend.transforms.mend import OneFile, mend, mend_all
from graphmend.transforms.offers import Applied
from graphmend.transforms.rounds import Run
from graphmend.transforms.style.finish import finished


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


@dataclass
class Mends:
    """All that GraphMend makes of a text."""

    safe: Text
    unsafe: Text
    """All mends, safe ones first."""
    offered: list[Text]
    """One for each mend of the text as it is."""


def every(text: str) -> Mends:
    """What `mended` and `offered` give, from one walk: unsafe mends begin where safe ones end."""
    run = Run(OneFile(Source(text, "program.py")))
    places = run.state.places("program.py")
    singles = [single for place in places for single in _singles(text, place.answers)]
    run.to_the_end(unsafe=False)
    safe = _reached(text, run.state.sources["program.py"].text, run.applied)
    run.to_the_end(unsafe=True)
    return Mends(safe, _reached(text, run.state.sources["program.py"].text, run.applied), singles)


def mended(text: str, *, unsafe: bool) -> Text:
    """All mends that are permitted, as `check --fix` makes them."""
    result = mend_all(Source(text, "program.py"), unsafe=unsafe)
    return _reached(text, result.source.text, result.applied)


def offered(text: str) -> list[Text]:
    """One text for each mend that an editor offers: the first of a finding, which `--fix` takes, and all others."""
    result = check(Source(text, "program.py"))
    return [single for finding in result.findings for single in _singles(text, mend(finding, result.facts(finding)))]


def _reached(before: str, after: str, applied: Iterable[Applied]) -> Text:
    """A mended text as it is written to a file."""
    text = finished(before, after, "program.py", line_length=88, formatted=True)
    fixes: list[Fix] = []
    for one in applied:
        if one.fix not in fixes:
            fixes.append(one.fix)
    return Text(text, fixes)


def _singles(text: str, answers: Iterable[Fix | Refusal]) -> Iterator[Text]:
    for fix in answers:
        if not isinstance(fix, Fix) or fix.applicability == "display":
            continue
        try:
            yield Text(_edited(text, fix), [fix])
        except Unmendable:
            continue


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
