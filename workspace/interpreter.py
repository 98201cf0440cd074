"""What a Python interpreter has installed, found by looking at its files: nothing is ever run.

Folders of packages come from `pyvenv.cfg`, the layout of the prefix and `.pth` files; a `.pth` line that is code is
passed over.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from graphmend.analysis.torch_facts import load, versions

_TORCH_VERSION = re.compile(r"^__version__\s*(?::\s*\w+\s*)?=\s*['\"]([^'\"\s]+)", re.MULTILINE)


@dataclass(frozen=True)
class Interpreter:
    """An installed Python by its prefix: a virtual environment's folder, `/usr`, a conda environment."""

    prefix: Path

    @cached_property
    def packages(self) -> tuple[Path, ...]:
        """The folders that this interpreter imports installed packages from, in order, those of `.pth` files last."""
        folders = [folder for prefix in self._prefixes() for folder in _site_packages(prefix, self._version)]
        added = [path for folder in folders for path in _from_pth(folder)]
        return tuple(dict.fromkeys([*folders, *added]))

    @property
    def torch_version(self) -> str | None:
        """The minor version of the installed torch, such as "2.13"; None where there is none."""
        return ".".join(self.torches[0][0].split(".")[:2]) if self.torches else None

    @cached_property
    def torches(self) -> tuple[tuple[str, Path], ...]:
        """Every torch that is installed, with its whole version and its folder; the first is imported."""
        return tuple(_torches(self.packages))

    @cached_property
    def _settings(self) -> Mapping[str, str]:
        """`pyvenv.cfg` as keys and values; empty where this is no virtual environment."""
        try:
            lines = (self.prefix / "pyvenv.cfg").read_text("utf-8", "replace").splitlines()
        except OSError:
            return {}
        pairs = (line.partition("=") for line in lines)
        return {key.strip().lower(): value.strip() for key, equals, value in pairs if equals}

    @property
    def _version(self) -> str | None:
        """`3.11` where the environment says so; several versions may share a prefix."""
        full = self._settings.get("version") or self._settings.get("version_info") or ""
        return ".".join(full.split(".")[:2]) if full else None

    def _prefixes(self) -> Iterator[Path]:
        yield self.prefix
        home = self._settings.get("home")
        if home and self._settings.get("include-system-site-packages", "").lower() == "true":
            yield Path(home).parent


@dataclass(frozen=True)
class Running(Interpreter):
    """The interpreter that runs this, with what its program imports: `sys.path` may have more than is installed."""

    @cached_property
    def torches(self) -> tuple[tuple[str, Path], ...]:
        return tuple(_torches(Path(os.path.abspath(folder)) for folder in sys.path))


def running() -> Running:
    return Running(Path(sys.prefix))


def _torches(folders: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """The torch of each folder that has one, once."""
    seen = set()
    for folder in folders:
        try:
            text = (folder / "torch" / "version.py").read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        place = (folder / "torch").resolve()
        if place not in seen and (stated := _TORCH_VERSION.search(text)):
            seen.add(place)
            yield stated[1], folder / "torch"


def torch_remarks(interpreter: Interpreter, wanted: str | None, *, named: bool) -> Iterator[str]:
    """Which torch files are checked against, in one line for each thing that is not as one would think.

    `wanted` is the version that the settings ask for, which decides before the installed one; `named` says that the
    user chose the interpreter: only then it is worth a word that it has no torch.
    """
    installed = interpreter.torches
    if wanted is None and len(installed) > 1:
        (first, where), *others = installed
        rest = " and ".join(f"{version} in {folder}" for version, folder in others)
        yield f"torch {first} in {where} hides {rest}: checked as {load(first).minor}"
    if wanted is None and not installed and named:
        yield f"no torch in {interpreter.prefix}: checked as {versions()[-1]}"
    version = wanted or (installed[0][0] if installed else None)
    if version is not None and (unknown := _of_version(version)) is not None:
        yield unknown


def _of_version(version: str) -> str | None:
    """A remark where nothing is known of a version; None where it is."""
    known = load(version)
    if known.exact:
        return None
    if re.match(r"\d+\.\d+", version) is None:
        return f"torch calls itself {version!r}, which is no version; checked as {known.minor}"
    minor = ".".join(version.split(".")[:2])
    if known.minor == versions()[0]:
        return (
            f"torch {minor} is older than {known.minor}, the oldest that is known: checked as {known.minor}; "
            "`verify` and `run` do nothing with it"
        )
    return f"torch {minor} is newer than known, checked as {known.minor}"


def at(path: Path) -> Interpreter | None:
    """The interpreter that a user names by its executable or its environment's folder; None where there is none."""
    path = Path(os.path.abspath(os.path.expanduser(path)))
    if path.is_dir():
        return Interpreter(path) if (path / "pyvenv.cfg").is_file() or any(_site_packages(path)) else None
    if not path.is_file():
        return None
    # the executable of a virtual environment is a link; its own folder counts before the one it points to
    for executable in (path, path.resolve()):
        prefix = (
            executable.parent if os.name == "nt" and executable.parent.name != "Scripts" else executable.parent.parent
        )
        if (prefix / "pyvenv.cfg").is_file() or any(_site_packages(prefix)):
            return Interpreter(prefix)
    return None


def nearest(folder: Path, environ: Mapping[str, str] = os.environ) -> Interpreter:
    """The interpreter that a project most likely uses: the active environment, one in a folder above, else our own."""
    active = environ.get("VIRTUAL_ENV")
    candidates = [Path(active)] if active else []
    candidates += [above / name for above in (folder, *folder.parents) for name in (".venv", "venv")]
    if conda := environ.get("CONDA_PREFIX"):
        candidates.append(Path(conda))
    for candidate in candidates:
        if candidate.is_dir() and (found := at(candidate)) is not None:
            return found
    return Interpreter(Path(sys.prefix))


def _site_packages(prefix: Path, version: str | None = None) -> list[Path]:
    """The package folders under a prefix: POSIX, Debian's and Windows' layouts; the newest version first."""
    pattern = f"python{version}" if version else "python3.*"
    found = [
        folder / name
        for library in ("lib", "lib64", "local/lib")
        for folder in sorted((prefix / library).glob(pattern), key=_minor, reverse=True)
        for name in ("site-packages", "dist-packages")
    ]
    found += [prefix / "Lib" / "site-packages", prefix / "lib" / "python3" / "dist-packages"]
    return list({os.path.realpath(path): path for path in reversed(found) if path.is_dir()}.values())[::-1]


def _minor(folder: Path) -> int:
    digits = re.sub(r"\D", "", folder.name.rpartition(".")[2])
    return int(digits) if digits else 0


def _from_pth(folder: Path) -> Iterator[Path]:
    """The folders that the `.pth` files of a package folder add. Lines that begin with `import` are code: not run."""
    for file in sorted(folder.glob("*.pth")):
        try:
            lines = file.read_text("utf-8-sig", "replace").splitlines()
        except OSError:
            continue
        for line in lines:
            if line and not line.startswith(("#", "import ", "import\t")):
                path = Path(os.path.abspath(folder / line.rstrip()))
                if path.is_dir():
                    yield path
