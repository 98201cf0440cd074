"""What the check costs, as a multiple of parsing the same files with `ast`.

    python bench/analysis.py [FOLDER ...] [--rounds N]

Prints the CPU time of the command on each folder, in one process and without its cache, over that of `ast.parse` in
another; its peak memory; and the ten files whose check costs most compared with their parse. By default the folder is
`models` of this interpreter's transformers. The goals: at most 4 times on a folder, 20 times on any one file, 400 MB.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import gc
import os
import subprocess
import sys
import sysconfig
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from graphmend.analysis.check import check
from graphmend.analysis.program.project import Project
from graphmend.analysis.syntax.source import Source
from graphmend.workspace import files
from graphmend.workspace.module_loader import ModuleLoader, package_root

CHECK = [
    sys.executable,
    "-m",
    "graphmend",
    "check",
    "--no-cache",
    "--isolated",
    "--jobs=1",
    "--exit-zero",
    "--output-format",
    "concise",
]
PARSE = [sys.executable, os.path.abspath(__file__), "--parse"]


class Cost(NamedTuple):
    """CPU seconds of a process, and its peak memory in MB."""

    seconds: float
    memory: float


class Slow(NamedTuple):
    """One file: its check over its parse, in seconds and as a ratio."""

    ratio: float
    checked: float
    parsed: float
    path: Path


def cost(command: Sequence[str]) -> Cost:
    """What a command costs, its children included. Its output is dropped."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2))


def python_files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*.py") if "site-packages" not in p.relative_to(folder).parts)


def parse(text: str) -> None:
    with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ast.parse(text)


def each(folder: Path) -> list[Slow]:
    """Every file of a folder, dearest first. Modules that it imports were read before, and no collection of what others
    left behind falls on it: the command looks for garbage between files only."""
    found = []
    project = Project(ModuleLoader(package_root(folder / "any.py")))
    gc.disable()
    for path in python_files(folder):
        with contextlib.suppress(files.FileProblem):
            text = files.read(path).text
            started = time.process_time()
            parse(text)
            parsed = time.process_time() - started
            check(Source(text, str(path)), project).close()
            started = time.process_time()
            check(Source(text, str(path)), project).close()
            checked = time.process_time() - started
            found.append(Slow(checked / max(parsed, 1e-4), checked, parsed, path))
            gc.collect(0)
    gc.enable()
    return sorted(found, reverse=True)


def main() -> None:
    models = Path(sysconfig.get_path("purelib")) / "transformers" / "models"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[models])
    parser.add_argument("--rounds", type=int, default=3, help="the cheapest of N rounds counts (default: 3)")
    parser.add_argument("--parse", action="store_true", help="parse the folders and do nothing else")
    options = parser.parse_args()
    for folder in options.folders:
        if options.parse:
            for path in python_files(folder):
                with contextlib.suppress(files.FileProblem):
                    parse(files.read(path).text)
            continue
        rounds = [(cost([*CHECK, str(folder)]), cost([*PARSE, str(folder)])) for _ in range(options.rounds)]
        checked, parsed = (min(c) for c in zip(*rounds, strict=True))
        print(f"{folder}: {len(python_files(folder))} files")
        ratio = checked.seconds / parsed.seconds
        print(
            f"  check {checked.seconds:.1f} s, parse {parsed.seconds:.1f} s: {ratio:.2f} times; {checked.memory:.0f} MB"
        )
        for slow in each(folder)[:10]:
            name = slow.path.relative_to(folder)
            print(f"  {slow.ratio:6.1f} times ({slow.checked:.3f} s over {slow.parsed:.4f} s)  {name}")


if __name__ == "__main__":
    main()
