"""Where the analysis of a document is made, and nowhere else: one version one analysis, and the newest version wins.

All computing happens in one `Lane`; this side of it belongs to the event loop. Knows findings and fixes, no protocol.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.finding import Finding
from graphmend.analysis.settings import Settings
from graphmend.analysis.syntax.source import Source
from graphmend.server.analyses.callers import Callers, FromCallers, joined
from graphmend.server.analyses.scope import Scope
from graphmend.server.analyses.worker_thread import WorkerThread
from graphmend.server.documents.open_documents import Document, Documents
from graphmend.server.documents.position_mapping import PositionChange, map_span

if TYPE_CHECKING:
    from graphmend.analysis.check import Result
    from graphmend.analysis.incremental.document import IncrementalAnalysis
    from graphmend.analysis.incremental.finding_store import Reach
    from graphmend.analysis.program.project import Project
    from graphmend.analysis.syntax.edits import Edit
    from graphmend.transforms.fix import Fix, TextEdit

log = logging.getLogger(__name__)

#: A longer text is not analysed; a note in the log says so.
LONGEST = 10_000_000

#: Results that are kept for mends: those of the documents that were analysed last. A result holds a syntax tree, which
#: takes ten times the memory of its text.
_RESULTS_KEPT = 2

#: Documents whose edits are followed function by function; the others start again from their whole text.
_FOLLOWED = 2

Check = Callable[[Source, "Project | None", Settings], "Result"]


@dataclass(frozen=True)
class Analysis:
    """What is known about one state of one document, under one state of the settings and the files around."""

    stamp: int
    epoch: int
    findings: tuple[Finding, ...] = ()

    def moved(self, moves: list[PositionChange] | None, stamp: int, epoch: int) -> Analysis:
        """The same findings where they stand after edits; those whose border an edit replaced are gone."""
        kept = []
        for finding in self.findings if moves is not None else ():
            span = map_span(finding.span, moves or ())
            if span is not None:
                kept.append(finding if span == finding.span else replace(finding, span=span))
        return Analysis(stamp, epoch, tuple(kept))


class Mends(NamedTuple):
    """How a finding can be mended, best first, and where it cannot, what stands in the way."""

    fixes: tuple[Fix, ...] = ()
    refusal: str | None = None
    evidence: tuple[str, ...] = ()
    """The finding's evidence as the whole text tells it now; following edits, a caller's part of it may lag."""


class Unavailable(Exception):
    """A mend that was offered cannot be made; the message says why."""


class _Outcome(NamedTuple):
    """What the thread answers: the findings that no comment takes back, and the lines of which nothing new is known."""

    findings: tuple[Finding, ...]
    broken: tuple[tuple[int, int], ...] = ()
    result: Result | None = None

    def with_known(self, known: Callable[[], tuple[Finding, ...]]) -> tuple[Finding, ...]:
        """The findings, and in broken lines those of the last time."""
        if not self.broken:
            return self.findings
        # which comments are unused can't be told while a function does not parse
        fresh = [f for f in self.findings if not f.code.startswith("GM0")]
        kept = [f for f in known() if f.code.startswith("GM0") or any(a <= f.span.line <= b for a, b in self.broken)]
        return tuple(sorted((*fresh, *kept), key=lambda f: (f.span, f.code)))


class _Followed(NamedTuple):
    """The analysis that follows a document's edits, and up to which of its states it did."""

    analysis: IncrementalAnalysis
    stamp: int


class Analyses:
    """The newest analysis of each open document."""

    def __init__(
        self,
        documents: Documents,
        scope: Callable[[Document], Scope],
        failed: Callable[[Document, BaseException, str], None],
        check: Check | None = None,
    ) -> None:
        self._documents = documents
        self._scope = scope
        self._failed = failed
        self._check = check
        self._followed: dict[Document, _Followed] = {}
        self._reach: dict[Document, Mapping[str, Reach]] = {}
        """Of documents whose edits are not followed any more."""
        self._thread = WorkerThread("graphmend-analysis")
        self._callers = Callers(self._thread)
        self._epochs: Counter[Document] = Counter()
        self._latest: dict[Document, Analysis] = {}
        self._results: dict[Document, tuple[Analysis, Result]] = {}
        self._running: dict[Document, asyncio.Task[None]] = {}
        self._noticed: set[str] = set()
        """Paths of the documents that are too long or of a newer Python, and of which that was said."""

    async def current(self, document: Document) -> Analysis:
        """The analysis of the document as it is when this returns: edits made meanwhile are taken in."""
        while self._documents.is_open(document):
            if self._is_current(document):
                return self._latest[document]
            # whoever waits may be cancelled; the work is for everybody who waits
            await asyncio.shield(self._run(document))
        return Analysis(document.stamp, self._epochs[document])

    def knows(self, document: Document) -> bool:
        """Whether any state of the document was analysed with the settings of now."""
        latest = self._latest.get(document)
        return latest is not None and latest.epoch == self._epochs[document]

    def shown(self, document: Document) -> Analysis:
        """The newest analysis there is, moved to the text of now. Never waits."""
        latest = self._latest.get(document)
        if latest is None:
            return Analysis(document.stamp, self._epochs[document])
        if latest.stamp == document.stamp:
            return latest
        return latest.moved(document.moves(latest.stamp), document.stamp, latest.epoch)

    def forget(self, document: Document) -> None:
        """The document is closed."""
        self._latest.pop(document, None)
        self._results.pop(document, None)
        self._callers.forget(document)
        self._thread.run(lambda: self._forget(document))
        del self._epochs[document]

    def expire(self, document: Document) -> None:
        """Settings or other files changed: what was found in a document no longer counts as current."""
        self._epochs[document] += 1

    async def mends(self, document: Document, finding: Finding) -> Mends:
        """How a finding of the document's current analysis can be mended."""
        analysis, text, scope = await self.current(document), document.text.text, self._scope(document)
        known = next((f for f in analysis.findings if (f.key, f.code) == (finding.key, finding.code)), None)
        if known is None:  # only Dynamo saw it
            return Mends()
        kept = self._results.get(document)
        result = kept[1] if kept is not None and kept[0] is analysis else None

        def job() -> tuple[Mends, Result | None]:
            from graphmend.transforms.fix import Fix, Refusal
            from graphmend.transforms.mend import mend

            made = result or self._whole(text, document.path, scope)
            answers = mend(known, made.facts(known), scope.accept) if made else []
            refusals = [answer.reason for answer in answers if isinstance(answer, Refusal)]
            fixes = tuple(answer for answer in answers if isinstance(answer, Fix))
            told = next((f.evidence for f in made.findings if f.key == known.key), ()) if made else ()
            return Mends(fixes, next(iter(refusals), None), told), made

        try:
            mends, made = await self._thread.run(job)
        except Exception as error:  # this finding has no mends; everything else goes on
            if type(error) is not LookupError:  # which only says that the analysis knows no such finding
                self._failed(document, error, text)
            return Mends()
        if result is None and made is not None and self._latest.get(document) is analysis:
            self._keep(document, analysis, made)
        return mends

    async def reach(self, document: Document) -> Mapping[str, Reach]:
        """What each class and function of a document's current analysis reaches, itself included."""
        await self.current(document)

        def job() -> Mapping[str, Reach]:
            followed = self._followed.get(document)
            return self._reach.get(document, {}) if followed is None else followed.analysis.reach()

        return await self._thread.run(job)

    async def edits(self, document: Document, fix: Fix) -> tuple[TextEdit, ...]:
        """The edits of a fix of a document as it is now; raises `Unavailable`."""
        text, whole = document.text.text, document.parts == (document,)

        def job() -> tuple[TextEdit, ...]:
            from graphmend.transforms.fix import Unmendable

            try:
                made = fix.edits()
            except Unmendable as error:
                raise Unavailable(str(error)) from error
            return _in_style(text, document.path, made) if whole else made

        return await self._thread.run(job)

    async def mended(self, document: Document, *, unsafe: bool, code: str | None = None) -> str:
        """The document's text with every mend of that kind applied, of all findings or those with a code."""
        text, scope = document.text.text, self._scope(document)

        def job() -> str:
            from graphmend.transforms.mend import mend_all

            source, accept = Source(text, document.path), scope.accept

            def wanted(_: Source, findings: Sequence[Finding]) -> list[Finding]:
                return [finding for finding in findings if finding.code == code]

            made = mend_all(
                source, scope.project, scope.settings, unsafe=unsafe, accept=accept, wanted=wanted if code else None
            )
            return _finished(text, made.source.text, document.path)

        return await self._thread.run(job)

    def _is_current(self, document: Document) -> bool:
        latest = self._latest.get(document)
        return latest is not None and latest.stamp == document.stamp and latest.epoch == self._epochs[document]

    def _run(self, document: Document) -> asyncio.Task[None]:
        task = self._running.get(document)
        if task is None:
            task = self._running[document] = asyncio.create_task(self._analyse(document))
        return task

    async def _analyse(self, document: Document) -> None:
        try:
            await self._analyse_once(document)
        finally:  # here, not in a callback that runs later: whoever asks in between would get a task that is over
            del self._running[document]

    async def _analyse_once(self, document: Document) -> None:
        stamp, epoch, text = document.stamp, self._epochs[document], document.text.text
        analysis = Analysis(stamp, epoch)
        try:
            scope = self._scope(document)
            known = self._followed.get(document)
            since = None if known is None else (known.analysis, document.edit(known.stamp, stamp))
            others = await self._callers.ask(document, (stamp, epoch), scope) if self._check is None else FromCallers()
            outcome = await self._thread.run(lambda: self._fresh(document, text, stamp, scope, since, others))
        except Exception as error:
            self._failed(document, error, text)
        else:
            if outcome is not None:
                analysis = Analysis(stamp, epoch, outcome.with_known(lambda: self._moved_to(document, stamp)))
                if outcome.result is not None:
                    self._keep(document, analysis, outcome.result)
        if self._documents.is_open(document):
            self._latest[document] = analysis

    def _moved_to(self, document: Document, stamp: int) -> tuple[Finding, ...]:
        """The findings of the last time, where they stand in a newer text."""
        before = self._latest.get(document)
        return before.moved(document.moves(before.stamp, stamp), stamp, before.epoch).findings if before else ()

    def _fresh(
        self,
        document: Document,
        text: str,
        stamp: int,
        scope: Scope,
        since: tuple[IncrementalAnalysis, Edit | None] | None,
        others: FromCallers,
    ) -> _Outcome | None:
        """In the thread: the analysis of a text; None for one that is too long. `since` is what followed the document
        until now, with the edit that it has not seen."""
        if len(text) > LONGEST:
            self._notice(document, f" has {len(text)} characters, more than {LONGEST}: it is not analysed")
            return None
        from graphmend.analysis.findings import suppressions

        if self._check is not None:
            result = self._check(Source(text, document.path), scope.project, scope.settings)
            broken = ((1, text.count("\n") + 1),) if result.source.problem is not None else ()
            findings = suppressions.apply(result.source, result.findings, scope.settings)
            return _Outcome(findings, broken, None if broken else result)
        try:
            following = self._following(document, scope)
            edit = since[1] if since is not None and since[0] is following else None
            update = following.update(text, edit)
        except Exception:
            self._let_go(document)  # what it knows may be half of an edit: the next text starts anew
            raise
        self._followed[document] = _Followed(following, stamp)
        if update.notice is not None:
            self._notice(document, f", {update.notice}")
        every = joined(update.findings, others)
        findings = suppressions.take_back(update.comments, document.path, every, scope.settings)
        return _Outcome(findings, update.broken)

    def _notice(self, document: Document, says: str) -> None:
        """Why nothing is known of a document; once, for the next keystroke changes nothing about it."""
        if document.path not in self._noticed:
            self._noticed.add(document.path)
            log.warning("%s%s", document.path, says)

    def _following(self, document: Document, scope: Scope) -> IncrementalAnalysis:
        """In the thread: the analysis that follows a document's edits."""
        from graphmend.analysis.incremental.document import IncrementalAnalysis

        followed, project = self._followed.pop(document, None), scope.project
        if followed is not None:
            known, stamp = followed
            if known.settings == scope.settings and (project is None or known.project is project):
                self._followed[document] = _Followed(known, stamp)  # the one that was used last is let go of last
                return known
            self._close(known)
        while len(self._followed) >= _FOLLOWED:
            self._let_go(next(iter(self._followed)))
        return IncrementalAnalysis(document.path, project, scope.settings)

    def _let_go(self, document: Document) -> None:
        """Drop a document's syntax tree."""
        followed = self._followed.pop(document, None)
        if followed is not None:
            self._reach[document] = followed.analysis.reach()
            self._close(followed.analysis)

    def _forget(self, document: Document) -> None:
        self._let_go(document)
        self._reach.pop(document, None)

    @staticmethod
    def _close(known: IncrementalAnalysis) -> None:
        known.close()
        known.project.forget(known.path)

    def _whole(self, text: str, path: str, scope: Scope) -> Result | None:
        """In the thread: the analysis of a whole text, with what mends ask of it."""
        if len(text) > LONGEST:
            return None
        return (self._check or _check)(Source(text, path), scope.project, scope.settings)

    def _keep(self, document: Document, analysis: Analysis, result: Result) -> None:
        self._results.pop(document, None)
        self._results[document] = analysis, result
        while len(self._results) > _RESULTS_KEPT:
            del self._results[next(iter(self._results))]


def _finished(before: str, after: str, path: str) -> str:
    """A mended text as its project writes its code."""
    from graphmend.transforms.style.finish import finished
    from graphmend.workspace.code_style import code_style

    style = code_style(Path(path))
    return finished(before, after, path, line_length=style.line_length, formatted=style.formatted)


def _in_style(text: str, path: str, edits: tuple[TextEdit, ...]) -> tuple[TextEdit, ...]:
    """Edits, or those that lead to the same program as its project writes its code."""
    from graphmend.transforms.code.text_edits import apply, line_edits

    made = apply(text, edits, Source(text, path))
    finished = _finished(text, made, path)
    return edits if finished == made else tuple(line_edits(text, finished))


def _check(source: Source, project: Project | None, settings: Settings) -> Result:
    from graphmend.analysis.check import check  # the rules and torch's facts load with the first document

    return check(source, project, settings)
