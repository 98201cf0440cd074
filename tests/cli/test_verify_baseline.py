"""`verify --baseline`: no new breaks, with TorchDynamo's own."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphmend.analysis.syntax.span import Span
from graphmend.cli.verifying import break_baseline
from graphmend.dynamo.report import Break

Run = Callable[..., Any]

MODEL = """\
import torch


# graphmend: example f(torch.ones(2))
@torch.compile
def f(x):
    print("before")
    return x + 1


if __name__ == "__main__":
    f(torch.ones(2))
"""


def a_break(path: Path, line: int, source: str) -> Break:
    span = Span(line, 4, line, 9)
    return Break(str(path), span, "Net.f", "break", "Unsupported", "GB0059", "reason", (), (), source=source)


class TestKnown:
    def known(self, folder: Path, before: list[Break], now: list[Break]) -> list[Break]:
        """The breaks of `now` that a baseline made of `before` lets through."""
        break_baseline.write(folder / "b.json", before)
        return list(break_baseline.Known(folder / "b.json", now).new(now))

    def test_another_torch_says_it_with_other_words(self, folder: Path) -> None:
        one = a_break(folder / "m.py", 3, "    print(x)")
        other = replace(one, gb_id=None, gb_type="call print", reason="other words", function="f", kind="skip")
        assert self.known(folder, [one], [other]) == []

    def test_moved_code_is_known_and_changed_code_is_new(self, folder: Path) -> None:
        one = a_break(folder / "m.py", 3, "    print(x)")
        changed = a_break(folder / "m.py", 3, "    print(y)")
        assert self.known(folder, [one], [a_break(folder / "m.py", 30, "  print(x)"), changed]) == [changed]

    def test_one_place_in_two_targets_is_one_and_a_copy_is_new(self, folder: Path) -> None:
        one, copy = a_break(folder / "m.py", 3, "print(x)"), a_break(folder / "m.py", 4, "print(x)")
        assert self.known(folder, [one], [one, one]) == []
        assert self.known(folder, [one, one], [one, copy]) == [copy]

    def test_check_and_verify_share_a_file(self, run: Run, folder: Path) -> None:
        (folder / "m.py").write_text(MODEL)
        assert run("check", "--write-baseline", "b.json").status == 0
        one = a_break(folder / "m.py", 7, '    print("before")')
        break_baseline.write(folder / "b.json", [one])
        assert run("check", "--baseline", "b.json").status == 0
        assert run("check", "--write-baseline", "b.json").status == 0
        assert break_baseline.Known(folder / "b.json", [one]).new([one]) == ()


def test_unreadable_baseline_is_told_before_anything_runs(run: Run, folder: Path) -> None:
    outcome = run("verify", "--baseline", "none.json", "--", sys.executable, "-c", "print('ran')")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.count("\n") == 1


@pytest.mark.torch
def test_only_new_breaks_count(run: Run, folder: Path) -> None:
    (folder / "m.py").write_text(MODEL)
    words = ("verify", "--device", "cpu", "--python", sys.executable, "m.py")
    assert run(*words, "--write-baseline", "b.json").status == 0
    known = run(*words, "--baseline", "b.json")
    assert known.status == 0, known.out + known.err
    assert "no graph break besides 1 known" in known.out
    (folder / "m.py").write_text(MODEL.replace("    return", '    print("after")\n    return'))
    new = run(*words, "--baseline", "b.json", "--output-format", "json")
    assert new.status == 1
    (target,) = json.loads(new.out)[0]["targets"]
    assert [item["location"]["row"] for item in target["breaks"]] == [8]
    assert target["known_breaks"] == 1


@pytest.mark.torch
def test_baseline_of_a_command(run: Run, folder: Path) -> None:
    (folder / "m.py").write_text(MODEL)
    command = ("--", sys.executable, "m.py")
    assert run("verify", "--write-baseline", "b.json", *command).status == 0
    outcome = run("verify", "--baseline", "b.json", *command)
    assert outcome.status == 0
    assert "1 known break not shown" in outcome.out
