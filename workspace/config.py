"""Which settings hold for a file: the nearest `graphmend.toml` or `pyproject.toml`, what it extends, and what the
caller sets over it (a command line, an editor). Complaints are raised or returned, never printed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pathspec import GitIgnoreSpec

from graphmend.analysis.settings import Settings
from graphmend.workspace import options
from graphmend.workspace.options import ConfigurationError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: folders that hold other people's code or generated files; the list is ruff's
DEFAULT_EXCLUDE = (
    ".bzr",
    ".direnv",
    ".eggs",
    ".git",
    ".hg",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".nox",
    ".pants.d",
    ".pytest_cache",
    ".ruff_cache",
    ".svn",
    ".tox",
    ".venv",
    ".vscode",
    "__pycache__",
    "__pypackages__",
    "_build",
    "buck-out",
    "build",
    "dist",
    "node_modules",
    "site-packages",
    "venv",
)


@dataclass(frozen=True)
class Configuration:
    """The options that hold for the files below `root`. `file` is where they were read; `notes` is for a log."""

    values: Mapping[str, Any] = field(default_factory=dict)
    root: Path = field(default_factory=Path.cwd)
    file: Path | None = None
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Any:
        """The value of an option, or its default."""
        return self.values[name] if name in self.values else options.OPTIONS[name].default

    def settings(self, installed_torch: str | None = None) -> Settings:
        """What the analysis needs to know. `installed_torch` is the interpreter's version, where one was found."""
        return Settings(
            select=(*self["select"], *self["extend-select"]),
            ignore=self["ignore"],
            assume_compiled=self["assume-compiled"],
            torch_version=self["torch-version"] or installed_torch,
            returns_tensor=self["returns-tensor"],
            static=self["static"],
            ignore_calls=self["ignore-calls"],
            preview=self["preview"],
        )

    def hides(self, code: str, path: Path) -> bool:
        """Whether findings of a rule are not shown in a file: `per-file-ignores`, or a severity of `off`."""
        if self.severity(code) == "off":
            return True
        return bool(self._per_file) and code.startswith(self._ignored_in(self.relative(path)))

    def _ignored_in(self, relative: str) -> tuple[str, ...]:
        matching = (codes for spec, negated, codes in self._per_file if spec.match_file(relative) != negated)
        return tuple(code for codes in matching for code in codes)

    def severity(self, code: str) -> str | None:
        """The severity that a rule is given; None where none is. The longest match wins."""
        table: Mapping[str, str] = self["severity"]
        best = max((prefix for prefix in table if code.startswith(prefix)), key=len, default=None)
        return None if best is None else table[best]

    def relative(self, path: Path) -> str:
        """`path` below `root`, with forward slashes; outside of it as it is."""
        try:
            return path.relative_to(self.root).as_posix()
        except ValueError:
            return path.as_posix().lstrip("/")

    @cached_property
    def exclude(self) -> tuple[str, ...]:
        """Patterns of files and folders that are not looked into."""
        own = self["exclude"]
        return (*(DEFAULT_EXCLUDE if own is None else own), *self["extend-exclude"])

    @cached_property
    def _per_file(self) -> list[tuple[GitIgnoreSpec, bool, tuple[str, ...]]]:
        return [
            (GitIgnoreSpec.from_lines([pattern.removeprefix("!")]), pattern.startswith("!"), codes)
            for pattern, codes in self["per-file-ignores"].items()
        ]


class Configurations:
    """Finds the configuration of any file, and remembers it.

    `overrides` win over every file and may hold trusted options; `origin` is how complaints call them. `file` replaces
    the search, `isolated` leaves it out.
    """

    def __init__(
        self,
        overrides: Mapping[str, Any] | None = None,
        *,
        file: Path | None = None,
        isolated: bool = False,
        origin: str = "settings",
    ) -> None:
        flat = options.flatten(overrides or {})
        self._overrides = {name: options.read(name, value, origin) for name, value in flat.items()}
        self._isolated = isolated
        self._file = file
        self._of_folder: dict[Path, Configuration] = {}
        self._of_file: dict[Path, Configuration] = {}

    def of_file(self, path: Path) -> Configuration:
        """What holds for a file (which need not exist)."""
        return self.of_folder(absolute(path).parent)

    def of_folder(self, folder: Path) -> Configuration:
        """What holds for the files of a folder."""
        known = self._of_folder.get(folder)
        if known is None:
            known = self._of_folder[folder] = self._find(folder)
        return known

    def forget(self) -> None:
        """Read everything again: a configuration file has changed."""
        self._of_folder.clear()
        self._of_file.clear()

    def _find(self, folder: Path) -> Configuration:
        if self._isolated:
            return self._with_overrides(Configuration(root=Path.cwd()))
        if self._file is not None:
            return self._load(absolute(self._file), Path.cwd())
        for name in ("graphmend.toml", "pyproject.toml"):
            file = folder / name
            if file.is_file() and (name == "graphmend.toml" or "graphmend" in _tool(_toml(file))):
                return self._load(file, folder)
        if folder.parent == folder:
            return self._with_overrides(Configuration(root=Path.cwd()))
        return self.of_folder(folder.parent)

    def _load(self, file: Path, root: Path) -> Configuration:
        if file not in self._of_file:
            values, notes = read_file(file)
            self._of_file[file] = self._with_overrides(Configuration(values, root, file, tuple(notes)))
        return self._of_file[file]

    def _with_overrides(self, configuration: Configuration) -> Configuration:
        values = {**configuration.values, **self._overrides}
        return Configuration(values, configuration.root, configuration.file, configuration.notes)


def absolute(path: Path) -> Path:
    """`path` from the root, without `..`; links are kept, for a file belongs where the user sees it."""
    return Path(os.path.abspath(path))


def read_file(file: Path, seen: tuple[Path, ...] = ()) -> tuple[dict[str, Any], list[str]]:
    """The options of a file and of those it extends, with remarks on what a project's file may not set."""
    if file in seen:
        circle = " -> ".join(path.name for path in (*seen[seen.index(file) :], file))
        raise ConfigurationError(f"{file}: `extend` goes in a circle: {circle}")
    document = _toml(file)
    table = _tool(document).get("graphmend", {}) if file.name == "pyproject.toml" else document
    if not isinstance(table, Mapping):
        raise ConfigurationError(f"{file}: `tool.graphmend` must be a table")
    values: dict[str, Any] = {}
    notes: list[str] = []
    for name, value in options.flatten(table).items():
        if _is_trusted(name):
            notes.append(
                f"{file}: `{name}` is ignored: it chooses what runs, so only the command line or the editor may set it"
            )
        else:
            values[name] = options.read(name, value, str(file))
    if values.get("baseline"):
        values["baseline"] = str(absolute(file.parent / values["baseline"]))
    base = values.pop("extend", None)
    if base is None:
        return values, notes
    base_values, base_notes = read_file(absolute(file.parent / os.path.expanduser(base)), (*seen, file))
    return {**base_values, **values}, [*base_notes, *notes]


def parse_override(text: str) -> dict[str, Any]:
    """`KEY=VALUE` of a command line as a table: VALUE is TOML, JSON, or else a plain string; a dot in KEY leads into a
    table (`severity.GM101=error`)."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigurationError(f"--config: `{text}` is neither a file nor KEY=VALUE")
    try:
        return dict(tomllib.loads(text))
    except tomllib.TOMLDecodeError:
        pass
    try:
        plain = json.loads(value)
    except json.JSONDecodeError:
        plain = value.strip()
    try:
        return dict(tomllib.loads(f"{key} = {json.dumps(plain)}"))
    except tomllib.TOMLDecodeError:
        return {key.strip(): plain}


def merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Two tables as one; of a value that both have, `other`'s counts."""
    result = dict(one)
    for key, value in other.items():
        old = result.get(key)
        result[key] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return result


def _is_trusted(name: str) -> bool:
    if name in options.OPTIONS:
        return options.OPTIONS[name].trusted
    return name.partition(".")[0] in options.TRUSTED_GROUPS


def _toml(file: Path) -> dict[str, Any]:
    try:
        document: dict[str, Any] = tomllib.loads(file.read_bytes().decode("utf-8-sig"))
        return document
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be read: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{file}: is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{file}: {error}") from None


def _tool(document: Mapping[str, Any]) -> Mapping[str, Any]:
    tool = document.get("tool", {})
    return tool if isinstance(tool, Mapping) else {}
