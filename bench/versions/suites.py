"""The tests that say whether mends, the runtime and the worker hold with a torch, run by its interpreter."""

from __future__ import annotations

import os
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
#: where mended programs are run, for every rewrite; the other tests of mends are about the edits
_MENDED = (
    "judged.py chosen.py cond.py counter.py device_context.py empty_guard.py every_index.py picked.py selection.py "
    "switches.py programs.py output_places.py range_guard.py::test_nothing_breaks_where_the_range_is_empty"
)
SUITES = {
    "mends": (*(f"tests/transforms/test_{name}" for name in _MENDED.split()), "-m", "torch and not many"),
    "runtime": ("tests/runtime",),
    "worker": ("tests/dynamo",),
}


class Outcome(NamedTuple):
    passed: int
    failed: list[str]
    skipped: int
    rewrites: dict[str, tuple[int, int]]
    """Of the tests that mend with a rewrite and run what came out: how many passed, and how many there are."""


def run(python: str, suite: str) -> Outcome:
    """One suite in one interpreter. GraphMend itself is read from this repository."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junit-xml={report}"]
        command += ["-o", "junit_family=xunit1", *SUITES[suite]]  # the later form has no properties of tests
        subprocess.run(command, cwd=ROOT, env=environment(), check=False)
        return outcome(list(ElementTree.parse(report).iter("testcase")))


def environment() -> dict[str, str]:
    """That of a process that imports GraphMend from this repository."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}


def outcome(cases: list[ElementTree.Element]) -> Outcome:
    """What a report in JUnit's form says."""
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    skipped = sum(case.find("skipped") is not None for case in cases)
    names = sorted({case.get("name", "?") for case in failed})
    ran = [(_rewrites(case), case not in failed) for case in cases if case.find("skipped") is None]
    return Outcome(len(cases) - len(failed) - skipped, names, skipped, _by_rewrite(ran))


def _rewrites(case: ElementTree.Element) -> frozenset[str]:
    stated = (each for each in case.iter("property") if each.get("name") == "rewrite")
    return frozenset(each.get("value", "") for each in stated)


def _by_rewrite(tests: list[tuple[frozenset[str], bool]]) -> dict[str, tuple[int, int]]:
    """What fails with several rewrites counts against those that fail alone as well; where none does, against all."""
    alone = {name for names, passed in tests if not passed and len(names) == 1 for name in names}
    found: dict[str, tuple[int, int]] = {}
    for names, passed in tests:
        for name in names if passed else names & alone or names:
            good, all_ = found.get(name, (0, 0))
            found[name] = (good + passed, all_ + 1)
    return dict(sorted(found.items()))
