"""Makes findings from the verdicts that tracing reaches: place, effect, certainty and evidence."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.finding import Effect, Finding, Related
from graphmend.analysis.findings.contradicted_declarations import KnownCalls
from graphmend.analysis.interprocedural.reachability import reached
from graphmend.analysis.interprocedural.summaries import FunctionSummary
from graphmend.analysis.interprocedural.verdicts import Verdict
from graphmend.analysis.program.definitions import FunctionInfo, ModuleInfo
from graphmend.analysis.syntax.span import Span

if TYPE_CHECKING:
    from graphmend.analysis.region.region import Region

Owner = FunctionInfo | ModuleInfo


class LocatedFinding(NamedTuple):
    """A finding with the node and the function that it stands in."""

    finding: Finding
    node: ast.expr | ast.stmt
    info: FunctionInfo


class ReachedVerdict(NamedTuple):
    """A verdict, the region from which tracing reaches it, and whether it does so on every run."""

    verdict: Verdict
    region: Region
    always: bool


def owner_of(info: FunctionInfo) -> Owner:
    """The outermost function around a function; the module for what stands in no `def`."""
    while info.outer is not None:
        info = info.outer
    return info.module if isinstance(info.node, ast.Lambda) else info


def path_of_owner(owner: Owner) -> str:
    return (owner.source if isinstance(owner, ModuleInfo) else owner.module.source).path


def report(roots: Iterable[tuple[FunctionSummary, Region]]) -> dict[str, list[LocatedFinding]]:
    """All findings of what tracing reaches from `roots`: by path, in the order of each text."""
    said: dict[Owner, list[ReachedVerdict]] = {}
    live = reached(roots)
    calls = KnownCalls(one.summary for one in live)
    for summary, region, always in live:
        for verdict in summary.verdicts.values():
            if not calls.contradict(verdict):
                said.setdefault(owner_of(verdict.info), []).append(ReachedVerdict(verdict, region, always))
    by_path: dict[str, list[LocatedFinding]] = {}
    for where, its in said.items():
        by_path.setdefault(path_of_owner(where), []).extend(found_in(its))
    return {path: sorted(by_path[path], key=by_place) for path in sorted(by_path)}


def found_in(said: Iterable[ReachedVerdict]) -> list[LocatedFinding]:
    """The findings of one owner, in the order of the text. Equal keys (a key names function and text, not the line) are
    numbered."""
    places: dict[tuple[int, int, str], LocatedFinding] = {}
    for verdict, region, always in said:
        certain = always and not verdict.conditional and not verdict.breaks.likely
        node, info = verdict.node, verdict.info
        place = (node.lineno + info.shift, node.col_offset, verdict.rule.code)
        old = places.get(place)
        if old is None or (certain and old.finding.certainty == "likely" and old.finding.region == region.kind):
            places[place] = LocatedFinding(_finding(verdict, region, certain), node, info)
    return _numbered(sorted(places.values(), key=by_place))


def by_place(found: LocatedFinding) -> tuple[Span, str]:
    return found.finding.span, found.finding.code


def _numbered(found: list[LocatedFinding]) -> list[LocatedFinding]:
    counted: dict[str, int] = {}
    result = []
    for one in found:
        count = counted[one.finding.key] = counted.get(one.finding.key, 0) + 1
        if count > 1:
            one = one._replace(finding=replace(one.finding, key=f"{one.finding.key}-{count}"))
        result.append(one)
    return result


def _finding(verdict: Verdict, region: Region, certain: bool) -> Finding:
    """The finding of a verdict. The verdict keeps the last one, for the same region and certainty."""
    shift = verdict.info.shift
    made = verdict.made
    if made is not None and made[0] is region and made[1] == certain:
        if made[2] != shift:
            moved = replace(made[3], span=shifted(made[3].span, shift - made[2]))
            verdict.made = (region, certain, shift, moved)
            return moved
        return made[3]
    finding = _make(verdict, region, certain)
    verdict.made = (region, certain, shift, finding)
    return finding


def shifted(span: Span, lines: int) -> Span:
    """A range so many lines further down."""
    return Span(span.line + lines, span.column, span.end_line + lines, span.end_column)


def _make(verdict: Verdict, region: Region, certain: bool) -> Finding:
    rule, breaks, node, info = verdict.rule, verdict.breaks, verdict.node, verdict.info
    chain = list(breaks.origin.chain()) if breaks.origin is not None else []
    text = " ".join(ast.unparse(node).split()) if isinstance(node, ast.expr) else ""
    effect: Effect = breaks.effect or ("skips-frame" if verdict.loses_frame else "splits")
    return Finding(
        code=rule.code,
        name=rule.name,
        message=rule.message.format(**breaks.fill) if breaks.fill else rule.message,
        path=info.module.source.path,
        span=shifted(info.source.span(node), info.shift),
        function=info.qualname,
        region=region.kind,
        certainty="certain" if certain else "likely",
        effect="raises" if verdict.raises else effect,
        evidence=(*([region.evidence] if region.evidence else []), *chain),
        advice=breaks.advice or rule.advice,
        gb_id=breaks.gb_id,
        default_flags_only=breaks.default_only,
        related=(Related(*region.site, region.evidence or "compiled here"),) if region.site is not None else (),
        key=hashlib.blake2b(f"{rule.code}|{info.qualname}|{text}".encode(), digest_size=8).hexdigest(),
        facts={"call": verdict.callee} if verdict.callee is not None else {},
    )
