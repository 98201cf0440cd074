"""A small editor for the tests: it keeps its own copy of each text, applies the edits it is sent, and remembers what it
was shown. It shares no code with the server."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Union

import cattrs
from lsprotocol import types
from pygls.protocol import default_converter
from pytest_lsp import LanguageClient

from .servers import Server

CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
PATIENCE = 20.0


def capabilities(
    *,
    pull: bool = False,
    encodings: tuple[str, ...] | None = None,
    literals: bool = True,
    resolve: bool = True,
    versioned: bool = True,
    progress: bool = True,
    configuration: bool = False,
) -> types.ClientCapabilities:
    """What the editor declares; by default nearly everything."""
    action = types.CodeActionClientCapabilities()
    if literals:
        kinds = types.ClientCodeActionKindOptions([types.CodeActionKind.QuickFix, types.CodeActionKind.SourceFixAll])
        action.code_action_literal_support = types.ClientCodeActionLiteralOptions(kinds)
        action.is_preferred_support = True
    if resolve:
        action.data_support = True
        action.resolve_support = types.ClientCodeActionResolveOptions(["edit"])
    published = types.PublishDiagnosticsClientCapabilities(
        related_information=True, version_support=True, code_description_support=True, data_support=True
    )
    return types.ClientCapabilities(
        general=types.GeneralClientCapabilities(position_encodings=encodings) if encodings else None,
        window=types.WindowClientCapabilities(work_done_progress=progress),
        workspace=types.WorkspaceClientCapabilities(
            apply_edit=True,
            configuration=configuration,
            file_operations=types.FileOperationClientCapabilities(did_create=True, did_rename=True, did_delete=True),
            workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=versioned),
            diagnostics=types.DiagnosticWorkspaceClientCapabilities(refresh_support=True) if pull else None,
        ),
        text_document=types.TextDocumentClientCapabilities(
            publish_diagnostics=published,
            diagnostic=types.DiagnosticClientCapabilities() if pull else None,
            hover=types.HoverClientCapabilities(content_format=[types.MarkupKind.Markdown]),
            code_action=action,
            code_lens=types.CodeLensClientCapabilities(),
        ),
        experimental={"graphmend": {"checked": True}},
    )


class Editor:
    """One client with its documents."""

    def __init__(self, client: LanguageClient, root: Path, server: Server | None = None) -> None:
        self.client = client
        self.server = server or client._server
        self.root = root
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.published: list[types.PublishDiagnosticsParams] = []
        self.shown: list[str] = []
        self.logged: list[str] = []
        self.checked: list[dict[str, Any]] = []
        self.progress: list[Any] = []
        self.refreshes = 0
        self.settings: dict[str | None, Any] = {}
        self.result: types.InitializeResult
        self._listen()

    def _listen(self) -> None:
        on = self.client.feature
        on(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: self.published.append(params))
        on(types.WINDOW_SHOW_MESSAGE)(lambda params: self.shown.append(params.message))
        on(types.WINDOW_LOG_MESSAGE)(lambda params: self.logged.append(params.message))
        on(types.PROGRESS)(lambda params: self.progress.append(params))
        on(types.WINDOW_WORK_DONE_PROGRESS_CREATE)(lambda params: None)
        on(types.WORKSPACE_APPLY_EDIT)(lambda params: self._apply_edit(params))
        on(types.WORKSPACE_CONFIGURATION)(
            lambda params: [self.settings.get(item.scope_uri, self.settings.get(None)) for item in params.items]
        )
        on(types.WORKSPACE_DIAGNOSTIC_REFRESH)(lambda _: self._refresh())
        on("graphmend/checked")(lambda params: self.checked.append(params._asdict()))

    def _refresh(self) -> None:
        self.refreshes += 1

    def _apply_edit(self, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        self.apply(params.edit)
        return types.ApplyWorkspaceEditResult(applied=True)

    async def initialize(
        self,
        client: types.ClientCapabilities | None = None,
        options: Any = None,
        folders: list[Path] | None = None,
    ) -> None:
        places = [self.root] if folders is None else folders
        self.result = await self.client.initialize_session(
            types.InitializeParams(
                capabilities=client or capabilities(),
                initialization_options=options,
                workspace_folders=[types.WorkspaceFolder(place.as_uri(), place.name) for place in places],
            )
        )

    async def leave(self) -> float:
        """Shuts the server down; the seconds that took."""
        assert self.server is not None
        begin = time.perf_counter()
        if self.server.returncode is None:
            await asyncio.wait_for(self.client.shutdown_session(), 5)
        if isinstance(self.server, Server):
            assert await asyncio.wait_for(asyncio.to_thread(self.server.wait), 5) == 0
        await self.client.stop()
        return time.perf_counter() - begin

    @property
    def encoding(self) -> str:
        return str(getattr(e := self.result.capabilities.position_encoding, "value", e))

    # documents

    def open(self, path: Path, text: str | None = None, version: int = 1) -> str:
        uri = path.as_uri()
        self.texts[uri] = path.read_bytes().decode() if text is None else text
        self.versions[uri] = version
        item = types.TextDocumentItem(uri, types.LanguageKind.Python, version, self.texts[uri])
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return uri

    def edit(self, uri: str, begin: int, end: int, new: str) -> None:
        """Replaces text between two offsets, and says so."""
        text = self.texts[uri]
        change = types.TextDocumentContentChangePartial(range=self.range(text, begin, end), text=new)
        self.texts[uri] = text[:begin] + new + text[end:]
        self.change(uri, change)

    def replace(self, uri: str, old: str, new: str) -> None:
        begin = self.texts[uri].index(old)
        self.edit(uri, begin, begin + len(old), new)

    def change(self, uri: str, *changes: Any, version: int | None = None) -> None:
        self.versions[uri] = self.versions[uri] + 1 if version is None else version
        identifier = types.VersionedTextDocumentIdentifier(version=self.versions[uri], uri=uri)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(identifier, list(changes)))

    def save(self, uri: str) -> None:
        self.client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))

    def close(self, uri: str) -> None:
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))

    def apply(self, edit: types.WorkspaceEdit) -> None:
        """Makes a workspace edit, and tells the server of the changes."""
        for uri, edits in self.edits(edit):
            places = [(*self.offsets(self.texts[uri], e.range), e.new_text) for e in edits]
            for begin, end, new in sorted(places, reverse=True):
                self.edit(uri, begin, end, new)

    def edits(self, edit: types.WorkspaceEdit) -> list[tuple[str, Any]]:
        """The edits of each document, which are for its newest version."""
        if edit.changes:
            return list(edit.changes.items())
        changes = []
        for change in edit.document_changes or ():
            assert isinstance(change, types.TextDocumentEdit)
            assert change.text_document.version == self.versions[change.text_document.uri]
            changes.append((change.text_document.uri, change.edits))
        return changes

    # places

    def position(self, text: str, offset: int) -> types.Position:
        before = text[:offset].replace("\r\n", "\n\n")  # as long, and each line end one character
        begin = max(before.rfind("\n"), before.rfind("\r")) + 1
        line = len(text[:offset].replace("\r\n", "\n").replace("\r", "\n").split("\n")) - 1
        codec, width = CODECS[self.encoding]
        return types.Position(line, len(text[begin:offset].encode(codec)) // width)

    def range(self, text: str, begin: int, end: int) -> types.Range:
        return types.Range(self.position(text, begin), self.position(text, end))

    def offsets(self, text: str, place: types.Range) -> tuple[int, int]:
        at = {(p.line, p.character): n for n in range(len(text), -1, -1) for p in [self.position(text, n)]}
        return at[place.start.line, place.start.character], at[place.end.line, place.end.character]

    def marked(self, uri: str, diagnostic: types.Diagnostic) -> str:
        """The text under a diagnostic."""
        begin, end = self.offsets(self.texts[uri], diagnostic.range)
        return self.texts[uri][begin:end]

    def at(self, uri: str, text: str) -> types.Range:
        """Where some text stands."""
        begin = self.texts[uri].index(text)
        return self.range(self.texts[uri], begin, begin + len(text))

    # answers

    async def until(self, condition: Callable[[], Any], patience: float = PATIENCE) -> Any:
        """Waits until a condition holds."""
        deadline = time.monotonic() + patience
        while not (value := condition()):
            assert time.monotonic() < deadline, f"waited in vain; logged: {self.logged}"
            await asyncio.sleep(0.01)
        return value

    async def diagnostics(self, uri: str) -> list[types.Diagnostic]:
        """What was published for the newest version."""

        def newest() -> types.PublishDiagnosticsParams | None:
            mine = (p for p in reversed(self.published) if p.uri == uri and p.version == self.versions[uri])
            return next(mine, None)

        published = await self.until(newest)
        return list(published.diagnostics)

    async def pull(self, uri: str, previous: str | None = None) -> Any:
        params = types.DocumentDiagnosticParams(types.TextDocumentIdentifier(uri), previous_result_id=previous)
        return await asyncio.wait_for(self.client.text_document_diagnostic_async(params), PATIENCE)

    async def actions(self, uri: str, place: types.Range, only: list[str] | None = None) -> list[Any]:
        context = types.CodeActionContext(diagnostics=[], only=only)
        params = types.CodeActionParams(types.TextDocumentIdentifier(uri), place, context)
        found = await asyncio.wait_for(self.client.text_document_code_action_async(params), PATIENCE)
        return list(found or ())

    async def hover(self, uri: str, position: types.Position) -> str | None:
        params = types.HoverParams(types.TextDocumentIdentifier(uri), position)
        found = await asyncio.wait_for(self.client.text_document_hover_async(params), PATIENCE)
        return None if found is None else found.contents.value

    async def lenses(self, uri: str) -> list[str]:
        params = types.CodeLensParams(types.TextDocumentIdentifier(uri))
        found = await asyncio.wait_for(self.client.text_document_code_lens_async(params), PATIENCE)
        return [lens.command.title for lens in found or () if lens.command]

    async def execute(self, command: str, *arguments: Any, patience: float = PATIENCE) -> Any:
        params = types.ExecuteCommandParams(command, arguments=list(arguments))
        return await asyncio.wait_for(self.client.workspace_execute_command_async(params), patience)


@functools.cache
def _converter() -> cattrs.Converter:
    """One for all clients, as each makes its functions anew, which takes longer than most tests."""
    made = default_converter()

    def structure(found: Any, _: Any) -> Any:
        """lsprotocol 2025.0 takes each code action that holds a command for a bare command."""
        bare = isinstance(found.get("command"), str)
        return made.structure(found, types.Command if bare else types.CodeAction)

    made.register_structure_hook(Union[types.Command, types.CodeAction], structure)  # noqa: UP007 (that key)
    return made


def new_client() -> LanguageClient:
    return LanguageClient(converter_factory=_converter)
