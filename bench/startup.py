"""What `graphmend run` adds to the start of a program: one that imports a model's class (rows of the paper's table),
builds it and hands it to torch.compile; with `--call`, until it was compiled and called once (backend `eager`), before
which its modules are mended.

    python bench/startup.py [--rows t5-small bart-base] [--rounds 5] [--safe] [--elapsed] [--call] [--write FILE]

Counted is user processor time, that of the processes that the program leaves behind included, so that a busy machine
makes little difference; with `--elapsed` it is the time that somebody waits, which is less where there is a second
processor that nobody else uses. The three arms of a round run one after the other, and the median of the rounds counts.
`cold` has an empty cache, `cached` that of the run before it. With `--call` they also differ by what TorchDynamo has to
trace: mended it is one graph, unmended several and resume functions. Needs Linux and transformers 4.52.4.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from steady import described

HERE = Path(__file__).resolve()
ARMS = ("plain", "cold", "cached")
_ADOPT = 36  # PR_SET_CHILD_SUBREAPER
#: what is compiled is mended before it is traced
_CALL = """
with torch.no_grad():
    torch.compile(model.eval(), backend="eager")(**inputs[0])"""


def program(row: str, calls: bool) -> str:
    """The text of the program that is measured. It names the class of its model as most programs do, by an import."""
    from paper_models import ROWS

    cls = type(ROWS[row][0]()[0])
    package = cls.__module__.partition(".")[0]
    return f"""import torch
from {package if package == "transformers" else cls.__module__} import {cls.__name__}
from paper_models import ROWS

model, inputs = ROWS[{row!r}][0]()
assert isinstance(model, {cls.__name__})
{_CALL if calls else "torch.compile(model.eval())"}
"""


def seconds(command: list[str], cache: Path, elapsed: bool) -> float:
    """User seconds of a command and of all that it began, or those that it takes."""
    before, begun = os.times().children_user, time.perf_counter()
    environment = {**os.environ, "GRAPHMEND_CACHE_DIR": str(cache), "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH")]))
    subprocess.run(command, check=True, cwd=HERE.parent, env=environment, stderr=subprocess.DEVNULL)
    took = time.perf_counter() - begun
    while True:
        try:
            os.wait()  # what the program has left behind
        except ChildProcessError:
            return took if elapsed else os.times().children_user - before


def compared(row: str, options: argparse.Namespace) -> list[str]:
    """The cells of a row: the medians, and what they add to the first of them."""
    how = ["-m", "graphmend", "run", *([] if options.safe else ["--unsafe"]), "--mend", "transformers", "--mend"]
    text = program(row, options.call)
    found: dict[str, list[float]] = {arm: [] for arm in ARMS}
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / "script.py"
            script.write_text(text)
            for arm in ARMS:
                mended = [] if arm == "plain" else [*how, "chronos", "--report", os.devnull]
                command = [sys.executable, *mended, str(script)]
                found[arm].append(seconds(command, Path(folder) / "cache", options.elapsed))
    plain, *others = (statistics.median(found[arm]) for arm in ARMS)
    return [row, f"{plain:.1f}", *(f"{each:.1f} ({each - plain:+.1f})" for each in others)]


def main() -> None:
    from paper_models import NEEDS, ROWS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", choices=ROWS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--safe", action="store_true", help="safe mends only")
    parser.add_argument("--elapsed", action="store_true", help="count elapsed, not processor time")
    parser.add_argument("--call", action="store_true", help="go on until something is compiled")
    parser.add_argument("--write", type=Path, help="keep the table in this file")
    options = parser.parse_args()
    if ctypes.CDLL(None).prctl(_ADOPT, 1, 0, 0, 0) != 0:
        raise SystemExit(f"orphans cannot be counted on {platform.system()}")
    mends = "safe mends" if options.safe else "all mends"
    lines = [
        f"{described()}; median of {options.rounds}; {mends}; {'elapsed' if options.elapsed else 'user'} seconds"
        f"{', called once' if options.call else ''}",
        "",
        f"| row | {' | '.join(ARMS)} |",
        "|---|---|---|---|",
    ]
    built = {ROWS[row][0]: row for row in reversed(options.rows or ROWS)}  # rows of one builder are one measurement
    for row in reversed(built.values()):
        if row in NEEDS and importlib.util.find_spec(NEEDS[row]) is None:
            print(f"| {row} | not built: {NEEDS[row]} is not installed |", flush=True)
            continue
        lines.append(f"| {' | '.join(compared(row, options))} |")
        print(lines[-1], flush=True)
    if options.write:
        options.write.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
