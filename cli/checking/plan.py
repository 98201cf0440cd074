"""What a command line asks of every file. Travels to worker processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from graphmend.workspace.config import Configurations

Mode = Literal["check", "fix", "diff"]


@dataclass(frozen=True)
class Plan:
    """The options of one run that the check of a file depends on."""

    overrides: Mapping[str, Any] = field(default_factory=dict)
    config_file: Path | None = None
    isolated: bool = False
    python: Path | None = None
    mode: Mode = "check"
    unsafe: bool = False
    mends: bool = True
    """Whether the output shows mends. Finding them takes longer than the check itself."""
    edits: bool = False
    """Whether the output shows what mends change."""
    cache: bool = True
    known: Mapping[str, Counter[str]] = field(default_factory=dict)
    """Keys of findings that a baseline knows, by file."""
    changed: Mapping[str, tuple[range, ...]] | None = None
    """Lines that count, by file; None: all."""

    def configurations(self) -> Configurations:
        return Configurations(self.overrides, file=self.config_file, isolated=self.isolated, origin="command line")
