"""Code lenses over modules and compiled functions: how many graph breaks are found, the check that confirms them, and
how much faster a whole graph is.

https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification/#textDocument_codeLens
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from graphmend.analysis.syntax.span import Span
from graphmend.server.documents import outline
from graphmend.server.documents.open_documents import Document
from graphmend.server.documents.outline import Definition
from graphmend.server.lsp.command_names import VERIFY
from graphmend.server.session import Session, ShownFinding

if TYPE_CHECKING:
    from graphmend.analysis.incremental.finding_store import Reach
    from graphmend.dynamo.report import TargetReport


def register(server: LanguageServer, session: Session) -> None:
    @server.feature(types.TEXT_DOCUMENT_CODE_LENS, types.CodeLensOptions(resolve_provider=False))
    async def lenses(params: types.CodeLensParams) -> list[types.CodeLens]:
        document = session.documents.get(params.text_document.uri)
        if document is None or not session.configuration(document)["code-lens.enable"]:
            return []
        host = document.host  # a notebook's cell is part of its module, and what runs is that
        shown = await session.current(host)
        reach = await session.analyses.reach(host)
        return [
            lens
            for definition in outline.definitions(host.text.text)
            if (at := _place(host, document, definition)) is not None
            for lens in _lenses(session, document, definition, at, _Count.of(definition, shown, reach))
        ]


def _place(host: Document, document: Document, definition: Definition) -> int | None:
    """The line (from 0) of a definition in one document of the module; None where it stands in another one."""
    line, _ = host.text.position(definition.at)
    inside = document.inside(Span(line + 1, 0, line + 1, 0))
    return None if inside is None else inside.line - 1


class _Count(NamedTuple):
    """Graph breaks in a definition's own lines, and with those of all that it calls."""

    own: int
    total: int

    @classmethod
    def of(cls, definition: Definition, shown: list[ShownFinding], reach: Mapping[str, Reach]) -> _Count:
        functions = [one.finding.function for one in shown]
        below = reach.get(definition.name)
        own = [function.split(".")[0] == definition.name for function in functions]
        if below is None:
            return cls(sum(own), sum(own))
        with_callees = (mine or function in below.functions for mine, function in zip(own, functions, strict=True))
        return cls(sum(own), sum(with_callees) + below.elsewhere)

    @property
    def text(self) -> str:
        if not self.total:
            return "No graph breaks found"
        if self.own == self.total:
            return f"{self.total} graph break{'' if self.total == 1 else 's'}"
        return f"Graph breaks: own {self.own}, with callees {self.total}"


def _lenses(
    session: Session, document: Document, definition: Definition, line: int, count: _Count
) -> Iterator[types.CodeLens]:
    target = session.verification.checked(document.host).target(document.host, definition.name)
    if (title := _title(target, definition, count)) is not None:
        yield _lens(session, document, line, title)
    if target is not None and target.status == "checked" and not target.breaks and target.times is None:
        yield _lens(session, document, line, "Measure speed", times=True)


def _title(target: TargetReport | None, definition: Definition, count: _Count) -> str | None:
    """What the lens over a definition says; None where nothing is compiled, as far as anybody knows."""
    if target is not None and target.status == "checked":
        return _measured(target)
    if target is not None and target.status == "no-inputs":
        return "No inputs found: write an example - Verify"
    if not count.total and not (definition.is_class and "forward" in definition.methods):
        return None
    return f"{count.text} - Verify"


def _measured(target: TargetReport) -> str:
    from graphmend.dynamo.report import compilations  # what is asked after a check is not loaded at the start

    count = f"{target.graphs} graph{'' if target.graphs == 1 else 's'}"
    breaks = f", {len(target.breaks)} graph break{'' if len(target.breaks) == 1 else 's'}" if target.breaks else ""
    faster = f", {target.times.eager / target.times.compiled:.1f}x" if target.times and target.times.compiled else ""
    return f"{count}{breaks}{compilations(target)}, verified on {target.device}{faster}: {target.inputs}"


def _lens(session: Session, document: Document, line: int, title: str, *, times: bool = False) -> types.CodeLens:
    lines = document.text
    start = types.Position(line, 0)
    end = types.Position(line, lines.to_units(line, len(lines.line(line)), session.encoding))
    arguments = [document.uri, {"line": start.line, "character": start.character}, *([True] if times else ())]
    return types.CodeLens(
        range=types.Range(start, end),
        command=types.Command(title=title, command=VERIFY, arguments=arguments),
    )
