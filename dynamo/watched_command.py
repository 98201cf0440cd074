"""Runs any command and tells what TorchDynamo did in it and in its children, without changing the program."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graphmend.dynamo.report import Break, Recompile, break_, gathered, recompile

HOOK = Path(__file__).parent / "worker" / "hook"


@dataclass(frozen=True, slots=True)
class Watched:
    """What was seen. `processes` counts those that used Dynamo; `problem` says in one line why something is missing."""

    command: tuple[str, ...]
    status: int | None
    problem: str | None = None
    processes: int = 0
    graphs: int = 0
    breaks: tuple[Break, ...] = ()
    recompiles: tuple[Recompile, ...] = ()
    known: int = 0
    """How many more breaks there are that a baseline knows."""


def run(
    command: Sequence[str], *, timeout: float | None = None, quiet: bool = False, cwd: str | None = None
) -> Watched:
    """Runs `command` to its end. With `quiet`, what it prints goes to standard error, for standard output is ours."""
    program = shutil.which(command[0])
    if program is None:
        return Watched(tuple(command), None, f"the command {command[0]} does not exist or cannot be run")
    with tempfile.TemporaryDirectory(prefix="graphmend-watch-") as folder:
        status, problem = _run([program, *command[1:]], _environment(folder, cwd), timeout, quiet, cwd)
        seen = _collect(Path(folder))
        return replace(seen, command=tuple(command), status=status, problem=problem or seen.problem)


def _environment(folder: str, cwd: str | None) -> Mapping[str, str]:
    path = os.environ.get("PYTHONPATH")
    return {
        **os.environ,
        "PYTHONPATH": str(HOOK) + (os.pathsep + path if path else ""),
        "GRAPHMEND_WATCH": folder,
        "GRAPHMEND_WATCH_ROOTS": os.path.abspath(cwd or os.getcwd()),
    }


def _run(
    command: Sequence[str], environment: Mapping[str, str], timeout: float | None, quiet: bool, cwd: str | None
) -> tuple[int | None, str | None]:
    try:
        done = subprocess.run(
            command, env=environment, timeout=timeout, stdout=2 if quiet else None, cwd=cwd, check=False
        )
    except subprocess.TimeoutExpired:
        return None, f"{command[0]} did not end in the time allowed"
    except OSError as error:
        return None, f"{command[0]} cannot be started: {error}"
    if done.returncode == 0:
        return 0, None
    how = f"was ended by signal {-done.returncode}" if done.returncode < 0 else f"ended with status {done.returncode}"
    return done.returncode, f"{os.path.basename(command[0])} {how}"


#: recompilations that are kept one by one while files are read
MOST_AT_ONCE = 1000


def _collect(folder: Path) -> Watched:
    """Puts the files of all processes together; a break at one place counts as one, with how often it happened."""
    breaks: dict[tuple[Any, ...], Break] = {}
    recompiles: list[Recompile] = []
    graphs = 0
    blind: str | None = None
    files = sorted(folder.glob("*.jsonl"))
    for file in files:
        for kind, item in _lines(file):
            if kind == "break":
                found = break_({**item, "count": 1})
                key = (found.path, found.span.line, found.span.column, found.gb_type)
                known = breaks.get(key)
                breaks[key] = found if known is None else replace(known, count=known.count + 1)
            elif kind == "recompile":
                recompiles.append(recompile(item))
                if len(recompiles) > MOST_AT_ONCE:  # of a program that runs for long
                    recompiles = list(gathered(recompiles))
            elif kind == "graph":
                graphs += 1
            elif kind == "blind":
                blind = item
    return Watched((), None, blind, len(files), graphs, tuple(breaks.values()), gathered(recompiles))


def _lines(file: Path) -> Iterator[tuple[str, Any]]:
    """The events of a process; a line that was cut off by its end is left out."""
    for line in file.read_text("ascii", "replace").splitlines():
        try:
            yield from json.loads(line).items()
        except ValueError:
            continue
