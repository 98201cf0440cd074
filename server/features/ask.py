"""Asking the user's language model for a mend: what is sent is shown first, what comes back passes the gates, and the
edit asks for confirmation.

Answers, as JSON: {"uri", "key", "status": "mended" | "refused" | "failed" | "cancelled" | "unmended",
"message": one line, "requests": how many}.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from graphmend.server.analyses.document_analysis import Unavailable
from graphmend.server.documents.open_documents import Document
from graphmend.server.lsp import convert
from graphmend.server.lsp.progress import Progress
from graphmend.server.mends import mend_edits
from graphmend.server.session import Session

if TYPE_CHECKING:
    from graphmend.dynamo.report import Report
    from graphmend.model.ask import Answer, Asked
    from graphmend.model.endpoint import Endpoint, Usage
    from graphmend.model.gatekeeper import Look
    from graphmend.workspace.config import Configuration

log = logging.getLogger(__name__)

KEY_CHANGED = "graphmend/didChangeModelKey"
SEND, SHOW, ALWAYS = "Send", "Show", "Always for this host"


class Ask:
    """The questions of one session: the key, the hosts that the user allowed, what was spent."""

    def __init__(self, server: LanguageServer, session: Session) -> None:
        self._server = server
        self._session = session
        self._key: str | None = None
        self._allowed: set[str] = set()
        self._usage: Usage | None = None

        @server.feature(KEY_CHANGED)
        def key_changed(params: Any) -> None:
            given = params.get("key") if isinstance(params, Mapping) else getattr(params, "key", None)
            self._key = given if isinstance(given, str) and given else None

    async def command(self, uri: str, key: str) -> dict[str, Any]:
        """One question, about the finding with a key; whatever stands in its way is said."""
        document = self._session.documents.get(uri)
        if document is None:
            return self._told(uri, key, "refused", "only an open file can be asked about")
        if self._session.model(document) is None:
            return self._told(
                uri, key, "refused", "no model may be asked: set model.endpoint and model.name, and trust"
            )
        from graphmend.model.endpoint import Unanswered

        configuration, stamp = self._session.configuration(document), document.stamp
        try:
            endpoint = self._endpoint(configuration)
        except Unanswered as error:
            return self._told(uri, key, "failed", str(error))
        subject = await asyncio.to_thread(_asked, self._session, document, key)
        if subject is None:
            return self._told(uri, key, "refused", "this graph break is not there any more")
        asked, look = subject
        left = configuration["model.requests"] - endpoint.usage.requests
        if left <= 0:
            return self._told(
                uri, key, "refused", f"{configuration['model.requests']} requests were sent (model.requests)"
            )
        if not await self._consents(asked, endpoint):
            return self._told(uri, key, "cancelled", "nothing was sent")
        answer = await self._answer(document, asked, look, endpoint, configuration, left)
        if answer is None:
            return self._told(uri, key, "cancelled", "the question was cancelled")
        if answer.fix is None:
            return self._told(uri, key, "failed" if answer.unanswered else "unmended", answer.problem, answer.requests)
        return await self._made(document, key, answer, stamp)

    def _endpoint(self, configuration: Configuration) -> Endpoint:
        from graphmend.model import key
        from graphmend.model.endpoint import Endpoint, Usage

        self._usage = self._usage or Usage()
        self._key = self._key or key.from_variable(configuration["model.key-variable"])
        return Endpoint(
            configuration["model.endpoint"],
            configuration["model.name"],
            self._key,
            configuration["model.timeout-seconds"],
            configuration["model.max-tokens"],
            self._usage,
        )

    async def _consents(self, asked: Asked, endpoint: Endpoint) -> bool:
        """Whether the user wants the text sent; asked once for each host, if they say so."""
        from graphmend.model import prompt
        from graphmend.model.ask import conversation

        if endpoint.host in self._allowed:
            return True
        try:
            messages = conversation(asked)
        except prompt.TooLong:
            return True  # nothing will be sent; asking says why
        size = sum(len(message.text) for message in messages)
        can_show = self._session.client.capabilities.show_document
        while True:
            choices = (SEND, *((SHOW,) if can_show else ()), ALWAYS)
            picked = await self._session.client.choose(f"Send {size:,} characters to {endpoint.host}?", *choices)
            if picked != SHOW:
                break
            path = await asyncio.to_thread(_written, prompt.shown(messages))
            can_show = await self._session.client.open(convert.uri_of(str(path)))
        if picked == ALWAYS:
            self._allowed.add(endpoint.host)
        return picked in (SEND, ALWAYS)

    async def _answer(
        self,
        document: Document,
        asked: Asked,
        look: Look,
        endpoint: Endpoint,
        configuration: Configuration,
        left: int,
    ) -> Answer | None:
        from graphmend.dynamo.report import Report
        from graphmend.model.ask import ask
        from graphmend.model.known_answers import Remembered

        async def verify(mended: str) -> Report:
            names = (asked.finding.function.partition(".")[0],)
            report = await self._session.verification.run(document, names, progress.tell, mended, confined=True)
            return report or Report(document.path, problem="the check was cancelled")

        def cancel() -> None:
            endpoint.cancel()
            task.cancel()

        title, shown = f"Asking {endpoint.name}", self._session.client.capabilities.progress
        async with Progress(self._server, title, cancel, shown=shown) as progress:
            task = asyncio.ensure_future(
                ask(
                    asked,
                    Remembered(endpoint),
                    endpoint.name,
                    look,
                    verify,
                    tries=min(configuration["model.tries"], left),
                    rounding=configuration["model.rounding"] == "named",
                    tell=progress.tell,
                )
            )
            await asyncio.wait({task})
        return None if task.cancelled() else task.result()

    async def _made(self, document: Document, key: str, answer: Answer, stamp: int) -> dict[str, Any]:
        """Makes the edit of an answer that passed, in the document that was asked about."""
        assert answer.fix is not None
        if document.stamp != stamp or not self._session.documents.is_open(document):
            return self._told(
                document.uri, key, "refused", "the document changed while the model was asked", answer.requests
            )
        if self._session.model(document) is None:
            return self._told(document.uri, key, "refused", "models may not be asked any more", answer.requests)
        client = self._session.client
        if not client.capabilities.change_annotations:
            says = f"GraphMend: {answer.fix.title} differs: {answer.fix.reason}"
            if await client.choose(says, "Apply") is None:
                return self._told(document.uri, key, "cancelled", "the edit was not made", answer.requests)
        try:
            edit = await mend_edits.edit(self._session, document, mend_edits.Offer(answer.fix, stamp))
        except Unavailable as error:
            return self._told(document.uri, key, "refused", str(error), answer.requests)
        made = await client.apply(answer.fix.title, edit)
        status, says = ("mended", answer.fix.title) if made else ("cancelled", "the edit was not made")
        return self._told(document.uri, key, status, says, answer.requests)

    def _told(self, uri: str, key: str, status: str, message: str, requests: int = 0) -> dict[str, Any]:
        log.info("%s: asked: %s: %s", uri, status, message)
        if status in ("refused", "failed", "unmended"):
            self._session.client.show(types.MessageType.Warning, f"GraphMend: {message}")
        return {"uri": uri, "key": key, "status": status, "message": message, "requests": requests}


def _asked(session: Session, document: Document, key: str) -> tuple[Asked, Look] | None:
    """The question about a finding, in the document as it is now; None where it has no such finding."""
    from graphmend.analysis.syntax.source import Source
    from graphmend.model.ask import Asked
    from graphmend.transforms.fix import Refusal
    from graphmend.transforms.offers import mend
    from graphmend.workspace.analysed_file import AnalysedFile

    texts = {each.path: each.text.text for each in session.documents}
    file = AnalysedFile(Path(document.path), session.configuration(document), texts=texts)
    result = file.look(Source(document.text.text, document.path))
    finding = next((found for found in result.findings if found.key == key), None)
    facts = result.facts(finding) if finding is not None else None
    if finding is None or facts is None:
        return None
    refusals = [answer for answer in mend(finding, facts) if isinstance(answer, Refusal)]
    return Asked(result, finding, facts, refusals), file.look


def _written(text: str) -> Path:
    """The question as a file for the user to read, which nobody else can."""
    from graphmend.workspace.cache import cache_folder

    path = cache_folder() / "asked" / "question.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
    return path
