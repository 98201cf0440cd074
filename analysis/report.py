"""Verdicts become findings: where, what it costs, how sure it is, and by what evidence."""

from __future__ import annotations

import ast
import hashlib
from typing import TYPE_CHECKING

from graphmend.analysis.events import Call, Event
from graphmend.analysis.finding import Effect, Finding, Related
from graphmend.analysis.settings import Settings

if TYPE_CHECKING:
    from graphmend.analysis.definitions import FunctionInfo
    from graphmend.analysis.region import Region
    from graphmend.analysis.rules.rule import Break, Rule

#: enclosing blocks out of which Dynamo can't resume (torch 2.13): it gives the whole frame up
_LOSES_FRAME = frozenset({"for", "while", "try", "except", "with"})


class Report:
    """The findings of one check, in every file that it reached."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.notes: list[str] = []
        self._found: dict[tuple[str, int, int, str], tuple[Finding, ast.expr | ast.stmt, FunctionInfo]] = {}

    def note(self, text: str) -> None:
        """Remember something that could not be followed."""
        if text not in self.notes:
            self.notes.append(text)

    def add(self, rule: Rule, verdict: Break, event: Event, info: FunctionInfo, region: Region) -> None:
        """Keep a finding; a surer one replaces one for the same place."""
        if not self.settings.selects(rule.code):
            return
        source = info.module.source
        node = event.node
        place = (source.path, node.lineno, node.col_offset, rule.code)
        certain = not verdict.likely and not event.situation.conditional
        old = self._found.get(place)
        if old is not None and (old[0].certainty == "certain" or not certain):
            return
        chain = list(verdict.origin.chain()) if verdict.origin is not None else []
        text = " ".join(ast.unparse(node).split()) if isinstance(node, ast.expr) else ""
        finding = Finding(
            code=rule.code,
            name=rule.name,
            message=rule.message.format(**verdict.fill) if verdict.fill else rule.message,
            path=source.path,
            span=source.span(node),
            function=info.qualname,
            region=region.kind,
            certainty="certain" if certain else "likely",
            effect=verdict.effect or effect_of(event, region),
            evidence=(*([region.evidence] if region.evidence else []), *chain),
            advice=rule.advice,
            gb_id=verdict.gb_id,
            default_flags_only=verdict.default_only,
            related=(Related(*region.site, region.evidence or "compiled here"),) if region.site is not None else (),
            key=hashlib.blake2b(f"{rule.code}|{info.qualname}|{text}".encode(), digest_size=8).hexdigest(),
            facts={"call": event.callee} if isinstance(event, Call) else {},
        )
        self._found[place] = (finding, node, info)

    def of(self, path: str) -> list[tuple[Finding, ast.expr | ast.stmt, FunctionInfo]]:
        """The findings in one file, in the order of its text; equal keys are told apart by number."""
        found = sorted((f for f in self._found.values() if f[0].path == path), key=lambda f: (f[0].span, f[0].code))
        counted: dict[str, int] = {}
        numbered = []
        for finding, node, info in found:
            count = counted[finding.key] = counted.get(finding.key, 0) + 1
            if count > 1:
                object.__setattr__(finding, "key", f"{finding.key}-{count}")
            numbered.append((finding, node, info))
        return numbered

    def paths(self) -> list[str]:
        """The files that have findings."""
        return sorted({found[0].path for found in self._found.values()})


def effect_of(event: Event, region: Region) -> Effect:
    """What a break at an event costs."""
    if region.fullgraph:
        return "raises"
    if event.situation.generator or any(b in _LOSES_FRAME for b in event.situation.blocks):
        return "skips-frame"
    return "splits"
