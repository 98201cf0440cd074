"""`--show-files` and `--show-settings`: what a check would look at, and by which settings."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from graphmend.workspace.config import Configuration, Configurations
from graphmend.workspace.options import OPTIONS


def show_files(paths: Iterable[Path], out: TextIO) -> None:
    for path in paths:
        out.write(f"{path}\n")


def show_settings(paths: Iterable[Path], configurations: Configurations, out: TextIO) -> None:
    """The settings in force, once for each configuration among the files, as TOML."""
    seen: set[Path | None] = set()
    for path in paths:
        configuration = configurations.of_file(path)
        if configuration.file not in seen:
            seen.add(configuration.file)
            _show(configuration, path, out)


def _show(configuration: Configuration, path: Path, out: TextIO) -> None:
    out.write(f"# for {path}, from {configuration.file or 'no configuration file'}\n")
    for name, option in OPTIONS.items():
        if option.trusted or name == "extend":
            continue
        value = list(configuration.exclude) if name == "exclude" else configuration[name]
        text = "# not set" if value is None else json.dumps(value, ensure_ascii=False)
        origin = "" if name in configuration.values else "  # default"
        out.write(f"{name} = {text}{origin}\n" if value is not None else f"# {name} is not set\n")
    for note in configuration.notes:
        out.write(f"# {note}\n")
