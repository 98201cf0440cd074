"""Interpreters that cannot run a check are told apart, each with one line. None of them needs torch here."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from graphmend.dynamo.requests import Request
from graphmend.dynamo.service import Service

pytestmark = pytest.mark.skipif(os.name == "nt", reason="uses shell scripts as interpreters")


def problem(interpreter: str | Path, path: Path) -> str:
    async def check() -> str | None:
        service = Service()
        try:
            return (await service.check(Request(str(path), interpreter=str(interpreter)))).problem
        finally:
            await service.close()

    found = asyncio.run(check())
    assert found is not None
    assert "\n" not in found
    return found


@pytest.fixture
def python(tmp_path: Path) -> Callable[[str | None], Path]:
    """An interpreter without site-packages, and with a module `torch` of the given text."""

    def make(torch: str | None) -> Path:
        if torch is not None:
            (tmp_path / "lib").mkdir()
            (tmp_path / "lib" / "torch.py").write_text(torch)
        script = tmp_path / "python"
        script.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path / "lib"} exec {sys.executable} -S "$@"\n')
        script.chmod(0o755)
        return script

    return make


def test_missing(tmp_path: Path) -> None:
    assert (
        problem("/nowhere/python", tmp_path / "a.py")
        == "the interpreter /nowhere/python does not exist or cannot be run"
    )


def test_no_python(tmp_path: Path) -> None:
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\necho not a python >&2\nexit 3\n")
    script.chmod(0o755)
    assert problem(script, tmp_path / "a.py") == f"{script} is not a Python that can run checks: not a python"


@pytest.mark.parametrize(
    ("torch", "says"),
    [
        (None, "has no torch"),
        ("__version__ = '1.9.0'\ndef compile(): pass", "torch 1.9.0 in"),
        ("raise OSError('libcuda.so is missing')", "OSError: libcuda.so is missing"),
        ("import nothing_like_it", "needs the missing module nothing_like_it"),
        ("", "is not PyTorch, or is too old"),
    ],
)
def test_torch(tmp_path: Path, python: Callable[[str | None], Path], torch: str | None, says: str) -> None:
    assert says in problem(python(torch), tmp_path / "a.py")


@pytest.mark.torch
def test_a_dependency_that_changes_on_disk_is_seen(tmp_path: Path) -> None:
    """The warm process imported it; a check after an upgrade must not see what was there before."""
    packages = tmp_path / "site-packages"
    (packages / "dependency").mkdir(parents=True)
    version = packages / "dependency" / "__init__.py"
    (packages / "sitecustomize.py").write_text("import dependency\n")
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nPYTHONPATH={packages} exec {sys.executable} "$@"\n')
    script.chmod(0o755)
    model = tmp_path / "model.py"
    model.write_text("import torch, dependency\nprint(dependency.VERSION)\n@torch.compile\ndef f(x):\n    return x\n")

    async def outputs() -> list[str]:
        service = Service()
        found = []
        try:
            for number in (1, 1, 22):
                if str(number) not in (version.read_text() if version.exists() else ""):
                    version.write_text(f"VERSION = 'number {number}'\n")
                found.append((await service.check(Request(str(model), interpreter=str(script)))).output.strip())
                (worker,) = service._workers.values()
                workers.append(worker)
        finally:
            await service.close()
        return found

    workers: list[object] = []
    assert asyncio.run(outputs()) == ["number 1", "number 1", "number 22"]
    assert workers[0] is workers[1]
    assert workers[1] is not workers[2]
