"""A plain and a mended process of one row that take turns: what bench/speed.py measures once, as data."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
ARMS = ("plain", "mended")
#: where the models' code lies
_PACKAGES = ("--mend", "transformers", "--mend", "chronos")
#: one row at a time makes calls, where several are measured at once
_CALLS = threading.Lock()
#: seconds of calls in one turn: short enough that other programs disturb both arms alike
_TURN = 0.25


def _alone(cache: Path) -> dict[str, str]:
    """The environment of an arm: one thread, its own cache of what is compiled."""
    one = {"TORCHINDUCTOR_COMPILE_THREADS": "1", "OMP_NUM_THREADS": "1"}
    return os.environ | one | {"TORCHINDUCTOR_CACHE_DIR": str(cache)}


def prepare(cache: Path, backend: str, limit: float) -> None:
    """Begins a cache with what the first compilation on a machine leaves in it, so that no arm pays for that."""
    command = [sys.executable, str(HERE / "speed_arm.py"), "--prepare", backend]
    with contextlib.suppress(subprocess.TimeoutExpired):  # where it fails, so does every arm, and says why
        subprocess.run(command, env=_alone(cache), cwd=HERE.parent, stderr=subprocess.DEVNULL, timeout=limit)


class Failed(Exception):
    """An arm raised, ended or took too long; the message is one line."""


class Settings(NamedTuple):
    size: str
    device: str
    backend: str
    turns: int
    safe: bool
    limit: float
    """Seconds on the clock in which an answer must come."""
    prepared: Path
    """A cache that each arm begins with."""


class Arm:
    """A process that has compiled a row and waits for its turns."""

    def __init__(self, row: str, settings: Settings, folder: Path, *, mended: bool) -> None:
        self._name, self._limit = ARMS[mended], settings.limit
        self._log = folder / f"{self._name}.log"
        unsafe = [] if settings.safe else ["--unsafe"]
        run = ["-m", "graphmend", "run", *unsafe, *_PACKAGES, "--report", str(folder / "report.json")]
        asked = [row, settings.size, settings.device, settings.backend]
        command = [sys.executable, *(run if mended else ()), str(HERE / "speed_arm.py"), *asked]
        cache = folder / f"inductor-{self._name}"
        if settings.prepared.is_dir():
            shutil.copytree(settings.prepared, cache)
        alone = _alone(cache)
        with self._log.open("w") as log:
            ends = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": log}
            self._process = subprocess.Popen(command, env=alone, cwd=HERE.parent, **ends)
        try:
            self.compiled = self._answer()
        except BaseException:
            self.end()
            raise

    def ask(self, command: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{command}\n".encode())
            self._process.stdin.flush()
        except OSError as error:
            raise Failed(f"{self._name}: {self._last_words()}") from error
        return self._answer()

    def end(self) -> None:
        """Ends the process, also where it still compiles."""
        self._process.kill()
        self._process.communicate()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        stream, until, line = self._process.stdout.fileno(), time.monotonic() + self._limit, b""
        while not line.endswith(b"\n"):
            left = until - time.monotonic()
            if left <= 0 or not select.select([stream], [], [], left)[0]:
                raise Failed(f"{self._name}: no answer within {self._limit:.0f} s")
            part = os.read(stream, 65536)
            if not part:
                raise Failed(f"{self._name}: {self._last_words()}")
            line += part
        found: dict[str, Any] = json.loads(line)
        return found

    def _last_words(self) -> str:
        status = self._process.wait()
        text = self._log.read_text("utf-8", "replace")
        # an exception's line stands at the margin, below the frames; where it ends with a colon, the next one says more
        raised = re.findall(r"^ .*\n((?:\w+\.)*[A-Z]\w*(?:: .*?:\n.*|: .*|))$", text, re.MULTILINE)
        lines = raised or [line for line in text.splitlines() if line.strip()]
        return " ".join((lines or [f"ended with {status}"])[-1].split())[:250]


def measured(row: str, settings: Settings, first: int) -> dict[str, Any]:
    """One repeat: both arms compile, one after the other, and then make calls in turns; `first` begins."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as ends:
        folder = Path(name)
        order = (first % 2, 1 - first % 2)
        arms: dict[int, Arm] = {}
        for mended in order:
            arms[mended] = Arm(row, settings, folder, mended=bool(mended))
            ends.callback(arms[mended].end)
        ends.enter_context(_CALLS)
        once = [arms[mended].ask("turn 2")["call"][0] for mended in order]  # the first arm has slept for long
        calls = max(1, round(_TURN / max(*once, 1e-4)))
        turns = []
        for number in range(settings.turns):
            turn = {
                mended: arms[mended].ask(f"turn {calls}")["call"] for mended in (order if number % 2 else order[::-1])
            }
            turns.append([turn[0], turn[1]])
        found: dict[str, Any] = {name: arms[mended].compiled for mended, name in enumerate(ARMS)}
        if settings.device.startswith("cuda"):
            for mended, name in enumerate(ARMS):
                found[name] |= arms[mended].ask("profile")
        files = [folder / f"{name}.pt" for name in ARMS]
        for mended, file in enumerate(files):
            arms[mended].ask(f"outputs {file}")
        return found | {"calls": calls, "turns": turns, "equal": _verdict(*files)}


def _verdict(plain: Path, mended: Path) -> str:
    """Do both arms answer what the unmended model answers eagerly? In words."""
    import torch
    from paper_table import equal

    one, other = (torch.load(file) for file in (plain, mended))
    halves = any(tensor.itemsize == 2 for outputs in one["eager"] for tensor in outputs)
    tolerance = 2e-2 if halves else 2e-3  # what is added up in another order is rounded otherwise
    same = [equal(one["eager"], each, tolerance) for each in (other["eager"], other["compiled"], one["compiled"])]
    if all(same):
        return "equal"
    if equal(one["compiled"], other["compiled"], tolerance):
        return "as plain"  # the compiler itself differs from eager, mended or not
    return "differs" if same[2] else "both differ"
