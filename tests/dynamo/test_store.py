"""Reports that outlive the process. Answers are made by hand: no torch is needed."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from graphmend.dynamo.store import Store
from graphmend.dynamo.targets import Request


@pytest.fixture
def request_(tmp_path: Path) -> Request:
    (tmp_path / "model.py").write_text("a\n")
    (tmp_path / "part.py").write_text("b\n")
    return Request(str(tmp_path / "model.py"))


@pytest.fixture
def answer(tmp_path: Path) -> dict[str, Any]:
    return {"result": {"targets": [{"executed": {str(tmp_path / "part.py"): [[1, 1]]}}]}}


def test_found_by_another_process(tmp_path: Path, request_: Request, answer: dict[str, Any]) -> None:
    Store(tmp_path / "cache").keep(request_, "2.13", answer)
    assert Store(tmp_path / "cache").find(request_, "2.13") == answer


def test_good_for_the_same_question_only(tmp_path: Path, request_: Request, answer: dict[str, Any]) -> None:
    store = Store(tmp_path / "cache")
    store.keep(request_, "2.13", answer)
    assert store.find(request_, "2.14") is None
    assert store.find(dataclasses.replace(request_, device="cpu"), "2.13") is None
    assert store.find(dataclasses.replace(request_, names=("Net",)), "2.13") is None
    assert store.find(dataclasses.replace(request_, texts={request_.path: "unsaved\n"}), "2.13") is None
    assert store.find(dataclasses.replace(request_, texts={request_.path: "a\n"}), "2.13") == answer


def test_a_file_that_took_part_has_changed(tmp_path: Path, request_: Request, answer: dict[str, Any]) -> None:
    store = Store(tmp_path / "cache")
    store.keep(request_, "2.13", answer)
    (tmp_path / "part.py").write_text("c\n")
    assert store.find(request_, "2.13") is None
