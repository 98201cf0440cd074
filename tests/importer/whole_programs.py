"""A program in a folder of its own, run plainly or through `graphmend run`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest


class Ended(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


Start = Callable[[list[str], Path, dict[str, str]], Ended]
"""Runs Python with these words in a folder, with more in its environment."""


def fresh(words: list[str], folder: Path, environment: dict[str, str]) -> Ended:
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="session")
def warm() -> Iterator[Start]:
    """Programs that begin with torch loaded, as `warm_python` says; fresh ones where the system has no fork."""
    pytest.importorskip("torch")
    if not hasattr(os, "fork"):
        yield fresh
        return
    file = str(Path(__file__).with_name("warm_python.py"))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdin is not None
    assert process.stdout is not None
    requests, answers = process.stdin, process.stdout

    def start(words: list[str], folder: Path, environment: dict[str, str]) -> Ended:
        told = {name: str(folder / f"{name} of the program") for name in ("stdout", "stderr")}
        request = {"words": words, "folder": str(folder), "environment": {**os.environ, **environment}, **told}
        requests.write(json.dumps(request) + "\n")
        requests.flush()
        answer = answers.readline()
        assert answer, "the Python that becomes programs has ended"
        status = int(answer)
        return Ended(status, *(Path(path).read_text("utf-8") for path in told.values()))

    yield start
    requests.close()
    process.wait()


class Done:
    """A finished program; `stderr` without what GraphMend says."""

    def __init__(self, done: Ended) -> None:
        self.status, self.stdout = done.returncode, done.stdout
        lines = done.stderr.splitlines()
        first = next((i for i, line in enumerate(lines) if line.startswith("graphmend: ")), len(lines))
        self.stderr, self.said = lines[:first], lines[first:]


Run = Callable[..., Done]


def runs(start: Start, tmp_path: Path) -> Run:
    def run(*words: str, plain: bool = False, cache: Path = tmp_path / "cache", **files: str) -> Done:
        for name, text in files.items():
            path = tmp_path / f"{name.replace('__in__', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        command = [*(() if plain else ("-m", "graphmend", "run")), *words]
        return Done(start(command, tmp_path, {"GRAPHMEND_CACHE_DIR": str(cache), "OMP_NUM_THREADS": "1"}))

    return run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Each program in a Python of its own."""
    return runs(fresh, tmp_path)


@pytest.fixture
def run_warm(tmp_path: Path, warm: Start) -> Run:
    """For programs of which it does not matter how Python begins and ends them."""
    return runs(warm, tmp_path)
