"""The commands: check with TorchDynamo, mend a file, explain a rule.

https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification/#workspace_executeCommand
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from typing import Any

from lsprotocol import converters, types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from graphmend.server.analyses.document_analysis import Unavailable
from graphmend.server.diagnostics import convert_finding
from graphmend.server.features.ask import Ask
from graphmend.server.features.verify import Verify
from graphmend.server.lsp.command_names import (
    ASK,
    EXPLAIN,
    MEND,
    MEND_AND_VERIFY,
    MEND_FILE,
    SHOW_RULE,
    VERIFY,
)
from graphmend.server.mends import mend_edits
from graphmend.server.session import Session

log = logging.getLogger(__name__)


def register(server: LanguageServer, session: Session, verify: Verify, ask: Ask) -> None:
    # each takes the server that it does not need: pygls 2.1 asks of the first parameter whether its type is a server's,
    # and before Python 3.11 `Any` is no class of which that can be asked
    @server.command(VERIFY)
    async def run_check(_: LanguageServer, *arguments: Any) -> dict[str, Any]:
        uri, position, times = _arguments(VERIFY, arguments, 1, 3)
        return await verify.command(_string(VERIFY, uri), _position(VERIFY, position), times=times is True)

    @server.command(MEND_FILE)
    async def mend_file(_: LanguageServer, *arguments: Any) -> bool:
        (uri,) = _arguments(MEND_FILE, arguments, 1, 1)
        document = session.documents.get(_string(MEND_FILE, uri))
        edit = None if document is None else await mend_edits.edit_all(session, document)
        return edit is not None and await session.client.apply("Mend graph breaks", edit)

    @server.command(EXPLAIN)
    def explain(_: LanguageServer, *arguments: Any) -> str:
        (code,) = _arguments(EXPLAIN, arguments, 1, 1)
        return _explain(_string(EXPLAIN, code))

    @server.command(SHOW_RULE)
    async def show_rule(_: LanguageServer, *arguments: Any) -> bool:
        (code,) = _arguments(SHOW_RULE, arguments, 1, 1)
        code = _string(SHOW_RULE, code)
        _explain(code)  # raises where there is no such rule
        page = types.ShowDocumentParams(convert_finding.url(code), external=True)
        return bool((await server.window_show_document_async(page)).success)

    @server.command(MEND_AND_VERIFY)
    async def mend_and_verify(_: LanguageServer, *arguments: Any) -> dict[str, Any]:
        (data,) = _arguments(MEND_AND_VERIFY, arguments, 1, 1)
        data = _plain(data)
        document = session.documents.get(str(data.get("uri"))) if isinstance(data, Mapping) else None
        if document is None:
            raise _wrong(MEND_AND_VERIFY, "takes what a code action gave, for an open document")
        return await verify.mend(document, data)

    @server.command(ASK)
    async def ask_a_model(_: LanguageServer, *arguments: Any) -> dict[str, Any]:
        (data,) = _arguments(ASK, arguments, 1, 1)
        data = _plain(data)
        if not isinstance(data, Mapping):
            raise _wrong(ASK, "takes what a code action gave")
        return await ask.command(str(data.get("uri")), str(data.get("key")))

    @server.command(MEND)
    async def mend(_: LanguageServer, *arguments: Any) -> bool:
        (data,) = _arguments(MEND, arguments, 1, 1)
        data = _plain(data)
        document = session.documents.get(str(data.get("uri"))) if isinstance(data, Mapping) else None
        if document is None:
            return False
        try:
            edit = await mend_edits.edit_of(session, document, data)
        except Unavailable as error:
            session.client.show(types.MessageType.Warning, f"GraphMend: {error}.")
            return False
        return await session.client.apply("Mend graph break", edit)


def _arguments(command: str, given: tuple[Any, ...], least: int, most: int) -> list[Any]:
    """The arguments, filled up with None; raises where there are too few or too many."""
    if not least <= len(given) <= most:
        raise _wrong(command, f"takes {least if least == most else f'{least} to {most}'} arguments, not {len(given)}")
    return [*given, *[None] * (most - len(given))]


def _string(command: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong(command, f"takes a string, not {value!r}")
    return value


def _position(command: str, value: Any) -> types.Position | None:
    if value is None:
        return None
    try:
        return converters.get_converter().structure(_plain(value), types.Position)
    except Exception as error:
        raise _wrong(command, f"takes a position, not {value!r}") from error


def _plain(value: Any) -> Any:
    """JSON as it came: pygls makes named tuples of objects whose type it does not know."""
    return value._asdict() if hasattr(value, "_asdict") else value


def _wrong(command: str, reason: str) -> JsonRpcInvalidParams:
    return JsonRpcInvalidParams(f"{command} {reason}")


def _explain(code: str) -> str:
    """A rule's documentation as Markdown."""
    from graphmend.analysis.findings.suppressions import UnusedSuppression
    from graphmend.analysis.rules import RULES
    from graphmend.analysis.rules.documentation import as_markdown
    from graphmend.dynamo.codes import CODES

    documented = {rule.code: rule.__doc__ for rule in RULES}
    documented |= {UnusedSuppression.code: UnusedSuppression.__doc__, **{known.code: known.__doc__ for known in CODES}}
    if code not in documented:
        raise _wrong(EXPLAIN, f"knows no rule {code}")
    return as_markdown(inspect.cleandoc(documented[code] or ""))
