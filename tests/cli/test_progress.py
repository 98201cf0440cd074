"""Progress of long runs."""

from __future__ import annotations

import io

import pytest

from graphmend.cli import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_terminal_sees_progress_and_then_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter(range(100))
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(seconds)))
    out = Terminal()
    assert list(progress.watched("abc", 3, out)) == ["a", "b", "c"]
    assert "Checked 2 of 3 files" in out.getvalue()
    assert out.getvalue().endswith("\r\x1b[K")


def test_short_runs_and_pipes_show_nothing() -> None:
    for out in (Terminal(), io.StringIO()):
        assert list(progress.watched("abc", 3, out)) == ["a", "b", "c"]
        assert out.getvalue() == ""
