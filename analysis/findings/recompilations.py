"""Makes findings of what varies between the calls of compiled code."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.finding import Finding, Related
from graphmend.analysis.interpreter.events import Recompiles, Situation
from graphmend.analysis.region.region import shortened
from graphmend.analysis.syntax.span import Span

if TYPE_CHECKING:
    from graphmend.analysis.driver.driven import Driven
    from graphmend.analysis.driver.guards.variation import Place, Variation
    from graphmend.analysis.findings.report import LocatedFinding
    from graphmend.analysis.program.definitions import FunctionInfo
    from graphmend.analysis.rules.dispatch import Judging
    from graphmend.analysis.rules.rule import Break, Rule
    from graphmend.analysis.settings import Settings


class Recompilation(NamedTuple):
    """A finding, with the node and the function that it stands in (None at a module's top level), and what varies."""

    finding: Finding
    node: ast.expr | ast.stmt
    info: FunctionInfo | None
    variation: Variation


def recompilations(driven: Driven | None, judging: Judging) -> list[Recompilation]:
    """The findings of family GM7 that the calls in sight show, one for a place and rule."""
    if driven is None:
        return []
    found: dict[tuple[str, Span, str], Recompilation] = {}
    for variation in driven.history.variations:
        place = variation.write or variation.call
        said = judging.verdict(Recompiles(place.node, Situation(), variation))
        if said is None:
            continue
        made = _recompilation(*said, variation, place)
        found.setdefault((made.finding.path, made.finding.span, made.finding.code), made)
    return list(found.values())


def _recompilation(rule: Rule, said: Break, variation: Variation, place: Place) -> Recompilation:
    path, span = _at(place)
    function = place.function.qualname if place.function is not None else ""
    site = variation.site
    text = shortened(place.node) if isinstance(place.node, ast.expr) else ""
    finding = Finding(
        code=rule.code,
        name=rule.name,
        message=rule.message.format(**said.fill),
        path=path,
        span=span,
        function=function,
        region="compiled",
        certainty="certain",
        effect="recompiles",
        evidence=(
            f"{variation.name} is compiled: {shortened(site.node)}",
            f"the guard that fails: {variation.guard}",
        ),
        advice=said.advice or rule.advice,
        related=(
            Related(site.module.source.path, site.module.source.span(site.node), f"{variation.name} is compiled here"),
            *([Related(*_at(variation.call), "the call that is compiled anew")] if place is variation.write else []),
        ),
        key=hashlib.blake2b(f"{rule.code}|{function}|{text}|{variation.subject}".encode(), digest_size=8).hexdigest(),
        facts={"subject": variation.subject},
    )
    return Recompilation(finding, place.node, place.function, variation)


def _at(place: Place) -> tuple[str, Span]:
    if place.function is None:
        return place.module.source.path, place.module.source.span(place.node)
    span = place.function.source.span(place.node)
    shift = place.function.shift
    return place.module.source.path, Span(span.line + shift, span.column, span.end_line + shift, span.end_column)


def is_shown(finding: Finding, seen: frozenset[str], settings: Settings) -> bool:
    """Whether a finding of a walk is one to report. Where calls of a function are in sight (`seen`), they alone say
    what is compiled anew in it; elsewhere a write of the traced code may, for those who try it out."""
    return finding.effect != "recompiles" or (finding.function not in seen and settings.tries(finding.code))


def called_in_sight(driven: Driven | None) -> frozenset[str]:
    """The functions of the checked module, by qualified name, of which calls are in sight."""
    if driven is None:
        return frozenset()
    return frozenset(info.qualname for info in driven.history.visited if info.module is driven.machine.main)


def merged(
    driven: Driven | None,
    found: dict[str, list[LocatedFinding]],
    again: Iterable[Recompilation],
    settings: Settings,
) -> dict[str, tuple[Finding, ...]]:
    """Findings by path, with those that calls in sight show."""
    seen = called_in_sight(driven)
    by_path = {
        path: [one.finding for one in its if is_shown(one.finding, seen, settings)] for path, its in found.items()
    }
    for one in again:
        by_path.setdefault(one.finding.path, []).append(one.finding)
    return {path: tuple(sorted(by_path[path], key=lambda f: (f.span, f.code))) for path in sorted(by_path)}
