"""Answers of earlier questions, in the user's cache folder: the same question to the same model is sent once.

An answer is good for the whole conversation up to it, the address, the model's name and its options; it passes the
gates anew each time. Files are readable by the user alone, and hold answers: no question, no key.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path

from graphmend.model import prompt
from graphmend.model.endpoint import Endpoint
from graphmend.model.meaning import Message, Schema
from graphmend.workspace import files
from graphmend.workspace.cache import cache_folder, digest

_MOST = 1_000
"""Answers that are kept; the oldest go."""


class Remembered:
    """A model that remembers. With `fresh` every question is sent, and the new answer kept."""

    def __init__(self, endpoint: Endpoint, *, fresh: bool = False) -> None:
        self._endpoint = endpoint
        self._fresh = fresh
        self._folder = cache_folder() / "asked"

    @property
    def requests(self) -> int:
        return self._endpoint.requests

    def complete(self, messages: Sequence[Message], schema: Schema) -> str:
        """The text of the answer, from the folder or from the endpoint; raises `Unanswered`."""
        path = self._folder / self._name(messages, schema)
        known = None if self._fresh else _read(path)
        if known is not None:
            return known
        text = self._endpoint.complete(messages, schema)
        _keep(path, text)
        return text

    def _name(self, messages: Sequence[Message], schema: Schema) -> str:
        said = (part for m in messages for part in (m.role, prompt.unmarked(m.text)))
        return digest(self._endpoint.address, *self._endpoint.options(schema), *said)


def _read(path: Path) -> str | None:
    with contextlib.suppress(OSError, ValueError, RecursionError):
        found = json.loads(path.read_bytes())
        if isinstance(found, dict) and isinstance(found.get("answer"), str):
            return str(found["answer"])
    return None


def _keep(path: Path, text: str) -> None:
    """A folder that cannot be written is no reason to lose an answer."""
    with contextlib.suppress(OSError, files.FileProblem):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        files.replace(path, json.dumps({"answer": text}).encode(), mode=0o600)
        kept = sorted(path.parent.iterdir(), key=lambda each: each.stat().st_mtime)
        for old in kept[:-_MOST]:
            old.unlink(missing_ok=True)
