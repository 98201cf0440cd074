"""Which settings hold for a document: its workspace folder's, as the client sent them, over the project's own files.

A wrong setting never stops the server: it is named in one line of the log, and its default is used.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphmend.server.analyses.scope import Scope

if TYPE_CHECKING:
    from graphmend.analysis.program.project import Project
    from graphmend.workspace.config import Configuration, Configurations
    from graphmend.workspace.interpreter import Interpreter

log = logging.getLogger(__name__)

#: Editors' extensions send their whole section; these parts of it are theirs.
_OF_EXTENSIONS = ("trace",)

#: What changes the findings of a file.
_OF_CHECK = frozenset({"select", "extend-select", "ignore", "severity", "assume-compiled", "torch-version", "preview"})


@dataclass
class Folder:
    """A workspace folder: where it is, and what the client set for it. The one without a path takes all other files."""

    path: Path | None
    uri: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    wrong: tuple[str, ...] = ()
    """What of the client's settings is not used, and why."""
    _configurations: Configurations | None = None
    _reported: set[str] = field(default_factory=set)

    def configuration(self, path: Path) -> Configuration:
        from graphmend.workspace.config import Configurations
        from graphmend.workspace.options import ConfigurationError

        if self._configurations is None:
            self._configurations = Configurations(self.settings)
        try:
            found = self._configurations.of_file(path)
            notes = found.notes
        except ConfigurationError as error:
            found, notes = Configurations(self.settings, isolated=True).of_file(path), (str(error),)
        for note in notes:
            if note not in self._reported:
                self._reported.add(note)
                log.warning("%s", note)
        return found

    def as_arguments(self) -> tuple[str, ...]:
        """The client's settings as options of `graphmend check`."""
        given = {name: value for name, value in self.settings.items() if name in _OF_CHECK}
        options = [f"--config={name}={json.dumps(value)}" for name, value in sorted(given.items())]
        if interpreter := self.settings.get("interpreter"):
            options.append(f"--python={interpreter}")
        return tuple(options)

    def forget(self) -> None:
        """Read the project's files again."""
        self._configurations = None
        self._reported.clear()


class Folders:
    """The workspace folders, and what the analysis of each document depends on."""

    def __init__(self) -> None:
        self._folders: list[Folder] = []
        self._elsewhere = Folder(None)
        self._configurations: dict[str, Configuration] = {}
        self._scopes: dict[str, Scope] = {}
        self._projects: dict[tuple[Path, Path], Project] = {}
        self._said: set[str] = set()
        #: The section as the client sent it with `initialize`.
        self.initial: Any = None
        #: Texts that stand for files on disk, by path: the open documents.
        self.overlay: dict[str, str] = {}

    def __iter__(self) -> Iterator[Folder]:
        return iter([*self._folders, self._elsewhere])

    @property
    def roots(self) -> list[Path]:
        return [folder.path for folder in self._folders if folder.path is not None]

    def add(self, path: str, uri: str) -> None:
        self._folders.append(Folder(Path(path), uri, self._elsewhere.settings, self._elsewhere.wrong))
        self._folders.sort(key=lambda folder: -len(str(folder.path)))
        self._drop()

    def remove(self, uri: str) -> None:
        self._folders = [folder for folder in self._folders if folder.uri != uri]
        self._drop()

    def of(self, path: Path) -> Folder:
        """The innermost folder around a file."""
        around = path.parents
        return next((folder for folder in self._folders if folder.path in around), self._elsewhere)

    def configuration(self, path: str) -> Configuration:
        """What holds for a file; remembered, for every finding that is shown asks."""
        known = self._configurations.get(path)
        if known is None:
            file = Path(path)
            known = self._configurations[path] = self.of(file).configuration(file)
        return known

    def interpreter(self, path: str) -> Interpreter:
        """The interpreter whose packages a file imports: the client's choice, else the nearest environment."""
        from graphmend.workspace.interpreter import at, nearest

        chosen = self.configuration(path)["interpreter"]
        found = at(Path(chosen)) if chosen else None
        return found or nearest(Path(path).parent)

    def scope(self, path: str) -> Scope:
        """What the analysis of a file depends on besides its text."""
        scope = self._scopes.get(path)
        if scope is None:
            interpreter = self.interpreter(path)
            configuration = self.configuration(path)
            settings, accept = configuration.settings(interpreter.torch_version), configuration["accept"]
            self._say(interpreter, configuration)
            scope = self._scopes[path] = Scope(settings, lambda: self._project(Path(path), interpreter), accept)
        return scope

    def _say(self, interpreter: Interpreter, configuration: Configuration) -> None:
        """Logs what is to be said of the torch that files are checked against, each line once."""
        from graphmend.workspace.interpreter import torch_remarks

        chosen = configuration["interpreter"] is not None
        for remark in torch_remarks(interpreter, configuration["torch-version"], named=chosen):
            if remark not in self._said:
                self._said.add(remark)
                log.warning("%s", remark)

    def _project(self, path: Path, interpreter: Interpreter) -> Project:
        """The modules around a file; files of one package share them."""
        from graphmend.analysis.program.project import Project
        from graphmend.workspace.module_loader import ModuleLoader, package_root

        key = package_root(path), interpreter.prefix
        projects = self._projects
        if key not in projects:
            projects[key] = Project(ModuleLoader(key[0], self.roots, interpreter, self.overlay), lean=True)
        return projects[key]

    def changed(self, path: str, text: str | None) -> bool:
        """A file has this text now (None: the one on disk). Whether that is another one than modules were read from:
        then all of them are read again, for any may rest on it."""
        known = self.overlay.get(path) or _on_disk(path)
        if text is None:
            self.overlay.pop(path, None)
        else:
            self.overlay[path] = text
        if known == (_on_disk(path) if text is None else text):
            return False
        self.forget_modules()
        return True

    def forget_modules(self) -> None:
        """Modules are read again when they are next needed."""
        self._projects = {}  # a new one: the thread that uses projects may be reading the old

    def _drop(self) -> None:
        self._configurations.clear()
        self._scopes.clear()
        self.forget_modules()

    def set(self, sections: Iterable[tuple[Folder, Any]]) -> None:
        """The client's settings for some folders; None means those it sent at first, for editors without such a section
        answer so. What is wrong in several folders, or was so before, is named once."""
        named = {reason for folder in self for reason in folder.wrong}
        for folder, section in sections:
            folder.settings, folder.wrong = read(self.initial if section is None else section)
            folder.forget()
            for reason in folder.wrong:
                if reason not in named:
                    named.add(reason)
                    log.warning("%s", reason)
        self._drop()

    def set_all(self, section: Any) -> None:
        """The client's settings for all folders."""
        self.set([(folder, section) for folder in self])

    def forget(self) -> None:
        """A configuration file changed."""
        for folder in self:
            folder.forget()
        self._drop()


def _on_disk(path: str) -> str | None:
    from graphmend.workspace import files

    try:
        return files.read(path).text
    except files.FileProblem:
        return None


def read(section: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The settings of a `graphmend` section that are known and right, and why the others are left out."""
    from graphmend.workspace import options

    if section is None:
        return {}, ()
    if not isinstance(section, Mapping):
        return {}, (f"settings: expected an object, got {section!r}: the defaults are used",)
    settings: dict[str, Any] = {}
    wrong = []
    for name, value in options.flatten(section).items():
        if value in (None, "") or name.partition(".")[0] in _OF_EXTENSIONS:  # null or "": not set
            continue
        try:
            options.read(name, value, "settings")
            settings[name] = value
        except options.ConfigurationError as error:
            wrong.append(f"{error}: it is left out")
    return settings, tuple(wrong)
