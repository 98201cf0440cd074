"""Whether the workspace's code may run. It may not until the client says so."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from pygls.lsp.server import LanguageServer

from graphmend.server.session import Session

log = logging.getLogger(__name__)

DID_CHANGE_TRUST = "graphmend/didChangeTrust"


def register(server: LanguageServer, session: Session) -> None:
    @server.feature(DID_CHANGE_TRUST)
    def did_change_trust(params: Any) -> None:
        session.trust(_trusted(params))


def initial(options: Any) -> bool:
    """What the initialization options say."""
    return _trusted(options)


def _trusted(data: Any) -> bool:
    """Only a plain `true` is trust."""
    given = data.get("trusted", False) if isinstance(data, Mapping) else False
    if not isinstance(given, bool):
        log.warning('"trusted" should be true or false, not %r: nothing is run', given)
    return given is True
