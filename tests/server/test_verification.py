"""The processes behind the checks of a session. Nothing is run."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from graphmend.dynamo import service
from graphmend.server.analyses.folder_settings import Folders
from graphmend.server.documents.open_documents import Document
from graphmend.server.verification.checks import Verification


def test_documents_that_open_together_share_one_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that nobody knows of would never be closed, and its processes would stay."""
    made: list[Slow] = []

    class Slow(service.Service):
        def __init__(self, **options: Any) -> None:
            time.sleep(0.05)  # long enough for another thread to ask meanwhile
            super().__init__(**options)
            made.append(self)

    monkeypatch.setattr(service, "Service", Slow)
    monkeypatch.setenv("GRAPHMEND_CACHE_DIR", str(tmp_path / "cache"))
    documents = [Document("", 1, "import torch\n", str(tmp_path / f"{name}.py")) for name in "abcd"]

    async def open_all() -> None:
        verification = Verification(Folders(), dict)
        assert await asyncio.gather(*map(verification.recall, documents)) == [[]] * 4
        await verification.close()

    asyncio.run(open_all())
    assert len(made) == 1
