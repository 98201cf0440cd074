"""The rows of the paper's table, before and after mending, each in a process of its own with the same weights.

    python bench/paper_table.py [--rows t5-small Phi-4-mini-instruct]

Breaks are graphs handed to the backend by the first call, minus one (the authors' metric). A row is `equal` where every
output of eager and compiled code, on two sets of inputs and the first again, is that of the unmended model run eagerly.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
#: where the models' code lies
_PACKAGES = ("--mend", "transformers", "--mend", "chronos")


def measure(row: str, file: Path) -> None:
    """In a process of its own, mended or not: writes outputs and counts."""
    import torch
    from paper_models import ROWS

    began = time.perf_counter()
    torch.manual_seed(0)
    model, (first, second) = ROWS[row][0]()
    model.eval()
    built = time.perf_counter() - began
    graphs = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    outputs, count = [], 0
    with torch.no_grad():
        calls = (first, second, first)
        eager = [tensors(model(**inputs)) for inputs in calls]
        compiled = torch.compile(model, backend=backend)
        for inputs in calls:
            outputs.append(tensors(compiled(**inputs)))
            count = count or len(graphs)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    torch.save({"eager": eager, "compiled": outputs, "breaks": count - 1, "s": built, "mb": memory}, file)


def tensors(value: Any) -> list[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [tensor for item in inner for tensor in tensors(item)]


def compare(row: str) -> dict[str, Any]:
    import torch

    mended = ["-m", "graphmend", "run", "--unsafe", *_PACKAGES, "--report"]
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("before", "after")]
        for file, how in zip(files, ([], [*mended, str(Path(folder) / "report")]), strict=True):
            subprocess.run([sys.executable, *how, str(HERE), "--measure", row, str(file)], check=True)
        before, after = (torch.load(file) for file in files)
    truth = before["eager"]
    same = [equal(truth, one) for one in (before["compiled"], after["eager"], after["compiled"])]
    extra = {"mb": after["mb"] - before["mb"], "s": round(after["s"] - before["s"], 1)}
    return {"before": before["breaks"], "after": after["breaks"], "equal": all(same), **extra}


def equal(one: Any, other: Any, tolerance: float = 2e-3) -> bool:
    import torch

    def close(a: Any, b: Any) -> bool:
        near = a.shape == b.shape and torch.allclose(a.double(), b.double(), tolerance, tolerance, equal_nan=True)
        return bool(near)

    pairs = list(zip(one, other, strict=True))
    return all(len(a) == len(b) and all(map(close, a, b)) for a, b in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        measure(args.measure[0], Path(args.measure[1]))
        return
    from paper_models import NEEDS, ROWS

    known: dict[Any, dict[str, Any]] = {}
    left, failed = 0, 0
    print("| row | breaks | mended | authors' | equal | memory | time |\n|---|---|---|---|---|---|---|")
    for row in args.rows or ROWS:
        builder, _, authors = ROWS[row]
        if row in NEEDS and importlib.util.find_spec(NEEDS[row]) is None:
            print(f"| {row} | not built: {NEEDS[row]} is not installed |")
            continue
        if builder not in known:
            known[builder] = compare(row)
        found = known[builder]
        left, failed = left + found["after"], failed + (not found["equal"])
        cells = [
            row,
            found["before"],
            found["after"],
            authors,
            found["equal"],
            f"{found['mb']:+} MB",
            f"{found['s']:+} s",
        ]
        print(f"| {' | '.join(map(str, cells))} |", flush=True)
    print(json.dumps({"left": left, "differ": failed}))


if __name__ == "__main__":
    main()
