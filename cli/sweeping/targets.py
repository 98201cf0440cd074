"""What a sweep runs: folders, files, lists, packages and modules as they are typed become tasks, each target once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from graphmend.analysis.program.project import Project
from graphmend.analysis.syntax.source import Source
from graphmend.cli.failures import UsageError
from graphmend.cli.sweeping.models_of_file import WHOLE, targets_of
from graphmend.cli.sweeping.task import Options, Task
from graphmend.cli.verifying.requests import declared, find_module, split
from graphmend.dynamo.requests import Declared, Request
from graphmend.workspace import files
from graphmend.workspace.analysed_file import interpreter_for
from graphmend.workspace.config import Configurations, absolute, read_file
from graphmend.workspace.discovery import SUFFIXES, discover
from graphmend.workspace.module_loader import ModuleLoader, package_root
from graphmend.workspace.notebooks import reading

#: characters of a wrong target that are shown
_SHOWN = 160


class Targets:
    """Finds targets. `root` is the folder that paths count from, here and where the tasks run; `inputs` are entries
    that win over those of the configuration; `problems` gathers what could not be looked at, as one line each.
    """

    def __init__(self, root: Path, options: Options, inputs: tuple[Declared, ...] = ()) -> None:
        self.problems: list[str] = []
        self._root = root
        self._options = options
        self._inputs = inputs
        self._configurations = Configurations()
        self._projects: dict[Path, Project] = {}
        self._lists: list[Path] = []
        """The lists that are being read, each named by the one before it."""

    def tasks(self, texts: Iterable[str]) -> list[Task]:
        """The tasks of targets as they are typed, in order. Raises `UsageError` for one that means nothing."""
        found: dict[str, Task] = {}
        for text in texts:
            for task in self._of_text(text):
                found.setdefault(task.target, task)
        return list(found.values())

    def _of_text(self, text: str) -> Iterator[Task]:
        place, name = split(text)
        if not place or text.endswith(":"):
            raise UsageError(f"{text[:_SHOWN] or 'an empty text'} is no target")
        path = absolute(self._root / place)
        try:
            path.stat()
        except FileNotFoundError:
            pass  # perhaps a module
        except (OSError, ValueError) as error:
            reason = files.reason(error) if isinstance(error, OSError) else str(error)
            raise UsageError(f"{text[:_SHOWN]} is no target: {reason}") from None
        if path.is_dir():
            found = discover([path], self._configurations)
            self.problems += found.problems
            if name:
                raise UsageError(f"{place} is a folder, which has no {name}: name a file of it")
            for file in found.files:
                yield from self._of_file(file)
        elif place.endswith(SUFFIXES):
            if not path.is_file():
                raise UsageError(f"{place} does not exist")
            yield from [self._task(self._shown(path), path, name)] if name else self._of_file(path, named=True)
        elif path.is_file():
            if name:
                raise UsageError(f"{place} is no Python file, and has no {name}")
            yield from self._of_list(path)
        else:
            yield from self._of_module(place, name)

    def _of_list(self, path: Path) -> Iterator[Task]:
        try:
            lines = path.read_text("utf-8").splitlines()
        except (OSError, UnicodeError):
            raise UsageError(f"{path} cannot be read as a list of targets") from None
        if path in self._lists:
            raise UsageError(f"{path} lists itself")
        self._lists.append(path)
        for number, line in enumerate(lines, 1):
            text = line.partition("#")[0].strip()
            if text:
                try:
                    yield from self._of_text(text)
                except UsageError as error:
                    raise UsageError(f"{path}:{number}: {error}") from None
        self._lists.pop()

    def _of_module(self, module: str, name: str) -> Iterator[Task]:
        path = find_module(module, self._options.python)
        if path is None:
            raise UsageError(f"{module} is neither a file, a folder nor a module that can be found")
        if name:
            yield self._task(module, path, name, is_module=True)
            return
        if path.name != "__init__.py":
            yield from self._of_file(path, module, named=True)
            return
        found = discover([path.parent], self._configurations)
        self.problems += found.problems
        for file in found.files:
            parts = [module, *file.relative_to(path.parent).with_suffix("").parts]
            if file.suffix == ".py" and all(part.isidentifier() for part in parts[1:]):
                yield from self._of_file(file, ".".join(parts).removesuffix(".__init__"))

    def _of_file(self, path: Path, module: str | None = None, *, named: bool = False) -> Iterator[Task]:
        place = module or self._shown(path)
        entries = self._declared(path)
        concerned = Request(path=str(path), declared=entries)
        names: tuple[str, ...] = concerned.targets
        if not names:
            try:
                names = self._by_reading(path)
            except files.FileProblem as problem:
                self.problems.append(f"{path}: {problem}")
                return
        if not names and named:
            names = WHOLE  # who names a file is told why nothing of it is run
        yield from (self._task(place, path, name, is_module=module is not None) for name in names)

    def _by_reading(self, path: Path) -> tuple[str, ...]:
        text = reading.read(path).text
        root = package_root(path)
        if root not in self._projects:
            loader = ModuleLoader(root, (self._root,), interpreter_for(self._options.python, root))
            self._projects[root] = Project(loader, lean=True)
        project = self._projects[root]
        names = targets_of(Source(text, str(path)), project)
        project.release()
        return names

    def _task(self, place: str, path: Path, name: str, *, is_module: bool = False) -> Task:
        entries = tuple(entry for entry in self._declared(path) if Request(path=str(path)).concerns(entry))
        return Task(place, is_module, name, str(self._root), entries, self._options)

    def _declared(self, path: Path) -> tuple[Declared, ...]:
        return (*self._inputs, *declared(self._configurations.of_file(path)))

    def _shown(self, path: Path) -> str:
        """A file as it is called wherever the sweep runs: below the root, with forward slashes."""
        try:
            return path.relative_to(self._root).as_posix()
        except ValueError:
            return str(path)


def inputs_of(file: Path) -> tuple[Declared, ...]:
    """The `[[targets]]` of a TOML file. Raises `ConfigurationError`."""
    values, _ = read_file(absolute(file))
    if not values.get("targets"):
        raise UsageError(f"{file} has no [[targets]]")
    return tuple(Declared(e["target"], e.get("init", ""), e.get("inputs", "")) for e in values["targets"])
