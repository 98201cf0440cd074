"""One worker process as we see it: its handshake, its messages, its end.

Knows the worker's protocol and nothing of reports.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

PROTOCOL = 1
MAIN = Path(__file__).parent / "worker" / "main.py"
FORK = sys.platform not in ("win32", "darwin")
"""Windows has no fork, and frameworks of macOS do not survive one: each check is then a fresh process."""
START_SECONDS = 120.0
GRACE_SECONDS = 5.0
"""How much longer than the worker we wait before we end it ourselves."""
LONGEST_LINE = 256 * 1024 * 1024
ERRORS_KEPT = 16 * 1024


class Unavailable(Exception):
    """No check can run in this interpreter; the message says why in one line."""


class WorkerDied(Exception):
    """The worker's own process ended; a new one may do better."""


class Handshake(NamedTuple):
    python: str
    torch: str
    cuda: str | None
    executable: str
    fork: bool


class _Job:
    """A check that is under way: who waits for it, and what it said so far."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self.tell = tell
        self.begun: dict[str, Any] = {}
        self.targets: list[dict[str, Any]] = []
        self.tried: dict[str, str] = {}
        """What was tried so far, in words with and without those of the checked code."""

    def take(self, message: dict[str, Any]) -> None:
        if self.answer.done():
            return
        if "end" in message:
            self.answer.set_result(message)
        elif "target" in message:
            self.targets.append(message["target"])
        elif "begun" in message:
            self.begun = message["begun"]
        elif "tried" in message:
            self.tried = message["tried"]
        else:
            self.tell(message["stage"])

    def whole(self, found: dict[str, Any]) -> dict[str, Any]:
        """The last message with the targets; one that was not done says why, and those after it that they wait."""
        if "result" in found:
            return {**found, "result": {**found["result"], "targets": self.targets}}
        missing = self.begun.get("names", ())[len(self.targets) :]
        if not missing or not self.targets:
            return found
        why = found.get("problem") or "the check was cancelled"
        other = f"not checked: the check ended with {missing[0]}"
        reasons = [(why, found.get("bare", why)), *([(other, other)] * (len(missing) - 1))]
        failed = [
            {"name": name, "status": "failed", "problem": f"{name}: {said}", "bare": f"{name}: {bare}"}
            for name, (said, bare) in zip(missing, reasons, strict=True)
        ]
        return {**found, "result": {**self.begun, "targets": [*self.targets, *failed]}}


class WorkerProcess:
    """A worker that has said hello. Where it can fork it takes many checks, else one (and must be started anew)."""

    def __init__(
        self, process: asyncio.subprocess.Process, hello: Handshake, errors: asyncio.Task[bytes], once: bool
    ) -> None:
        self.hello = hello
        self.memory: int | None = None
        """Bytes that the warm parent occupies, once it is warm."""
        self.once = once
        self._process = process
        self._errors = errors
        self._waiting: dict[int, _Job] = {}
        self._numbers = 0
        self._torch = torch_stamp(hello.executable)
        self._packages: dict[str, object] = {}
        self._warm = asyncio.Event()
        """Set once it takes checks, or has ended."""
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, interpreter: str, fork: bool = FORK) -> WorkerProcess:
        """Starts the worker in an interpreter; raises `Unavailable`. Without `fork` it takes one check."""
        program = shutil.which(interpreter)
        if program is None:
            raise Unavailable(f"the interpreter {interpreter} does not exist or cannot be run")
        try:
            process = await asyncio.create_subprocess_exec(
                program,
                str(MAIN),
                *([] if fork else ["--once"]),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=LONGEST_LINE,
                start_new_session=True,
            )
        except OSError as error:
            raise Unavailable(f"the interpreter {interpreter} cannot be started: {error}") from error
        errors = asyncio.create_task(_tail(process.stderr))
        try:
            return cls(process, await cls._hello(interpreter, process, errors), errors, not fork)
        except BaseException:
            await _end_and_drain(process, errors)
            raise

    @staticmethod
    async def _hello(interpreter: str, process: asyncio.subprocess.Process, errors: asyncio.Task[bytes]) -> Handshake:
        assert process.stdout is not None
        try:
            line = await asyncio.wait_for(process.stdout.readline(), START_SECONDS)
            hello = json.loads(line)
            if hello["hello"] != PROTOCOL:
                raise ValueError
        except asyncio.TimeoutError:
            raise Unavailable(f"{interpreter} did not import torch within {START_SECONDS:.0f} seconds") from None
        except (ValueError, KeyError, TypeError):
            status = await process.wait() if process.stdout.at_eof() else None
            last = (await errors).decode("utf-8", "replace").strip().splitlines()[-1:] if status is not None else []
            said = f": {last[0]}" if last else ""
            raise Unavailable(f"{interpreter} is not a Python that can run checks{said}") from None
        if hello["problem"]:
            raise Unavailable(hello["problem"])
        return Handshake(hello["python"], hello["torch"], hello["cuda"], hello["executable"], hello["fork"])

    @property
    def alive(self) -> bool:
        return self._process.returncode is None and not self._reader.done()

    def outdated(self) -> bool:
        """Whether torch, or a package that this process imported with it, was changed on disk since."""
        if self._torch != torch_stamp(self.hello.executable):
            return True
        return any(stamp != _stamp(path) for path, stamp in self._packages.items())

    def next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    async def check(self, job: dict[str, Any], tell: Callable[[str], None]) -> dict[str, Any]:
        """The worker's last message about a job. Raises `WorkerDied`; ends the job where the caller is cancelled."""
        number = job["id"]
        waiting = self._waiting[number] = _Job(tell)
        try:
            await self._send(job)
            if not self.once:  # its start is no part of the time that a check may take
                await asyncio.wait_for(self._warm.wait(), START_SECONDS)
            found = await asyncio.wait_for(waiting.answer, job["timeout"] + (0.0 if self.once else GRACE_SECONDS))
            if self.once:
                found["output"] = (await self._errors).decode("utf-8", "replace")
            return waiting.whole(found)
        except asyncio.TimeoutError:
            self.kill()
            late = "no answer in the time allowed"
            said, bare = (f"{late}: {waiting.tried[k]}" if waiting.tried else late for k in ("said", "bare"))
            return waiting.whole({"problem": said, "bare": bare, "end": "timeout"})
        except asyncio.CancelledError:
            self._cancel(number)
            raise
        except WorkerDied as error:
            if not self.once:
                raise
            return waiting.whole({"problem": str(error), "end": "died"})  # the process was the check's own
        finally:
            self._waiting.pop(number, None)

    def _cancel(self, number: int) -> None:
        if self.once:
            self.kill()
        elif self.alive and self._process.stdin is not None:
            self._process.stdin.write(_line({"cancel": number}))

    async def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        if not self.alive:
            raise WorkerDied(await self._reason())
        try:
            self._process.stdin.write(_line(message))
            await self._process.stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            raise WorkerDied(await self._reason()) from None

    async def _read(self) -> None:
        """Hands messages to whoever waits for them, until the worker ends."""
        assert self._process.stdout is not None
        try:
            while line := await self._process.stdout.readline():
                message = json.loads(line)
                if "warm" in message:
                    self.memory = message["memory"]
                    self._warm.set()
                    self._packages = {path: _stamp(path) for path in message["files"]}
                    continue
                if message["id"] in self._waiting:
                    self._waiting[message["id"]].take(message)
        finally:
            self._warm.set()
            if self._waiting:
                error = WorkerDied(await self._reason())
                for job in self._waiting.values():
                    if not job.answer.done():
                        job.answer.set_exception(error)

    async def _reason(self) -> str:
        status = await self._process.wait()
        last = (await self._errors).decode("utf-8", "replace").strip().splitlines()[-1:]
        how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        return f"the worker in {self.hello.executable} {how}" + (f": {last[0]}" if last else "")

    def kill(self) -> None:
        """Ends the process; its checks end with it."""
        _end(self._process)

    async def close(self) -> None:
        """Ends the process and waits for that."""
        if self._process.stdin is not None:
            self._process.stdin.close()  # the parent ends its checks, then itself
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._process.wait(), 1.0)
        await _end_and_drain(self._process, self._reader, self._errors)


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode("ascii") + b"\n"


def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


async def _end_and_drain(process: asyncio.subprocess.Process, *readers: asyncio.Task[Any]) -> None:
    """Ends a process and reads its pipes to the end: asyncio keeps an unread one open beyond the loop's life."""
    _end(process)
    if process.stdin is not None:
        process.stdin.close()
    with contextlib.suppress(asyncio.TimeoutError, ValueError):
        await asyncio.wait_for(asyncio.gather(*readers, return_exceptions=True), GRACE_SECONDS)
        if process.stdout is not None:
            await asyncio.wait_for(process.stdout.read(), GRACE_SECONDS)
    await process.wait()


async def _tail(stream: asyncio.StreamReader | None) -> bytes:
    """Reads to the end and keeps the last of it."""
    assert stream is not None
    kept = b""
    while data := await stream.read(1 << 16):
        kept = (kept + data)[-ERRORS_KEPT:]
    return kept


def torch_stamp(executable: str) -> tuple[str, int] | None:
    """Changes when another torch is installed for an interpreter. Looks in its site-packages; a torch elsewhere is
    not watched.
    """
    prefix = Path(executable).parent.parent
    for pattern in ("lib/python3*/site-packages/torch/version.py", "Lib/site-packages/torch/version.py"):
        for version in sorted(prefix.glob(pattern)):
            with contextlib.suppress(OSError):
                return str(version), version.stat().st_mtime_ns
    return None


def _stamp(path: str) -> object:
    """Changes when a file is replaced; None where it is gone."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
