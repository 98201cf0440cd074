"""Runs every measurement of this folder, one after the other, and sums them up in a table.

    python -m bench [NAME ...] [--full]

A measurement is a file here that runs by itself and prints what it measured. By default each runs in its short form;
`--full` leaves out the arguments that make it short. Ends with 1 where a measurement could not be made.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parent

#: what makes a measurement short; the others are short by themselves
SHORT = {
    "analysis": ("--rounds", "1"),
    "lsp_latency": ("--characters", "40", "--starts", "3"),
    "speed": ("--models", "t5"),
    "startup": ("--rows", "t5-small", "--rounds", "1"),
    "steady": ("--rows", "t5-small"),
}

#: the lines of a measurement's output that go into the table; of others the last line does
HEADLINES = {
    "analysis": r"check .*",
    "keystroke": r".*(lines|file):.*",
    "large_folder": r"(openFilesOnly|workspace): .*",
    "lsp_latency": r"graphmend .*",
    "quiet": r"\d+ findings .*",
    "speed": r"\| t5 .*",
    "startup": r"\| t5-small .*",
    "steady": r"\| t5-small .*",
}


class Measured(NamedTuple):
    name: str
    seconds: float
    status: int
    headlines: list[str]


def names() -> list[str]:
    """The measurements that exist: files that can be run."""
    found = (path.stem for path in sorted(FOLDER.glob("*.py")) if not path.stem.startswith("_"))
    return [name for name in found if '__name__ == "__main__"' in (FOLDER / f"{name}.py").read_text("utf-8")]


def measure(name: str, full: bool) -> Measured:
    """Runs one measurement, showing its output while it comes."""
    path = FOLDER / f"{name}.py"
    about = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or name).partition("\n")[0]
    print(f"== {name}: {about}", flush=True)
    command = [sys.executable, str(path), *(() if full else SHORT.get(name, ()))]
    start = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=FOLDER.parent) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            print(f"   {line}", end="", flush=True)
            lines.append(line.strip())
    return Measured(name, time.monotonic() - start, process.returncode, headlines(name, lines))


def headlines(name: str, lines: list[str]) -> list[str]:
    """The lines of an output that sum it up."""
    wanted = re.compile(HEADLINES.get(name, r"(?!)"))
    return [line for line in lines if wanted.match(line)] or [line for line in lines if line][-1:]


def table(measured: list[Measured]) -> str:
    """One row for each headline; the name and the time stand in the first row of a measurement."""
    width = max(len(m.name) for m in measured)
    rows = []
    for one in measured:
        result = [f"failed with {one.status}"] if one.status else one.headlines or ["(no output)"]
        heads = [f"{one.name:<{width}}  {one.seconds:>5.0f} s", *[" " * (width + 9)] * (len(result) - 1)]
        rows += [f"{head}  {text}" for head, text in zip(heads, result, strict=True)]
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*names(), []], help="which; by default all")
    parser.add_argument("--full", action="store_true", help="in their long form")
    options = parser.parse_args()
    measured = [measure(name, options.full) for name in options.names or names()]
    print(f"\n{table(measured)}")
    return 1 if any(one.status for one in measured) else 0


if __name__ == "__main__":
    sys.exit(main())
