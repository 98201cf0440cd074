"""The tests that say whether mends, the runtime and the worker hold with a torch, run by its interpreter."""

from __future__ import annotations

import os
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SUITES = {
    "mends": ("tests/transforms/test_judged.py",),
    "runtime": ("tests/runtime",),
    "worker": ("tests/dynamo",),
}


class Outcome(NamedTuple):
    passed: int
    failed: list[str]
    skipped: int


def run(python: str, suite: str) -> Outcome:
    """One suite in one interpreter. GraphMend itself is read from this repository."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junit-xml={report}", *SUITES[suite]]
        subprocess.run(command, cwd=ROOT, env=environment, check=False)
        cases = list(ElementTree.parse(report).iter("testcase"))
    failed = [
        case.get("name", "?") for case in cases if case.find("failure") is not None or case.find("error") is not None
    ]
    skipped = sum(case.find("skipped") is not None for case in cases)
    return Outcome(len(cases) - len(failed) - skipped, failed, skipped)
