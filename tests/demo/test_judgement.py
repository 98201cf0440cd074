"""The demo's word is worth something only if it fails where anything does not hold."""

from __future__ import annotations

import asyncio
import importlib
import io
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console


@pytest.fixture
def demo(root: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(root / "examples"))
    return importlib.import_module("demo")


def story(demo: ModuleType, **changes: Any) -> Any:
    """All is well with T5, but for `changes`: of the run, of the checks, or of what is left to find."""
    message = "WARNING transformers: Passing a tuple of `past_key_values` is deprecated"
    run = {
        "side": "as built",
        "reached": True,
        "finite": True,
        "values": 10,
        "gradients": 47,
        "eager_difference": 0.0,
        "compiled_difference": 1e-9,
        "compiled_equal": True,
        "graphs": [4, 1],
        "logged": [message],
        "logged_eager": [message],
        "logged_compiled": [message],
    }
    run |= {key: value for key, value in changes.items() if key in run}
    finding = demo.Finding("key", changes.get("code", "GM202"), 1019, "Logger.warning_once() logs", "confirmed")
    check = {"seconds": 1.0, "device": "cpu", "torch": "2.13.0"}
    return demo.Story(
        model=demo.MODELS["t5"],
        found=[finding],
        left=changes.get("left", []) and [finding],
        before={**check, "graphs": changes.get("before", 4), "breaks": [{}]},
        after={**check, "graphs": changes.get("after", 1), "breaks": changes.get("breaks", [])},
        runs=[run],
    )


def judged(demo: ModuleType, **changes: Any) -> tuple[int, str]:
    console = Console(file=io.StringIO(), width=200)
    status = demo.judge([story(demo, **changes)], console)
    return status, console.file.getvalue()  # type: ignore[attr-defined]


def test_all_is_well(demo: ModuleType) -> None:
    status, text = judged(demo)
    assert status == 0
    assert "3 -> 0" in text


@pytest.mark.parametrize(
    "changes",
    [
        {"before": 5},
        {"after": 2},
        {"breaks": [{"line": 1}]},
        {"code": "GM901"},
        {"left": True},
        {"reached": False},
        {"finite": False},
        {"eager_difference": 1e-9},
        {"compiled_equal": False},
        {"graphs": [4, 2]},
        {"graphs": [1, 1]},
        {"logged": []},
        {"logged_eager": []},
        {"logged_compiled": []},
    ],
    ids=str,
)
def test_what_does_not_hold_is_said(demo: ModuleType, changes: dict[str, Any]) -> None:
    status, text = judged(demo, **changes)
    assert status == 1
    assert "does not hold: T5ForConditionalGeneration" in text


def test_edits_count_utf_16_units_and_places_of_the_text_before(demo: ModuleType) -> None:
    def edit(line: int, begin: int, end: int, new: str) -> dict[str, Any]:
        return {
            "range": {"start": {"line": line, "character": begin}, "end": {"line": line, "character": end}},
            "newText": new,
        }

    edited = importlib.import_module("demo_parts.editor").edited
    text = "a\r\n\U0001d4b3 = é\nlast"
    assert (
        edited(text, [edit(1, 5, 6, "e"), edit(0, 0, 1, "bb"), edit(2, 4, 4, "!\n")]) == "bb\r\n\U0001d4b3 = e\nlast!\n"
    )


def test_a_server_that_does_not_start_is_one_line(
    demo: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = importlib.import_module("demo_parts.editor")
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho 'no such module' >&2\n")
    broken.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(broken))

    async def start() -> None:
        async with editor.Editor.started(tmp_path, {}, tmp_path / "log"):
            pass

    with pytest.raises(editor.ServerError, match="ended before it answered: no such module"):
        asyncio.run(start())
