"""The rules' own examples with another torch: what its log tells, what `check` says, and what `verify` reports."""

from __future__ import annotations

import asyncio
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from graphmend.analysis.check import check
from graphmend.analysis.rules import RULES
from graphmend.analysis.settings import Settings
from graphmend.analysis.syntax.source import Source
from graphmend.dynamo.report import Report
from graphmend.dynamo.requests import Request
from graphmend.dynamo.service import Service

LOG = Path(__file__).with_name("log_truth.py")


class Agreement(NamedTuple):
    """How many of the examples agree line by line, and the others by name, with what each side has."""

    examples: int
    agree: int
    differ: list[str]


def write(folder: Path) -> dict[str, str]:
    """Each example as a file; their texts by file name."""
    texts = {
        f"{rule.code}_{kind}_{number}.py": text
        for rule in RULES
        for kind in ("valid", "invalid")
        for number, text in enumerate(getattr(rule, kind))
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return texts


def measure(python: str, version: str) -> tuple[str | None, Agreement, Agreement]:
    """Why `verify` sees nothing with this torch, or None; how `check`, and how `verify`, agree with its log."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        texts = write(folder)
        done = subprocess.run([python, str(LOG), str(folder)], capture_output=True, text=True, check=True)
        log: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])["files"]
        reports = asyncio.run(_verify(python, [folder / name for name in texts]))
    truth = {name: set(entry["lines"]) for name, entry in log.items()}
    settings = Settings(torch_version=version, preview=True)
    found = {
        name: {f.span.line for f in check(Source(text, name), settings=settings).findings if f.effect != "recompiles"}
        for name, text in texts.items()
    }
    seen = {name: _given(report, name) for name, report in reports.items()}
    problem = next((report.problem for report in reports.values() if report.problem), None)
    return problem, _agreement(truth, found), _agreement(truth, seen)


def _given(report: Report, name: str) -> set[int]:
    """Lines that broke in runs on the inputs that the example has; `verify` makes others besides."""
    return {
        item.span.line
        for target in report.targets
        for item in target.breaks
        if item.path.endswith(name) and item.kind in ("break", "skip") and item.run < len(target.arguments)
    }


def _agreement(truth: dict[str, set[int]], said: dict[str, set[int]]) -> Agreement:
    differ = [
        f"{name.removesuffix('.py')}: its log {sorted(lines)}, said {sorted(said[name])}"
        for name, lines in sorted(truth.items())
        if lines != said[name]
    ]
    return Agreement(len(truth), len(truth) - len(differ), differ)


async def _verify(python: str, files: list[Path]) -> dict[str, Report]:
    service = Service()
    try:
        return {file.name: await service.check(Request(str(file), interpreter=python)) for file in files}
    finally:
        await service.close()
