"""A file that changed meanwhile, or that must not be written, is left alone."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from graphmend.workspace.files import FileProblem, replace


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_bytes(b"newer\n")
    with pytest.raises(FileProblem, match="changed while"):
        replace(path, b"mended\n", expected=b"older\n")
    assert path.read_bytes() == b"newer\n"
    replace(path, b"mended\n", expected=b"newer\n")
    assert path.read_bytes() == b"mended\n"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may write everything")
def test_a_read_only_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_bytes(b"text\n")
    path.chmod(0o444)
    with pytest.raises(FileProblem, match="read-only"):
        replace(path, b"mended\n", expected=b"text\n")
    assert path.read_bytes() == b"text\n"


def test_nothing_is_left_beside_a_file_that_cannot_be_replaced(tmp_path: Path) -> None:
    with pytest.raises(FileProblem):
        replace(tmp_path / "missing" / "model.py", b"mended\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_stays_a_pipe(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    replace(pipe, b"report")
    reader.join(10)
    assert read == [b"report"]
    assert pipe.is_fifo()
