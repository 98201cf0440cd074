"""What mending gains per call, where a machine is shared: a plain and a mended process that take turns.

    python bench/turns.py [--rows t5-small biogpt] [--turns 15] [--calls 20] [--write FILE]

Both compile a row of the paper's table with TorchInductor, one after the other, in one thread, and wait. Then each in
its turn makes some calls. Counted is the processor time that the calls take, not the time on the clock, so that other
programs disturb both alike. `gain` is the median over the turns of plain time by mended time, with the quartiles;
`cold` is the processor time of the first calls, the C++ compiler's included. Weights are random and sizes small: most
of what is measured is what a call costs beside its arithmetic. Needs transformers 4.52.4 and a C++ compiler.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
_MENDED = ("-m", "graphmend", "run", "--unsafe", "--mend", "transformers", "--report", os.devnull)
#: calls before anything is counted: each input compiles, and again where a size has turned out to change
_WARM = 5


def take_turns(row: str, calls: int) -> None:
    """One process: compiles, says what that cost, and makes calls whenever a line comes."""
    import torch
    from paper_models import ROWS
    from torch._dynamo.utils import counters

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the model writes is no answer
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, inputs = ROWS[row][0]()
    step = torch.compile(model.eval())

    def say(**found: Any) -> None:
        print(json.dumps(found), file=answers, flush=True)

    with torch.no_grad():
        began = _processor_time()
        for number in range(_WARM):
            step(**inputs[number % len(inputs)])
        say(cold=_processor_time() - began, graphs=counters["stats"]["unique_graphs"])
        for _ in sys.stdin:
            began = _processor_time()
            for number in range(calls):
                step(**inputs[number % len(inputs)])
            say(call=(_processor_time() - began) / calls)


def _processor_time() -> float:
    """Seconds of this process and of those that it has waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


class Arm:
    """A process that has compiled a row and waits for its turns."""

    def __init__(self, row: str, calls: int, folder: Path, *, mended: bool) -> None:
        alone = {"TORCHINDUCTOR_COMPILE_THREADS": "1", "OMP_NUM_THREADS": "1"}
        environment = os.environ | alone | {"TORCHINDUCTOR_CACHE_DIR": str(folder)}
        command = [sys.executable, *(_MENDED if mended else ()), str(HERE), "--take-turns", row, "--calls", str(calls)]
        ends = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen(command, text=True, env=environment, cwd=HERE.parent, **ends)
        try:
            self.cold = self._answer()
        except BaseException:
            self.end()
            raise

    def turn(self) -> float:
        """Makes its calls; the seconds that one takes."""
        assert self._process.stdin is not None
        print(file=self._process.stdin, flush=True)
        return self._answer()["call"]

    def end(self) -> None:
        """Ends the process, also where it still compiles."""
        self._process.kill()
        self._process.communicate()

    def _answer(self) -> dict[str, float]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._process.args!r} ended with {self._process.wait()}")
        found: dict[str, float] = json.loads(line)
        return found


def compared(row: str, options: argparse.Namespace) -> str:
    """A line of the table."""
    # the arms end also where one fails, or the second one cannot be made
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ends:
        arms = []
        for name in ("plain", "mended"):
            arms.append(Arm(row, options.calls, Path(folder) / name, mended=name == "mended"))
            ends.callback(arms[-1].end)
        times = [[arm.turn() for arm in arms] for _ in range(options.turns)]
    low, middle, high = statistics.quantiles((plain / mended for plain, mended in times), n=4)
    plain, mended = (statistics.median(column) * 1000 for column in zip(*times, strict=True))
    cold = [arm.cold for arm in arms]
    graphs = f"{cold[0]['graphs']} -> {cold[1]['graphs']}"
    first = f"{cold[0]['cold']:.0f} -> {cold[1]['cold']:.0f}"
    return f"| {row} | {graphs} | {first} | {plain:.2f} -> {mended:.2f} | {middle:.2f} ({low:.2f} to {high:.2f}) |"


def table(options: argparse.Namespace) -> str:
    import torch
    import transformers

    versions = f"torch {torch.__version__}, transformers {transformers.__version__}, Python {platform.python_version()}"
    lines = [
        f"{versions}; {datetime.date.today()}; {options.turns} turns of {options.calls} calls; one thread; all mends",
        "",
        "| row | graphs | cold, processor s | call, processor ms | gain |",
        "|---|---|---|---|---|",
    ]
    for row in options.rows:
        lines.append(compared(row, options))
        print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


def main() -> None:
    from paper_models import ROWS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    rows = ["biogpt", "PegasusForCausalLM", "layoutlmv3-base", "t5-small", "bart-base", "whisper"]
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=rows)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--write", type=Path, help="keep the table in this file")
    parser.add_argument("--take-turns", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.take_turns:
        take_turns(options.take_turns, options.calls)
    else:
        text = table(options)
        if options.write:
            options.write.write_text(text)


if __name__ == "__main__":
    main()
