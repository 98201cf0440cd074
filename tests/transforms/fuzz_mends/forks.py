"""Runs a function in a fork of this process, so that nothing it does is seen by the next one."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

#: seconds of work that one program may take for all of its inputs: an endless loop is cut, nothing is timed. Twenty
#: calls of torch's loop operator in plain Python, which compiles anew for each (torch 2.13), take 15 on a slow core.
LIMIT = 60
#: how many times as long it may wait, on a machine that is busy
_PATIENCE = 10


def forked(function: Callable[..., Any], *arguments: Any, seconds: int = LIMIT) -> Any:
    """What `function` gives, through JSON, as {"ok": ...}; or {"failed": why}."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        _answer(write, seconds, function, arguments)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return json.loads(said) if said else {"failed": "time, or a crash"}


def _answer(write: int, seconds: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    gc.disable()
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(1)  # OpenMP's threads do not survive a fork: whoever waits for them waits forever
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    for alarm in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(alarm, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.alarm(seconds * _PATIENCE)
    try:
        answer = {"ok": function(*arguments)}
    except BaseException as error:
        answer = {"failed": f"{type(error).__name__}: {str(error)[:300]}"}
    with os.fdopen(write, "w", encoding="utf-8") as pipe:
        json.dump(answer, pipe)
    os._exit(0)
