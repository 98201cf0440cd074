"""The findings of files that are not open: made by `graphmend check` in a process of its own, which has its own
interpreter lock and the cache on disk, so that typing never waits for it. Knows no protocol.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import re
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import graphmend

log = logging.getLogger(__name__)

Findings = dict[str, list[dict[str, Any]]]
"""The items of `graphmend check --output-format json`, by absolute path."""

#: The child gets the server's own path before it imports anything: `python -m` would put the working folder in front,
#: and what lies in there could then be imported.
_PROGRAM = (
    "import sys; sys.path[:] = sys.argv.pop(1).split('\\n'); from graphmend.cli.main import main; sys.exit(main())"
)

_KEPT = ("code", "filename", "message", "severity", "location", "end_location")

#: What stands around the items of an array.
_BETWEEN = re.compile(r"[\s,\[\]]*")

#: Items that are read before anything else gets its turn.
_AT_A_TIME = 50

#: Changes come in bursts (a checkout, a "save all"); one check answers them all.
_SETTLE = 0.5


class Surroundings:
    """Keeps the findings of some folders up to date. `done` is called after each check that changed anything."""

    def __init__(self, done: Callable[[], None]) -> None:
        self._done = done
        self._findings: Findings = {}
        self._folders: tuple[tuple[Path, tuple[str, ...]], ...] = ()
        self._stale = asyncio.Event()
        self._first = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def findings(self) -> Findings:
        return self._findings

    async def ready(self) -> None:
        """Returns when the folders were checked once, or when there are none."""
        if self._folders:
            await self._first.wait()

    def watch(self, folders: Mapping[Path, tuple[str, ...]]) -> None:
        """The folders to check, each with options for the command; what was found in others is dropped."""
        wanted = tuple(sorted(folders.items()))
        if wanted == self._folders:
            return
        self._folders = wanted
        self.expire()
        if not wanted and self._findings:
            self._findings = {}
            self._done()

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
            found: Findings = {}
            for folder, options in self._folders:
                try:
                    items = await _check(folder, options)
                except OSError as error:  # no process to be had: what is open is still analysed
                    log.warning("the files below %s could not be checked: %s", folder, error)
                    continue
                for item in items:
                    found.setdefault(item["filename"], []).append(item)
            changed = found != self._findings
            self._findings = found
            self._first.set()
            if changed:
                self._done()


async def _check(folder: Path, options: tuple[str, ...]) -> list[dict[str, Any]]:
    """The findings below a folder; none, with a line in the log, where the command fails."""
    arguments = ["check", str(folder), "--output-format", "json", "--exit-zero", "--quiet", "--jobs", "1", *options]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        _PROGRAM,
        "\n".join(path for path in sys.path if path),
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=os.path.dirname(graphmend.__file__),
        **_nicely(),
    )
    try:
        output, errors = await process.communicate()
        if process.returncode == 0:
            return [item async for item in _items(output.decode("utf-8", "replace"))]
    except ValueError as error:
        errors = str(error).encode()
    finally:
        if process.returncode is None:
            process.kill()
    last = errors.decode("utf-8", "replace").strip().splitlines()[-1:] or ["no reason given"]
    log.warning("the files below %s could not be checked: %s", folder, last[0])
    return []


async def _items(text: str) -> AsyncIterator[dict[str, Any]]:
    """The items of an array, read one by one: of a large folder they are many megabytes, and somebody types meanwhile.
    Of each only what a diagnostic needs is kept."""
    decoder, end = json.JSONDecoder(), len(text)
    place = _BETWEEN.match(text).end()  # type: ignore[union-attr]
    number = 0
    while place < end:
        item, place = decoder.raw_decode(text, place)
        yield {name: item[name] for name in _KEPT}
        place = _BETWEEN.match(text, place).end()  # type: ignore[union-attr]
        number += 1
        if number % _AT_A_TIME == 0:
            await asyncio.sleep(0)


def _nicely() -> dict[str, Any]:
    """The child works when nobody else wants the processor."""
    return {"preexec_fn": lambda: os.nice(10)} if os.name == "posix" else {"creationflags": 0x4000}  # below normal
