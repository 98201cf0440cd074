"""What it costs `verify` to say what is compiled anew: the same checks with and without.

    python bench/recording.py [--rounds 5]

Each check is made in a process of its own, forked from a worker that has torch imported; what that process took of the
processor is compared, so a busy machine makes little difference. Both kinds of checks take turns. Prints, for each
module, the median of both and their ratio; ends with 1 where a ratio is above 1.5.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
from pathlib import Path

from graphmend.dynamo.requests import Request
from graphmend.dynamo.service import Service

MOST = 1.5

#: modules whose inputs are made up, so that they are varied, too
MODULES = {
    "two layers": """\
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(16, 32), torch.nn.Linear(32, 4)

    def forward(self, x: torch.Tensor, scale: float = 2.0):
        return self.second(torch.relu(self.first(x))) * scale
""",
    "convolutions": """\
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        sizes = (3, 16, 32, 64)
        self.layers = torch.nn.Sequential(*(
            torch.nn.Sequential(torch.nn.Conv2d(a, b, 3, 2, 1), torch.nn.BatchNorm2d(b), torch.nn.ReLU())
            for a, b in zip(sizes, sizes[1:])
        ))

    def forward(self, images: torch.Tensor):
        return self.layers(images).mean((2, 3))
""",
    "six layers of a transformer": """\
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(100, 64)
        self.layers = torch.nn.ModuleList(
            torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True) for _ in range(6)
        )

    def forward(self, ids: torch.Tensor):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return x
""",
    "a module with breaks": """\
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(16, 16)

    def forward(self, x: torch.Tensor):
        x = self.layer(x)
        if x.sum() > 0:
            x = x + 1
        print("in the middle")
        return self.layer(x)
""",
}

#: takes the calls with something changed away, and the hook that sees why a frame is compiled again
WITHOUT = """\
import importlib.abc, importlib.util, sys

def silent(recorder):
    recorder.Recorder._recompilation = lambda self, inner: inner

def unvaried(varied):
    varied.vary = lambda *arguments: []

CHANGES = {"_graphmend_worker.recording.recorder": silent, "_graphmend_worker.runs.varied": unvaried}
looking = set()

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name not in CHANGES or name in looking:
            return None
        looking.add(name)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def changed(module):
            execute(module)
            CHANGES[name](module)

        spec.loader.exec_module = changed
        return spec

sys.meta_path.insert(0, Finder())
"""


def without(folder: Path) -> str:
    """An interpreter in which the worker records no recompilation."""
    (folder / "changed").mkdir()
    (folder / "changed" / "sitecustomize.py").write_text(WITHOUT, encoding="utf-8")
    script = folder / "python"
    script.write_text(f'#!/bin/sh\nPYTHONPATH={folder / "changed"}:$PYTHONPATH exec {sys.executable} "$@"\n')
    script.chmod(0o755)
    return str(script)


async def measure(folder: Path, rounds: int) -> dict[str, tuple[list[float], list[float]]]:
    """Seconds of processor time of each check, with and without, by module."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    kinds = (sys.executable, without(folder))
    service = Service()
    try:
        for name, text in MODULES.items():
            path = folder / f"{name.replace(' ', '_')}.py"
            path.write_text(f"import torch\n\n\n{text}", encoding="utf-8")
            found[name] = [], []
            for turn in range(rounds + 1):
                for interpreter, seconds in zip(kinds, found[name], strict=True):
                    report = await service.check(Request(str(path), interpreter=interpreter, names=("Net",)))
                    (target,) = report.targets
                    if target.problem is not None or report.usage is None:
                        raise SystemExit(f"{name}: {target.problem}")
                    if bool(target.varied) is not (interpreter == sys.executable):
                        raise SystemExit(f"{name}: varied where it should not be, or not where it should")
                    if turn:  # the first one reads files that the others find read
                        seconds.append(report.usage.seconds)
    finally:
        await service.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="checks of each kind and module")
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measure(Path(folder), parser.parse_args().rounds))
    ratios = []
    print("| module | without | with | ratio |\n| --- | --- | --- | --- |")
    for name, (recorded, plain) in found.items():
        ratios.append(statistics.median(recorded) / statistics.median(plain))
        both = " | ".join(f"{statistics.median(times):.2f} s" for times in (plain, recorded))
        print(f"| {name} | {both} | {ratios[-1]:.2f} |")
    print(f"at most {max(ratios):.2f} times the check without (goal: {MOST})")
    raise SystemExit(max(ratios) > MOST)


if __name__ == "__main__":
    main()
