"""The loop of the warm parent: forks for each check, reads what the forks say and print, ends them in time.

It is single-threaded, runs none of the user's code and never touches CUDA: that is what makes the fork sound.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from . import limits
from .channel import LineBuffer, Message, send

POLL_SECONDS = 0.1
STRAYS_SECONDS = 0.2
LAST_SECONDS = 2.0
"""How long the end of a check is waited for, which gives back as much memory as it had: what it used is told then."""
SHUT_OUT = 113
"""Exit status of a check that could not give its answer."""
FIRST_DESCRIPTOR = 900
"""Where a check's own descriptor goes: out of the way of code that closes all low ones."""
OUTPUT_KEPT = 64 * 1024
"""Bytes kept of the beginning, and again of the end, of what a check prints."""


class Capture:
    """What a check printed: the beginning and the end of it."""

    def __init__(self) -> None:
        self.head = bytearray()
        self.tail = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = OUTPUT_KEPT - len(self.head)
        self.head += data[:room]
        self.tail = (self.tail + data[max(room, 0) :])[-OUTPUT_KEPT:]

    def text(self) -> str:
        dropped = self.total - len(self.head) - len(self.tail)
        gap = f"\n[... {dropped} bytes left out ...]\n".encode() if dropped > 0 else b""
        return (bytes(self.head) + gap + bytes(self.tail)).decode("utf-8", "replace")


class Child:
    """One forked check."""

    def __init__(self, job: Message, pid: int, answers: int, output: int) -> None:
        self.number: int = job["id"]
        self.pid = pid
        self.answers = answers
        self.output = output
        self.lines = LineBuffer()
        self.captured = Capture()
        self.deadline = time.monotonic() + float(job["timeout"])
        self.result: Message | None = None
        self.status: int | None = None
        self.usage: tuple[float, int] | None = None
        """Seconds of processor time and bytes of memory, once it has ended."""
        self.stage = "starting"
        self.tried: Message = {}
        """What was tried so far in this stage, in words with and without those of the checked code."""
        self.answers_open = self.output_open = True

    def ended(self) -> bool:
        """Whether the process itself is gone. Its status is collected once."""
        if self.status is None:
            try:
                pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid:
                self.status = status
                self.usage = usage.ru_utime + usage.ru_stime, usage.ru_maxrss * limits.RSS_UNIT
        return self.status is not None

    def kill(self) -> None:
        """Ends the process and its group; the group may outlive the process."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        if self.status is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, signal.SIGKILL)


class Parent:
    """The loop over requests, answers, output and deadlines."""

    def __init__(self, requests: int, answers: int, run_job: Callable[[Message, int], Message]) -> None:
        self.run_job = run_job
        self.requests = requests
        self.answers = answers
        self.lines = LineBuffer()
        self.children: dict[int, Child] = {}
        self.selector = selectors.DefaultSelector()
        self.selector.register(requests, selectors.EVENT_READ, None)
        self.open = True
        self.tasks = 0
        """Processes and threads of the whole system before the first of the checks that run now."""

    def run(self) -> None:
        limits.adopt_orphans()
        while self.open:
            for key, _ in self.selector.select(self._wait()):
                if key.data is None:
                    self._read_requests()
                else:
                    child, what = key.data
                    self._read_child(child, what)
            self._expire()
        for child in list(self.children.values()):
            child.kill()

    def _wait(self) -> float | None:
        if not self.children:
            return None
        return min(POLL_SECONDS, max(0.0, min(c.deadline for c in self.children.values()) - time.monotonic()))

    def _read_requests(self) -> None:
        data = os.read(self.requests, 1 << 16)
        if not data:
            self.open = False
            return
        for message in self.lines.feed(data):
            if "cancel" in message:
                child = self.children.get(message["cancel"])
                if child is not None:
                    child.kill()
                    self._end(child, "cancelled")
            else:
                self._start(message)

    def _start(self, job: Message) -> None:
        if not self.children:
            self.tasks = limits.tasks()
        answers_read, answers_write = os.pipe()
        output_read, output_write = os.pipe()
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            for descriptor in (answers_read, answers_write, output_read, output_write):
                os.close(descriptor)
            send(self.answers, {"id": job["id"], "end": "failed", "problem": f"no process could be started: {error}"})
            return
        if pid == 0:
            self._be_child(job, parent, answers_write, output_write, (answers_read, output_read))
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)  # the child does the same; whoever comes first
        os.close(answers_write)
        os.close(output_write)
        child = Child(job, pid, answers_read, output_read)
        self.children[child.number] = child
        for descriptor, what in ((answers_read, "answers"), (output_read, "output")):
            os.set_blocking(descriptor, False)
            self.selector.register(descriptor, selectors.EVENT_READ, (child, what))

    def _be_child(self, job: Message, parent: int, answers: int, output: int, close: tuple[int, int]) -> None:
        """Never returns."""
        status = 1
        try:
            os.setpgid(0, 0)
            limits.die_with_parent(parent)
            self.selector.close()
            for descriptor in (*close, self.requests, self.answers):
                os.close(descriptor)
            for other in self.children.values():
                for descriptor, is_open in ((other.answers, other.answers_open), (other.output, other.output_open)):
                    if is_open:
                        os.close(descriptor)
            answers = out_of_the_way(answers)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.close(output)
            limits.apply(float(job["timeout"]) * (os.cpu_count() or 1), job.get("memory"))
            result = self.run_job(job, answers)
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(BaseException):
                    stream.flush()
            status = SHUT_OUT
            send(answers, {"result": result})
            status = 0
        finally:
            os._exit(status)

    def _read_child(self, child: Child, what: str) -> None:
        is_open, descriptor = (
            (child.answers_open, child.answers) if what == "answers" else (child.output_open, child.output)
        )
        if not is_open:  # the other event of the same round ended the child
            return
        try:
            data = os.read(descriptor, 1 << 16)
        except BlockingIOError:
            return
        if not data:
            self._close(child, what)
            if what == "answers":
                self._finish(child)
        elif what == "output":
            child.captured.add(data)
        else:
            self._take(child, data)

    def _take(self, child: Child, data: bytes) -> None:
        """What a check says of itself."""
        try:
            messages = child.lines.feed(data)
        except ValueError:
            self._end(child, "died", f"the checked code wrote into the check's own files while {child.stage}")
            return
        for message in messages:
            if "result" in message:
                child.result = message["result"]
                self._end(child, "done")  # what it started may hold its descriptors open: no waiting for their end
                return
            if "tried" in message:
                child.tried = message["tried"]
                continue
            if "stage" in message:
                child.stage, child.tried = message["stage"], {}
            send(self.answers, message)

    def _close(self, child: Child, what: str) -> None:
        if what == "answers" and child.answers_open:
            child.answers_open = False
            self.selector.unregister(child.answers)
            os.close(child.answers)
        elif what == "output" and child.output_open:
            child.output_open = False
            self.selector.unregister(child.output)
            os.close(child.output)

    def _finish(self, child: Child) -> None:
        """The child gives no further answer: something ended it."""
        status = self._wait_briefly(child)
        if status is None or (os.WIFEXITED(status) and os.WEXITSTATUS(status) == SHUT_OUT):
            problem = f"the checked code closed the check's own files while {child.stage}"
        elif os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            try:
                name = signal.Signals(number).name
            except ValueError:
                name = f"signal {number}"
            told = {"SIGXCPU": " (used more processor time than allowed)", "SIGKILL": " (perhaps out of memory)"}
            problem = f"the check was ended by {name}{told.get(name, '')} while {child.stage}"
        else:
            problem = f"the checked code ended the process (exit status {os.WEXITSTATUS(status)}) while {child.stage}"
        self._end(child, "died", problem)

    def _wait_briefly(self, child: Child) -> int | None:
        """The exit status of a child that is about to end; None where it still runs after a moment."""
        for _ in range(20):
            if child.ended():
                break
            time.sleep(0.005)
        return child.status

    def _expire(self) -> None:
        """Ends what took too long; and what ended by itself while its own children hold its descriptors open."""
        now = time.monotonic()
        for child in list(self.children.values()):
            if child.ended():
                self._read_child(child, "answers")
                if child.number in self.children:
                    self._finish(child)
            elif now >= child.deadline:
                late = f"no answer in the time allowed, while {child.stage}"
                said, bare = (f"{late}: {child.tried[k]}" if child.tried else late for k in ("said", "bare"))
                self._end(child, "timeout", said, bare)
        self._stop_bombs()

    def _stop_bombs(self) -> None:
        """Ends checks that start processes without end. A limit of the system's own would count all of a user's
        processes, and none of root's.
        """
        grown = limits.tasks() - self.tasks
        if not self.children or grown < limits.PROCESSES:
            return
        counts = limits.of_groups({child.pid for child in self.children.values()})
        for child in list(self.children.values()):
            if counts[child.pid] > limits.PROCESSES:
                self._end(child, "died", f"more than {limits.PROCESSES} processes at once, while {child.stage}")

    def _end(self, child: Child, how: str, problem: str | None = None, bare: str | None = None) -> None:
        """Drains what is there, ends the whole group, reaps, and tells."""
        if child.output_open:
            try:
                for _ in range(64):
                    data = os.read(child.output, 1 << 16)
                    if not data:
                        break
                    child.captured.add(data)
            except OSError:
                pass
        child.kill()
        self._close(child, "answers")
        self._close(child, "output")
        del self.children[child.number]
        self._reap(child)
        answer: dict[str, Any] = {"id": child.number, "end": how, "output": child.captured.text(), "usage": child.usage}
        if problem is not None:
            answer.update(problem=problem, bare=bare or problem)
        if child.result is not None:
            answer["result"] = child.result
        send(self.answers, answer)

    def _reap(self, last: Child) -> None:
        """Collects ended processes, and ends those that left their group: they were handed to this process as
        orphans.
        """
        alive = {child.pid for child in self.children.values()}
        began = time.monotonic()
        while time.monotonic() - began < (STRAYS_SECONDS if last.ended() else LAST_SECONDS):
            for pid in own_children() - alive:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            strays = own_children() - alive
            if last.ended():
                strays.discard(last.pid)
            for pid in strays - {last.pid}:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            if not strays:
                return
            time.sleep(0.002)


def out_of_the_way(descriptor: int) -> int:
    """The same pipe under a high number; as it is where the system allows none."""
    import fcntl

    try:
        moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR)
    except (OSError, ValueError):
        return descriptor
    os.close(descriptor)
    return moved


def own_children() -> set[int]:
    """Processes whose parent is this one (Linux; empty elsewhere)."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as table:
            return {int(pid) for pid in table.read().split()}
    except (OSError, ValueError):
        return set()
