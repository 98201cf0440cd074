"""What users install: the wheels hold every module, and nothing of the repository's layout shows."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.build

ROOMS = ("analysis", "workspace", "transforms", "importer", "dynamo", "server", "cli", "runtime")


def build(project: Path, out: Path) -> Path:
    """The wheel of a project, built by way of its sdist, as a release is."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(project)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return next(out.glob("*.whl"))


#: what tools leave behind in a checkout
LEFT_BEHIND = (".git", ".venv", "node_modules", "__pycache__", "*.egg-info", "build", "dist", ".*_cache")


def copy_of(root: Path, to: Path) -> Path:
    """The repository; building must not write into the checkout."""
    shutil.copytree(root, to, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_BEHIND))
    return to


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    pytest.importorskip("build")
    pytest.importorskip("setuptools")
    return copy_of(root, tmp_path_factory.mktemp("tree") / "graphmend")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, tree: Path) -> Path:
    return build(tree, tmp_path_factory.mktemp("graphmend"))


@pytest.fixture(scope="module")
def runtime_wheel(tmp_path_factory: pytest.TempPathFactory, tree: Path) -> Path:
    return build(tree / "packaging" / "graphmend-runtime", tmp_path_factory.mktemp("runtime"))


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def run(code: str, folder: Path, *path: Path) -> subprocess.CompletedProcess[str]:
    """Run code outside the repository with `path` in front, and none of the editable install behind."""
    lines = f"import sys; sys.path[:0] = {[str(p) for p in path]!r}; {code}"
    command = [sys.executable, "-I", "-S", "-c", lines]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)


def test_wheel_holds_every_file_of_every_room(wheel: Path, root: Path) -> None:
    expected = {"graphmend/__init__.py", "graphmend/__main__.py", "graphmend/py.typed"}
    for room in ROOMS:
        for path in (root / room).rglob("*"):
            if path.suffix in {".py", ".json", ".jsonl"} and "__pycache__" not in path.parts:
                expected.add(f"graphmend/{path.relative_to(root).as_posix()}")
    assert expected - names(wheel) == set()


def test_a_checkout_without_links_builds_the_same_wheel(wheel: Path, tree: Path, tmp_path: Path) -> None:
    """git writes a link as a file that holds its target where the file system has none (its default on Windows)."""
    plain = copy_of(tree, tmp_path / "graphmend")
    for room in ROOMS:
        link = plain / "src" / "graphmend" / room
        target = str(link.readlink())
        link.unlink()
        link.write_text(target)
    built = build(plain, tmp_path / "dist")
    contents = [{name for name in names(one) if ".dist-info/" not in name} for one in (wheel, built)]
    assert contents[0] == contents[1]


def test_wheel_holds_nothing_else(wheel: Path) -> None:
    strays = {name for name in names(wheel) if not name.startswith("graphmend/") and ".dist-info/" not in name}
    assert strays == set()


def test_rooms_are_not_packages_of_their_own(wheel: Path, tmp_path: Path) -> None:
    unpacked = tmp_path / "site"
    shutil.unpack_archive(wheel, unpacked, "zip")
    assert run("import graphmend.analysis.syntax.source", tmp_path, unpacked).returncode == 0
    alone = run("import analysis", tmp_path, unpacked)
    assert "ModuleNotFoundError: No module named 'analysis'" in alone.stderr


def test_the_same_room_is_imported_once() -> None:
    """Under `--import-mode=importlib`, and through the links, `graphmend.analysis` is the only name of that room."""
    import graphmend.analysis

    assert "analysis" not in sys.modules
    assert graphmend.analysis.__name__ == "graphmend.analysis"


def test_mypy_sees_types_of_an_installed_graphmend(wheel: Path, tmp_path: Path) -> None:
    """As a user's mypy does: through the wheel's `py.typed`, strict."""
    pytest.importorskip("mypy")
    site = tmp_path / "user"
    venv.create(site, with_pip=False)
    python = site / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    packages = next(site.rglob("site-packages"))
    shutil.unpack_archive(wheel, packages, "zip")
    program = tmp_path / "program.py"
    text = "from graphmend.analysis.syntax.source import Source\nreveal_type(Source('').lines)\nSource(1)\n"
    program.write_text(text)
    options = ["--strict", "--python-executable", str(python), "--cache-dir", str(tmp_path / "mypy")]
    command = [sys.executable, "-m", "mypy", *options, str(program)]
    checked = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    said = checked.stdout + checked.stderr
    assert 'Revealed type is "graphmend.analysis.syntax.source.LineIndex"' in checked.stdout, said
    assert 'Argument 1 to "Source" has incompatible type "int"' in checked.stdout


def test_runtime_wheel_is_the_runtime_alone(runtime_wheel: Path, root: Path) -> None:
    modules = (path for path in (root / "runtime").rglob("*.py") if "__pycache__" not in path.parts)
    expected = {f"graphmend/{path.relative_to(root).as_posix()}" for path in modules}
    assert {name for name in names(runtime_wheel) if ".dist-info/" not in name} == expected


def test_runtime_is_importable_without_graphmend(runtime_wheel: Path, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    unpacked = tmp_path / "site"
    shutil.unpack_archive(runtime_wheel, unpacked, "zip")
    code = "import graphmend.runtime as r; print(r.__file__); import graphmend.analysis"
    done = run(code, tmp_path, unpacked, Path(torch.__file__).parents[1])
    assert str(unpacked) in done.stdout
    assert "No module named 'graphmend.analysis'" in done.stderr


def test_runtime_version_is_graphmends(wheel: Path, runtime_wheel: Path) -> None:
    assert wheel.name.split("-")[1] == runtime_wheel.name.split("-")[1]
