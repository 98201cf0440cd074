"""Breaks from text that torch itself wrote: `TORCH_LOGS=graph_breaks` on standard error, or a `TORCH_TRACE` file.

Less precise than the recorder: columns come from the carets under the source line, and lines of resume functions may be
wrong (see `worker/recording/linetable.py`). Tested with the wording of torch 2.13.0.
"""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from graphmend.analysis.syntax.span import Span
from graphmend.dynamo.report import Break, Frame, Kind, useful

_PREFIX = re.compile(r"^[VDIWEC]\d{4} \d\d:\d\d:\d\d\.\d+ \d+ \S+:\d+\] (?:\[[^\]]*\] )?(?:\[__graph_breaks\] ?)?")
_START = re.compile(r"^Graph break in user code at (?P<path>.*):(?P<line>\d+)$")
_REASON = re.compile(r"^Graph Break Reason: (?P<reason>.*)$", re.M)
_EXPLANATION = re.compile(r"^  Explanation: (.*(?:\n    .*)*?)(?=\n  Hint:|\n\s*\n|\Z)", re.M)
_HINT = re.compile(r"^  Hint: (.*(?:\n    .*)*)", re.M)
_PAGE = re.compile(r"/gb/gb(\d{4})\.html")
_FRAME = re.compile(r'^  File "(?P<path>.*)", line (?P<line>\d+), in (?P<name>.*)$')
_ANOTHER = "*** While handling this graph break, another graph break occurred: ***"
_TRACEBACK = "User code traceback:"
_DYNAMO = "/torch/_dynamo/"


def read(path: Path) -> str:
    """The text of a log, or of all logs of the folder that `TORCH_TRACE` names. Raises `OSError`."""
    if not path.is_dir():
        return path.read_text("utf-8", "replace")
    return "".join(file.read_text("utf-8", "replace") for file in sorted(path.glob("dedicated_log_torch_trace_*.log")))


def parse(text: str, in_project: Callable[[str], bool]) -> tuple[Break, ...]:
    """One break for each place and type, with how often it stands in the text."""
    found: dict[tuple[str, int, str], Break] = {}
    for block in _blocks(text):
        item = _break(block, in_project)
        key = (item.path, item.span.line, item.gb_type)
        known = found.get(key)
        found[key] = item if known is None else replace(known, count=known.count + 1)
    return tuple(found.values())


def _blocks(text: str) -> Iterator[list[str]]:
    """The lines of each report, without the prefix of the log or the tab of the trace."""
    block: list[str] = []
    for raw in text.splitlines():
        prefix = _PREFIX.match(raw)
        line = raw[prefix.end() :] if prefix else raw.removeprefix("\t")
        if _START.match(line):
            if block:
                yield block
            block = [line]
        elif block and (prefix is None or "[__graph_breaks]" in prefix[0]) and not line.startswith("{"):
            block.append(line)
        elif block:
            yield block
            block = []
    if block:
        yield block


def _break(block: list[str], in_project: Callable[[str], bool]) -> Break:
    start = _START.match(block[0])
    assert start is not None
    body, _, traceback = "\n".join(block[1:]).partition(_TRACEBACK)
    first, another, _ = body.partition(_ANOTHER)
    reason = _REASON.search(first)
    said = reason["reason"] if reason else ""
    frames = _frames(traceback.splitlines()) or (Frame(start["path"], "", _line(start["path"], int(start["line"]))),)
    first_own = next((n for n, frame in enumerate(frames) if in_project(frame.path)), 0)
    frames = frames[first_own:]
    place = next((frame for frame in reversed(frames) if in_project(frame.path)), frames[-1])
    explanation, page = _EXPLANATION.search(first), _PAGE.search(first)
    kind: Kind = "skip" if said.startswith("Failed to handle") else "break"
    return Break(
        path=place.path,
        span=place.span,
        function=place.function,
        kind=kind,
        gb_type=_type(first, said),
        gb_id=f"GB{page[1]}" if page else None,
        reason=" ".join(explanation[1].split()) if explanation else said,
        hints=useful(" ".join(hint.split()) for hint in _HINT.findall(first)),
        stack=frames,
        in_project=in_project(place.path),
        wrapped_by=("another graph break",) if another else (),
        source=linecache.getline(place.path, place.span.line).rstrip("\r\n"),
    )


def _type(text: str, said: str) -> str:
    """The name of the break: on the line of the reason, or below it where that line says only what was attempted."""
    if not said.endswith(":"):
        return said
    rest = text[text.index(said) + len(said) :].splitlines()
    return next((line.strip() for line in rest if line.strip()), said.rstrip(":"))


def _frames(lines: list[str]) -> tuple[Frame, ...]:
    """Frames of a traceback with their source lines and carets, outermost first."""
    frames = []
    for number, line in enumerate(lines):
        found = _FRAME.match(line)
        if found is None:
            continue
        path, row = found["path"], int(found["line"])
        if _DYNAMO in path.replace(os.sep, "/"):
            continue  # a trace goes on with Dynamo's own stack
        below = lines[number + 1 : number + 3]
        carets = below[1] if len(below) == 2 and set(below[1].strip()) == {"^"} else ""
        frames.append(Frame(path, found["name"], _span(path, row, below[0] if below else "", carets)))
    return tuple(frames)


def _span(path: str, row: int, shown: str, carets: str) -> Span:
    """The shown line has lost its indentation; the file, where it is still there, has it."""
    text = linecache.getline(path, row).rstrip("\r\n")
    if not carets or text.strip() != shown.strip():
        return _line(path, row)
    indent = len(text) - len(text.lstrip()) - (len(shown) - len(shown.lstrip()))
    column = len(carets) - len(carets.lstrip()) + indent
    return Span(row, column, row, column + carets.count("^"))


def _line(path: str, row: int) -> Span:
    text = linecache.getline(path, row).rstrip("\r\n")
    return Span(row, len(text) - len(text.lstrip()), row, len(text))


def below(folder: str) -> Callable[[str], bool]:
    """Whether a file is the user's: below `folder`, and no installed package."""
    root = os.path.realpath(folder) + os.sep
    return lambda path: os.path.realpath(path).startswith(root) and f"{os.sep}site-packages{os.sep}" not in path
