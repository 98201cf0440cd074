"""Breaks a graph on purpose and looks whether the recorder sees it, before any check relies on it."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import torch
import torch._dynamo

from .. import versions
from ..recording.recorder import Recorder

GRAPHS = 3
BROKEN = ('print("breaks")', "if y.sum() > 0:")
"""What each break stands in, in order."""

failure: str | None = None
"""What is wrong, once `run` has found something."""


def breaking(x: Any) -> Any:
    y = x + 1
    print("breaks")
    if y.sum() > 0:
        y = y * 2
    return y - 1


def run() -> str | None:
    """What a check with this torch would have to answer; None where breaks are seen. The result is kept."""
    global failure
    recorder = Recorder(lambda path: path == breaking.__code__.co_filename)
    reason: str | None = None
    torch._dynamo.reset()
    try:
        with recorder, torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
            torch.compile(breaking, backend=recorder.backend)(torch.ones(2))
        reason = recorder.blind or _mistake(recorder)
    except Exception as error:
        reason = f"its self-test ended with {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    torch._dynamo.reset()
    failure = None if reason is None else versions.blind(torch.__version__, reason)
    return failure


def _mistake(recorder: Recorder) -> str | None:
    """How what was recorded differs from what is in the function."""
    seen = tuple(event["source"].strip() for event in recorder.events if event["kind"] == "break")
    if seen != BROKEN:
        return f"of its self-test's {len(BROKEN)} breaks {len(seen)} were seen where they are"
    if len(recorder.graphs) != GRAPHS:
        return f"its self-test has {GRAPHS} graphs, {len(recorder.graphs)} were seen"
    code = breaking.__code__
    lines = set(range(code.co_firstlineno + 1, code.co_firstlineno + 6))
    if not recorder.traced.get(code.co_filename, set()) >= lines:
        return "lines that it traced were not seen"
    return None
