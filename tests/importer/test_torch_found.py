"""Which torch a program has is read from the files that it would import; what is not as usual is said once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from graphmend.analysis.torch_facts import versions
from graphmend.importer import Importer, install

NEWEST = versions()[-1]


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Importer]:
    """What `install` makes of a program whose path has torches of some versions, in this order."""

    def make(*versions: str) -> Importer:
        folders = []
        for number, version in enumerate(versions):
            folder = tmp_path / f"folder{number}"
            (folder / "torch").mkdir(parents=True)
            (folder / "torch" / "version.py").write_text(f"__version__ = '{version}'\n")
            folders.append(str(folder))
        monkeypatch.setattr(sys, "path", [str(tmp_path), *folders])
        monkeypatch.delitem(sys.modules, "torch", raising=False)
        importer = install(["nothing_like_it"])
        importer.uninstall()
        return importer

    return make


@pytest.mark.parametrize("version", ["2.13.0", "2.10.0+cpu", "2.9.1+rocm6.3", "2.12.0.dev20260301+cu130"])
def test_a_supported_one(found: Callable[..., Importer], version: str) -> None:
    report = found(version).report
    assert (report.problems, report.remarks) == ({}, [])


def test_an_older_one(found: Callable[..., Importer]) -> None:
    report = found("2.7.1+cu126").report
    assert report.problems == {
        "torch": "nothing is mended for torch 2.7.1+cu126: mends were measured with torch 2.8 and newer"
    }


def test_a_newer_one(found: Callable[..., Importer]) -> None:
    report = found("2.99.0.dev20301101+cu140").report
    assert (report.problems, report.remarks) == ({}, [f"torch 2.99 is newer than known, checked as {NEWEST}"])


def test_two(found: Callable[..., Importer], tmp_path: Path) -> None:
    (said,) = found("2.10.0+rocm6.3", "2.13.0").report.remarks
    places = [tmp_path / f"folder{number}" / "torch" for number in range(2)]
    assert said == f"torch 2.10.0+rocm6.3 in {places[0]} hides 2.13.0 in {places[1]}: checked as 2.10"


def test_none(found: Callable[..., Importer]) -> None:
    report = found().report
    assert (report.problems, report.remarks) == ({}, [])
