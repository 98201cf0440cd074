"""Examples with another torch: what its log tells, what `check` says, and what `verify` reports."""

from __future__ import annotations

import asyncio
import functools
import json
import re
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bench.versions import progress
from bench.versions.environments import ROOT
from graphmend.analysis.check import check
from graphmend.analysis.rules import RULES
from graphmend.analysis.settings import Settings
from graphmend.analysis.syntax.source import Source
from graphmend.dynamo.report import Report
from graphmend.dynamo.requests import Request
from graphmend.dynamo.service import Service

_PROBES = ("graph_breaks", "forks")
LOG = Path(__file__).parent / "probes" / "graph_breaks.py"
PATTERNS = ROOT.parent / "shared" / "truth" / "patterns" / "cases"
"""Programs that lie beside a checkout, or do not."""
TOGETHER = 120
"""How many programs one step is of."""
_RAISED = re.compile(r" \((?P<file>[^()]+):(?P<line>\d+)\)$")

Place = tuple[str, int]
"""A file and a line. A program's own file goes by the program's name."""


class Program(NamedTuple):
    """Where a program broke, as the log tells and as `verify` does, both on the inputs that the program declares."""

    log: list[Place]
    seen: list[Place]
    raises: list[Place]
    """Where a run raised, as `verify` says of the run: that such a line ends the graph is no break of the program."""
    ran: bool
    """False where plain Python raises whatever is given: there is nothing to check, and `verify` says so."""

    @property
    def told(self) -> list[Place]:
        """What the log tells of breaks."""
        return [place for place in self.log if place not in self.raises or place in self.seen]


class Agreement(NamedTuple):
    """How many of the examples agree line by line, and the others by name, with what each side has."""

    examples: int
    agree: int
    differ: list[str]


def of_rules() -> dict[str, str]:
    """The texts of the rules' own examples, by name."""
    return {
        f"{rule.code}_{kind}_{number}": text
        for rule in RULES
        for kind in ("valid", "invalid")
        for number, text in enumerate(getattr(rule, kind))
    }


def patterns() -> dict[str, str]:
    """The texts of the programs beside the checkout, by name; none where they are not there."""
    return {path.stem: path.read_text("utf-8") for path in sorted(PATTERNS.glob("*.py"))}


def measure(python: str, version: str, texts: Mapping[str, str]) -> dict[str, Any]:
    """Why `verify` sees nothing with this torch, or None; how `check`, and how `verify`, agree with its log."""
    problem, programs = observe(python, texts)
    settings = Settings(torch_version=version, preview=True)
    log = {name: _own(name, program.log) for name, program in programs.items()}
    said = {name: _said(Source(text, f"{name}.py"), settings) for name, text in texts.items()}
    ran = {name: program for name, program in programs.items() if program.ran}
    told = {name: _own(name, program.told) for name, program in ran.items()}
    seen = {name: _own(name, program.seen) for name, program in ran.items()}
    return {
        "self-test": problem,
        "check": agreement(log, said)._asdict(),
        "verify": agreement(told, seen)._asdict(),
        "not run": sorted(set(programs) - set(ran)),
    }


def observe(python: str, texts: Mapping[str, str]) -> tuple[str | None, dict[str, Program]]:
    """Why `verify` sees nothing in an interpreter, or None; and what became of each program there."""
    names = list(texts)
    problem: str | None = None
    programs: dict[str, Program] = {}
    needed = progress.rooms("bench/versions/examples.py", *(f"bench/versions/probes/{name}.py" for name in _PROBES))
    for start in range(0, len(names), TOGETHER):
        part = {name: texts[name] for name in names[start : start + TOGETHER]}
        found = progress.kept(python, ["examples", part], needed, functools.partial(_run, python, part))
        problem = problem or found["problem"]
        for name, (*places, ran) in found["programs"].items():
            programs[name] = Program(*([(path, line) for path, line in each] for each in places), ran)
    return problem, programs


def agreement(truth: Mapping[str, list[Any]], said: Mapping[str, list[Any]]) -> Agreement:
    """Holds what is said of each program against the truth of it."""
    differ = [
        f"{name}: its log {lines}, said {said[name]}" for name, lines in sorted(truth.items()) if lines != said[name]
    ]
    return Agreement(len(truth), len(truth) - len(differ), differ)


def _own(name: str, places: list[Place]) -> list[int]:
    """The lines in the program's own file."""
    return [line for path, line in places if path == name]


def _said(source: Source, settings: Settings) -> list[int]:
    found = check(source, settings=settings).findings
    return sorted({finding.span.line for finding in found if finding.effect != "recompiles"})


def _run(python: str, texts: Mapping[str, str]) -> dict[str, Any]:
    """What the log and `verify` say of some programs, and why `verify` says nothing."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        for name, text in texts.items():
            (folder / f"{name}.py").write_text(text, encoding="utf-8")
        done = subprocess.run([python, str(LOG), str(folder)], capture_output=True, text=True, check=True)
        log: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])["files"]
        reports = asyncio.run(_verify(python, [folder / f"{name}.py" for name in texts]))
    return {
        "problem": _of_all(reports.values()),
        "programs": {name: _program(name, log[f"{name}.py"], reports[name]) for name in texts},
    }


def _of_all(reports: Iterable[Report]) -> str | None:
    """Why `verify` says nothing, whatever it is asked; a program that it has nothing to say of is no such reason."""
    problems = [report.problem for report in reports]
    return problems[0] if problems and all(problems) else None


def _program(name: str, log: Mapping[str, Any], report: Report) -> Program:
    broke = [(name, line) for line in log["lines"]] + [(path, line) for path, line in log["elsewhere"]]
    own = Path(report.path).name
    raised = [_RAISED.search(run.raised or "") for target in report.targets for run in target.runs]
    seen = {
        (name if Path(item.path).name == own else item.path, item.span.line)
        for target in report.targets
        for item in target.breaks
        if item.kind in ("break", "skip") and item.run < len(target.arguments)  # `verify` makes others besides
    }
    ran = log["raised"] is None or any(target.status != "no-inputs" for target in report.targets)
    raises = {(name, int(found["line"])) for found in raised if found and found["file"] == own}
    return Program(sorted(broke), sorted(seen), sorted(raises), ran or not report.targets)


async def _verify(python: str, files: list[Path]) -> dict[str, Report]:
    service = Service()
    try:
        return {file.stem: await service.check(Request(str(file), interpreter=python)) for file in files}
    finally:
        await service.close()
