"""
Score the mends of what is compiled anew against TorchDynamo: each program runs as it is and mended.

    python tests/transforms/recompilations/recompiled_score.py [-v] [--truth] [--apart]

mended    share of the programs with a known rewrite that compile less often when mended, and do the same
wrong     mended programs that do something else than the mends name, break the graph, or compile as often as before

A program's first line says `mend` where a rewrite is known that is right, and `advice` where there is none. Without
options, those of `programs/seen.txt`; with `--apart`, those that are looked at only as a whole; with `--truth`, those
of tests/analysis/recompilations that compile anew.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from recompiled_runs import compare, runs

from graphmend.analysis.syntax.source import Source
from graphmend.transforms.mend import mend_all

HERE = Path(__file__).parent
TRUTH = HERE.parents[1] / "analysis" / "recompilations"


class Case(NamedTuple):
    """A program, and whether a rewrite is known that is right."""

    name: str
    text: str
    known: bool


class Score(NamedTuple):
    """Counts over some programs."""

    mended: int
    known: int
    safe: int
    wrong: int
    said: list[str]
    rewrites: frozenset[str]
    """Those by which anything was mended."""


def cases(file: str) -> list[Case]:
    """The programs of a file."""
    found = []
    for block in re.split(r"(?m)^#: ", (HERE / "programs" / file).read_text(encoding="utf-8"))[1:]:
        first, _, text = block.partition("\n")
        name, label = first.split()
        found.append(Case(name, text.strip("\n") + "\n", label == "mend"))
    return found


def truth() -> list[Case]:
    """The programs of the truth set in which something is compiled anew."""
    sys.path.insert(0, str(TRUTH))
    from label import programs

    expected = json.loads((TRUTH / "expected.json").read_text(encoding="utf-8"))["programs"]
    advice = frozenset((HERE / "advice.txt").read_text(encoding="utf-8").split())
    return [Case(name, text, name not in advice) for name, text in programs().items() if expected[name]["again"]]


def score(which: list[Case]) -> Score:
    """The score of these programs."""
    mends = [mend_all(Source(case.text, "program.py"), unsafe=True) for case in which]
    good = safe = wrong = 0
    said: list[str] = []
    for case, mend in zip(which, mends, strict=True):
        if not any(a.finding.code.startswith("GM7") for a in mend.applied):
            if case.known:
                said.append(f"not mended {case.name}: {[why for _, why in mend.left]}")
            continue
        one, other = runs([case.text, mend.source.text])
        if "error" in one:
            raise RuntimeError(f"{case.name}: {one['error']}")
        named = {difference.kind for a in mend.applied for difference in a.fix.differences}
        found = [other["error"]] if "error" in other else compare(one, other, named)
        wrong += bool(found)
        good += case.known and not found
        safe += not found and all(a.fix.applicability == "safe" for a in mend.applied)
        said += [f"wrong {case.name}: {what}" for what in found]
        if not case.known and not found:
            said.append(f"mended without a label {case.name}: {one['compilations']} to {other['compilations']}")
    rewrites = frozenset(a.fix.rewrite for mend in mends for a in mend.applied)
    return Score(good, sum(case.known for case in which), safe, wrong, said, rewrites)


def main(arguments: list[str]) -> int:
    which = truth() if "--truth" in arguments else cases("apart.txt" if "--apart" in arguments else "seen.txt")
    made = score(which)
    if "-v" in arguments:
        print("\n".join(made.said))
    print(f"mended {made.mended} of {made.known} ({made.mended / max(1, made.known):.3f}), {made.safe} of all safe")
    print(f"wrong {made.wrong}")
    return int(made.wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
