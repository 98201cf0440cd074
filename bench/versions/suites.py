"""The tests that say whether mends, the runtime, the worker and the importer hold with a torch, in its interpreter."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.versions import progress
from bench.versions.environments import ROOT

#: where mended programs are run, for every rewrite; the other tests of mends are about the edits
_MENDED = (
    "judged.py chosen.py cond.py counter.py device_context.py empty_guard.py every_index.py every_row.py exact.py "
    "module_state.py more_forms.py output_places.py picked.py precision.py programs.py random.py recompilations.py "
    "selection.py switches.py torch_names.py values.py write_order.py written_out.py "
    "range_guard.py::test_nothing_breaks_where_the_range_is_empty"
)
_SECONDS = 3600
"""After which a file's tests are ended."""


class Suite(NamedTuple):
    """Files of tests, and which of their tests by marker."""

    folder: str
    files: tuple[str, ...]
    marked: str

    def paths(self) -> list[str]:
        """Each file, or test of one, relative to the repository."""
        place = ROOT / self.folder
        return [f"{self.folder}/{name}" for name in self.files or sorted(path.name for path in place.glob("test_*.py"))]


SUITES = {
    "mends": Suite("tests/transforms", tuple(f"test_{name}" for name in _MENDED.split()), "torch and not many"),
    "runtime": Suite("tests/runtime", (), ""),
    "worker": Suite("tests/dynamo", (), ""),
    "importer": Suite("tests/importer", (), ""),
}


class Case(NamedTuple):
    """A test that ran: its name, `passed`, `failed` or `skipped`, and the rewrites that it mends with."""

    name: str
    state: str
    rewrites: list[str]


class Outcome(NamedTuple):
    passed: int
    failed: list[str]
    skipped: int
    rewrites: dict[str, tuple[int, int]]
    """Of the tests that mend with a rewrite and run what came out: how many passed, and how many there are."""


def run(python: str, suite: str, files: Sequence[str] = ()) -> Outcome:
    """One suite, or some files of its folder, in one interpreter. GraphMend itself is read from this repository."""
    cases: list[Case] = []
    for path in SUITES[suite]._replace(files=tuple(files) or SUITES[suite].files).paths():
        tests = functools.partial(_run, python, path, SUITES[suite].marked)
        cases += [Case(*entry) for entry in progress.kept(python, ["tests", path], _needed(path), tests)]
    return outcome(cases)


def _needed(path: str) -> tuple[Path, ...]:
    """What has a part in what a file's tests say: of the files beside it the helpers, and tests that it imports."""
    file = ROOT / path.partition("::")[0]
    text = file.read_text("utf-8")
    beside = (place for place in file.parent.iterdir() if place.name != "__pycache__")
    parts = {str(e.relative_to(ROOT)) for e in beside if not e.match("test_*.py") or e == file or e.stem in text}
    return progress.rooms(*sorted(parts), "tests/conftest.py", "pyproject.toml")


def _run(python: str, path: str, marked: str) -> list[Case]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junit-xml={report}"]
        command += ["-o", "junit_family=xunit1", "-m", marked, path]  # the later form has no properties of tests
        process = subprocess.Popen(command, cwd=ROOT, env=environment(), start_new_session=True)
        try:
            process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            return [Case(f"{path} did not end", "failed", [])]
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if not report.is_file():
            return [Case(f"{path} ended with status {process.returncode}", "failed", [])]
        return [_case(each) for each in ElementTree.parse(report).iter("testcase")]


def environment() -> dict[str, str]:
    """That of a process that imports GraphMend from this repository."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}


def _case(element: ElementTree.Element) -> Case:
    """A test as a report in JUnit's form has it."""
    failed = element.find("failure") is not None or element.find("error") is not None
    state = "failed" if failed else "skipped" if element.find("skipped") is not None else "passed"
    stated = (each for each in element.iter("property") if each.get("name") == "rewrite")
    return Case(element.get("name", "?"), state, sorted({each.get("value", "") for each in stated}))


def outcome(cases: list[Case]) -> Outcome:
    """The sums over tests."""
    failed = sorted({case.name for case in cases if case.state == "failed"})
    counts = {state: sum(case.state == state for case in cases) for state in ("passed", "skipped")}
    return Outcome(counts["passed"], failed, counts["skipped"], _by_rewrite(cases))


def _by_rewrite(cases: list[Case]) -> dict[str, tuple[int, int]]:
    """What fails with several rewrites counts against those that fail alone as well; where none does, against all."""
    tests = [(frozenset(case.rewrites), case.state == "passed") for case in cases if case.state != "skipped"]
    alone = {name for names, passed in tests if not passed and len(names) == 1 for name in names}
    found: dict[str, tuple[int, int]] = {}
    for names, passed in tests:
        for name in names if passed else names & alone or names:
            good, all_ = found.get(name, (0, 0))
            found[name] = (good + passed, all_ + 1)
    return dict(sorted(found.items()))
