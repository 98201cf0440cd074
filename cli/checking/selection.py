"""Which findings are shown, and which may be mended: comments, configuration, baseline and changed lines decide."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from graphmend.analysis.finding import Finding
from graphmend.analysis.findings import suppressions
from graphmend.analysis.settings import Settings
from graphmend.analysis.syntax.source import Source
from graphmend.analysis.syntax.span import Span
from graphmend.cli.adoption.baseline import entry
from graphmend.cli.checking.file_report import FileReport, Offer, ReportedFinding
from graphmend.cli.checking.plan import Plan
from graphmend.transforms.fix import joined_reason, offered_by_both
from graphmend.workspace.config import Configuration, Configurations


def shown(reports: Sequence[FileReport], configurations: Configurations, plan: Plan) -> list[ReportedFinding]:
    """The items of a run, in the order of the files and their text.

    A file's findings are those of its own check, and those that the checks of other files made where they call into it.
    """
    from_others: dict[str, dict[_Place, ReportedFinding]] = defaultdict(dict)
    for report in reports:
        for item in report.elsewhere:
            others, place = from_others[item.finding.path], _place(item)
            others[place] = _joined(others[place], item) if place in others else item
    return [
        item
        for report in reports
        for item in _of_file(report, from_others[report.path], configurations.of_file(Path(report.path)), plan)
    ]


_Place = tuple[Span, str]


def _place(item: ReportedFinding) -> _Place:
    """Tells findings of one file apart. Keys do not, across checks: they number like findings, and each check reaches
    others of them."""
    return item.finding.span, item.finding.code


def _joined(one: ReportedFinding, other: ReportedFinding) -> ReportedFinding:
    """One finding that two checks made: the one that is compiled for certain, with the mends that both allow. That it
    goes with another one's mend was tried in its file, for any caller.
    """
    if other.finding.region == "compiled" and one.finding.region == "assumed":
        one, other = other, one
    pairs = offered_by_both(one.offers, other.offers, lambda offer: offer.message)
    tried = (offer for offer in (*one.offers, *other.offers) if offer.behind)
    offers = tuple(dict.fromkeys((*tried, *(_joined_offer(*pair) for pair in pairs))))
    return replace(one, offers=offers, refusal=None if offers else one.refusal or other.refusal)


def _joined_offer(weaker: Offer, stronger: Offer) -> Offer:
    differences = tuple(dict.fromkeys((*weaker.differences, *stronger.differences)))
    return weaker._replace(reason=joined_reason(weaker, stronger), differences=differences)


def _of_file(
    report: FileReport, others: dict[_Place, ReportedFinding], configuration: Configuration, plan: Plan
) -> Iterable[ReportedFinding]:
    path = Path(report.path)
    items = {_place(item): item for item in report.items}
    for place, item in others.items():
        items[place] = _joined(items[place], item) if place in items else item
    by_finding = {id(item.finding): item for item in items.values()}
    findings = sorted((item.finding for item in items.values()), key=lambda finding: finding.span[:2])
    kept = suppressions.take_back(report.comments, report.path, findings, configuration.settings())
    known = Counter(plan.known.get(report.path, ()))
    for finding in kept:
        if _hidden(finding, configuration, path) or _take(known, entry(finding.key)):
            continue
        if plan.changed is None or touches(finding, plan.changed.get(report.path, ())):
            yield by_finding.get(id(finding)) or ReportedFinding(finding, severity_of(finding, configuration))


class Wanted:
    """Which findings `--fix` may mend in one file: those that would be shown. Asked once in every round of mending.

    Line numbers move from round to round: the first one decides which changed lines, and so which findings, count.
    """

    def __init__(self, plan: Plan, settings: Settings, configuration: Configuration, path: Path) -> None:
        self._plan = plan
        self._settings = settings
        self._configuration = configuration
        self._path = path
        self._first: set[str] | None = None

    def restricts(self, source: Source) -> bool:
        """Whether anything may be unwanted at all."""
        values = self._configuration.values
        narrowed = values.get("severity") or values.get("per-file-ignores") or self._plan.known
        return bool(narrowed or self._plan.changed is not None or suppressions.suppressions(source))

    def __call__(self, source: Source, findings: Sequence[Finding]) -> list[Finding]:
        known = Counter(self._plan.known.get(str(self._path), ()))
        findings = [
            finding
            for finding in suppressions.apply(source, findings, self._settings)
            if finding.code != suppressions.UnusedSuppression.code
            and not _hidden(finding, self._configuration, self._path)
            and not _take(known, entry(finding.key))
        ]
        if self._plan.changed is None:
            return findings
        if self._first is None:
            lines = self._plan.changed.get(str(self._path), ())
            self._first = {finding.key for finding in findings if touches(finding, lines)}
        return [finding for finding in findings if finding.key in self._first]


def _hidden(finding: Finding, configuration: Configuration, path: Path) -> bool:
    return configuration.hides(finding.code, path)


def severity_of(finding: Finding, configuration: Configuration) -> str:
    """What the configuration says, else a warning where compilation is certain and information where it is assumed, or
    where the graph does not break."""
    chosen = configuration.severity(finding.code)
    warns = finding.region == "compiled" and finding.effect != "recompiles"
    return chosen or ("warning" if warns else "information")


def touches(finding: Finding, lines: Iterable[range]) -> bool:
    """Does a finding stand on any of the lines?"""
    return any(r.start <= finding.span.end_line and finding.span.line < r.stop for r in lines)


def _take(counter: Counter[str], key: str) -> bool:
    """Take one of a kind out of a bag; False where none is left."""
    counter[key] -= 1
    return counter[key] >= 0
