"""The findings of files that are not open: made by `graphmend check` in a process of its own, which has its own
interpreter lock and the cache on disk, so that typing never waits for it. Knows no protocol.

What it finds comes file by file, so it can be shown long before a large folder is done.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol

import graphmend

log = logging.getLogger(__name__)

Findings = dict[str, list[dict[str, Any]]]
"""The items of `graphmend check --output-format json-lines`, by absolute path."""

#: The child gets the server's own path before it imports anything: `python -m` would put the working folder in front,
#: and what lies in there could then be imported. Its standard input ends with the server, however that ends.
_PROGRAM = """
import os, sys, threading
sys.path[:] = sys.argv.pop(1).split("\\n")
threading.Thread(target=lambda: os.read(0, 1) or os._exit(1), daemon=True).start()
from graphmend.cli.main import main
sys.exit(main())
"""

_KEPT = ("code", "message", "severity", "location", "end_location")

#: The findings of one file take a line.
_LONGEST_LINE = 64 * 1024 * 1024

#: Changes come in bursts (a checkout, a "save all"); one check answers them all.
_SETTLE = 0.5


class Told(Protocol):
    """Hears how far a check has come."""

    def tell(self, message: str, percentage: int | None = None) -> None: ...


class WorkspaceCheck:
    """Keeps the findings of some folders up to date.

    `came` is called for each file whose findings changed, `done` after each check that changed any. `progress` shows a
    check of a folder while it runs; what it is given ends that check.
    """

    def __init__(
        self,
        came: Callable[[str], None],
        done: Callable[[], None],
        progress: Callable[[Path, Callable[[], object]], AbstractAsyncContextManager[Told]],
    ) -> None:
        self._came = came
        self._done = done
        self._progress = progress
        self._findings: Findings = {}
        self._folders: dict[Path, tuple[str, ...]] = {}
        self._stale = asyncio.Event()
        self._first = asyncio.Event()
        self._news = asyncio.Event()
        self._changed = False
        self._noted: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    @property
    def findings(self) -> Findings:
        """What is known by now. Files without findings are left out."""
        return self._findings

    async def each(self) -> AsyncIterator[str]:
        """The files with findings, as these become known, until the folders were checked once."""
        told: set[str] = set()
        while True:
            news, last = self._news, self._first.is_set() or not self._folders
            for path in [path for path in self._findings if path not in told]:
                told.add(path)
                yield path
            if last:
                return
            await news.wait()

    def watch(self, folders: Mapping[Path, tuple[str, ...]]) -> None:
        """The folders to check, each with options for the command; what was found in others is dropped."""
        if dict(folders) == self._folders:
            return
        self._folders = dict(folders)
        for path in [path for path in self._findings if self._folder_of(path) is None]:
            self._take(path, [])
        self._tell_all()
        self.expire()

    def expire(self) -> None:
        """Files changed: check again, soon."""
        if not self._folders:
            return
        self._stale.set()
        if self._task is None:
            self._task = asyncio.ensure_future(self._work())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _work(self) -> None:
        while True:
            await self._stale.wait()
            await asyncio.sleep(_SETTLE if self._first.is_set() else 0)
            self._stale.clear()
            for folder, options in list(self._folders.items()):
                try:
                    await self._check(folder, options)
                except Exception as error:  # no process to be had, say: what is open is still analysed
                    log.warning("the files below %s could not be checked: %s", folder, error)
            self._first.set()
            self._tell_all()

    async def _check(self, folder: Path, options: tuple[str, ...]) -> None:
        """Takes in the findings below a folder; where the command fails, those that it had are left as they were."""
        seen: set[str] = set()
        told = -1
        async with _Run(folder, options) as run, self._progress(folder, run.stop) as progress:
            async for line in run.lines():
                path, checked, files = line["filename"], line["checked"], line["files"]
                seen.add(path)
                if self._folder_of(path) == folder:  # a folder inside has its own settings
                    self._take(path, [{name: item[name] for name in _KEPT} for item in line["items"]])
                for note in line["notes"]:
                    self._note(note)
                if (percentage := checked * 100 // files) != told:
                    told = percentage
                    progress.tell(f"{checked} of {files} files", percentage)
            if run.complete:
                for path in [path for path in self._findings if path not in seen and self._folder_of(path) == folder]:
                    self._take(path, [])

    def _note(self, note: str) -> None:
        """A remark on a file, which is the same in each check."""
        if note not in self._noted:
            self._noted.add(note)
            log.info("%s", note)

    def _take(self, path: str, items: list[dict[str, Any]]) -> None:
        if self._findings.get(path, []) == items:
            return
        if items:
            self._findings[path] = items
        else:
            del self._findings[path]
        self._changed = True
        self._came(path)
        self._tell_news()

    def _folder_of(self, path: str) -> Path | None:
        """The innermost of the folders around a file."""
        around = Path(path).parents
        return max((f for f in self._folders if f in around), key=lambda f: len(f.parts), default=None)

    def _tell_news(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    def _tell_all(self) -> None:
        self._tell_news()
        if self._changed:
            self._changed = False
            self._done()


class _Run:
    """One run of the command on a folder, which ends with this context."""

    def __init__(self, folder: Path, options: tuple[str, ...]) -> None:
        self._folder = folder
        self._options = options
        self._process: asyncio.subprocess.Process
        self._stopped = False
        self.complete = False
        """Whether all files were told of."""

    async def __aenter__(self) -> _Run:
        fixed = ("--output-format", "json-lines", "--exit-zero", "--quiet", "--jobs", "1")
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            _PROGRAM,
            "\n".join(path for path in sys.path if path),
            *("check", str(self._folder), *fixed, *self._options),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=os.path.dirname(graphmend.__file__),
            limit=_LONGEST_LINE,
            **_nicely(),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._stopped = True
        if self._process.returncode is None:
            self._process.kill()

    async def lines(self) -> AsyncIterator[dict[str, Any]]:
        """What the command tells of each file; where it fails, its last words go to the log."""
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        words = asyncio.ensure_future(_last_line(self._process.stderr))
        left = None
        try:
            async for line in self._process.stdout:
                told = json.loads(line)
                left = told["files"] - told["checked"]
                yield told
                await asyncio.sleep(0)  # from the cache thousands come at once, and somebody types meanwhile
            said, status = await words, await self._process.wait()
        finally:
            words.cancel()
        self.complete = status == 0 or left == 0  # where a file does not parse, the status is 2
        if not self.complete and not self._stopped:
            log.warning("the files below %s could not be checked: %s", self._folder, said or "no reason given")


async def _last_line(stream: asyncio.StreamReader) -> str:
    last = b""
    async for line in stream:
        last = line
    return last.decode("utf-8", "replace").strip()


def _nicely() -> dict[str, Any]:
    """The child works when nobody else wants the processor."""
    return {"preexec_fn": lambda: os.nice(10)} if os.name == "posix" else {"creationflags": 0x4000}  # below normal
