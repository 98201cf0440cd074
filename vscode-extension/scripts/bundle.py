"""Fills bundled/libs with GraphMend and what it needs: `bundle.py TARGET VERSION`. `bundle.py --targets` lists targets.

Everything but libcst is pure Python and comes once. Of libcst, the Python files come once too, with the compiled module
of each supported Python beside them: Python picks the one that carries its tag. They lie apart, in libs/native, so that
a Python for which there is none can take libcst from its environment.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
LIBS = HERE / "bundled" / "libs"

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")

#: Wheel platforms of each of VS Code's targets, as pip names them.
PLATFORMS = {
    "linux-x64": ("manylinux_2_28_x86_64", "manylinux2014_x86_64"),
    "linux-arm64": ("manylinux_2_28_aarch64", "manylinux2014_aarch64"),
    "alpine-x64": ("musllinux_1_2_x86_64",),
    "alpine-arm64": ("musllinux_1_2_aarch64",),
    "darwin-x64": ("macosx_10_12_x86_64",),
    "darwin-arm64": ("macosx_11_0_arm64",),
    "win32-x64": ("win_amd64",),
    "win32-arm64": ("win_arm64",),
    "universal": (),
}

#: What the oldest of these Pythons needs besides: pip reads markers for the Python that it runs in.
BACKPORTS = ("exceptiongroup", "tomli", "typing-extensions")


def main(target: str, version: str) -> None:
    if target not in PLATFORMS:
        sys.exit(f"bundle.py: unknown target {target}; there are {', '.join(PLATFORMS)}")
    shutil.rmtree(LIBS, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        wheel = build(Path(folder))
        found = wheel.name.split("-")[1]
        if found != version:
            sys.exit(f"bundle.py: the extension is {version}, graphmend is {found}")
        pure(wheel)
        for python in PYTHONS if target != "universal" else ():
            native(python, PLATFORMS[target], Path(folder))
    prune(LIBS)
    print(f"bundled {sum(file.stat().st_size for file in LIBS.rglob('*') if file.is_file()) / 1e6:.1f} MB for {target}")


def pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", *arguments], check=True)


def build(folder: Path) -> Path:
    pip("wheel", "--no-deps", "--wheel-dir", str(folder), str(HERE.parent))
    (wheel,) = folder.glob("graphmend-*.whl")
    return wheel


def pure(wheel: Path) -> None:
    """GraphMend and its pure-Python dependencies, as the oldest supported Python needs them."""
    pip("install", "--target", str(LIBS), "--no-deps", str(wheel))
    needs = [*(need for need in requirements(wheel) if not need.startswith("libcst")), *BACKPORTS]
    only_pure = ("--only-binary=:all:", "--implementation=py", "--abi=none", "--platform=any")
    pip("install", "--target", str(LIBS), *only_pure, f"--python-version={PYTHONS[0]}", *needs)


def requirements(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return requirements_of(archive.read(name).decode())


def requirements_of(metadata: str) -> list[str]:
    """What a distribution requires everywhere, from its METADATA."""
    lines = metadata.partition("\n\n")[0].splitlines()
    needs = (line.removeprefix("Requires-Dist: ") for line in lines if line.startswith("Requires-Dist: "))
    return [need for need in needs if ";" not in need]


def native(python: str, platforms: tuple[str, ...], folder: Path) -> None:
    """libcst for one Python. The YAML parser that it names is for its codemods' configuration and stays out."""
    wheels = folder / python
    chosen = [f"--platform={platform}" for platform in platforms]
    only_wheels = ("--no-deps", "--only-binary=:all:", f"--python-version={python}", *chosen)
    pip("download", "--dest", str(wheels), *only_wheels, "libcst")
    for wheel in wheels.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(LIBS / "native")


def prune(folder: Path) -> None:
    """Leaves out what is never imported."""
    for name in ("__pycache__", "tests"):
        for place in [*folder.rglob(name)]:
            shutil.rmtree(place, ignore_errors=True)
    shutil.rmtree(folder / "bin", ignore_errors=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--targets"]:
        print(*PLATFORMS)
    else:
        main(*sys.argv[1:])
