"""One service, with one warm worker, for all tests of the check: importing torch takes longer than most of them."""

from __future__ import annotations

import asyncio
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from graphmend.dynamo.report import Report, TargetReport
from graphmend.dynamo.requests import Request
from graphmend.dynamo.service import Service


class Checks:
    """Synchronous access to a service that lives in a loop of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.service = Service()

    def wait(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(120)

    def __call__(self, path: Path | str, **options: Any) -> Report:
        options.setdefault("timeout", 30.0)
        return self.wait(self.service.check(Request(path=str(path), interpreter=sys.executable, **options)))

    def close(self) -> None:
        self.wait(self.service.close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()


@pytest.fixture(scope="session")
def checks() -> Iterator[Checks]:
    made = Checks()
    yield made
    made.close()


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes a file of source text, torch imported."""

    def write(text: str, name: str = "model.py") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("import torch\nfrom torch import nn\n" + textwrap.dedent(text), encoding="utf-8")
        return path

    return write


@pytest.fixture
def check(checks: Checks, write: Callable[..., Path]) -> Callable[..., TargetReport]:
    """Checks a text that has one target, which must be checkable."""

    def check(text: str, **options: Any) -> TargetReport:
        report = checks(write(text), **options)
        assert report.problem is None, report.problem
        (target,) = report.targets
        assert target.problem is None, target.problem
        return target

    return check
