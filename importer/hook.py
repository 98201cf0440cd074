"""Mends modules while they are imported, or before what they hold is traced: which ones, when, and what happens if a
file cannot be mended.

Whether a file runs mended is decided before any of it runs: one whose mended text does not compile, or whose mends call
a runtime that this program cannot load, runs as it is. Nothing runs twice, and what a module raises is the program's.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple, TypeVar

from graphmend.importer.code.loaded import LoadedModules
from graphmend.importer.outcome import Elsewhere, Mender, Outcome, Report
from graphmend.importer.targets import MendingFinder, Targets, search

#: what the text of a mended module may call
_RUNTIME = "graphmend.runtime"
#: the file that Python names for its own loaders
_IMPORT_SYSTEM = "<frozen importlib._bootstrap_external>"

Function = TypeVar("Function", bound=Callable[..., Any])


class _Mended(NamedTuple):
    """A file that runs mended."""

    original: str
    text: str
    code: CodeType | None = None
    """That of `text`, where it is at hand."""


class Importer(MendingFinder):
    """Finds the modules to mend, wherever the other finders find them, and gives them a loader that mends."""

    def __init__(self, targets: Targets, mender: Mender, defers: bool = False) -> None:
        self.targets = targets
        self.report = Report()
        self._mender = mender
        self._defers = defers
        """Is a module mended before it is traced, and not before it is there?"""
        self._compiles: Callable[[], bool] = lambda: False
        self._prepare: Callable[[], object] = _nothing
        self._after: dict[str, Callable[[], object]] = {}
        self._codes: dict[tuple[str, str], CodeType | None] = {}
        self._texts: dict[str, _Mended] = {}
        """The texts that were mended, by path."""
        self._loaded = LoadedModules()
        self._turn = threading.RLock()
        self._is_mending = False
        self._put_off = 0
        """How many modules were imported whose mending was put off."""
        self._importing = 0
        """How many modules are imported now, each by the one before."""

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
        spec = search((finder for finder in list(sys.meta_path) if finder is not self), name, path, target)
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
        if (text := _text(data)) is None:
            return None  # importing it says so
        key = path, text
        if key not in self._codes:
            self._codes = {key: self._code(text, path)}  # a loader is asked twice in a row at most
        return self._codes[key]

    def runs(self, data: bytes, path: str, code: CodeType) -> None:
        """This code of a file's module, mended or not, runs from now on."""
        if (text := _text(data)) is not None:
            self._loaded.add(path, text, code)

    @contextlib.contextmanager
    def importing(self) -> Iterator[None]:
        """A module is imported meanwhile, and what it imports."""
        self._importing += 1
        try:
            yield
        finally:
            self._importing -= 1

    def ran(self, path: str) -> None:
        """A file's module has run to its end."""
        self._loaded.ran(path)

    def defers(self) -> bool:
        """Is the mending of a module that is imported now put off until a frame is compiled?"""
        return self._defers and not self._compiles()

    def mend_later(self, data: bytes, path: str) -> None:
        """Mends a file whose module runs with its own code before it is traced."""
        if (text := _text(data)) is not None:
            self.report.waiting[path] = text
            self._put_off += 1
            self._mender.expect(path, by_program=self._importing == 1)

    def prepare(self) -> None:
        prepare, self._prepare = self._prepare, _nothing
        prepare()

    def waits(self, path: str | None = None) -> bool:
        """Was the mending of this file put off, or that of any? True as well while some are mended: functions get
        their code at the end."""
        return self._is_mending or (bool(self.report.waiting) if path is None else path in self.report.waiting)

    def imports(self) -> int:
        """How many modules were imported whose mending was put off."""
        return self._put_off

    def reach(self, *paths: str) -> bool:
        """Mends those of these files that were put off. True where functions of other files were mended by that."""
        with self._turn, self._mending(), self._loaded.together() as changed:
            waiting = set(self.report.waiting)
            for path in dict.fromkeys(paths):
                self._mend_now(path)
        return not changed <= waiting

    def renew(self, function: FunctionType) -> None:
        """Gives a function that was made of the old code of a mended file the new one."""
        self._loaded.renew(function)

    def mend_waiting(self) -> None:
        """Mends all that was put off."""
        if self.waits():
            with self._turn, self._mending(), self._loaded.together():
                for path in self._mender.in_order([*self.report.waiting]):
                    self._mend_now(path)

    def _mend_now(self, path: str) -> None:
        if (text := self.report.waiting.get(path)) is None:
            return  # a signal handler has compiled something meanwhile
        code, outcome = self._known(text, path)
        if code is not None:
            outcome = self._replaced(path, text, code, outcome)
        self._add(text, path, outcome)
        if self.report.waiting.get(path) == text:  # it was not loaded anew meanwhile
            del self.report.waiting[path]

    @contextlib.contextmanager
    def _mending(self) -> Iterator[None]:
        """Other threads wait meanwhile, also where nothing is left to mend: functions get their code at the end."""
        self._is_mending = True
        try:
            yield
        finally:
            self._is_mending = False

    def mend_before(self, frames: Callable[[Importer], Callable[[], bool]], prepare: Callable[[], object]) -> None:
        """Mends what was put off when `frames` says so, whose result tells whether frames are traced now. `prepare` is
        called once before that, where it is possible then.
        """
        self._prepare, self._compiles = prepare, frames(self)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        """A thread that had the turn is not there in a child."""
        self._turn, self._is_mending = threading.RLock(), False

    def mend_at_once(self) -> None:
        """Puts nothing off from now on."""
        self._defers = False
        self.mend_waiting()

    def _replaced(self, path: str, text: str, code: CodeType, outcome: Outcome) -> Outcome:
        try:
            self._loaded.replace(path, text, code)
        except Exception as error:
            return outcome._replace(text=None, problem=f"it stays as it was: {error}")
        return outcome

    def _code(self, text: str, path: str) -> CodeType | None:
        code, outcome = self._known(text, path)
        self._add(text, path, outcome)
        return code

    def _known(self, text: str, path: str) -> tuple[CodeType | None, Outcome]:
        """The mended code of a text, and what mending it gave: from an earlier run, or made now."""
        known = self._mender.load(text, path, self)
        if known is None:
            known = self._mend(text, path)
            if known[1].problem is None:
                self._mender.store(text, path, *known)
        code, outcome = known
        if code is not None and (problem := self._runtime_problem(outcome)) is not None:
            return None, Outcome(problem=problem)
        return code, outcome

    def _add(self, text: str, path: str, outcome: Outcome) -> None:
        """What was found out of a text runs from now on."""
        self.report.add(path, outcome)
        if outcome.text is not None:
            self._texts[path] = _Mended(text, outcome.text)
        for other, mended in outcome.elsewhere.items():
            self._mend_loaded(other, mended)

    def _mend(self, text: str, path: str) -> tuple[CodeType | None, Outcome]:
        from graphmend.importer.code import mended_code

        try:
            before = self._texts.get(path, _Mended(text, text))
            if before.original != text:  # the file has changed since
                del self._texts[path]
                before = _Mended(text, text)
            outcome = self._mender.mend(before.text, path, self)
            now = before.text if outcome.text is None else outcome.text
            if now == text or outcome.problem is not None:
                return None, outcome
            known = before.code if now == before.text else None
            if outcome.code is not None:
                known = outcome.code.code(text)
            return known or mended_code.compiled(path, text, now), outcome._replace(text=now, code=None)
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
            return self._texts[path].text
        if path in self.report.problems or not self.targets.hold("", path):
            return None
        return self.original(path)

    def original(self, path: str) -> str | None:
        """The text of the file itself."""
        if path in self._texts:
            return self._texts[path].original
        return self.report.waiting.get(path) or decoded(path)

    def _mend_loaded(self, path: str, mended: Elsewhere) -> None:
        """Mends a file because of what was found from another one. Where it is loaded its functions get new code."""
        from graphmend.importer.code import mended_code

        disk = self.report.waiting.get(path) or decoded(path)
        if disk is None or self.now(path) is None:
            return
        code = mended.code.code(disk) if mended.code is not None else None
        try:
            if path in self._loaded:
                code = code or mended_code.compiled(path, disk, mended.text)
                self._loaded.replace(path, disk, code)
        except Exception as error:
            self.report.problems[path] = f"it was loaded before its breaks were found, and stays as it was: {error}"
            return
        self._texts[path] = _Mended(disk, mended.text, code)
        before = self.report.mended.get(path, Outcome())
        self.report.mended[path] = Outcome(mended.text, [*before.mends, *mended.mends])


def _nothing() -> None:
    """Nothing is to be prepared, or that was done."""


def decoded(path: str) -> str | None:
    """The text of a file; None where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return _text(file.read())
    except OSError:
        return None


def _text(data: bytes) -> str | None:
    """The text of a source file, its lines ended by LF; None where it is none."""
    try:
        return importlib.util.decode_source(data)
    except (SyntaxError, UnicodeDecodeError):
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
        self._executes = False
        """Is code asked for to run it in a module, which may get mended later?"""

    @_part_of_the_import_system
    def exec_module(self, module: ModuleType) -> None:
        self._executes = True
        with self._importer.importing():
            super().exec_module(module)
        self._importer.ran(self.path)

    @_part_of_the_import_system
    def get_code(self, fullname: str) -> CodeType | None:
        executes, self._executes = self._executes, False
        path = self.get_filename(fullname)
        data = self.get_data(path)
        is_later = executes and self._importer.defers()
        code = None if is_later else self._importer.code(data, path)
        if code is None:
            code = super().get_code(fullname)
        if code is not None:
            self._importer.runs(data, path, code)
            if is_later:
                self._importer.mend_later(data, path)
        return code
