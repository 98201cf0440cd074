"""A program in a folder of its own, run plainly or through `graphmend run`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest


class Done:
    """A finished program; `stderr` without what GraphMend says."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.status, self.stdout = done.returncode, done.stdout
        lines = done.stderr.splitlines()
        first = next((i for i, line in enumerate(lines) if line.startswith("graphmend: ")), len(lines))
        self.stderr, self.said = lines[:first], lines[first:]


Run = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run(*words: str, plain: bool = False, cache: Path = tmp_path / "cache", **files: str) -> Done:
        for name, text in files.items():
            path = tmp_path / f"{name.replace('__in__', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        command = [sys.executable, *(() if plain else ("-m", "graphmend", "run")), *words]
        environment = {**os.environ, "GRAPHMEND_CACHE_DIR": str(cache), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        return Done(done)

    return run
