"""The page `docs/torch-versions.md`, from what was measured; `bench/results/torch-versions.json` keeps that."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graphmend.dynamo.worker import versions
from graphmend.dynamo.worker.recording.hooks import HOOKS
from graphmend.transforms.torch_versions import WHY, measured, stated

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results" / "torch-versions.json"
PAGE = ROOT / "docs" / "torch-versions.md"
UNMEASURED = "not measured"
_SUITES = {"mends": "mends that hold", "runtime": "runtime", "worker": "worker", "importer": "importer"}
_LACKS = {
    "output": "Output in the graph (`emit`) is not offered: it does not hold with it.",
    "in functions": "In the body of an `autograd.Function` output breaks the graph: AOTAutograd loses effects there.",
    "switches": "The capture switches of `run --unsafe` are not used.",
}
"""What is said where the runtime lacks an ability: those that `probes/abilities.py` tries."""
_MENDS = """\
## Mends

A mend is offered with the versions with which it was measured to hold: every test that mends with it, runs what came
out in eager mode and compiled, and holds it against the original passed. With others it is refused, with that reason;
a newer torch is taken for the newest. `x of y`: so many of them passed.

"""
_INTRODUCTION = """\
# Versions of torch

Supported are torch {oldest} to {newest}. A newer one is checked as {newest}, and every answer says so. With an older
one `check` works and says what it assumes; `verify` and `run` say that they do not.

CI runs torch {newest}. The others are run by hand before a release, with `make versions VERSIONS="2.10 2.12"`; each
row has the date of its run, and names the builds that it was made with. Of one core, a version's mends take about five
minutes, the patterns five, the recompilations one, the calls five. A run that was ended goes on where it was: programs,
tests and calls are kept step by step beside the environments, and are measured anew where a file changed that has a
part in them.

"""
_COLUMNS = """\
* *verify's self-test*: whether a graph that is broken on purpose is seen, where it breaks, before any check.
* *check*: of the rules' examples, those where `check --torch-version` names exactly the lines of that torch's own
  `graph_breaks` log.
* *verify*: of the same examples, those where it reports exactly the lines of that log for the same inputs.
* *patterns*: the same of `verify` and some hundreds of other programs, which are no part of the repository; of those
  that plain Python runs on their inputs. A line at which an input makes the program itself raise ends the graph, too:
  `verify` says so of that run, and calls it no break.
* *models*: small T5 and BART, in eval and train mode and in half precision: of these six, those where `verify` reports
  exactly the places in all files of transformers that the log tells of, and how many places these are.
* *recompilations*: of the programs in `tests/analysis/recompilations` that this torch compiles anew, those where
  `check` says what varies; and of all that it says of recompilations there, what is so with this torch.
* *mends that hold*, *runtime*, *worker*, *importer*: tests that pass in an interpreter with that torch, of those that
  run there.
* *calls*: how many functions break with this torch and not with the newest one, of those that were tried; and how many
  other things the two do otherwise.
* *CUDA*: the tests that need a GPU.

"""


def load() -> dict[str, Any]:
    """What was measured, by minor version."""
    found: dict[str, Any] = json.loads(RESULTS.read_text("utf-8")) if RESULTS.is_file() else {}
    return found


def save(results: dict[str, Any]) -> None:
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    PAGE.write_text(render(results), encoding="utf-8")


def minors() -> list[str]:
    """Every supported minor version, newest first."""
    (major, first), (_, last) = versions.OLDEST, versions.NEWEST
    return [f"{major}.{minor}" for minor in range(last, first - 1, -1)]


def render(results: dict[str, Any]) -> str:
    text = _INTRODUCTION.format(oldest=versions.text(versions.OLDEST), newest=versions.text(versions.NEWEST))
    heads = ["torch", "measured", "self-test", *_HEADS, "CUDA"]
    text += _row(heads) + _row(["---"] * len(heads))
    for minor in minors():
        text += _row(_cells(minor, results.get(minor, {})))
    text += "\n" + _COLUMNS + _gaps(results) + _rewrites() + _hooks()
    return text


def _cells(minor: str, row: dict[str, Any]) -> list[str]:
    parts = row.get("parts", {})
    dates = sorted({part["date"] for part in parts.values()})
    selftest = parts["examples"]["self-test"] or "passes" if "examples" in parts else UNMEASURED
    measured = [tell(parts[name]) if name in parts else UNMEASURED for name, tell in _HEADS.values()]
    when = " to ".join([dates[0], dates[-1]] if len(dates) > 1 else dates) or UNMEASURED
    builds = ", ".join(sorted({part["torch"] for part in parts.values()})) or minor
    return [builds, when, selftest, *measured, row.get("cuda", UNMEASURED)]


def _share(key: str) -> Callable[[dict[str, Any]], str]:
    return lambda part: f"{part[key]['agree']} of {part[key]['examples']}"


def _models(part: dict[str, Any]) -> str:
    return f"{_share('verify')(part)}, {part['places']} places, transformers {part['transformers']}"


def _passed(part: dict[str, Any]) -> str:
    ran = part["passed"] + len(part["failed"])
    return f"{part['passed']} of {ran}" if ran else "not offered"


def _recompiled(part: dict[str, Any]) -> str:
    return "{} of {}, {} of {}".format(*part["recall"], *part["precision"])


def _otherwise(part: dict[str, Any]) -> str:
    if "refused" not in part:
        return "the measure"
    return f"{part['refused']} of {part['measured']:,}, {part['traced'] + part['forms']}"


#: what each column is called, which part it shows, and how
_HEADS: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "check": ("examples", _share("check")),
    "verify": ("examples", _share("verify")),
    "patterns": ("patterns", _share("verify")),
    "models": ("models", _models),
    "recompilations": ("recompilations", _recompiled),
    **{title: (name, _passed) for name, title in _SUITES.items()},
    "calls": ("calls", _otherwise),
}


def _gaps(results: dict[str, Any]) -> str:
    text = "## Known gaps\n\n"
    for minor in minors():
        parts = results.get(minor, {}).get("parts", {})
        gaps = [f"`check`, {item}" for item in parts.get("examples", {}).get("check", {}).get("differ", ())]
        for name in ("examples", "patterns"):
            if left := parts.get(name, {}).get("not run"):
                gaps.append(f"`verify`, left out as plain Python raises whatever they are given: {', '.join(left)}")
        for name in ("examples", "patterns", "models"):
            gaps += [f"`verify`, {item}" for item in parts.get(name, {}).get("verify", {}).get("differ", ())]
        gaps += [f"recompilations: {item}" for item in parts.get("recompilations", {}).get("said", ())]
        for name, title in _SUITES.items():
            gaps += [f"{title}: `{item}`{_refused(item)}" for item in parts.get(name, {}).get("failed", ())]
        gaps += [said for ability, said in _LACKS.items() if parts.get("abilities", {}).get(ability) is False]
        if gaps:
            text += f"### torch {minor}\n\n" + "".join(f"* {gap}\n" for gap in gaps) + "\n"
    return text


def _refused(test: str) -> str:
    """What is said of a test of a mend that is refused for a reason that is known."""
    named = (name for name in WHY if re.search(rf"\b{name}\b", test))
    return "".join(f"; the mend is refused: {stated(name)}, as {WHY[name]}" for name in named)


def _rewrites() -> str:
    text = _MENDS
    rows = measured()
    heads = ["mend", *(versions.text(version) for version in rows), "offered"]
    text += _row(heads) + _row(["---"] * len(heads))
    for name in sorted({name for of in rows.values() for name in of}):
        cells = ["{} of {}".format(*of[name]) if name in of else UNMEASURED for of in rows.values()]
        text += _row([f"[`{name}`](rewrites/{name}.md)", *cells, stated(name)])
    return text + "\n"


def _hooks() -> str:
    text = (
        "## What `verify` hooks into\n\nA torch that lacks one, or has it with other parameters, is told of: no report "
    )
    text += "is made of what cannot be seen.\n\n" + _row(["shows", "from torch", "function", "parameters"])
    text += _row(["---"] * 4)
    for hook in HOOKS.values():
        for since, place in hook.places.items():
            parameters = ", ".join(f"`{name}`" for name in place.parameters)
            text += _row([hook.shows, versions.text(since), f"`{place}`", parameters])
    return text


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |\n"
