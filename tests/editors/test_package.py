"""Packages of the VS Code extension: what the check of one says of them, and what makes them in CI."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

yaml: Any = pytest.importorskip("yaml")
ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "vscode-extension/scripts"
WORKFLOW = ROOT / ".github/workflows/extension.yml"


@pytest.fixture(scope="module")
def scripts() -> ModuleType:
    sys.path.insert(0, str(SCRIPTS))
    try:
        import check_package

        return check_package
    finally:
        sys.path.remove(str(SCRIPTS))


MANIFEST = (ROOT / "vscode-extension/package.json").read_text()
ELF = b"\x7fELF" + bytes(14) + b"\x3e\x00" + bytes(40)


def contents(scripts: ModuleType) -> dict[str, bytes]:
    """A package for linux-x64 that holds what it must, by name."""
    steps = [step for walk in json.loads(MANIFEST)["contributes"]["walkthroughs"] for step in walk["steps"]]
    names = [*scripts.NEEDED, "readme.md", "CHANGELOG.md", "LICENSE.txt", *(step["media"]["image"] for step in steps)]
    files = {f"extension/{name}": b"" for name in names}
    files["extension/package.json"] = MANIFEST.encode()
    files["extension.vsixmanifest"] = b'<Identity Id="graphmend" TargetPlatform="linux-x64" />'
    libs = "extension/bundled/libs"
    files[f"{libs}/graphmend-0.1.0.dist-info/METADATA"] = (
        b"Name: graphmend\nRequires-Dist: pygls>=2\nRequires-Dist: libcst>=1\n\nRequires-Dist: prose\n"
    )
    files[f"{libs}/pygls-2.0.dist-info/METADATA"] = b""
    for python in ("310", "311", "312", "313", "314"):
        files[f"{libs}/native/libcst/native.cpython-{python}-x86_64-linux-gnu.so"] = ELF
    return files


def said(scripts: ModuleType, path: Path, files: dict[str, bytes], target: str = "linux-x64") -> list[str]:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return list(scripts.problems(target, path))


def test_a_whole_package_passes(scripts: ModuleType, tmp_path: Path) -> None:
    assert said(scripts, tmp_path / "it.vsix", contents(scripts)) == []


@pytest.mark.parametrize(
    ("lost", "says"),
    [
        ("extension/dist/extension.js", "dist/extension.js is missing"),
        ("extension/bundled/libs/graphmend/dynamo/worker/main.py", "worker/main.py is missing"),
        ("extension/bundled/libs/pygls-2.0.dist-info/METADATA", "pygls, which GraphMend needs, is missing"),
        ("extension/bundled/libs/graphmend-0.1.0.dist-info/METADATA", "no metadata"),
        ("extension/media/report.png", "media/report.png, which package.json names, is missing"),
        ("extension/LICENSE.txt", "license is missing"),
        ("extension/bundled/libs/native/libcst/native.cpython-312-x86_64-linux-gnu.so", "Python 3.12 is missing"),
    ],
)
def test_what_is_missing_is_told(scripts: ModuleType, tmp_path: Path, lost: str, says: str) -> None:
    files = contents(scripts)
    del files[lost]
    assert any(says in line for line in said(scripts, tmp_path / "it.vsix", files))


@pytest.mark.parametrize(
    "stray",
    [
        "src/extension.ts",
        "bundled/libs/graphmend/__pycache__/x.pyc",
        ".env",
        "dist/extension.js.map",
        ".npmrc",
        "a.pem",
    ],
)
def test_what_does_not_belong_there_is_told(scripts: ModuleType, tmp_path: Path, stray: str) -> None:
    found = said(scripts, tmp_path / "it.vsix", {**contents(scripts), f"extension/{stray}": b""})
    assert found == [f"{stray} does not belong there"]


def test_another_platform_s_parts_are_told(scripts: ModuleType, tmp_path: Path) -> None:
    found = said(scripts, tmp_path / "it.vsix", contents(scripts), "darwin-arm64")
    assert "it says that it is for linux-x64" in found
    assert sum("is not for darwin-arm64" in line for line in found) == 5
    found = said(scripts, tmp_path / "it.vsix", contents(scripts), "universal")
    assert sum("is compiled" in line for line in found) == 5


def test_ci_makes_a_package_for_each_platform_without_secrets(scripts: ModuleType) -> None:
    import bundle

    text = WORKFLOW.read_text("utf-8")
    (job,) = yaml.safe_load(text)["jobs"].values()
    assert set(job["strategy"]["matrix"]["target"]) == set(bundle.PLATFORMS)
    assert yaml.safe_load(text)["permissions"] == {"contents": "read"}
    assert "secrets" not in text
    assert "environment" not in job
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands == [".ci/package packages ${{ matrix.target }}"]
    assert "check_package.py" in (ROOT / ".ci/package").read_text("utf-8")
