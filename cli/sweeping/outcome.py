"""What became of a target, in one word, and of one that could not be run, why.

Reasons are read from one-line problems: the worker's own words, and torch's for memory and devices.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from graphmend.dynamo.report import Report, TargetReport
from graphmend.dynamo.verdict import judge

#: from best to worst; a file that is run as a whole has the worst of its targets
OUTCOMES = ("one-graph", "mended", "fewer", "breaks", "worse", "differs", "failed")

#: the first that a problem matches
_REASONS = (
    ("timeout", r"no answer in the time allowed|took longer than"),
    ("died", r"the check was ended by|ended the process|more than \d+ processes|closed the check's own files"),
    ("memory", r"\bMemoryError\b|\bOutOfMemoryError\b|can't allocate memory|ran out of memory|CUDA out of memory"),
    (
        "gpu",
        r"Torch not compiled with CUDA|Found no NVIDIA driver|No (CUDA|HIP) GPUs are available|no CUDA device|"
        r"on a CUDA device but torch\.cuda|device cuda\S* cannot be used|built for the CPU only",
    ),
    ("import", r"cannot be imported|does not exist|neither a file nor a module|calls sys\.exit|has no \w+( \(did|$)"),
    ("raises", r" raises | does not run on its declared inputs"),
    ("nothing", r"has nothing to check"),
    ("internal", r"^the check failed: "),
)
#: what no pattern knows: no inputs were found that fit
OTHERWISE = "inputs"


class Model(NamedTuple):
    """One thing that was run: counts of the plain text and of the mended one (None where that was not run)."""

    name: str
    outcome: str
    reason: str | None
    problem: str | None
    graphs: int = 0
    graphs_mended: int | None = None
    breaks: int = 0
    breaks_mended: int | None = None
    compilations: int = 1
    compilations_mended: int | None = None


def reason_of(problem: str) -> str:
    """Why something could not be run, as one of a few words."""
    return next((reason for reason, pattern in _REASONS if re.search(pattern, problem)), OTHERWISE)


def models(report: Report) -> list[Model]:
    """What became of each thing that a report tells of."""
    if report.problem is not None:
        return [_failed("", report.problem)]
    after = {target.name: target for target in report.after.targets} if report.after is not None else {}
    return [_model(target, after.get(target.name), report.after) for target in report.targets]


def worst(several: Iterable[Model]) -> Model:
    return max(several, key=lambda model: OUTCOMES.index(model.outcome))


def _failed(name: str, problem: str) -> Model:
    return Model(name, "failed", reason_of(problem), problem)


def _model(plain: TargetReport, mended: TargetReport | None, after: Report | None) -> Model:
    if plain.problem is not None:
        return _failed(plain.name, plain.problem)
    if plain.runs and all(run.raised is not None for run in plain.runs):
        return _failed(plain.name, f"{plain.name} raises {plain.runs[0].raised}")
    count = len(plain.breaks)
    known = Model(plain.name, "", None, None, graphs=plain.graphs, breaks=count, compilations=plain.compilations)
    if after is None:
        return known._replace(
            outcome="breaks" if count else "one-graph",
            graphs_mended=plain.graphs,
            breaks_mended=count,
            compilations_mended=plain.compilations,
        )
    problem = after.problem or (mended.problem if mended is not None else "it was not run")
    if mended is None or problem is not None:
        return known._replace(outcome="worse", reason=reason_of(problem or ""), problem=f"the mended text: {problem}")
    counted = known._replace(
        graphs_mended=mended.graphs, breaks_mended=len(mended.breaks), compilations_mended=mended.compilations
    )
    judged = judge(mended.comparison, after.named) if mended.comparison is not None else None
    if judged is not None and not judged.passes:
        return counted._replace(outcome="differs", problem=judged.unnamed[0].line)
    return counted._replace(outcome=_compared(plain, mended))


def _compared(plain: TargetReport, mended: TargetReport) -> str:
    before, left = len(plain.breaks), len(mended.breaks)
    executed = [target.batches[-1].executed if target.batches else 0 for target in (plain, mended)]
    if left > before or executed[1] > executed[0]:
        return "worse"
    if not left:
        return "mended" if before else "one-graph"
    return "fewer" if left < before else "breaks"
