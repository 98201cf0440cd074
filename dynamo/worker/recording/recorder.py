"""Records what TorchDynamo does: each break with its place, the lines it traced, the graphs, the recompiles.

Where it hooks in, by version of torch, stands in `hooks.py`. Breaks come two ways: Dynamo accepts one and goes on
behind it (`log_graph_break`), or one escapes and the whole frame runs in plain Python (`ConvertFrameAssert.__call__`).
What the hooks saw is held against torch's own log and counters (`witness.py`): `Recorder.blind` says where it cannot be
trusted.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch._dynamo import exc, external_utils, symbolic_convert

from . import linetable, positions
from .guards import recompilation
from .hooks import HOOKS, Installed, lack, named
from .witness import Witness

Event = dict[str, Any]

_HINT = re.compile(r"^  Hint: (.*(?:\n    .*)*)", re.M)
_EXPLANATION = re.compile(r"^  Explanation: (.*(?:\n    .*)*?)(?=\n  Hint:|\n\n|\Z)", re.M)
_RESUME = re.compile(r"^(?:torch_dynamo_resume_in_)+(.*?)(?:_at_\d+)+$")
_BREAKS = (exc.Unsupported, exc.UserError)
_CARRIERS: tuple[type[BaseException], ...] = (*_BREAKS, *([exc.SkipFrame] if hasattr(exc, "SkipFrame") else []))
"""Exceptions that may have a break behind them: before 2.11 a break in a loop leaves its frame as `SkipFrame`."""
_UNLOGGED = ("raises", "error")
"""Kinds of events that torch's log does not tell of: they reach the program as exceptions."""


class _Said(NamedTuple):
    """A break in Dynamo's own words."""

    type: str
    wrapped_by: list[str]
    message: str


def _ids() -> dict[str, str]:
    """Dynamo's own ids of breaks by their types; none where this torch has no registry of them."""
    try:
        registry = json.loads(Path(exc.__file__).with_name("graph_break_registry.json").read_text("utf-8"))
        return {entry["Gb_type"]: number for number, entries in registry.items() for entry in entries}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def plain_name(name: str) -> str:
    """The user's name of a function that Dynamo resumed."""
    found = _RESUME.match(name)
    return found.group(1) if found else name


def original(error: BaseException) -> BaseException:
    """The break behind 'graph break in loop' and its kind, which wrap the first one."""
    seen: set[int] = set()
    innermost = error
    while True:
        inner = error.__cause__ or error.__context__
        if not isinstance(inner, _CARRIERS) or id(inner) in seen:
            return innermost
        seen.add(id(inner))
        error = inner
        innermost = error if isinstance(error, _BREAKS) else innermost


def _squeeze(text: str) -> str:
    return " ".join(text.split())


def _first_line(message: str) -> str:
    return message.strip().split("\n", 1)[0].strip()


def _stated(message: str) -> str | None:
    """The type of a break, which its message begins with; None where it is not in the form of Dynamo's breaks."""
    return _first_line(message) if _EXPLANATION.search(message) else None


def _limit() -> int:
    """Compilations of one function, after which it runs eagerly."""
    config = torch._dynamo.config
    return int(getattr(config, "recompile_limit", 0) or getattr(config, "cache_size_limit", 8))


class Recorder:
    """A context manager. `in_project` tells which files are the user's; `home` is the file and line to which belongs
    what no line of theirs calls."""

    def __init__(self, in_project: Callable[[str], bool], home: tuple[str, int] | None = None) -> None:
        self.in_project = in_project
        self.home = home
        self.events: list[Event] = []
        self.traced: dict[str, set[int]] = {}
        self.graphs: list[int] = []
        self.cuts: list[Any] = []
        """For each graph the break that ended it, as [file, line, type]; None where the frame ended."""
        self._cut: Any = None
        self.recompiles: list[dict[str, Any]] = []
        self._lacks = [text for hook in HOOKS.values() if (text := lack(hook, torch.__version__))]
        self._witness = Witness()
        self._installed = Installed()
        self._logged = self._accepted_breaks = 0
        self._converting: list[Event] | None = None
        """What was noted of the frame that is being converted: how it ends decides of which kind its breaks are."""
        self._again: dict[str, Any] | None = None
        """Why the frame that is being converted is compiled again."""
        self._times: dict[Any, int] = {}
        """How often each code was compiled again."""
        self._ids = _ids()

    @property
    def blind(self) -> str | None:
        """Why what was recorded cannot be trusted; None where nothing speaks against it."""
        return self._lacks[0] if self._lacks else self._witness.contradicts(self._logged, self._accepted_breaks)

    def backend(self, graph: Any, inputs: Any, **_: Any) -> Any:
        """Counts a graph's operations and runs it as it is."""
        self.cuts.append(self._cut)
        self._cut = None
        self.graphs.append(sum(n.op in ("call_function", "call_method", "call_module") for n in graph.graph.nodes))
        return graph.forward

    def converted(self) -> None:
        """Called when Dynamo is done with a frame."""

    # hooks

    def __enter__(self) -> Recorder:
        linetable.correct()
        for name, make in (
            ("accepted", self._log_graph_break),
            ("line", self._starts_line),
            ("converted", self._convert_frame),
            ("recompiled", self._recompilation),
        ):
            self._installed.wrap(HOOKS[name].place(torch.__version__), make)
        self._witness.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._witness.__exit__()
        self._installed.remove()

    def _log_graph_break(self, inner: Any) -> Any:
        def log_graph_break(*args: Any, **kwargs: Any) -> Any:
            given = named(inner, args, kwargs)
            tx = given.get("self") or getattr(symbolic_convert.tls, "current_tx", None)  # 2.8 and 2.9 do not hand it on
            reason, error = given.get("reason", ""), given.get("exc")
            if error is None:  # before 2.11 the exception is not handed on: it is the one that is being handled
                error = sys.exc_info()[1]
                if not isinstance(error, _BREAKS) or str(error) not in reason:
                    error = None
            if not getattr(error, "logged", False):
                kind = "skip" if reason.startswith("Failed to handle") else "break"
                kind = "raises" if getattr(tx, "one_graph", False) else kind
                self._accepted(error, reason, given.get("user_stack"), kind, tx)
            return inner(*args, **kwargs)

        return log_graph_break

    def _starts_line(self, inner: Any) -> Any:
        traced = self.traced

        def starts_line(tx: Any, line: int) -> Any:
            traced.setdefault(tx.f_code.co_filename, set()).add(line)
            return inner(tx, line)

        return starts_line

    def _convert_frame(self, inner: Any) -> Any:
        def convert(converter: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
            outer, self._converting = self._converting, []
            again, self._again = self._again, None
            compiled, began = True, time.monotonic()
            try:
                result = inner(converter, frame, *args, **kwargs)
                compiled = getattr(result, "guarded_code", None) is not None
                return result
            except Exception as error:
                compiled = not isinstance(error, _BREAKS)
                if not getattr(error, "logged", False):
                    kind = "skip" if isinstance(error, _BREAKS) else "error"
                    if kind == "skip" and getattr(converter, "_one_graph", False):
                        kind = "raises"
                    self._escaped(error, kind, frame.f_code)
                raise
            finally:
                events, self._converting = self._converting, outer
                if self._again is not None:
                    self.recompiles.append({**self._again, "seconds": time.monotonic() - began})
                self._again = again
                for event in events:
                    if event["kind"] == "break" and not compiled:  # the frame was given up behind it
                        event["kind"], event["skipped_frame"] = "skip", True
                    self.events.append(event)
                self.converted()

        return convert

    def _recompilation(self, inner: Any) -> Any:
        def reasons(cache_entries: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
            found = inner(cache_entries, frame, *args, **kwargs)
            code = frame.f_code
            place = self._place_of(frame) if found else None
            if place is not None:
                self._times[code] = times = self._times.get(code, 0) + 1
                self._again = {**recompilation(code, str(found[0])), **place, "limit": times >= _limit()}
            return found

        return reasons

    def _place_of(self, frame: Any) -> dict[str, Any] | None:
        """What is said of a frame that is compiled again, beside its guard; None for code that is not the user's. What
        torch itself defines is compiled within a function of torch: it belongs to the line that calls it."""
        code = frame.f_code
        if self.in_project(code.co_filename):
            return {"function": plain_name(code.co_name)}
        if code.co_filename != external_utils.__file__:
            return None
        caller = sys._getframe()
        while caller.f_back is not None and not self.in_project(caller.f_code.co_filename):
            caller = caller.f_back
        place = (
            (caller.f_code.co_filename, caller.f_lineno) if self.in_project(caller.f_code.co_filename) else self.home
        )
        if place is None:
            return None
        called = getattr(frame, "f_locals", {}).get("fn")
        owner = getattr(called, "__self__", called)
        name = type(owner).__name__ if isinstance(owner, torch.nn.Module) else getattr(called, "__name__", "torch")
        return {"file": place[0], "line": place[1], "function": name}

    # events

    def _accepted(self, error: BaseException | None, reason: str, stack: Any, kind: str, tx: Any) -> None:
        """A break that Dynamo means to go on behind."""
        self._accepted_breaks += 1
        if error is not None:
            frames = self._stack(error, tx) or self._stack(original(error), None)
            self._note(self._words(error), frames, kind)
        else:  # before 2.11 a branch has no exception; its reason is the message
            stack = stack or torch._guards.TracingContext.extract_stack()
            self._note(_Said(_first_line(reason), [], reason), self._frames(stack, tx), kind)

    def _escaped(self, error: BaseException, kind: str, code: Any) -> None:
        """A break, or an error, that gives up a frame."""
        frames = self._stack(error, None) or self._stack(original(error), None)
        frames = frames or [self._frame(code.co_filename, code.co_firstlineno, code.co_name, None, None, None)]
        self._note(self._words(error), frames, kind)

    def _note(self, said: _Said, stack: list[dict[str, Any]], kind: str) -> None:
        self._logged += kind not in _UNLOGGED
        if not stack:
            return
        explanation = _EXPLANATION.search(said.message)
        place = next((f for f in reversed(stack) if self.in_project(f["file"])), stack[-1])
        if kind == "break":
            self._cut = [place["file"], place["span"][0], said.type]
        event = {
            "kind": kind,
            "gb_type": said.type,
            "gb_id": self._ids.get(said.type),
            "wrapped_by": said.wrapped_by,
            "reason": _squeeze(explanation.group(1)) if explanation else _squeeze(said.message)[:400],
            "hints": [_squeeze(hint) for hint in _HINT.findall(said.message)],
            "stack": stack,
            "skipped_frame": kind == "skip",
            "function": place["function"],
            "file": place["file"],
            "span": place["span"],
            "source": positions.line_text(place["file"], place["span"][0]),
            "in_project": self.in_project(place["file"]),
        }
        (self.events if self._converting is None else self._converting).append(event)

    def _words(self, error: BaseException) -> _Said:
        """What Dynamo says of the original break, and the types of those that wrap it.

        Wrappers put the original's name first in their message. Before 2.11 breaks carry no type; it is the first line.
        """
        inner = original(error)
        message = str(getattr(inner, "msg", None) or inner)
        first = _first_line(message)
        outer_type = getattr(error, "gb_type", None) or _stated(str(error)) or type(error).__name__
        inner_type = getattr(inner, "gb_type", None) or _stated(message) or type(inner).__name__
        wrapped = [outer_type] if inner is not error else []
        if first != inner_type and first in self._ids:
            return _Said(first, wrapped or [inner_type], message)
        return _Said(inner_type, wrapped, message)

    def _stack(self, error: BaseException, tx: Any) -> list[dict[str, Any]]:
        """The user's frames, outermost first.

        The translator that accepted the break knows its instruction's exact position; the frame summaries carry no
        end line.
        """
        return self._frames(getattr(error, "real_stack", None) or [], tx)

    def _frames(self, stack: Any, tx: Any) -> list[dict[str, Any]]:
        frames = [
            (f.filename, f.lineno or 1, f.name, getattr(f, "colno", None), None, getattr(f, "end_colno", None))
            for f in stack
            if f.filename
        ]
        place = getattr(getattr(tx, "current_instruction", None), "positions", None)
        if frames and place is not None and place.lineno and getattr(tx, "parent", None) is None:
            file, _, name = frames[0][:3]
            frames[0] = (file, place.lineno, name, place.col_offset, place.end_lineno, place.end_col_offset)
        return [self._frame(*frame) for frame in frames]

    @staticmethod
    def _frame(
        file: str, line: int, name: str, column: int | None, end_line: int | None, end_column: int | None
    ) -> dict[str, Any]:
        return {
            "file": file,
            "function": plain_name(name),
            "span": positions.span(file, line, column, end_line, end_column),
        }


def once_each(events: list[Event]) -> list[Event]:
    """One record for each place and type: an inlined break is seen again when its function is compiled alone."""
    kept: dict[tuple[Any, ...], Event] = {}
    for number, event in enumerate(events):
        if number and event["gb_type"] == "Attempt to trace generator" and len(event["stack"]) == 1:
            continue  # a generator is a frame of its own only because its caller's frame broke
        key = (event["file"], tuple(event["span"][:2]), event["gb_type"])
        if key not in kept:
            kept[key] = dict(event, count=0)
        first = kept[key]
        first["count"] += 1
        first["skipped_frame"] = first["skipped_frame"] or event["skipped_frame"]
        if event["kind"] == "raises":
            first["kind"] = "raises"
    return list(kept.values())
