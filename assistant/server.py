"""The server: the tools by the Model Context Protocol, on standard input and output."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from graphmend import __version__
from graphmend.assistant.folders import Folders
from graphmend.assistant.tools import PAGE, Refused, Tools

MOST_CHARACTERS = 16_000
"""Of one answer: assistants cut what is longer, or pay for it."""

INSTRUCTIONS = """GraphMend finds the places in Python source where torch.compile breaks its graph.
check a file, explain a finding before you change anything, take its mend where there is one (safe mends keep the
behaviour, unsafe ones name how they differ), and write a replacement of the function only where there is none.
verify judges a replacement: gates on its text, the analysis, then TorchDynamo beside the original. Nothing here writes
a file: apply what passed yourself."""

Path = Annotated[str, Field(description="a Python file below the folders that the server was started with")]
Key = Annotated[str, Field(description="the finding's key, as check gave it")]
_READS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
_RUNS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=False, open_world_hint=False)


def serve(folders: Folders, *, runs: bool, python: str | None = None) -> None:
    """Serves until standard input ends. Without `runs` nothing of the user's is run: there is no `verify`."""
    build(folders, runs=runs, python=python).run("stdio")


def build(folders: Folders, *, runs: bool, python: str | None = None) -> MCPServer[Any]:
    """The server with its tools."""
    tools = Tools(folders, python)

    @asynccontextmanager
    async def lifespan(_: MCPServer[Any]) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await tools.close()

    server: MCPServer[Any] = MCPServer(
        "graphmend", version=__version__, instructions=INSTRUCTIONS, lifespan=lifespan, log_level="WARNING"
    )

    @server.tool(annotations=_READS, structured_output=False)
    async def check(path: Path, limit: int = PAGE, offset: int = 0) -> str:
        """The graph breaks of a file: key, line, function, message, effect, and whether a mend exists."""
        return await _told(tools.check(path, limit, offset))

    @server.tool(annotations=_READS, structured_output=False)
    async def explain(path: Path, key: Key) -> str:
        """Why a finding breaks the graph: evidence, advice, TorchDynamo's words, why no rule mends it, the function's
        text, and the rules that a replacement must keep to."""
        return await _told(tools.explain(path, key))

    @server.tool(annotations=_READS, structured_output=False)
    async def mend(path: Path, key: Key, unsafe: bool = False) -> str:
        """The rule-made mend of a finding as a unified diff, with how it differs. Writes nothing."""
        return await _told(tools.mend(path, key, unsafe))

    if runs:

        @server.tool(annotations=_RUNS, structured_output=False)
        async def verify(path: Path, function: str, replacement: str | None = None) -> str:
            """Runs the function's module under TorchDynamo, beside a replacement of the whole function where one is
            given: which gates it passed or the first that it failed, breaks before and after, differences. Writes
            nothing."""
            return await _told(tools.verify(path, function, replacement))

    return server


async def _told(answer: Any) -> str:
    """An answer as compact JSON of bounded length; what is refused is the tool's error."""
    try:
        data = await answer
    except Refused as error:
        raise ToolError(str(error)) from None
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    while len(text) > MOST_CHARACTERS and len(data.get("findings", ())) > 1:
        data["findings"].pop()
        data["more"] = data.get("more", data["total"]) - 1
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    if len(text) > MOST_CHARACTERS:
        raise ToolError(f"the answer has {len(text):,} characters, and {MOST_CHARACTERS:,} are sent; ask about less")
    return text
