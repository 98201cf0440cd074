"""A run over versions of torch goes on where it was ended, and counts what tests say of each rewrite."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

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


def test_every_file_of_a_suite_is_there(of_versions: Modules, root: Path) -> None:
    for suite in of_versions("suites").SUITES.values():
        assert suite.paths()
        for path in suite.paths():
            assert (root / path.partition("::")[0]).is_file()


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
