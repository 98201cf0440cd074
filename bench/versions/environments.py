"""Environments with other versions of torch, outside of the repository: made one at a time, and used again.

Each takes 5 to 7 GB with its CUDA libraries, and runs without a GPU. They lie in `~/.cache/graphmend-torch`, or where
`GRAPHMEND_TORCH` says.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from graphmend.workspace.interpreter import Interpreter

ROOT = Path(__file__).resolve().parents[2]
_TESTS = ("numpy", "pytest>=8", "pytest-asyncio>=1", "pytest-xdist>=3.6", "hypothesis>=6.100", "transformers")
_NEEDED = 9 * 2**30
"""Bytes that must be free before an environment is made."""


class MissingError(Exception):
    """An environment is not there and cannot be made; the message says why."""


def folder() -> Path:
    return Path(os.environ.get("GRAPHMEND_TORCH") or Path.home() / ".cache" / "graphmend-torch")


def python_with(version: str) -> str:
    """An interpreter with a minor version of torch: this one where it has it, else that of an environment."""
    if Interpreter(Path(sys.prefix)).torch_version == version:
        return sys.executable
    place = folder() / version
    python = place / "bin" / "python"
    if Interpreter(place).torch_version != version:
        _make(place, version)
    return str(python)


def _make(place: Path, version: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(place.parent).free
    if free < _NEEDED:
        raise MissingError(f"torch {version} needs {_NEEDED >> 30} GB in {place.parent}, {free >> 30} are free")
    print(f"making an environment with torch {version} in {place}", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
    # bytecode is written as modules are imported: compiling all of them takes longer than unpacking
    pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-cache-dir", "--no-compile"]
    try:
        subprocess.run([*pip, f"torch=={version}.*", *_TESTS, *_dependencies()], check=True)
    except subprocess.CalledProcessError:
        shutil.rmtree(place, ignore_errors=True)
        raise MissingError(f"torch {version} could not be installed") from None


def _dependencies() -> list[str]:
    """What GraphMend needs itself; its sources are read from the repository."""
    if sys.version_info < (3, 11):
        import tomli as tomllib
    else:
        import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return list(project["dependencies"])
