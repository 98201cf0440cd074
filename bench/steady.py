"""Rows of the paper's table on a stream of batches, before and after mending: does a mended model stay mended?

    python bench/steady.py [--rows t5-small biogpt] [--batches 8] [--lengths] [--safe] [--write FILE]

Batches are those of `graphmend verify --batches`: other floats, token ids and paddings, with `--lengths` other lengths.
Of each batch: the graphs compiled so far, those that its call executed, and whether every output is that of the same
model run eagerly. Each arm runs in a process of its own, with the same weights. Needs transformers 4.52.4. No time is
measured, so a busy machine makes no difference. Ends with 1 where a mended row executes more graphs than a plain one in
the last batch, compiles more than one graph more over all, or answers otherwise.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve()
#: where the models' code lies
_PACKAGES = ("--mend", "transformers", "--mend", "chronos")


class Batch(NamedTuple):
    """What one call of the stream did."""

    compiled: int
    """Graphs compiled so far."""
    executed: int
    """Graphs that ran in this call."""
    equal: bool
    """Is every output that of the eager model?"""


# One arm, in a process of its own


def measure(row: str, count: int, lengths: bool) -> list[Batch]:
    import torch
    from paper_models import ROWS
    from paper_table import equal, tensors

    from graphmend.dynamo.worker.runs import batches as stream

    torch.manual_seed(0)
    model, inputs = ROWS[row][0]()
    model.eval()
    compiled = executed = 0

    def backend(graph: Any, _: Any) -> Any:
        nonlocal compiled
        compiled += 1

        def run(*arguments: Any) -> Any:
            nonlocal executed
            executed += 1
            return graph.forward(*arguments)

        return run

    step = torch.compile(model, backend=backend)
    rows = []
    with torch.no_grad():
        for number in range(count):
            given, wanted = _that_fits(model, stream, inputs[number % len(inputs)], number, lengths)
            executed = 0
            torch.manual_seed(number)
            got = tensors(step(**given))
            rows.append(Batch(compiled, executed, equal([wanted], [got])))
    return rows


def _that_fits(model: Any, stream: Any, inputs: Any, number: int, lengths: bool) -> tuple[Any, list[Any]]:
    """A batch that the model takes, changed as much as that allows, and what the model makes of it."""
    import torch
    from paper_table import tensors

    for changes in [*stream.ways(lengths), ()]:
        given = stream.batch(lambda: dict(inputs), number, changes)
        torch.manual_seed(number)
        try:
            return given, tensors(model(**given))
        except (IndexError, RuntimeError, ValueError):
            if not changes:
                raise
    raise AssertionError("a batch without changes fits or raises")


# The table


def arm(row: str, options: argparse.Namespace, *, mended: bool) -> list[Batch]:
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        unsafe = [] if options.safe else ["--unsafe"]
        how = ["-m", "graphmend", "run", *unsafe, *_PACKAGES, "--report", str(Path(folder) / "report.json")]
        asked = ["--measure", row, str(result), "--batches", str(options.batches)]
        asked += ["--lengths"] if options.lengths else []
        subprocess.run([sys.executable, *(how if mended else []), str(HERE), *asked], check=True, cwd=HERE.parent)
        return [Batch(*batch) for batch in json.loads(result.read_text())]


def is_worse(plain: list[Batch], mended: list[Batch]) -> bool:
    """Does the mended row cost more graphs than the plain one, or answer otherwise?"""
    differs = any(p.equal and not m.equal for p, m in zip(plain, mended, strict=True))
    return differs or mended[-1].executed > plain[-1].executed or mended[-1].compiled > plain[-1].compiled + 1


def described() -> str:
    """The versions that a table was made with, and its date."""
    import torch
    import transformers

    versions = f"torch {torch.__version__}, transformers {transformers.__version__}, Python {platform.python_version()}"
    return f"{versions}; {datetime.date.today()}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+")
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--lengths", action="store_true", help="batches of other lengths as well")
    parser.add_argument("--safe", action="store_true", help="safe mends only")
    parser.add_argument("--write", type=Path, help="keep the table in this file")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        row, file = options.measure
        Path(file).write_text(json.dumps(measure(row, options.batches, options.lengths)))
        return 0
    from paper_models import NEEDS, ROWS

    how = ", ".join([f"{options.batches} batches", *(["other lengths"] if options.lengths else [])])
    mends = "safe mends" if options.safe else "all mends"
    lines = [
        f"{described()}; {how}; {mends}",
        "",
        "| row | arm | compiled | executed | equal |",
        "|---|---|---|---|---|",
    ]
    known: dict[Any, tuple[list[Batch], list[Batch]]] = {}
    worse = 0
    for row in options.rows or ROWS:
        if row in NEEDS and importlib.util.find_spec(NEEDS[row]) is None:
            print(f"| {row} | not built: {NEEDS[row]} is not installed |", flush=True)
            continue
        if (builder := ROWS[row][0]) in known:
            continue  # rows of one builder are one measurement
        known[builder] = arm(row, options, mended=False), arm(row, options, mended=True)
        worse += is_worse(*known[builder])
        for name, batches in zip(("as it is", "mended"), known[builder], strict=True):
            cells = (" ".join(str(number) for number in column) for column in list(zip(*batches, strict=True))[:2])
            lines.append(f"| {row} | {name} | {' | '.join(cells)} | {all(batch.equal for batch in batches)} |")
            print(lines[-1], flush=True)
    print(json.dumps({"rows": len(known), "worse": worse}))
    if options.write:
        options.write.parent.mkdir(parents=True, exist_ok=True)
        options.write.write_text("\n".join(lines) + "\n")
    return worse > 0


if __name__ == "__main__":
    sys.exit(main())
