"""The judge checks itself: a torch whose breaks the recorder cannot see is told of, and never called free of breaks."""

from __future__ import annotations

import asyncio
import importlib
import importlib.metadata
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from graphmend.analysis.torch_facts import versions as known
from graphmend.cli.main import main
from graphmend.dynamo.report import Report
from graphmend.dynamo.requests import Request
from graphmend.dynamo.service import Service

from .conftest import Checks

pytestmark = pytest.mark.torch

BREAKS = """\
import torch
@torch.compile
def f(x):
    print("breaks")
    return x + 1
def example_inputs():
    return [(torch.ones(3),)]
"""
#: what is done to `owner`, which has the function that this torch logs breaks with
REMOVED = {
    "a hook is gone": "del owner.log_graph_break",
    "a hook takes other arguments": "owner.log_graph_break = lambda self: None",
    "a hook is called no more": """
import types
kind = type(owner)
def ignore(self, name, value):
    if name != "log_graph_break":
        kind.__setattr__(self, name, value)
if isinstance(owner, types.ModuleType):
    owner.__class__ = type("Deaf", (kind,), {"__setattr__": ignore})
else:
    inherited = type.__setattr__
    kind.__setattr__ = lambda cls, name, value: None if name == "log_graph_break" else inherited(cls, name, value)
""",
    "lines are not seen": "del symbolic_convert.InstructionTranslatorBase.starts_line",
}


def owner() -> str:
    """An expression for the owner of that function, in terms of `symbolic_convert`."""
    torch_version = importlib.metadata.version("torch")
    hooks = importlib.import_module("graphmend.dynamo.worker.recording.hooks").HOOKS
    module, _, kind = hooks["accepted"].place(torch_version).owner.partition(":")
    assert module == "torch._dynamo.symbolic_convert"
    return f"symbolic_convert.{kind}" if kind else "symbolic_convert"


@pytest.fixture
def python(tmp_path: Path) -> Callable[[str], str]:
    """An interpreter in which Dynamo is changed as soon as it is imported."""

    def make(change: str) -> str:
        folder = tmp_path / "changed"
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(
            textwrap.dedent("""\
            import sys, importlib.abc, importlib.util
            class Finder(importlib.abc.MetaPathFinder):
                def find_spec(self, name, path=None, target=None):
                    if name != "torch._dynamo.symbolic_convert": return None
                    sys.meta_path.remove(self)
                    spec = importlib.util.find_spec(name)
                    inner = spec.loader.exec_module
                    def exec_module(symbolic_convert):
                        inner(symbolic_convert)
                        owner = eval(OWNER, {"symbolic_convert": symbolic_convert})
                        exec(CHANGE, {"symbolic_convert": symbolic_convert, "owner": owner})
                    spec.loader.exec_module = exec_module
                    return spec
            sys.meta_path.insert(0, Finder())
            """)
            + f"CHANGE = {change!r}\nOWNER = {owner()!r}\n"
        )
        script = tmp_path / "python"
        script.write_text(f'#!/bin/sh\nPYTHONPATH={folder}:$PYTHONPATH exec {sys.executable} "$@"\n')
        script.chmod(0o755)
        return str(script)

    return make


def checked(path: Path, interpreter: str) -> Report:
    async def check() -> Report:
        service = Service()
        try:
            return await service.check(Request(str(path), interpreter=interpreter))
        finally:
            await service.close()

    return asyncio.run(check())


@pytest.mark.parametrize("change", REMOVED.values(), ids=REMOVED)
def test_where_breaks_cannot_be_seen_nothing_is_said_of_them(
    change: str, python: Callable[[str], str], tmp_path: Path
) -> None:
    (tmp_path / "model.py").write_text(BREAKS)
    found = checked(tmp_path / "model.py", python(change))
    assert found.problem is not None
    assert found.problem.startswith("GraphMend cannot see the breaks of torch ")
    assert found.targets == ()


def test_the_command_ends_with_2(
    python: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.py"
    path.write_text(BREAKS)
    interpreter = python(REMOVED["a hook is gone"])
    assert main(["verify", str(path), "--python", interpreter]) == 2
    shown = capsys.readouterr()
    assert "cannot see the breaks of torch" in shown.err
    assert "no graph break" not in shown.out


def test_a_watched_command_says_it_too(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The program puts Dynamo's own function back in the place of ours."""
    text = BREAKS.replace("@torch.compile", '@torch.compile(backend="eager")') + "f(torch.ones(3))\n"
    (tmp_path / "program.py").write_text(
        "from torch._dynamo import symbolic_convert\n"
        f"owner = {owner()}\n"
        "cells = [cell.cell_contents for cell in owner.log_graph_break.__closure__]\n"
        "owner.log_graph_break = next(inner for inner in cells if callable(inner))\n" + text
    )
    status = main(["verify", "--", sys.executable, str(tmp_path / "program.py")])
    shown = capfd.readouterr()
    assert "cannot see the breaks of torch" in shown.err + shown.out
    assert status == 2


def test_a_break_that_only_the_log_tells_of_is_not_kept_back(checks: Checks, tmp_path: Path) -> None:
    """The checked file takes the recorder's notes away, after the self-test has passed."""
    path = tmp_path / "model.py"
    recorder = 'sys.modules["_graphmend_worker.recording.recorder"].Recorder'
    path.write_text(f"import sys\n{recorder}._accepted = lambda *_: None\n{BREAKS}")
    (target,) = checks(path).targets
    assert target.status == "failed"
    assert target.problem is not None
    assert "its graph_breaks log tells of 1 break" in target.problem


def test_the_log_of_the_user_is_left_as_it_was() -> None:
    import logging

    import torch._dynamo

    witness = importlib.import_module("graphmend.dynamo.worker.recording.witness")
    logger = logging.getLogger("torch._dynamo.symbolic_convert.__graph_breaks")
    before = logger.level, logger.propagate, list(logger.handlers)
    with witness.Witness() as seen:
        torch.compile(lambda x: (print("one"), x + 1), backend="eager")(torch.ones(2))
    torch._dynamo.reset()
    assert seen.breaks == 1
    assert (logger.level, logger.propagate, list(logger.handlers)) == before


@pytest.mark.parametrize(
    ("version", "release", "refused", "remark"),
    [
        ("2.13.0", (2, 13), False, ""),
        ("2.10.0+cpu", (2, 10), False, ""),
        ("2.9.1+rocm6.3", (2, 9), False, ""),
        ("2.13.0a0+gitabc123", (2, 13), False, ""),
        ("2.14.0.dev20261101+cu130", (2, 14), False, "torch 2.14 is newer than known, checked as 2.13"),
        ("3.0", (3, 0), False, "torch 3.0 is newer than known, checked as 2.13"),
        ("2.7.1", (2, 7), True, ""),
        ("1.13.1+cu117", (1, 13), True, ""),
        ("main", None, False, "torch calls itself 'main', which is no version; checked as 2.13"),
    ],
)
def test_versions(version: str, release: tuple[int, int] | None, refused: bool, remark: str) -> None:
    versions = importlib.import_module("graphmend.dynamo.worker.versions")
    assert versions.release(version) == release
    assert (versions.refusal(version) is not None) == refused
    if not refused:
        assert versions.remark(version) == remark


def test_another_torch_behind_the_imported_one_is_named(tmp_path: Path) -> None:
    versions = importlib.import_module("graphmend.dynamo.worker.versions")
    for folder, version in (("a", "2.13.0+cpu"), ("b", "2.10.0+rocm6.3"), ("c", "nothing")):
        (tmp_path / folder / "torch").mkdir(parents=True)
        text = f"__version__ = '{version}'\n" if folder != "c" else "x = 1\n"
        (tmp_path / folder / "torch" / "version.py").write_text(text)
    imported, path = str(tmp_path / "a" / "torch" / "__init__.py"), [str(tmp_path / name) for name in "abcd"]
    assert versions.hidden(imported, path) == (
        f"torch 2.10.0+rocm6.3 in {tmp_path / 'b' / 'torch'} is not imported: "
        f"checked with the one in {tmp_path / 'a' / 'torch'}"
    )
    assert versions.hidden(imported, path[:1] + path[2:]) == ""


def test_both_sides_know_the_same_versions() -> None:
    versions = importlib.import_module("graphmend.dynamo.worker.versions")
    assert (known()[0], known()[-1]) == (versions.text(versions.OLDEST), versions.text(versions.NEWEST))


@pytest.mark.skipif(
    not importlib.metadata.version("torch").startswith(known()[-1]), reason="an older torch has other hooks"
)
def test_the_command_says_what_is_unusual_of_a_torch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A nightly build for ROCm, and another torch behind it on the path: a line that is not cut, on any device."""
    site, behind = tmp_path / "site", tmp_path / "a folder with a long name" / "and another one in it"
    (behind / "torch").mkdir(parents=True)
    (behind / "torch" / "version.py").write_text("__version__ = '2.10.0+rocm6.3'\n")
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        textwrap.dedent(f"""\
        import sys, importlib.abc, importlib.util
        sys.path.append({str(behind)!r})
        class Finder(importlib.abc.MetaPathFinder):
            def find_spec(self, name, path=None, target=None):
                if name != "torch": return None
                sys.meta_path.remove(self)
                spec = importlib.util.find_spec(name)
                inner = spec.loader.exec_module
                def exec_module(torch):
                    inner(torch)
                    torch.__version__ = "2.99.0.dev20301101+rocm9.1"
                spec.loader.exec_module = exec_module
                return spec
        sys.meta_path.insert(0, Finder())
        """)
    )
    script, model = tmp_path / "python", tmp_path / "model.py"
    script.write_text(f'#!/bin/sh\nPYTHONPATH={site}:$PYTHONPATH exec {sys.executable} "$@"\n')
    script.chmod(0o755)
    model.write_text(BREAKS)
    assert main(["verify", str(model), "--python", str(script), "--device", "cpu"]) == 1
    shown = capsys.readouterr().out
    assert "torch 2.99.0.dev20301101+rocm9.1]" in shown
    said = shown.splitlines()[-1]
    assert said.startswith("torch 2.99 is newer than known, checked as 2.13; torch 2.10.0+rocm6.3 in ")
    assert f"{behind / 'torch'} is not imported: checked with the one in " in said
    assert said.endswith("torch")
