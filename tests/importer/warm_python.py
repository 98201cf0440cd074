"""A Python that has torch, and becomes each program that it is asked for: three seconds less a program.

A program imports torch itself, as `graphmend run` waits for that. So torch's modules are taken out of `sys.modules`
before the first fork, and a finder gives them back: with `torch` those that `import torch` has brought, with
`torch._dynamo` those that this has, and one by one those that compiling brings. Each is found and loaded as any module
is, only that it has run already.

Started by path. Each line of its input is a JSON object {"words": Python's own, "folder": of the program,
"environment": all of it, "stdout": file, "stderr": file}; it answers each with the program's status.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import signal
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

LATER = "later"
STAGES = ("torch", "torch._dynamo", LATER)
LIMIT_SECONDS = 300


class Hidden:
    """A finder, and the loader of what it finds."""

    def __init__(self) -> None:
        self.stages: dict[str, dict[str, ModuleType]] = {}
        self.found: dict[str, tuple[ModuleType, ModuleSpec | None]] = {}

    def take(self, stage: str, modules: dict[str, ModuleType]) -> None:
        """Modules of one stage are there no longer, nor are they attributes of packages that stay."""
        self.stages[stage] = modules
        for name in modules:
            del sys.modules[name]
        for name in modules:
            package, _, last = name.rpartition(".")
            if package in sys.modules:
                delattr(sys.modules[package], last)

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        for stage, modules in self.stages.items():
            if name in modules:
                module = modules[name]
                self.found[name] = module, module.__spec__
                if name != stage != LATER:
                    importlib.import_module(stage)  # who waits for that is told
                    del sys.modules[name]  # the import system takes it for a module that it has to load again
                return ModuleSpec(name, self, is_package=hasattr(module, "__path__"))
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.found[spec.name][0]

    def exec_module(self, module: ModuleType) -> None:
        """With the module of a stage comes what came with it."""
        module.__spec__ = self.found[module.__name__][1]
        modules = self.stages.pop(module.__name__, {})
        for name, there in modules.items():
            package, _, last = name.rpartition(".")
            if package in sys.modules and package not in modules:
                setattr(sys.modules[package], last, there)
        sys.modules.update(modules)


def hidden() -> Hidden:
    """Imports torch in stages, and hides them."""
    brought: dict[str, dict[str, ModuleType]] = {}
    for stage in STAGES:
        before = set(sys.modules)
        if stage != LATER:
            importlib.import_module(stage)
        else:
            torch = sys.modules["torch"]
            torch.compile(lambda x: x + 1, backend="aot_eager")(torch.ones(2))
            torch._dynamo.reset()
            torch._dynamo.utils.counters.clear()
        brought[stage] = {n: m for n, m in sys.modules.items() if n not in before and n.partition(".")[0] == "torch"}
    found = Hidden()
    for stage in reversed(STAGES):
        found.take(stage, brought[stage])
    return found


def become(request: dict[str, Any]) -> None:
    """Runs a program as Python does; ends as it ends."""
    for descriptor, file in ((1, request["stdout"]), (2, request["stderr"])):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    signal.alarm(LIMIT_SECONDS)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    gc.enable()
    first, *rest = request["words"]
    if first == "-m":
        sys.argv, sys.path[0] = rest, request["folder"]
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = [first, *rest], os.path.dirname(os.path.abspath(first))
        runpy.run_path(first, run_name="__main__")


def main() -> dict[str, Any] | None:
    """The program that this process becomes; None in the one that forks."""
    answers = os.dup(1)
    sys.meta_path.insert(0, hidden())  # type: ignore[arg-type]
    gc.disable()
    gc.freeze()
    while line := sys.stdin.buffer.readline():
        child = os.fork()
        if not child:
            os.close(answers)
            request: dict[str, Any] = json.loads(line)
            return request
        _, status = os.waitpid(child, 0)
        os.write(answers, f"{os.waitstatus_to_exitcode(status)}\n".encode())
    return None


if __name__ == "__main__" and (wanted := main()) is not None:
    become(wanted)
