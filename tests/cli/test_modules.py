"""Where modules come from: package roots, other folders, and what an interpreter has installed. Nothing is run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from graphmend.workspace import interpreter
from graphmend.workspace.interpreter import Interpreter
from graphmend.workspace.module_loader import ModuleLoader, package_root, surroundings


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def environment_at(prefix: Path, version: str = "3.12", **settings: str) -> Path:
    """A virtual environment by its files; returns its package folder."""
    lines = {"home": "/nowhere/bin", "version": f"{version}.1", **settings}
    write(prefix / "pyvenv.cfg", "".join(f"{key.replace('_', '-')} = {value}\n" for key, value in lines.items()))
    write(prefix / "bin" / "python").chmod(0o755)
    packages = prefix / "lib" / f"python{version}" / "site-packages"
    packages.mkdir(parents=True)
    return packages


def test_package_root_is_above_the_outermost_package(tmp_path: Path) -> None:
    write(tmp_path / "src/pkg/__init__.py")
    write(tmp_path / "src/pkg/sub/__init__.py")
    assert package_root(tmp_path / "src/pkg/sub/m.py") == tmp_path / "src"
    assert package_root(tmp_path / "src/script.py") == tmp_path / "src"


def test_modules_are_found_in_order(tmp_path: Path) -> None:
    write(tmp_path / "a/m.py", "here")
    write(tmp_path / "b/m.py", "there")
    write(tmp_path / "b/src/other.py", "layout")
    write(tmp_path / "b/pkg/__init__.py", "package")
    write(tmp_path / "b/pkg/sub.py", "sub")
    found = ModuleLoader(tmp_path / "a", [tmp_path / "b"])
    assert found.find("m") == (str(tmp_path / "a/m.py"), "here")
    assert found.find("other") == (str(tmp_path / "b/src/other.py"), "layout")
    assert found.find("pkg") == (str(tmp_path / "b/pkg/__init__.py"), "package")
    assert found.find("pkg.sub") == (str(tmp_path / "b/pkg/sub.py"), "sub")
    assert found.find("pkg.absent") is None
    assert found.find("..m") is None
    assert found.find("") is None


def test_modules_that_cannot_be_read_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_bytes(b"\xff\0")
    assert ModuleLoader(tmp_path).find("m") is None


def test_unsaved_texts_come_first(tmp_path: Path) -> None:
    path = str(write(tmp_path / "m.py", "disk"))
    assert ModuleLoader(tmp_path, overlay={path: "editor"}).find("m") == (path, "editor")


def test_module_names(tmp_path: Path) -> None:
    write(tmp_path / "pkg/__init__.py")
    found = ModuleLoader(tmp_path)
    assert found.module_name(str(tmp_path / "pkg/m.py")) == "pkg.m"
    assert found.module_name(str(tmp_path / "pkg/__init__.py")) == "pkg"
    assert found.module_name(str(tmp_path / "not-a-name.py")) is None


@pytest.mark.parametrize("named", ["", "bin/python"])
def test_environment_by_folder_or_executable(tmp_path: Path, named: str) -> None:
    packages = environment_at(tmp_path / "venv")
    write(packages / "torch/version.py", "__version__ = '2.12.1+cu128'\n")
    found = interpreter.at(tmp_path / "venv" / named)
    assert found is not None
    assert found.packages == (packages,)
    assert found.torch_version == "2.12"


def test_pth_files_add_folders_and_run_nothing(tmp_path: Path) -> None:
    packages = environment_at(tmp_path / "venv")
    (tmp_path / "project/src").mkdir(parents=True)
    marker = tmp_path / "ran"
    write(
        packages / "a.pth",
        f"# comment\n{tmp_path}/project/src\nimport pathlib; pathlib.Path({str(marker)!r}).touch()\n/absent\n",
    )
    assert Interpreter(tmp_path / "venv").packages == (packages, tmp_path / "project/src")
    assert not marker.exists()


def test_system_packages_where_the_environment_says_so(tmp_path: Path) -> None:
    base = tmp_path / "base/lib/python3.12/site-packages"
    base.mkdir(parents=True)
    home = str(tmp_path / "base/bin")
    own = environment_at(tmp_path / "venv", home=home, include_system_site_packages="true")
    assert Interpreter(tmp_path / "venv").packages == (own, base)
    other = environment_at(tmp_path / "other", home=home, include_system_site_packages="false")
    assert Interpreter(tmp_path / "other").packages == (other,)


def test_nearest_environment(tmp_path: Path) -> None:
    environment_at(tmp_path / "project/.venv")
    environment_at(tmp_path / "active")
    folder = tmp_path / "project/src/pkg"
    assert interpreter.nearest(folder, {}).prefix == tmp_path / "project/.venv"
    assert interpreter.nearest(folder, {"VIRTUAL_ENV": str(tmp_path / "active")}).prefix == tmp_path / "active"
    assert interpreter.nearest(tmp_path, {"CONDA_PREFIX": str(tmp_path / "active")}).prefix == tmp_path / "active"
    assert interpreter.nearest(tmp_path, {}).prefix == Path(sys.prefix)


def test_what_is_no_interpreter(tmp_path: Path) -> None:
    assert interpreter.at(tmp_path) is None
    assert interpreter.at(tmp_path / "absent") is None
    assert interpreter.at(write(tmp_path / "x/python")) is None


def test_own_interpreter_agrees_with_python_itself() -> None:
    import sysconfig

    assert Path(sysconfig.get_paths()["purelib"]) in Interpreter(Path(sys.prefix)).packages


def test_installed_packages_surround_themselves_only(tmp_path: Path) -> None:
    packages = environment_at(tmp_path / "venv")
    write(packages / "pkg/__init__.py")
    assert surroundings(packages / "pkg/m.py") == packages / "pkg"
    assert surroundings(packages / "single.py") == packages
    assert surroundings(tmp_path / "project/m.py") == tmp_path / "project"


def test_wrong_interpreter_is_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "graphmend", "check", "--python", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == f"graphmend: --python: {tmp_path} is neither a Python interpreter nor an environment\n"
