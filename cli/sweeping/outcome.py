"""What became of a target, in one word, and of one that could not be run, why.

Reasons are read from how one-line problems begin, which is the worker's own words, and from the kind and text of what
was raised, where torch says that memory or a device is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from graphmend.dynamo.comparison import Difference
from graphmend.dynamo.report import Report, TargetReport
from graphmend.dynamo.verdict import judge

#: from best to worst; a file that is run as a whole has the worst of its targets
OUTCOMES = ("one-graph", "mended", "fewer", "breaks", "worse", "differs", "failed")

#: how a problem of the worker's begins; the first that matches counts. What stands behind may be words of the model
_REASONS = tuple(
    (reason, re.compile(rf"(?:[\w.]+: )?(?:{pattern})"))
    for reason, pattern in (
        ("timeout", "no answer in the time allowed"),
        (
            "died",
            r"the check was ended by |the checked code (ended the process|closed|wrote into) |more than \d+ processes |"
            r"not checked: the check ended with ",
        ),
        ("memory", r"the check ran out of memory|\S+ does not fit into memory: "),
        ("gpu", r"device cuda\S* cannot be used: "),
        ("inputs", r"no inputs found for |the example comment of "),
        ("raises", r"\S+ raises |\S+ does not run on its declared inputs |the checked code (raised|called) "),
        ("nothing", r"\S.* has nothing to check: "),
        ("internal", r"the check failed: |the mended text cannot be confined: |GraphMend cannot see "),
        (
            "import",
            r".* cannot be imported(: | in )|.* calls sys\.exit|.* does not exist|.* has no (method )?\w+( \(did |$)|"
            r".* is neither a function nor |.* neither a file nor a module|"
            r".* (cannot be started: |did not import torch |is not a Python that |is not checked: |is not PyTorch)",
        ),
    )
)

#: what was raised: the kind stands behind what raised it, and its text behind the kind
_RAISED = re.compile(r"(?:: | raises )([A-Za-z_]\w*)(?:: (.*)|[ ;)]|$)")
#: what the mended text raised where the original did not, as a comparison says it
_MENDED_RAISED = re.compile(r"raises (\w+)(?: in the backward pass)?(?:: (.*)| where |$)")
#: kinds and texts with which torch and Python say what a machine lacks
_LACKS = (
    ("memory", re.compile(r"(MemoryError|OutOfMemoryError)(:|$)")),
    (
        "memory",
        re.compile(r"(RuntimeError|AcceleratorError): (\[enforce fail .*can't allocate memory|CUDA out of memory)"),
    ),
    (
        "gpu",
        re.compile(
            r"(AssertionError|RuntimeError|AcceleratorError): (Torch not compiled with CUDA|Found no NVIDIA driver|"
            r"No (CUDA|HIP) GPUs are available|Attempting to deserialize object on a CUDA device but torch\.cuda)"
        ),
    ),
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
    own = next((reason for reason, begins in _REASONS if begins.match(problem)), OTHERWISE)
    raised = _RAISED.search(problem) if own in ("inputs", "raises", "import") else None
    return (raised and _lacking(raised)) or own


def _lacking(raised: re.Match[str]) -> str | None:
    """What the machine lacks, where that is what was raised."""
    said = f"{raised[1]}: {raised[2]}" if raised[2] else raised[1]
    return next((reason for reason, pattern in _LACKS if pattern.match(said)), None)


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
        if lacks := _only_lacks(judged.unnamed):
            said = f"the mended text: {judged.unnamed[0].line}"
            return counted._replace(outcome="worse", reason=lacks, problem=said)
        return counted._replace(outcome="differs", problem=judged.unnamed[0].line)
    return counted._replace(outcome=_compared(plain, mended))


def _only_lacks(differences: Iterable[Difference]) -> str | None:
    """What the mended text needs more of than the machine has, where nothing else differs: it gave no other answer."""
    found: set[str | None] = set()
    for each in differences:
        raised = _MENDED_RAISED.match(each.detail) if each.kind == "exception" else None
        found.add(raised and _lacking(raised))
    return found.pop() if len(found) == 1 else None


def _compared(plain: TargetReport, mended: TargetReport) -> str:
    before, left = len(plain.breaks), len(mended.breaks)
    executed = [target.batches[-1].executed if target.batches else 0 for target in (plain, mended)]
    if left > before or executed[1] > executed[0]:
        return "worse"
    if not left:
        return "mended" if before else "one-graph"
    return "fewer" if left < before else "breaks"
