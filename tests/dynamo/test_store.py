"""Reports that outlive the process. Answers are made by hand: no torch is needed."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import pytest

import graphmend
from graphmend.dynamo.report_cache import Store
from graphmend.dynamo.requests import Request
from graphmend.workspace import cache


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


def test_an_older_graphmend_made_it(
    tmp_path: Path, request_: Request, answer: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "cache")
    store.keep(request_, "2.13", answer)
    with monkeypatch.context() as changed:
        changed.setattr(graphmend, "__version__", "0.0.0.older")
        cache.own_stamp.cache_clear()
        assert store.find(request_, "2.13") is None
    cache.own_stamp.cache_clear()
    assert store.find(request_, "2.13") == answer


def test_a_package_was_replaced_while_the_process_lives(
    tmp_path: Path, request_: Request, answer: dict[str, Any]
) -> None:
    packages = tmp_path / "venv" / "lib" / "python3.11" / "site-packages"
    (packages / "einops-0.7.dist-info").mkdir(parents=True)
    (tmp_path / "venv" / "pyvenv.cfg").write_text("version = 3.11.9\n")
    python = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    python.parent.mkdir()
    python.touch()
    store, asked = Store(tmp_path / "cache"), dataclasses.replace(request_, interpreter=str(python))
    store.keep(asked, "2.13", answer)
    assert store.find(asked, "2.13") == answer
    (packages / "einops-0.7.dist-info").rename(packages / "einops-0.8.dist-info")
    assert store.find(asked, "2.13") is None
