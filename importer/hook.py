"""Mends modules while they are imported: which ones, when, and what happens if a file cannot be mended.

Whether a file runs mended is decided before any of it runs: one whose mended text does not compile, or whose mends call
a runtime that this program cannot load, runs as it is. Nothing runs twice, and what a module raises is the program's.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple, Protocol, TypeVar

#: torch's own top-level packages, and ours
UNTOUCHED = frozenset({"torch", "torchgen", "functorch", "graphmend"})
_PACKAGES = ("site-packages", "dist-packages")
#: what the text of a mended module may call
_RUNTIME = "graphmend.runtime"
#: the file that Python names for its own loaders
_IMPORT_SYSTEM = "<frozen importlib._bootstrap_external>"

Function = TypeVar("Function", bound=Callable[..., Any])

Note = dict[str, Any]
"""What happened to one finding, as JSON."""


class Elsewhere(NamedTuple):
    """Another file: its text with mends, and those that this file's import has added."""

    text: str
    mends: Sequence[Note]


class Outcome(NamedTuple):
    """What mending a text gave. `text` is None where nothing was changed."""

    text: str | None = None
    mends: Sequence[Note] = ()
    left: Sequence[Note] = ()
    elsewhere: Mapping[str, Elsewhere] = {}
    """What was mended in other files, whose breaks only show from this one."""
    problem: str | None = None
    """Why the text could not be looked at."""

    @classmethod
    def failed(cls, error: Exception) -> Outcome:
        return cls(problem=f"it could not be mended ({type(error).__name__}: {error})")


class Texts(Protocol):
    """The modules' texts as they run now."""

    def now(self, path: str) -> str | None:
        """The text of a file with the mends made so far; None for one that is never mended."""

    def original(self, path: str) -> str | None:
        """The text of the file itself."""


class Mender(Protocol):
    """Mends texts."""

    def mend(self, text: str, path: str, texts: Texts) -> Outcome:
        """Mends the text of the file at `path`, and of others. Lines end in LF."""

    def load(self, text: str, path: str, texts: Texts) -> tuple[CodeType | None, Outcome] | None:
        """What an earlier run made of the same text, with the same ones around it; None where nothing is known."""

    def store(self, text: str, path: str, code: CodeType | None, outcome: Outcome) -> None:
        """Keeps it for a later run, if that is possible."""

    def end(self) -> None:
        """Lets go of what mending needs beyond this object."""


class Targets:
    """The modules to mend: packages by name, and folders without what is installed in them."""

    def __init__(self, names: Iterable[str] = (), folders: Iterable[Path] = ()) -> None:
        self._names = tuple(names)
        for name in self._names:
            if _top(name) in UNTOUCHED or _top(name) in sys.stdlib_module_names:
                raise ValueError(f"{name} is never mended")
        self._folders = tuple(os.path.realpath(folder) for folder in folders)
        self.unused = set(self._names)
        """The names of which nothing was imported so far."""

    def may_hold(self, name: str) -> bool:
        """Could a module of this name be one of them? In folders only the file decides."""
        return _top(name) not in UNTOUCHED and (bool(self._folders) or self._names_hold(name))

    def hold(self, name: str, path: str) -> bool:
        """Is the module of this name, whose file is `path`, one of them?"""
        real = os.path.realpath(path)
        if _top(name) in UNTOUCHED or any(_inside(real, folder) for folder in self._untouched):
            return False
        return (
            self._names_hold(name)
            or any(_inside(real, folder, installed=True) for folder in self._package_folders)
            or any(_inside(real, folder) for folder in self._folders)
        )

    def _names_hold(self, name: str) -> bool:
        return any(name == target or name.startswith(f"{target}.") for target in self._names)

    @functools.cached_property
    def _package_folders(self) -> list[str]:
        """Where the named packages lie: code is loaded from there under other names too."""
        return [folder for name in self._names for folder in _folders_of(name)]

    @functools.cached_property
    def _untouched(self) -> list[str]:
        """Where torch, GraphMend and the standard library lie."""
        library = os.path.dirname(os.path.realpath(os.__file__))
        return [library, *(folder for name in sorted(UNTOUCHED) for folder in _folders_of(name))]


def _top(name: str) -> str:
    return name.partition(".")[0]


def _folders_of(name: str) -> list[str]:
    """The folders of a package, found without importing it."""
    top, *rest = name.split(".")
    spec = _search((finder for finder in sys.meta_path if not isinstance(finder, Importer)), top)
    locations = spec.submodule_search_locations if spec else None
    return [os.path.realpath(os.path.join(folder, *rest)) for folder in locations or ()]


def _search(
    finders: Iterable[Any], name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
) -> ModuleSpec | None:
    """What the first of the finders that knows a module says."""
    for finder in finders:
        spec: ModuleSpec | None = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
        if spec is not None:
            return spec
    return None


def _inside(path: str, folder: str, *, installed: bool = False) -> bool:
    """Is a file below a folder? What is installed below it counts only if asked for."""
    below = path.startswith(folder.rstrip(os.sep) + os.sep)
    return below and (installed or not any(part in _PACKAGES for part in path[len(folder) :].split(os.sep)))


@dataclass
class Report:
    """What was done to the modules of a program, by path."""

    mended: dict[str, Outcome] = field(default_factory=dict)
    left: dict[str, Sequence[Note]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    """Files that ran as they are, and why."""
    remarks: list[str] = field(default_factory=list)
    """What is not as one would think with the torch that the program has, a sentence each."""
    taken_back: Callable[[], list[tuple[str, int, str, str]] | None] = lambda: None
    """The numbers that are not kept in the graph after that was tried: path, line, function and reason of each. None
    where none are kept."""

    def add(self, path: str, outcome: Outcome) -> None:
        if outcome.problem is not None:
            self.problems[path] = outcome.problem
        if outcome.text is not None:
            before = self.mended.get(path, Outcome())  # mended because of another file
            new = [mend for mend in outcome.mends if mend not in before.mends]
            self.mended[path] = outcome._replace(mends=[*before.mends, *new])
        if outcome.left:
            self.left[path] = outcome.left


class Importer(MetaPathFinder):
    """Finds the modules to mend, wherever the other finders find them, and gives them a loader that mends."""

    def __init__(self, targets: Targets, mender: Mender) -> None:
        self.targets = targets
        self.report = Report()
        self._mender = mender
        self._after: dict[str, Callable[[], object]] = {}
        self._codes: dict[tuple[str, str], CodeType | None] = {}
        self._texts: dict[str, tuple[str, str]] = {}
        """The texts that were mended, by path: as on disk, and mended."""

    # Finding

    def install(self) -> None:
        """From now on modules are mended while they are imported, those loaded from a file by its path too."""
        sys.meta_path.insert(0, self)
        self._spec_from_file_location = importlib.util.spec_from_file_location
        importlib.util.spec_from_file_location = self._from_file(importlib.util.spec_from_file_location)

    def uninstall(self) -> None:
        """Undoes `install`; modules that were mended stay so."""
        if self not in sys.meta_path:
            return  # nothing is installed for a torch that is too old
        sys.meta_path.remove(self)
        self._mender.end()
        importlib.util.spec_from_file_location = self._spec_from_file_location

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if not self.targets.may_hold(name) and name not in self._after:
            return None
        spec = _search((finder for finder in list(sys.meta_path) if finder is not self), name, path, target)
        if spec is not None and name in self._after:
            _then(spec.loader, self._after.pop(name))
        return self._taken(spec) if spec is not None else None

    def after(self, name: str, action: Callable[[], object]) -> None:
        """Does something as soon as a module is loaded; at once where it is."""
        if name in sys.modules:
            action()
        else:
            self._after[name] = action

    def _from_file(self, original: Callable[..., ModuleSpec | None]) -> Callable[..., ModuleSpec | None]:
        @functools.wraps(original)
        def spec_from_file_location(name: str, *args: Any, **kwargs: Any) -> ModuleSpec | None:
            spec = original(name, *args, **kwargs)
            return self._taken(spec) if spec is not None else None

        return spec_from_file_location

    def _taken(self, spec: ModuleSpec) -> ModuleSpec:
        """The spec, with our loader where it is a source file to mend. Others' loaders (pytest's) are left alone."""
        if type(spec.loader) is SourceFileLoader and self.targets.hold(spec.name, spec.loader.path):
            self.targets.unused -= {name for name in self.targets.unused if f"{spec.name}.".startswith(f"{name}.")}
            spec.loader = MendingLoader(spec.loader.name, spec.loader.path, self)
        return spec

    # Mending

    def code(self, data: bytes, path: str) -> CodeType | None:
        """The mended code of a file; None where it is to run as it is."""
        try:
            text = importlib.util.decode_source(data)
        except (SyntaxError, UnicodeDecodeError):
            return None  # importing it says so
        key = path, text
        if key not in self._codes:
            self._codes = {key: self._code(text, path)}  # a loader is asked twice in a row at most
        return self._codes[key]

    def _code(self, text: str, path: str) -> CodeType | None:
        known = self._mender.load(text, path, self)
        if known is None:
            known = self._mend(text, path)
            if known[1].problem is None:
                self._mender.store(text, path, *known)
        code, outcome = known
        if code is not None and (problem := self._runtime_problem(outcome)) is not None:
            code, outcome = None, Outcome(problem=problem)
        self.report.add(path, outcome)
        if outcome.text is not None:
            self._texts[path] = text, outcome.text
        for other, mended in outcome.elsewhere.items():
            self._mend_loaded(other, mended)
        return code

    def _mend(self, text: str, path: str) -> tuple[CodeType | None, Outcome]:
        from graphmend.importer import mended_code

        try:
            disk, before = self._texts.get(path, (text, text))
            if disk != text:  # the file has changed since
                del self._texts[path]
                before = text
            outcome = self._mender.mend(before, path, self)
            now = before if outcome.text is None else outcome.text
            if now == text or outcome.problem is not None:
                return None, outcome
            return mended_code.compiled(path, text, now), outcome._replace(text=now)
        except Exception as error:
            return None, Outcome.failed(error)

    def _runtime_problem(self, outcome: Outcome) -> str | None:
        """Why the mends of a text would not find the runtime that they call."""
        if not any(_RUNTIME in (text or "") for text in (outcome.text, *(e.text for e in outcome.elsewhere.values()))):
            return None
        torch = sys.modules.get("torch")
        if torch is None and importlib.util.find_spec("torch") is not None:
            self.after("torch", _load_runtime)  # before torch.compile traces the first call of it
            return None
        if getattr(getattr(torch, "__spec__", None), "_initializing", False):
            return None  # torch itself imports this file
        try:
            _load_runtime()
        except Exception as error:
            return f"its mends need {_RUNTIME}, which cannot be imported ({type(error).__name__}: {error})"
        return None

    # What runs already

    def now(self, path: str) -> str | None:
        """The text of a file with the mends made so far; None for one that is never mended."""
        if path in self._texts:
            return self._texts[path][1]
        if path in self.report.problems or not self.targets.hold("", path):
            return None
        return decoded(path)

    def original(self, path: str) -> str | None:
        """The text of the file itself."""
        return self._texts[path][0] if path in self._texts else decoded(path)

    def _mend_loaded(self, path: str, mended: Elsewhere) -> None:
        """Mends a file because of what was found from another one. Where it is loaded its functions get new code."""
        from graphmend.importer import code_swap

        disk, loaded = decoded(path), self.now(path)
        if disk is None or loaded is None:
            return
        modules = [module for module in list(sys.modules.values()) if self._taken_over(module)]
        try:
            if any(getattr(module, "__file__", None) == path for module in modules):
                code_swap.swap(path, code_swap.Texts(disk, loaded, mended.text), modules)
        except Exception as error:
            self.report.problems[path] = f"it was loaded before its breaks were found, and stays as it was: {error}"
            return
        self._texts[path] = disk, mended.text
        before = self.report.mended.get(path, Outcome())
        self.report.mended[path] = Outcome(mended.text, [*before.mends, *mended.mends])

    def _taken_over(self, module: ModuleType) -> bool:
        loader = getattr(getattr(module, "__spec__", None), "loader", None)
        return isinstance(loader, MendingLoader)


def decoded(path: str) -> str | None:
    """The text of a file; None where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return importlib.util.decode_source(file.read())
    except (OSError, SyntaxError, UnicodeDecodeError):
        return None


def _load_runtime() -> None:
    importlib.import_module(_RUNTIME)


def _part_of_the_import_system(function: Function) -> Function:
    """Python leaves the frames of its import system out of tracebacks and of what `stacklevel` counts: these too."""
    plain: Any = function
    plain.__code__ = plain.__code__.replace(co_filename=_IMPORT_SYSTEM)
    return function


def _then(loader: Any, action: Callable[[], object]) -> None:
    """Makes a loader do something when it has run its module."""
    original = loader.exec_module

    @_part_of_the_import_system
    def exec_module(module: ModuleType) -> None:
        del loader.exec_module
        original(module)
        action()

    loader.exec_module = exec_module


class MendingLoader(SourceFileLoader):
    """Loads a source file, mended. Its source, as far as anybody asks, is the file."""

    def __init__(self, name: str, path: str, importer: Importer) -> None:
        super().__init__(name, path)
        self._importer = importer

    @_part_of_the_import_system
    def get_code(self, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        code = self._importer.code(self.get_data(path), path)
        return super().get_code(fullname) if code is None else code
