"""Which torch a check is for is found by looking at files; what is not as usual is said in one line, once."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from graphmend.analysis.torch_facts import versions
from graphmend.server.analyses.folder_settings import Folders
from graphmend.workspace.interpreter import Interpreter, torch_remarks

from .conftest import Run

NEWEST = versions()[-1]


@pytest.fixture
def environment(tmp_path: Path) -> Callable[..., Path]:
    """A virtual environment's folder with torches of some versions: the first in its packages, others by `.pth`."""

    def make(*installed: str) -> Path:
        prefix = tmp_path / "environment"
        packages = prefix / "lib" / "python3.11" / "site-packages"
        packages.mkdir(parents=True)
        (prefix / "pyvenv.cfg").write_text("version = 3.11.7\n")
        for number, version in enumerate(installed):
            folder = packages if not number else prefix / f"more{number}"
            (folder / "torch").mkdir(parents=True)
            (folder / "torch" / "version.py").write_text(f"__version__ = '{version}'\ndebug = False\n")
            if number:
                (packages / f"more{number}.pth").write_text(f"{folder}\n")
        return prefix

    return make


@pytest.mark.parametrize(
    ("installed", "minor", "said"),
    [
        ("2.13.0", "2.13", None),
        ("2.10.0+cpu", "2.10", None),
        ("2.9.1+rocm6.3", "2.9", None),
        ("2.12.0.dev20260301+cu130", "2.12", None),
        ("2.13.0a0+gitabc123", "2.13", None),
        ("2.99.0.dev20301101+cu140", "2.99", f"torch 2.99 is newer than known, checked as {NEWEST}"),
        ("nightly", "nightly", f"torch calls itself 'nightly', which is no version; checked as {NEWEST}"),
        (
            "2.7.1+cu118",
            "2.7",
            "torch 2.7 is older than 2.8, the oldest that is known: checked as 2.8; `verify` and `run` do nothing "
            "with it",
        ),
    ],
)
def test_an_installed_version(environment: Callable[..., Path], installed: str, minor: str, said: str | None) -> None:
    found = Interpreter(environment(installed))
    assert found.torch_version == minor
    assert list(torch_remarks(found, None, named=True)) == ([said] if said is not None else [])


def test_a_version_that_the_settings_ask_for_goes_before(environment: Callable[..., Path]) -> None:
    found = Interpreter(environment("2.99.0", "2.98.0"))
    assert list(torch_remarks(found, "2.10", named=True)) == []
    assert list(torch_remarks(found, "2.98", named=True)) == [f"torch 2.98 is newer than known, checked as {NEWEST}"]


def test_no_torch(environment: Callable[..., Path]) -> None:
    prefix = environment()
    assert list(torch_remarks(Interpreter(prefix), None, named=True)) == [f"no torch in {prefix}: checked as {NEWEST}"]
    assert list(torch_remarks(Interpreter(prefix), None, named=False)) == []


def test_two_torches(environment: Callable[..., Path]) -> None:
    found = Interpreter(environment("2.10.0+cu128", "nightly"))
    (said,) = torch_remarks(found, None, named=False)
    first, second = (folder for _, folder in found.torches)
    assert said == f"torch 2.10.0+cu128 in {first} hides nightly in {second}: checked as 2.10"


def test_the_command_says_it_once(environment: Callable[..., Path], run: Run, folder: Path) -> None:
    prefix = environment()
    for name in ("a.py", "b.py"):
        (folder / name).write_text("import torch\n")
    (folder / "without.py").write_text("x = 1\n")
    outcome = run("check", "--python", str(prefix))
    assert (outcome.status, outcome.err) == (0, f"graphmend: no torch in {prefix}: checked as {NEWEST}\n")


def test_the_editor_logs_it_once(
    environment: Callable[..., Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    prefix = environment("2.99.0")
    folders = Folders()
    folders.add(str(tmp_path), tmp_path.as_uri())
    folders.set([(next(iter(folders)), {"interpreter": str(prefix)})])
    with caplog.at_level(logging.WARNING, logger="graphmend"):
        for name in ("a.py", "b.py"):
            assert folders.scope(str(tmp_path / name)).settings.torch_version == "2.99"
    assert [record.message for record in caplog.records] == [f"torch 2.99 is newer than known, checked as {NEWEST}"]
