"""The helpers beside these tests are imported by name."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _what_these_tests_measure_does_not_bind_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """They decide with which versions of torch a rewrite is offered, so here each is offered with every one."""
    monkeypatch.setattr("graphmend.transforms.offers.unmeasured", lambda rewrite, version: None)


@pytest.fixture(autouse=True)
def _judged_rewrites_are_in_the_report(record_property: Callable[[str, object], None]) -> Iterator[None]:
    """`make versions` reads there which rewrites hold with a torch."""
    judge = importlib.import_module("judge")
    judge.record = judge.Record()
    yield
    if judge.record.ran:
        for rewrite in sorted(judge.record.rewrites):
            record_property("rewrite", rewrite)
