"""pygls' server, with its errors sent to the log."""

from __future__ import annotations

import logging
import sys
from typing import Any

from pygls.exceptions import JsonRpcException, JsonRpcInternalError
from pygls.lsp.server import LanguageServer

from graphmend.server.lsp.protocol import Protocol

log = logging.getLogger(__name__)


class Server(LanguageServer):
    """pygls' server, which reports its errors to the log: a popup helps nobody."""

    protocol: Protocol

    def report_server_error(self, error: Exception, source: Any) -> None:
        if source is JsonRpcInternalError and isinstance(error, OSError | ValueError):
            # a write failed: pygls 2.1 has this source for it; telling the client would be another write, without end
            print(f"graphmend: the client cannot be written to: {error}", file=sys.stderr)
        elif isinstance(error, JsonRpcException) and not isinstance(error, JsonRpcInternalError):
            log.warning("%s", error)  # the client's mistake, and its answer says so
        else:
            log.error("%s", error, exc_info=error)
