"""What mending buys: cold compile time, time per call, throughput and memory of models, plain beside mended.

    python bench/speed.py [--rows t5-small biogpt] [--size tiny|middle|large] [--repeats 3] [--safe] [--device cuda]
                          [--jobs 8]

Models are the rows of the paper's table and ten of today, with random weights, compiled with TorchInductor. For each
repeat a plain and a mended process compile the same model, each with an inductor cache of its own, and then make calls
in turns, so that other programs disturb both alike. What counts is processor time: user and system time of a process
and of the compilers that it starts, in one thread. On CUDA it is the time on the clock.

With `--jobs` several rows compile at once, each in a thread of its own, while one of them at a time makes the calls
that are measured: on a machine with a core for each job that costs their clock little, and both arms of a row alike.

Repeats are kept in a file, after each one, and not measured again: the command goes on where it stopped, and
`--again` begins rows anew. A row that raises, hangs or has no compiler is one line. At the end, and with `--show` at
once, it writes the table and the plot beside that file. Needs transformers 4.52.4 and, for the CPU, a C++ compiler.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from speed_pair import Failed, Settings, measured, prepare
from speed_table import plot, table
from steady import described

_RESULTS = Path(__file__).resolve().parent / "results"


def machine(device: str) -> str:
    if device.startswith("cuda"):
        import torch

        return str(torch.cuda.get_device_name(device))
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "CPU")
    return f"{name}, {os.cpu_count()} cores, one thread"


def kept(file: Path, made: dict[str, Any]) -> dict[str, Any]:
    """What has been measured in the same way; other measurements are not mixed with it."""
    try:
        found: dict[str, Any] = json.loads(file.read_text())
    except FileNotFoundError:
        return {"made": made, "rows": {}}
    dateless = [{key: value for key, value in each.items() if key != "date"} for each in (found["made"], made)]
    if dateless[0] != dateless[1]:
        raise SystemExit(f"{file} was measured otherwise; name another with --keep: {dateless[0]}")
    return found


def keep(file: Path, found: dict[str, Any]) -> None:
    """Writes the file such that a stop in between loses nothing."""
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_suffix(".part")
    lines = [f"{json.dumps(row)}: {json.dumps(entry)}" for row, entry in found["rows"].items()]
    whole = ",\n".join(lines)
    beside.write_text(f'{{"made": {json.dumps(found["made"])},\n"rows": {{\n{whole}\n}}}}\n')
    beside.replace(file)


def measure(rows: list[str], options: argparse.Namespace, found: dict[str, Any], prepared: Path) -> None:
    """Every row once, then every row again, so that a stop leaves something of each."""
    from paper_models import NEEDS

    settings = Settings(
        options.size, options.device, options.backend, options.turns, options.safe, options.limit, prepared
    )
    writing = threading.Lock()

    def once(row: str, repeat: int) -> None:
        entry = found["rows"][row]
        if "failed" in entry or len(entry["repeats"]) > repeat:
            return
        seen: dict[str, Any] | str
        if row in NEEDS and importlib.util.find_spec(NEEDS[row]) is None:
            seen = f"not built: {NEEDS[row]} is not installed"
        else:
            try:
                seen = measured(row, settings, repeat)
            except Failed as error:
                seen = str(error)
        with writing:
            if isinstance(seen, str):
                entry["failed"] = seen
            else:
                entry["repeats"].append(seen)
            keep(options.keep, found)
            print(f"{row}: {entry.get('failed', f'repeat {repeat + 1}')}", flush=True)

    for row in rows:
        found["rows"].setdefault(row, {"repeats": []})
    with ThreadPoolExecutor(options.jobs) as pool:
        for repeat in range(options.repeats):
            list(pool.map(once, rows, [repeat] * len(rows)))


def main() -> None:
    from speed_arm import builders

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", choices=builders(), metavar="ROW", help="default: all")
    parser.add_argument("--size", choices=["tiny", "middle", "large"], default="middle")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--turns", type=int, default=10, help="turns of each repeat")
    parser.add_argument("--safe", action="store_true", help="safe mends only")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1, help="rows that compile at once; only one at a time makes calls")
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--limit", type=float, default=1200, help="seconds in which an arm must answer")
    parser.add_argument("--again", action="store_true", help="measure the rows that are named anew")
    parser.add_argument("--keep", type=Path, default=_RESULTS / "speed.json", help="where repeats are kept")
    parser.add_argument("--show", action="store_true", help="measure nothing: table and plot of what is kept")
    options = parser.parse_args()
    versions, _, date = described().partition("; ")
    mends = "safe mends" if options.safe else "all mends"
    how = {"machine": machine(options.device), "versions": versions, "size": options.size, "mends": mends} | (
        {"jobs": options.jobs} if options.jobs > 1 else {}
    )
    found = json.loads(options.keep.read_text()) if options.show else kept(options.keep, how | {"date": date})
    if not options.show:
        rows: list[str] = options.rows or [*alike(builders())]
        for row in rows if options.again else ():
            found["rows"].pop(row, None)
        found["made"]["date"] = date
        with tempfile.TemporaryDirectory() as folder:
            if not options.device.startswith("cuda"):
                prepare(Path(folder) / "inductor", options.backend, options.limit)
            measure(rows, options, found, Path(folder) / "inductor")
    text = table(found, alike(builders()))
    options.keep.with_suffix(".md").write_text(text)
    options.keep.with_suffix(".svg").write_text(plot(found))
    print(text)


def alike(rows: dict[str, Any]) -> dict[str, list[str]]:
    """The first row of each builder, and the others: rows that share a builder are one measurement."""
    first: dict[Any, str] = {}
    found: dict[str, list[str]] = {}
    for row, builder in rows.items():
        if builder in first:
            found[first[builder]].append(row)
        else:
            found[first.setdefault(builder, row)] = []
    return found


if __name__ == "__main__":
    sys.exit(main())
