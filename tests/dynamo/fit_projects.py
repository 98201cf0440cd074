"""Makes inputs for the modules of a text of small projects, each in a fork of one process that has torch.

Each line of its input is a JSON list, [text, folder, name, ...]: it unpacks the projects of a text into a folder, and
prints a line of JSON for each module (its name, the example that fits, or why none does), and an empty one behind them.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import re
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # once, and not in each fork

from graphmend.dynamo.worker import discover, loading
from graphmend.dynamo.worker.inputs import within
from graphmend.dynamo.worker.project import scripts
from graphmend.dynamo.worker.recording.lines import Project
from graphmend.dynamo.worker.runs.fitting import Finder, MemoryBudget

SECONDS = 60


def unpacked(text: str, folder: Path) -> dict[str, tuple[Path, str]]:
    """Name -> (the project's folder, `file.py:Class`); `@name` stands for another one's files."""
    found: dict[str, tuple[Path, str]] = {}
    for chunk in re.split(r"^===== ", text, flags=re.MULTILINE)[1:]:
        head, body = chunk.split("\n", 1)
        name, target = head.split()
        if body.startswith("@"):
            found[name] = (found[body.strip()[1:]][0], target)
            continue
        found[name] = (folder / name, target)
        for part in re.split(r"^--- ", body, flags=re.MULTILINE)[1:]:
            path, content = part.split("\n", 1)
            file = folder / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content.strip() + "\n")
    return found


def fitted(home: Path, target: str) -> dict[str, Any]:
    path, name = target.split(":")
    os.chdir(home)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    budget = MemoryBudget(["cpu"])
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            sys.argv = [str(home / path)]
            scripts.reach(str(home / path))
            module = loading.load(str(home / path), {})
            scripts.complete(module)
            found = discover.named(module, name)
            finder = Finder(found, Project([str(home)]).contains, budget, time.monotonic() + SECONDS)
            fit, _ = finder.find(lambda: within.made_up(found, module, []))
    except Exception as error:
        return {"problem": str(error)}
    return {"text": fit.example.text, "origin": fit.example.origin}


def fit(text: str, folder: str, *names: str) -> None:
    for name, (home, target) in unpacked(Path(text).read_text(), Path(folder)).items():
        if names and name not in names:
            continue
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            print(json.dumps({"name": name, **fitted(home, target)}), flush=True)
            os._exit(0)
        os.waitpid(child, 0)


def main() -> None:
    gc.collect()
    gc.freeze()  # objects made so far stay in pages that the forks share
    for line in sys.stdin:
        fit(*json.loads(line))
        print(flush=True)


if __name__ == "__main__":
    main()
