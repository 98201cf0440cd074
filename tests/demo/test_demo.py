"""The demo, shortened to T5: a real server, a real model file, and TorchDynamo's word before and after."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

pytestmark = pytest.mark.torch

TRANSFORMERS = "4.52.4"


def run(root: Path, *words: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "examples" / "demo.py"), *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL, env=environment
    )


@pytest.fixture(scope="module")
def transformers() -> None:
    """Skips where the demo's transformers is not installed."""
    if importlib.util.find_spec("transformers") is None:
        pytest.skip(f"needs transformers {TRANSFORMERS}, and none is installed")
    version = importlib.metadata.version("transformers")
    if version != TRANSFORMERS:
        pytest.skip(f"needs transformers {TRANSFORMERS}, and {version} is installed")


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Path]:
    """A folder that is not there yet; what the demo copies into it is large, and is removed."""
    yield tmp_path / "workspace"
    shutil.rmtree(tmp_path / "workspace", ignore_errors=True)


@pytest.mark.usefixtures("transformers")
def test_t5_is_mended_through_the_server(root: Path, workspace: Path) -> None:
    done = run(root, "t5", "--device", "cpu", "--backend", "eager", "--keep", str(workspace))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 -> 0" in done.stdout
    assert "does not hold" not in done.stdout
    text = (workspace / "transformers/models/t5/modeling_t5.py").read_text("utf-8")
    assert re.search(r"emit\(\s*logger\.warning_once", text)
    assert text.count("from graphmend.runtime import ") == 1


def test_wrong_use_is_one_line(root: Path) -> None:
    done = run(root, "gpt")
    assert done.returncode == 2
    assert "no such model: gpt" in done.stderr


def test_another_transformers_is_refused(root: Path, tmp_path: Path) -> None:
    metadata = tmp_path / "transformers-1.0.dist-info" / "METADATA"
    for path in (tmp_path / "transformers" / "__init__.py", metadata):
        path.parent.mkdir()
        path.touch()
    metadata.write_text("Metadata-Version: 2.1\nName: transformers\nVersion: 1.0\n")
    done = run(root, environment={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.returncode == 2
    assert done.stderr == f"demo: the figures hold for transformers {TRANSFORMERS}, and 1.0 is installed\n"
