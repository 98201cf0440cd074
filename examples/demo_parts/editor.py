"""A small editor: it starts the server over stdio, keeps the texts of open files, and makes the edits it is sent.

Speaks the Language Server Protocol itself, in plain JSON, and shares no code with the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]

CAPABILITIES: Json = {
    "general": {"positionEncodings": ["utf-16"]},
    "window": {"workDoneProgress": True},
    "workspace": {"workspaceEdit": {"documentChanges": True}},
    "textDocument": {
        "diagnostic": {},
        "publishDiagnostics": {"dataSupport": True},
        "codeAction": {
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix"]}},
            "dataSupport": True,
            "resolveSupport": {"properties": ["edit"]},
        },
    },
}


PATIENCE = 600.0
"""Seconds to wait for an answer. A check has its own, shorter limit in the server."""


class ServerError(Exception):
    """What the server answered instead of a result, or how it ended; one line."""


@dataclass
class Document:
    path: Path
    text: str
    version: int = 1

    @property
    def uri(self) -> str:
        return self.path.as_uri()


class Editor:
    """One conversation with the server. Use `Editor.started` to begin it."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log
        self._documents: dict[str, Document] = {}
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._listener = asyncio.ensure_future(self._listen())
        self.server = ""
        """The server's name and version."""

    @classmethod
    @contextlib.asynccontextmanager
    async def started(cls, root: Path, options: Json, log: Path) -> AsyncIterator[Editor]:
        """An editor with one workspace folder; the server's standard error goes to a file."""
        with log.open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "graphmend", "server"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                cwd=root,
            )
        editor = cls(process, log)
        try:
            await editor._initialize(root, options)
            yield editor
            await editor._leave()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
            editor._listener.cancel()

    async def _initialize(self, root: Path, options: Json) -> None:
        folders = [{"uri": root.as_uri(), "name": root.name}]
        given = {
            "processId": None,
            "rootUri": root.as_uri(),
            "workspaceFolders": folders,
            "capabilities": CAPABILITIES,
            "initializationOptions": options,
        }
        info = (await self._request("initialize", given)).get("serverInfo") or {}
        self.server = f"{info.get('name', '?')} {info.get('version', '')}".strip()
        self._notify("initialized", {})

    async def _leave(self) -> None:
        await self._request("shutdown", None)
        self._notify("exit", None)
        try:
            await asyncio.wait_for(self._process.wait(), 30)
        except asyncio.TimeoutError:
            raise ServerError("the server did not leave in 30 seconds") from None

    # documents

    def open(self, path: Path) -> Document:
        document = Document(path, path.read_bytes().decode())
        self._documents[document.uri] = document
        item = {"uri": document.uri, "languageId": "python", "version": 1, "text": document.text}
        self._notify("textDocument/didOpen", {"textDocument": item})
        return document

    def save(self, document: Document) -> None:
        document.path.write_bytes(document.text.encode())
        self._notify("textDocument/didSave", {"textDocument": {"uri": document.uri}})

    def apply(self, edit: Json) -> None:
        """Makes a workspace edit, and tells the server of the changes."""
        for change in edit["documentChanges"]:
            document = self._documents[change["textDocument"]["uri"]]
            if change["textDocument"]["version"] not in (document.version, None):
                raise ServerError("the server sent edits of another version of the document")
            document.text = edited(document.text, change["edits"])
            document.version += 1
            identifier = {"uri": document.uri, "version": document.version}
            changes = [{"text": document.text}]
            self._notify("textDocument/didChange", {"textDocument": identifier, "contentChanges": changes})

    # questions

    async def diagnostics(self, document: Document) -> list[Json]:
        """The findings in a document as it is now."""
        report = await self._request("textDocument/diagnostic", {"textDocument": {"uri": document.uri}})
        items: list[Json] = report["items"]
        return items

    async def actions(self, document: Document, place: Json) -> list[Json]:
        context = {"diagnostics": [], "only": ["quickfix"]}
        given = {"textDocument": {"uri": document.uri}, "range": place, "context": context}
        return await self._request("textDocument/codeAction", given) or []

    async def resolve(self, action: Json) -> Json:
        resolved: Json = await self._request("codeAction/resolve", action)
        return resolved

    async def execute(self, command: str, *arguments: Any) -> Any:
        return await self._request("workspace/executeCommand", {"command": command, "arguments": list(arguments)})

    # messages

    async def _request(self, method: str, params: Any) -> Any:
        number = len(self._answers) + 1
        self._answers[number] = asyncio.get_running_loop().create_future()
        if self._listener.done():
            raise self._ended()
        self._send({"id": number, "method": method, "params": params})
        try:
            return await asyncio.wait_for(self._answers[number], PATIENCE)
        except asyncio.TimeoutError:
            raise ServerError(f"the server did not answer {method} in {PATIENCE:.0f} seconds") from None

    def _ended(self) -> ServerError:
        lines = self._log.read_text("utf-8", "replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "it wrote nothing to its log")
        return ServerError(f"the server ended before it answered: {last}")

    def _notify(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    def _send(self, message: Json) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    async def _listen(self) -> None:
        """Takes messages until the server ends; whoever then still waits for an answer is told so."""
        stream = self._process.stdout
        assert stream is not None
        try:
            while header := await stream.readuntil(b"\r\n\r\n"):
                length = re.search(rb"Content-Length: *(\d+)", header)
                assert length is not None
                self._take(json.loads(await stream.readexactly(int(length[1]))))
        except asyncio.IncompleteReadError:
            pass
        finally:
            for answer in self._answers.values():
                if not answer.done():
                    answer.set_exception(self._ended())

    def _take(self, message: Json) -> None:
        method, number = message.get("method"), message.get("id")
        if method is None:
            answer = self._answers[message["id"]]
            if "error" in message:
                answer.set_exception(ServerError(message["error"]["message"]))
            else:
                answer.set_result(message.get("result"))
        elif number is not None:
            self._send({"id": number, "result": None})  # progress and registrations: nothing to decide


def edited(text: str, edits: list[Json]) -> str:
    """A text with edits made; their places are those of the text before."""
    starts = [0, *(match.end() for match in re.finditer(r"\r\n|\n|\r", text))]

    def offset(position: Json) -> int:
        line = text[starts[position["line"]] :]
        units = line.encode("utf-16-le")[: 2 * position["character"]]
        return starts[position["line"]] + len(units.decode("utf-16-le"))

    places = [(offset(e["range"]["start"]), offset(e["range"]["end"]), e["newText"]) for e in edits]
    for begin, end, new in sorted(places, reverse=True):
        text = text[:begin] + new + text[end:]
    return text
