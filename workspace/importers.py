"""Which files of a package import some of its modules, by looking at the import statements in their text, and at the
strings of those that import by name."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from graphmend.workspace.config import DEFAULT_EXCLUDE
from graphmend.workspace.module_loader import package_root, surroundings

#: a folder with more files than this is no package that anybody checks a part of
_MOST_FILES = 20_000
#: with more importers than these, checking them would take longer than the check that was asked for
MANY = 64

#: what every import statement holds: a search for a word is several times as fast as one for statements
_WORD = re.compile(rb"import\b")
#: what stands before the word on its line, and behind it
_HEAD = re.compile(rb"[ \t]*(?:from[ \t]+(?P<of>[.\w]+)[ \t]+)?")
_TAIL = re.compile(rb"[ \t]*(?P<names>\([^)]*\)|[^\n#]*)")
_NAME = re.compile(rb"[\w.]+")
#: what imports a module by a string, and the strings that may name one
_BY_STRING = re.compile(rb"\bimport_module\b|\b__import__\b")
_STRING = re.compile(rb"[\"']([A-Za-z_.][\w.]*)[\"']")


def importers(checked: Sequence[Path]) -> list[Path]:
    """The files beside `checked`, in the packages that these belong to, that import one of them."""
    wanted = {_stem(path) for path in checked}
    known = {str(path) for path in checked}
    found: list[Path] = []
    one_each = {path.parent: path for path in checked}.values()
    for folder in dict.fromkeys(map(surroundings, one_each)):
        files = list(_python_files(folder))
        if len(files) <= _MOST_FILES:
            found += (Path(p) for p in files if p not in known and not wanted.isdisjoint(_imported(p, str(folder))))
    return found


def all_importers(checked: Sequence[Path], most: int) -> list[Path]:
    """The files beside `checked` that import one of them, and those that import these. Stops before there are more
    than `most` that do so indirectly."""
    found = importers(checked)
    while found and len(found) <= most:
        more = importers([*checked, *found])
        if not more or len(found) + len(more) > most:
            break
        found += more
    return found


def _stem(path: Path) -> str:
    """A module's file without its ending; a package's folder."""
    return str(path.parent if path.name == "__init__.py" else path.with_suffix(""))


def _python_files(folder: Path) -> Iterator[str]:
    skipped, number = frozenset(DEFAULT_EXCLUDE), 0
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in skipped and not name.startswith("."))
        for name in sorted(names):
            if name.endswith(".py"):
                number += 1
                yield os.path.join(where, name)
        if number > _MOST_FILES:
            return


def _imported(path: str, folder: str) -> frozenset[str]:
    """What the import statements of a file below `folder` may name, as paths without ending."""
    try:
        status = os.stat(path)
    except OSError:
        return frozenset()
    # reading a pipe may never end
    return _read(path, folder, status.st_mtime_ns, status.st_size) if stat.S_ISREG(status.st_mode) else frozenset()


@lru_cache(maxsize=_MOST_FILES)
def _read(path: str, folder: str, changed: int, size: int) -> frozenset[str]:
    """Read once for each content: importers of importers are looked for in the same files."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return frozenset()
    above = os.path.dirname(path)
    modules = {module for base, names in _statements(data) for module in _named(base, names)}
    if _BY_STRING.search(data) is not None:
        modules.update(name.decode() for name in _STRING.findall(data))
    relative = {module for module in modules if module.startswith(".")}
    roots = {folder, _root(above)} if modules - relative else ()
    dotted = [module.replace(".", os.sep) for module in modules - relative]
    return frozenset(_beside(above, module) for module in relative).union(
        f"{root}{os.sep}{module}" for root in roots for module in dotted
    )


@lru_cache(maxsize=_MOST_FILES)
def _root(folder: str) -> str:
    """The folder from which the files of `folder` are imported."""
    return str(package_root(Path(folder, "__init__.py")))


def _statements(data: bytes) -> Iterator[tuple[bytes | None, bytes]]:
    """The import statements of a text: the module of `from`, and the names."""
    end = 0
    for match in _WORD.finditer(data):
        newline, is_first = data.rfind(b"\n", end, match.start()), not end
        end = match.end()
        if newline < 0 and not is_first:
            continue  # no statement begins with an earlier one of its line: a long line is looked at once
        head = _HEAD.fullmatch(data, newline + 1, match.start())
        if head is not None and (tail := _TAIL.match(data, end)) is not None:
            yield head["of"], tail["names"]


def _named(base: bytes | None, names: bytes) -> Iterable[str]:
    """The modules that an import statement may name: of `from a import b` both `a` and `a.b`."""
    if base is None:
        return [name.decode(errors="replace") for name in _NAME.findall(names)]
    of = base.decode(errors="replace")
    dot = "" if of.endswith(".") else "."
    return [of, *(f"{of}{dot}{name.decode(errors='replace')}" for name in _NAME.findall(names))]


def _beside(folder: str, module: str) -> str:
    """The path without ending that a relative import means in a file of `folder`."""
    name = module.lstrip(".")
    for _ in range(len(module) - len(name) - 1):
        folder = os.path.dirname(folder)
    return os.path.join(folder, name.replace(".", os.sep)) if name else folder
