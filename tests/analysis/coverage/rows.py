"""Every kind of graph break that TorchDynamo has a number for, read from `kinds/*.md`.

A row is a heading `## GB0170 Data-dependent branching`, and below it one of

* two programs: a block ```` ```python breaks ```` that TorchDynamo breaks with exactly that number on the line that
  ends in `# breaks`, and the nearest one that it does not, ```` ```python quiet ````. `# run: EXPRESSION` says how to
  call them (`RUN` without one), and `PRELUDE` stands before both; where TorchDynamo names a whole function and the
  cause is one statement, `# found` marks that;
* `Unreachable: WHY`, where no program is known to get to the place that raises it (`Raised in: FILE, FUNCTION`);
* `Run time: WHY`, where only running tells, and `Verify: PLACE`, at which `graphmend verify` reports it;
* `Retired.`, where torch 2.13 keeps the number and raises it nowhere.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

KINDS = Path(__file__).with_name("kinds")
MARK = "  # breaks"
FOUND = "  # found"
RUN = "f(torch.ones(4))"
PRELUDE = """\
import collections, contextlib, copy, dataclasses, enum, functools, inspect, itertools, math, operator, random, types
import typing, weakref
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
"""

_ROW = re.compile(r"^## (GB\d{4}) ([^\n]*)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_PROGRAM = re.compile(r"^```python (breaks|quiet)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SAID = re.compile(r"^(Unreachable|Run time|Verify|Raised in): (.*)$", re.MULTILINE)


class Program(NamedTuple):
    """One of the two programs of a row."""

    text: str

    @property
    def whole(self) -> str:
        """The module, with the prelude."""
        return PRELUDE + self.text

    @property
    def run(self) -> list[str]:
        """The expressions that call it."""
        return re.findall(r"^# run: (.*)$", self.text, re.MULTILINE) or [RUN]

    @property
    def line(self) -> int:
        """The line of the whole module, from 1, that the mark is on."""
        return self.whole[: self.whole.index(MARK)].count("\n") + 1

    @property
    def lines(self) -> range:
        """The lines on which a finding means the mark: a function's decorator stands for its first line, too."""
        if FOUND in self.whole:
            cause = self.whole[: self.whole.index(FOUND)].count("\n") + 1
            return range(cause, cause + 1)
        marked = self.whole.splitlines()[self.line - 1]
        return range(self.line, self.line + 1 + marked.lstrip().startswith("@"))


class Row(NamedTuple):
    """What is known of one kind of graph break."""

    gb_id: str
    kind: str
    breaks: Program | None = None
    quiet: Program | None = None
    unreachable: str = ""
    run_time: str = ""
    verify: str = ""
    raised: str = ""

    @property
    def retired(self) -> bool:
        """Whether torch 2.13 raises it nowhere."""
        return not (self.breaks or self.unreachable or self.run_time)


def read() -> list[Row]:
    """All rows, in the order of their numbers."""
    found = []
    for page in sorted(KINDS.glob("*.md")):
        for gb_id, kind, body in _ROW.findall(page.read_text("utf-8")):
            programs = {which: Program(text) for which, text in _PROGRAM.findall(body)}
            said = dict(_SAID.findall(body))
            assert programs or said or body.strip() == "Retired.", f"{gb_id} says nothing"
            assert len(programs) in (0, 2), f"{gb_id} has one program only"
            found.append(
                Row(
                    gb_id,
                    kind,
                    programs.get("breaks"),
                    programs.get("quiet"),
                    said.get("Unreachable", ""),
                    said.get("Run time", ""),
                    said.get("Verify", ""),
                    said.get("Raised in", ""),
                )
            )
    return sorted(found)
