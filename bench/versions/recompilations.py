"""What is compiled anew with another torch, held against what `check` says of the same programs.

The programs and the way they are judged are those of `tests/analysis/recompilations`.
"""

from __future__ import annotations

import functools
import importlib
import json
import subprocess
import sys
from typing import Any

from bench.versions import progress
from bench.versions.environments import ROOT
from bench.versions.suites import environment

FOLDER = ROOT / "tests" / "analysis" / "recompilations"
_LABEL = """\
import json, sys
sys.path.insert(0, {folder!r})
import label
texts = {{name: text for name, text in label.programs().items() if name.startswith({file!r} + "/")}}
print(json.dumps(label.label(texts)))
"""


def measure(python: str, version: str) -> dict[str, Any]:
    """Recall and precision as counts, what was missed or wrong, and how the truth differs from the newest torch's."""
    truth: dict[str, Any] = {}
    for file in sorted((FOLDER / "programs").glob("*.txt")):
        label = functools.partial(_label, python, file.stem)
        truth |= progress.kept(python, ["recompilations", file.stem], [file, FOLDER / "label.py"], label)
    sys.path.insert(0, str(FOLDER))
    score = importlib.import_module("score")
    found = score.score(set(truth), truth, version)
    newest = json.loads((FOLDER / "expected.json").read_text("utf-8"))["programs"]
    return {
        "recall": [found.hit, found.loud],
        "precision": [found.good, found.found],
        "said": found.said,
        "otherwise": [name for name, answer in truth.items() if answer["varies"] != newest[name]["varies"]],
    }


def _label(python: str, file: str) -> dict[str, Any]:
    command = [python, "-c", _LABEL.format(folder=str(FOLDER), file=file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment())
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    failed = [f"{name}: {entry['error']}" for name, entry in answer.items() if "error" in entry]
    if failed:
        raise RuntimeError("\n".join(failed))
    return answer
