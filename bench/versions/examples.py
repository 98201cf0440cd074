"""Examples with another torch: what its log tells, what `check` says, and what `verify` reports."""

from __future__ import annotations

import asyncio
import functools
import json
import subprocess
import tempfile
from collections.abc import Mapping
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

LOG = Path(__file__).parent / "probes" / "graph_breaks.py"
PATTERNS = ROOT.parent / "shared" / "truth" / "patterns" / "cases"
"""Programs that lie beside a checkout, or do not."""
TOGETHER = 120
"""How many programs one step is of."""

Lines = dict[str, list[int]]
"""Lines of each program by its name."""


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
    names = list(texts)
    problem: str | None = None
    log: Lines = {}
    seen: Lines = {}
    needed = progress.rooms("bench/versions/examples.py", "bench/versions/probes")
    for start in range(0, len(names), TOGETHER):
        part = {name: texts[name] for name in names[start : start + TOGETHER]}
        found = progress.kept(python, ["examples", part], needed, functools.partial(_run, python, part))
        problem = problem or found["problem"]
        log.update(found["log"])
        seen.update(found["seen"])
    settings = Settings(torch_version=version, preview=True)
    said = {name: _said(Source(text, f"{name}.py"), settings) for name, text in texts.items()}
    return {
        "self-test": problem,
        "check": _agreement(log, said)._asdict(),
        "verify": _agreement(log, seen)._asdict(),
    }


def _said(source: Source, settings: Settings) -> list[int]:
    found = check(source, settings=settings).findings
    return sorted({finding.span.line for finding in found if finding.effect != "recompiles"})


def _run(python: str, texts: Mapping[str, str]) -> dict[str, Any]:
    """What the log and `verify` say of some programs: the lines of both, and why `verify` says nothing."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        for name, text in texts.items():
            (folder / f"{name}.py").write_text(text, encoding="utf-8")
        done = subprocess.run([python, str(LOG), str(folder)], capture_output=True, text=True, check=True)
        log: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])["files"]
        reports = asyncio.run(_verify(python, [folder / f"{name}.py" for name in texts]))
    return {
        "problem": next((report.problem for report in reports.values() if report.problem), None),
        "log": {name: log[f"{name}.py"]["lines"] for name in texts},
        "seen": {name: _given(reports[name], f"{name}.py") for name in texts},
    }


def _given(report: Report, name: str) -> list[int]:
    """Lines that broke in runs on the inputs that the example has; `verify` makes others besides."""
    lines = {
        item.span.line
        for target in report.targets
        for item in target.breaks
        if item.path.endswith(name) and item.kind in ("break", "skip") and item.run < len(target.arguments)
    }
    return sorted(lines)


def _agreement(truth: Lines, said: Lines) -> Agreement:
    differ = [
        f"{name}: its log {lines}, said {said[name]}" for name, lines in sorted(truth.items()) if lines != said[name]
    ]
    return Agreement(len(truth), len(truth) - len(differ), differ)


async def _verify(python: str, files: list[Path]) -> dict[str, Report]:
    service = Service()
    try:
        return {file.stem: await service.check(Request(str(file), interpreter=python)) for file in files}
    finally:
        await service.close()
