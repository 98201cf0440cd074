"""
Score the findings of family GM7 against what TorchDynamo compiled anew (`label.py`).

    python tests/analysis/recompilations/score.py [-v] [--held-back]

recall     share of the programs in which something is compiled anew that have a finding which names what varies
precision  share of the findings that stand in such a program and name what varies

A finding names what varies where its message, the line that it begins on, or the guard that it gives holds the
parameter, attribute or mode of a guard that failed.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from label import EXPECTED, HERE, programs

from graphmend.analysis.check import check
from graphmend.analysis.finding import Finding
from graphmend.analysis.settings import Settings
from graphmend.analysis.syntax.source import Source


class Score(NamedTuple):
    """Counts over some programs."""

    hit: int
    loud: int
    good: int
    found: int
    said: list[str]

    @property
    def recall(self) -> float:
        return self.hit / max(1, self.loud)

    @property
    def precision(self) -> float:
        return self.good / max(1, self.found)


def held_back() -> frozenset[str]:
    """The programs that are looked at only as a whole."""
    return frozenset((HERE / "held_back.txt").read_text(encoding="utf-8").split())


def names(finding: Finding, text: str, varies: list[str]) -> bool:
    """Whether a finding names one of the things that vary."""
    line = text.splitlines()[finding.span.line - 1]
    words = set(re.findall(r"\w+", f"{finding.message} {line} {finding.evidence}"))
    return bool(words & set(varies))


def score(which: set[str], expected: Mapping[str, Any] | None = None, version: str | None = None) -> Score:
    """The score of these programs, with the newest torch, or with another one and what that compiled anew."""
    if expected is None:
        expected = json.loads(EXPECTED.read_text(encoding="utf-8"))["programs"]
    settings = Settings(torch_version=version)
    hit = loud = good = every = 0
    said: list[str] = []
    for name, text in programs().items():
        if name not in which:
            continue
        truth = expected[name]
        found = [f for f in check(Source(text, "program.py"), settings=settings).findings if f.code.startswith("GM7")]
        right = [f for f in found if truth["again"] and names(f, text, truth["varies"])]
        every += len(found)
        good += len(right)
        loud += truth["again"] > 0
        hit += bool(truth["again"] and right)
        if truth["again"] and not right:
            said.append(f"missed {name}: {truth['varies']}")
        said += [f"wrong {name}:{f.span.line} {f.code} {f.message}" for f in found if f not in right]
    return Score(hit, loud, good, every, said)


def main(arguments: list[str]) -> int:
    apart = held_back()
    which = apart if "--held-back" in arguments else programs().keys() - apart
    made = score(set(which))
    if "-v" in arguments:
        print("\n".join(made.said))
    print(f"recall {made.recall:.3f} ({made.hit} of {made.loud})")
    print(f"precision {made.precision:.3f} ({made.good} of {made.found})")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
