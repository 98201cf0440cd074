"""A module that was missing is told of once it is there, wherever it comes from; what stays as it is is not."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from graphmend.importer.files_read import FilesRead
from graphmend.workspace.module_loader import ModuleLoader


def _aged(folder: Path, seconds: float = 100.0) -> None:
    for path in (folder, *(p for p in folder.rglob("*") if not p.is_symlink())):
        os.utime(path, (time.time() - seconds,) * 2)


def _write(text: str) -> Callable[[Path], object]:
    return lambda path: (path.parent.mkdir(exist_ok=True), path.write_text(text))


@pytest.mark.parametrize(
    ("module", "file", "before"),
    [
        ("late", "late.py", None),
        ("data", "data.py", lambda path: path.with_suffix("").mkdir()),
        ("pkg.sub", "pkg/sub.py", lambda path: path.with_suffix("").mkdir(parents=True)),
        ("pkg.sub", "pkg/sub/__init__.py", lambda path: path.parent.mkdir(parents=True)),
        ("pkg.sub", "pkg/sub.py", None),
        ("bad", "bad.py", lambda path: path.write_bytes(b"# coding: nonsense\n\xff")),
        ("link", "elsewhere/link.py", lambda path: (path.parent.parent / "link.py").symlink_to(path)),
    ],
    ids=[
        "new",
        "beside a folder",
        "beside a folder of a package",
        "a package",
        "with its folder",
        "unreadable",
        "link",
    ],
)
def test_what_was_missing(tmp_path: Path, module: str, file: str, before: Callable[[Path], object] | None) -> None:
    if before is not None:
        before(tmp_path / file)
    _aged(tmp_path)
    files = FilesRead(ModuleLoader(tmp_path))
    assert files.find(module) is None
    assert files.changed() == []
    _write("x = 1\n")(tmp_path / file)
    assert [Path(path).name for path in files.changed()] == [Path(file).name]
    assert files.changed() == []


def test_a_clock_that_is_ahead(tmp_path: Path) -> None:
    _aged(tmp_path, -3600.0)
    files = FilesRead(ModuleLoader(tmp_path))
    assert files.find("late") is None
    (tmp_path / "late.py").write_text("x = 1\n")
    _aged(tmp_path, -3600.0)
    assert files.changed() == [str(tmp_path / "late.py")]
