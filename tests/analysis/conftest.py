"""TorchDynamo as a judge."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest


class Verdict(NamedTuple):
    """What TorchDynamo did with a module.

    `breaks`: (path, line, break's id, "break" | "skip" | "raises" | "error"); `kinds`: (line, torch's name of a break's
    kind), those that wrap another included.
    """

    breaks: tuple[tuple[str, int, str | None, str], ...]
    kinds: tuple[tuple[int, str], ...]
    graphs: int
    error: str | None

    @property
    def lines(self) -> set[tuple[str, int]]:
        return {(path, line) for path, line, _, _ in self.breaks}


Judge = Callable[[Mapping[str, str], str, Sequence[str]], Verdict]


@pytest.fixture(scope="session")
def dynamo() -> Iterator[Judge]:
    """Asks TorchDynamo: (files, main file, expressions to evaluate in it) -> verdict."""
    if importlib.util.find_spec("torch") is None or not hasattr(os, "fork"):
        pytest.skip("needs torch and fork")
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("judge.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    requests, answers = process.stdin, process.stdout

    def ask(files: Mapping[str, str], main: str, run: Sequence[str]) -> Verdict:
        request: dict[str, Any] = {"files": dict(files), "main": main, "run": list(run)}
        requests.write(json.dumps(request) + "\n")
        requests.flush()
        answer = json.loads(answers.readline())
        breaks, kinds = (tuple(map(tuple, answer[part])) for part in ("breaks", "kinds"))
        return Verdict(breaks, kinds, answer["graphs"], answer["error"])

    yield ask
    requests.close()
    process.wait(120)  # torch takes its time to end on a busy machine
