"""A run over versions of torch goes on where it was ended, and counts what tests say of each rewrite."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from graphmend.analysis.syntax.span import Span
from graphmend.dynamo.report import Break, Report, RunInfo, TargetReport

Modules = Callable[[str], ModuleType]


@pytest.fixture
def of_versions(root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Modules:
    """A module of `bench.versions`; environments and progress lie in a folder of the test's own."""
    monkeypatch.setattr(sys, "path", [str(root), *sys.path])
    monkeypatch.setenv("GRAPHMEND_TORCH", str(tmp_path / "environments"))
    return lambda name: importlib.import_module(f"bench.versions.{name}")


def test_a_step_is_measured_once_until_something_changes(
    of_versions: Modules, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    progress = of_versions("progress")
    builds = {"old": "2.10.0+cu128", "new": "2.13.0+cpu"}
    monkeypatch.setattr(progress, "build", lambda python: progress.Build(builds[python], "site-packages"))
    part = tmp_path / "part.py"
    part.write_text("x = 1\n")
    made: list[str] = []

    def asked(python: str = "old", request: str = "one") -> int:
        progress.digest.cache_clear()
        found: int = progress.kept(python, [request], [part], lambda: made.append(request) or len(made))
        return found

    assert [asked(), asked()] == [1, 1]
    assert [asked("new"), asked("new"), asked()] == [2, 2, 1]
    assert [asked(request="other"), asked()] == [3, 1]
    part.write_text("x = 2\n")
    assert [asked(), asked()] == [4, 4]
    monkeypatch.setattr(progress, "again", True)
    assert [asked(), asked()] == [5, 6]


def test_a_step_that_fails_is_not_kept(of_versions: Modules, monkeypatch: pytest.MonkeyPatch) -> None:
    progress = of_versions("progress")
    monkeypatch.setattr(progress, "build", lambda python: progress.Build("2.13.0", "site-packages"))
    answers = iter([KeyboardInterrupt, None])

    def measure() -> str:
        if next(answers) is not None:
            raise KeyboardInterrupt
        return "measured"

    with pytest.raises(KeyboardInterrupt):
        progress.kept("python", "a request", [], measure)
    assert progress.kept("python", "a request", [], measure) == "measured"


def test_what_tests_say_of_rewrites(of_versions: Modules) -> None:
    suites = of_versions("suites")
    cases = [
        suites.Case("a", "passed", ["emit", "where"]),
        suites.Case("b", "failed", ["emit"]),
        suites.Case("c", "failed", ["emit", "select"]),
        suites.Case("d", "failed", ["cond", "where"]),
        suites.Case("e", "skipped", ["where"]),
    ]
    outcome = suites.outcome(cases)
    assert (outcome.passed, outcome.failed, outcome.skipped) == (1, ["b", "c", "d"], 1)
    assert outcome.rewrites == {"cond": (0, 1), "emit": (1, 3), "where": (1, 2)}


def test_files_that_are_measured_again_are_not_counted_twice(of_versions: Modules) -> None:
    joined = of_versions("__main__").joined
    known = {"cond": (4, 4), "emit": (3, 5), "where": (9, 9)}
    found = {"cond": (1, 2), "emit": (0, 1), "select": (2, 2), "where": (3, 3)}
    once = joined(known, found)
    assert once == {"cond": (3, 4), "emit": (3, 5), "select": (2, 2), "where": (9, 9)}
    assert joined(once, found) == once


def test_every_file_of_a_suite_is_there(of_versions: Modules, root: Path) -> None:
    for suite in of_versions("suites").SUITES.values():
        assert suite.paths()
        for path in suite.paths():
            assert (root / path.partition("::")[0]).is_file()


def test_other_tests_have_no_part_in_what_a_file_of_tests_says(of_versions: Modules, root: Path) -> None:
    needed = {str(path.relative_to(root)) for path in of_versions("suites")._needed("tests/transforms/test_outcome.py")}
    assert {"analysis", "tests/transforms/test_outcome.py", "tests/transforms/judge.py"} <= needed
    assert "tests/transforms/test_judged.py" in needed  # it is imported
    assert "tests/transforms/test_cond.py" not in needed


def test_no_room_is_missing_where_nothing_fits(of_versions: Modules, monkeypatch: pytest.MonkeyPatch) -> None:
    environments = of_versions("environments")
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 3 * 2**30})())
    with pytest.raises(environments.MissingError, match=r"torch 2\.8 needs 9 GB in .*, 3 are free"):
        environments.python_with("2.8")


def test_a_version_of_python_that_is_not_here_is_skipped(
    of_versions: Modules, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pythons = of_versions("pythons")
    monkeypatch.setattr(pythons, "interpreter", lambda version: None)
    monkeypatch.setattr(sys, "argv", ["pythons", "3.14"])
    with pytest.raises(SystemExit) as stop:
        pythons.main()
    assert stop.value.code == 0
    assert capsys.readouterr().out == "Python 3.14: skipped, it is not on this machine\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the probe forks")
def test_no_call_sees_what_another_one_left(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function may break in its first call alone; names that are taken together share a process, others do not."""
    monkeypatch.setattr(sys, "path", [str(root / "bench" / "versions" / "probes"), *sys.path])
    probe = importlib.import_module("calls")
    left: list[str] = []

    def judge(expression: str, _: object) -> str | None:
        left.append(expression)
        if expression == "ends":
            os._exit(3)
        return None if len(left) > 1 else "the first call"

    monkeypatch.setattr(probe, "judge", judge)
    monkeypatch.setattr(probe, "evaluate", lambda expression: expression != "raises")
    monkeypatch.setattr(probe, "listening", lambda: None)
    names = {"a": ["raises", "1", "2", "3"], "b": ["4"], "c": ["raises"]}
    first = "the first call"
    assert probe.probe(names, 2, 1) == {"a": {"1": first, "2": first}, "b": {"4": first}}
    assert probe.probe(names, 2, 9) == {"a": {"1": first, "2": None}, "b": {"4": None}}
    assert probe.probe({**names, "d": ["ends"]}, 2, 9) == probe.probe(names, 2, 1)


TWICE = """\
import threading
import torch


@torch.compile
def case(x):
    threading.current_thread()
    threading.current_thread()
    return x + 1


def example_inputs():
    return [(torch.ones(3),)]
"""


@pytest.mark.torch
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the probe forks")
def test_a_break_that_the_log_repeats_stands_at_its_own_line(root: Path, tmp_path: Path) -> None:
    """Torch leaves the lines that led to a break out of its log where it told of the same place before."""
    pytest.importorskip("torch")
    (tmp_path / "m.py").write_text(TWICE)
    probe = root / "bench" / "versions" / "probes" / "graph_breaks.py"
    done = subprocess.run([sys.executable, str(probe), str(tmp_path)], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])["files"]["m.py"]
    assert (found["lines"], found["elsewhere"]) == ([7, 8], [])


def test_a_line_that_an_input_raises_at_is_no_break_that_was_missed(of_versions: Modules) -> None:
    examples = of_versions("examples")
    log = {"lines": [3, 5], "elsewhere": [["lib.py", 9]], "raised": "ValueError"}

    def made(*lines: int, raised: str | None = None, status: str = "checked") -> Any:
        found = [Break("/w/m.py", Span(line, 0, line, 1), "f", "break", "", None, "", (), ()) for line in lines] + [
            Break("lib.py", Span(9, 0, 9, 1), "g", "skip", "", None, "", (), ())
        ]
        runs = (RunInfo("given 1", None), RunInfo("given 2", raised))
        target = TargetReport("f", status, arguments=("x", "x"), breaks=tuple(found), runs=runs)  # type: ignore[arg-type]
        return examples._program("m", log, Report("/w/m.py", (target,)))

    assert made(3, 5) == (
        [("lib.py", 9), ("m", 3), ("m", 5)],
        [("lib.py", 9), ("m", 3), ("m", 5)],
        [],
        True,
    )
    assert made(3).told == [("lib.py", 9), ("m", 3), ("m", 5)]
    assert made(3, raised="ValueError: no (m.py:5)").told == [("lib.py", 9), ("m", 3)]
    assert made(3, 5, raised="ValueError: no (m.py:5)").told == [("lib.py", 9), ("m", 3), ("m", 5)]
    assert not made(status="no-inputs").ran
    assert examples.agreement({"m": [3, 5], "n": []}, {"m": [3], "n": []}) == (2, 1, ["m: its log [3, 5], said [3]"])


def test_the_models_are_programs_that_can_be_read(of_versions: Modules) -> None:
    programs = of_versions("models").programs("5.23.0")
    assert {name.partition("_")[0] for name in programs} == {"t5", "bart"}
    for text in programs.values():
        compile(text, "model.py", "exec")
        assert "transformers 5.23.0" in text
