"""One check: imports the file, finds targets and inputs, runs each eagerly and compiled, and tells what happened.

Runs in the fork.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import torch
import torch._dynamo

from . import discover, loading, versions
from .comparison import compare
from .comparison.memento import BYTES
from .errors import Unusable, bare, describe
from .inputs import examples, within
from .project import scripts
from .recording.lines import Project
from .runs import devices, self_test, warmup
from .runs.target_check import TargetCheck


def run(job: dict[str, Any], say: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """The whole check, as plain data: `problem` is set where it could not be made at all.

    Each target's report is said as soon as it is there: a target that hangs or crashes costs no other one's.
    """
    began = time.monotonic()
    torch.set_num_threads(warmup.THREADS)
    project = Project(job["roots"])
    sites = discover.CompileSites(count_only)
    path = job["path"]
    name = os.path.basename(path)
    answer: dict[str, Any] = {"torch": torch.__version__, "problem": None, "note": "", "remark": ""}
    try:
        if self_test.failure is not None:
            raise Unusable(self_test.failure)
        said = versions.remark(torch.__version__), versions.hidden(torch.__file__, sys.path)
        answer["remark"] = "; ".join(filter(None, said))
        possible, answer["note"] = devices.candidates(job["device"])
        say({"stage": f"importing {name}"})
        sites.install()
        module = _import(job, project)
        targets = discover.find(module, job["names"] or _configured_names(job, module), sites)
        if not targets:
            says = (
                f"{name} has nothing to check: no nn.Module class with a forward, and its import compiles nothing;"
                " name a function or Class.method of it, or run the program with `graphmend verify -- COMMAND`"
            )
            raise Unusable(says + _elsewhere(module, project), says)
    except Unusable as error:
        return {**answer, "problem": str(error), "bare": error.bare}
    say({"begun": {**answer, "names": [target.name for target in targets]}})
    compared = job.get("keep") or job.get("compare")
    beginning = compare.Beginning(module, BYTES if compared else 0)
    deadline = began + 0.8 * float(job["timeout"])
    for number, target in enumerate(targets):
        until = time.monotonic() + max(deadline - time.monotonic(), 0.0) / (len(targets) - number)
        session = TargetCheck(target, project, possible, until, say, job, sites.inner, module, beginning)
        say({"target": session.run(_examples(target, module, job))})
    return {**answer, "seconds": round(time.monotonic() - began, 3)}


def count_only(graph: Any, inputs: Any, **_: Any) -> Any:
    """The backend of the user's own `torch.compile` calls; a running session counts their graphs."""
    if TargetCheck.counting is not None:
        return TargetCheck.counting(graph, inputs)
    return TargetCheck.current.backend(graph, inputs) if TargetCheck.current is not None else graph.forward


def _import(job: dict[str, Any], project: Project) -> ModuleType:
    path = job["path"]
    if path not in job["texts"] and not os.path.isfile(path):
        raise Unusable(f"{path} does not exist")
    with contextlib.suppress(OSError):
        os.chdir(job["cwd"])
    sys.argv = [path]
    scripts.reach(path)
    try:
        module = loading.load(path, job["texts"], job.get("module"), job.get("import_root"))
        scripts.complete(module)
        return module
    except SystemExit as error:
        raise Unusable(
            f"{path} calls sys.exit({error.code!r}) at import", f"{path} calls sys.exit at import"
        ) from error
    except BaseException as error:
        fails, mine = f"{path} cannot be imported", project.contains
        raise Unusable(f"{fails}: {describe(error, mine)}", f"{fails}: {bare(error, mine)}") from error


def _elsewhere(module: ModuleType, project: Project) -> str:
    """Where the classes lie that a script has from other files."""
    for file, names in discover.imported(module, project.contains).items():
        shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        return f"; it has {shown} from {(place := os.path.relpath(file))}: `graphmend verify {place}`"
    return ""


def _configured_names(job: dict[str, Any], module: ModuleType) -> list[str]:
    """Where inputs are declared for some names of the file, those names are what to check."""
    names = [entry["target"].rpartition(":")[2] for entry in job["declared"]]
    return [name for name in dict.fromkeys(names) if name]


def _examples(
    target: discover.Target, module: ModuleType, job: dict[str, Any]
) -> Callable[[], Iterator[examples.Example]]:
    old = compare.kept(job["compare"], target.name) if job.get("compare") else None

    def each() -> Iterator[examples.Example]:
        if old is not None:
            yield from _same_again(target, module, job, old)
            return
        yield from examples.declared(target, module, job["declared"])
        yield from within.made_up(target, module, job["declared"])

    return each


def _same_again(
    target: discover.Target, module: ModuleType, job: dict[str, Any], old: dict[str, Any]
) -> Iterator[examples.Example]:
    """The example that the original was run with."""
    given = (within.candidates if old["of_owner"] else examples.declared)(target, module, job["declared"])
    for example in given:
        if example.text == old["text"]:
            yield example
            return
    example = examples.from_call(target, module, old["text"])
    example.origin = old["origin"]
    yield example
