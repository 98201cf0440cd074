"""Rows of the paper's table on a stream of batches, before and after mending: does a mended model stay mended?

    python bench/steady.py [--rows t5-small biogpt] [--batches 8] [--lengths] [--safe] [--write FILE]
    python bench/steady.py --backend aot_eager [--gradients]    # what a backend that compiles makes of the graphs

Batches are those of `graphmend verify --batches`: other floats, token ids and paddings, with `--lengths` other lengths.
Of each batch: the graphs compiled so far, those that its call executed, and whether every output is that of the same
model run eagerly. Each arm runs in a process of its own, with the same weights. Needs transformers 4.52.4. No time is
measured, so a busy machine makes no difference. Graphs run as Dynamo made them where no `--backend` is named, which
shows nothing of what a backend fails on or answers otherwise. Rows may be models of today (`todays_models.py`), too.
Ends with 1 where a mended row executes more graphs than a plain one in the last batch, compiles more than one graph
more over all, or answers otherwise.
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
    """Is every output that of the eager model, and every gradient, where asked?"""
    raised: str = ""


# One arm, in a process of its own


def measure(row: str, options: argparse.Namespace) -> list[Batch]:
    import torch
    from paper_table import equal

    from graphmend.dynamo.worker.runs import batches as stream

    torch.manual_seed(0)
    model, inputs = _rows()[row]()
    model.eval()
    compiled = executed = 0

    def backend(graph: Any, examples: Any) -> Any:
        nonlocal compiled
        made = torch._dynamo.lookup_backend(options.backend)(graph, examples) if options.backend else graph.forward
        compiled += 1

        def run(*arguments: Any) -> Any:
            nonlocal executed
            executed += 1
            return made(*arguments)

        return run

    step = torch.compile(model, backend=backend)
    rows = []
    with torch.set_grad_enabled(options.gradients):
        for number in range(options.batches):
            given = _that_fits(model, stream, inputs[number % len(inputs)], number, options.lengths)
            wanted = _answers(model, model, given, number)
            executed, raised = 0, ""
            try:
                got = _answers(model, step, given, number)
            except Exception as error:  # a backend's, or one that a mend brought in
                got, raised = [], f"{type(error).__name__}: {error}".splitlines()[0]
            rows.append(Batch(compiled, executed, equal([wanted], [got]), raised))
    return rows


def _rows() -> dict[str, Any]:
    """Builders by name."""
    from paper_models import ROWS
    from todays_models import TODAY

    return {name: row[0] for name, row in ROWS.items()} | TODAY


def _answers(model: Any, step: Any, given: Any, number: int) -> list[Any]:
    """What a step makes of a batch; and the gradients of the parameters, where those are computed."""
    import torch
    from paper_table import tensors

    torch.manual_seed(number)
    found = tensors(step(**given))
    leaves = [each for each in found if each.requires_grad and each.is_floating_point()]
    if not leaves:
        return found
    model.zero_grad(set_to_none=True)
    sum(each.float().square().mean() for each in leaves).backward()
    grads = [each.grad for each in model.parameters() if each.grad is not None]
    return [each.detach() for each in [*found, *grads]]


def _that_fits(model: Any, stream: Any, inputs: Any, number: int, lengths: bool) -> Any:
    """A batch that the model takes, changed as much as that allows."""
    for changes in [*stream.ways(lengths), ()]:
        given = stream.batch(lambda: dict(inputs), number, changes)
        try:
            _answers(model, model, given, number)
            return given
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
        asked += ["--gradients"] if options.gradients else []
        asked += ["--backend", options.backend] if options.backend else []
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
    parser.add_argument("--backend", help="what compiles the graphs: aot_eager, inductor or another that Dynamo knows")
    parser.add_argument("--gradients", action="store_true", help="backward passes as well")
    parser.add_argument("--write", type=Path, help="keep the table in this file")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        row, file = options.measure
        Path(file).write_text(json.dumps(measure(row, options)))
        return 0
    from paper_models import NEEDS, ROWS

    asked = ["other lengths"] * options.lengths + ["gradients"] * options.gradients
    how = ", ".join([f"{options.batches} batches", *asked, *([options.backend] if options.backend else [])])
    mends = "safe mends" if options.safe else "all mends"
    lines = [
        f"{described()}; {how}; {mends}",
        "",
        "| row | arm | compiled | executed | equal |",
        "|---|---|---|---|---|",
    ]
    known: dict[Any, tuple[list[Batch], list[Batch]]] = {}
    worse = 0
    rows = _rows()
    for row in options.rows or ROWS:
        if row in NEEDS and importlib.util.find_spec(NEEDS[row]) is None:
            print(f"| {row} | not built: {NEEDS[row]} is not installed |", flush=True)
            continue
        if (builder := rows[row]) in known:
            continue  # rows of one builder are one measurement
        known[builder] = arm(row, options, mended=False), arm(row, options, mended=True)
        worse += is_worse(*known[builder])
        for name, batches in zip(("as it is", "mended"), known[builder], strict=True):
            cells = (" ".join(str(number) for number in column) for column in list(zip(*batches, strict=True))[:2])
            lines.append(f"| {row} | {name} | {' | '.join(cells)} | {all(batch.equal for batch in batches)} |")
            print(lines[-1], *sorted({batch.raised for batch in batches} - {""}), sep="\n", flush=True)
    print(json.dumps({"rows": len(known), "worse": worse}))
    if options.write:
        options.write.parent.mkdir(parents=True, exist_ok=True)
        options.write.write_text("\n".join(lines) + "\n")
    return worse > 0


if __name__ == "__main__":
    sys.exit(main())
