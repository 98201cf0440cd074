"""Checking with TorchDynamo on the user's wish: the command, and the check on save.

What a check found is shown as diagnostics and lenses. Its outcome, a JSON object, answers the command; a client that
declares `experimental: {"graphmend": {"checked": true}}` is also told of each check with `graphmend/checked`:

    {"uri", "status": "running" | "checked" | "cancelled" | "refused" | "failed", "message": one line,
     "torch": "2.13.0", "device": "cpu", "seconds": 1.4,
     "targets": [{"name", "status", "problem", "line", "graphs", "breaks", "device", "inputs",
                  "times": null | {"eager": milliseconds, "compiled": milliseconds}}],
     "breaks": [{"path", "line", "column", "kind", "gbId", "reason"}], "memory": bytes of the warm processes}
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from graphmend.server.analyses.document_analysis import Unavailable
from graphmend.server.documents import outline
from graphmend.server.documents.open_documents import Document
from graphmend.server.lsp import convert
from graphmend.server.lsp.progress import Progress
from graphmend.server.mends import mend_edits
from graphmend.server.session import Session

if TYPE_CHECKING:
    from graphmend.dynamo.report import Report

log = logging.getLogger(__name__)

CHECKED = "graphmend/checked"


class Verify:
    """Runs checks and tells of them."""

    def __init__(self, server: LanguageServer, session: Session) -> None:
        self._server = server
        self._session = session

    async def command(self, uri: str, position: types.Position | None, *, times: bool = False) -> dict[str, Any]:
        """A check that the user asked for, on request with times; whatever stands in its way is said."""
        opened = self._session.documents.get(uri)
        if opened is None:
            return self._refused(uri, "only an open file can be checked")
        document = opened.host
        refusal = self._session.verification.refusal(document, trusted=self._session.trusted)
        if refusal is not None:
            return self._refused(uri, refusal)
        outcome = await self.check(document, _names(self._session, opened, position), times=times)
        if (reason := _unchecked(outcome)) is not None:
            self._session.client.show(types.MessageType.Warning, f"GraphMend: {reason}")
        return outcome

    async def saved(self, document: Document) -> None:
        """The check on save, where it is switched on."""
        if self._session.configuration(document)["verify.mode"] != "onSave":
            return
        refusal = self._session.verification.refusal(document, trusted=self._session.trusted)
        if refusal is not None:
            log.info("%s is not checked: %s", document.path, refusal)
            return
        await self.check(document, ())

    async def recall(self, document: Document) -> None:
        """Shows what earlier sessions found in this very text."""
        if self._session.verification.refusal(document, trusted=self._session.trusted) is not None:
            return
        stamp, text = document.stamp, document.text.text
        reports = await self._session.verification.recall(document)
        analysis = await self._session.analyses.current(document) if reports else None
        if analysis is not None and document.stamp == stamp and self._session.documents.is_open(document):
            for report in reports:
                self._session.verification.keep(document, analysis, report, text)
            self._session.changed(document)

    async def check(self, document: Document, names: tuple[str, ...], *, times: bool = False) -> dict[str, Any]:
        """Runs a check of the document as it is now, and shows what it found."""
        return self._tell(self._outcome(document, await self._run(document, names, times=times)))

    async def mend(self, document: Document, data: Mapping[str, Any]) -> dict[str, Any]:
        """Checks a mend beside the original and makes the edit, if nothing differs. Says so where it does not."""
        from graphmend.dynamo import mend_verdict  # what is asked after a check is not loaded at the start

        host = document.host
        refusal = self._session.verification.refusal(host, trusted=self._session.trusted)
        if refusal is not None:
            return self._refused(document.uri, refusal)
        try:
            finding, edit, mended, named = await mend_edits.preview(self._session, document, data)
        except Unavailable as error:
            return self._refused(document.uri, str(error))
        stamp, report = host.stamp, None
        for names in dict.fromkeys(((finding.function.partition(".")[0],), ())):
            report = await self._run(host, names, mended, named)
            if report is None or mend_verdict.compared(report, finding):
                break
        outcome = self._outcome(host, report)
        if outcome["status"] == "checked":
            says = mend_verdict.of(report, finding) if report is not None else ""
            if not says and host.stamp != stamp:
                says = "the document changed while the mend was checked"
            if not says and not await self._session.client.apply("Mend graph break, verified by TorchDynamo", edit):
                says = "the edit was not made"
            outcome |= {"status": "unverified", "message": says} if says else {"status": "verified"}
        if outcome["status"] in ("unverified", "failed"):
            self._session.client.show(types.MessageType.Warning, f"GraphMend: not mended: {outcome['message']}")
        return self._tell(outcome)

    async def _run(
        self,
        document: Document,
        names: tuple[str, ...],
        mended: str | None = None,
        named: tuple[str, ...] = (),
        *,
        times: bool = False,
    ) -> Report | None:
        """The report of a check, of which the findings tell from now on."""
        session, verification = self._session, self._session.verification
        analysis, text = await session.analyses.current(document), document.text.text
        self._tell({"uri": document.uri, "status": "running", "message": "checking"})
        title = f"Checking {', '.join(names) or document.path.rpartition('/')[2]}"
        shown = session.client.capabilities.progress
        cancel = lambda: verification.cancel(document)  # noqa: E731
        async with Progress(self._server, title, cancel, shown=shown) as progress:
            report = await verification.run(document, names, progress.tell, mended, named, times=times)
        if report is not None and report.problem is None and session.documents.is_open(document):
            verification.keep(document, analysis, report, text)
            session.changed(document)
        return report

    def _refused(self, uri: str, reason: str) -> dict[str, Any]:
        if self._session.trusted or not self._session.client.capabilities.manages_trust:
            self._session.client.show(types.MessageType.Warning, f"GraphMend: {reason}.")
        return self._tell({"uri": uri, "status": "refused", "message": reason})

    def _outcome(self, document: Document, report: Report | None) -> dict[str, Any]:
        return {**_outcome(document.uri, report), "memory": self._session.verification.memory}

    def _tell(self, outcome: dict[str, Any]) -> dict[str, Any]:
        log.info("%s: %s: %s", outcome["uri"], outcome["status"], outcome["message"])
        if self._session.client.capabilities.told_of_checks:
            self._session.client.tell(CHECKED, outcome)
        return outcome


def _names(session: Session, document: Document, position: types.Position | None) -> tuple[str, ...]:
    """The target that a position means: the class or function around it. None means all of the file."""
    if position is None:
        return ()
    lines = document.host.text
    line, column = document.text.position(convert.offset_of(document.text, position, session.encoding))
    definition = outline.at(lines.text, lines.offset(document.host_line(line), column))
    return (definition.name,) if definition else ()


def _outcome(uri: str, report: Report | None) -> dict[str, Any]:
    if report is None:
        return {"uri": uri, "status": "cancelled", "message": "the check was cancelled"}
    if report.problem is not None:
        return {"uri": uri, "status": "failed", "message": report.problem}
    targets = [
        {
            "name": target.name,
            "status": target.status,
            "problem": target.problem,
            "line": target.line,
            "graphs": target.graphs,
            "breaks": len(target.breaks),
            "compilations": target.compilations,
            "device": target.device,
            "inputs": target.inputs,
            "times": {"eager": t.eager, "compiled": t.compiled} if (t := target.times) else None,
        }
        for target in report.targets
    ]
    breaks = [
        {
            "path": item.path,
            "line": item.span.line,
            "column": item.span.column + 1,
            "kind": item.kind,
            "gbId": item.gb_id,
            "reason": item.reason,
        }
        for item in report.breaks
    ]
    return {
        "uri": uri,
        "status": "checked",
        "message": _summary(report),
        "torch": report.torch,
        "device": ", ".join(dict.fromkeys(target.device for target in report.targets if target.device)),
        "seconds": report.seconds,
        "targets": targets,
        "breaks": breaks,
    }


def _unchecked(outcome: Mapping[str, Any]) -> str | None:
    """Why the user sees no result, where there is none for any target."""
    if outcome["status"] == "failed":
        return str(outcome["message"])
    targets = outcome.get("targets", ())
    if targets and all(target["problem"] for target in targets):
        return str(targets[0]["problem"])
    return None


def _summary(report: Report) -> str:
    """One line for people."""
    if not report.targets:
        return "nothing to check: no compiled function and no module was found"
    parts = []
    for target in report.targets:
        if target.status == "checked":
            count = len(target.breaks)
            parts.append(f"{target.name}: {count or 'no'} graph break{'' if count == 1 else 's'} on {target.device}")
        else:
            parts.append(f"{target.name}: {target.problem or target.status}")
    return "; ".join(parts)
