"""Records what TorchDynamo does: each break with its place, the lines it traced, the graphs, the recompiles.

Tested with torch 2.13.0. Hooks, all on classes of `torch._dynamo`:

* `InstructionTranslatorBase.log_graph_break` is called once for each break that Dynamo accepts, with the exception
  behind it;
* `ConvertFrameAssert.__call__` sees the breaks that could not be resumed escape (the whole frame then runs eagerly);
* `InstructionTranslatorBase.starts_line` sees every line that is traced;
* `convert_frame.get_and_maybe_log_recompilation_reasons` answers why a frame is compiled again.

The exceptions carry `gb_type`, `msg` and `real_stack`. Where one of the hooks is missing, `Recorder.missing` names it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from torch._dynamo import convert_frame, exc, symbolic_convert

from . import linetable, positions

Event = dict[str, Any]

_HINT = re.compile(r"^  Hint: (.*(?:\n    .*)*)", re.M)
_EXPLANATION = re.compile(r"^  Explanation: (.*(?:\n    .*)*?)(?=\n  Hint:|\n\n|\Z)", re.M)
_RESUME = re.compile(r"^(?:torch_dynamo_resume_in_)+(.*?)(?:_at_\d+)+$")
_BREAKS = (exc.Unsupported, exc.UserError)


def _ids() -> dict[str, str]:
    load = getattr(exc, "_load_gb_type_to_gb_id_map", None)
    return load() if load is not None else {}


def plain_name(name: str) -> str:
    """The user's name of a function that Dynamo resumed."""
    found = _RESUME.match(name)
    return found.group(1) if found else name


def original(error: BaseException) -> BaseException:
    """The break behind 'graph break in loop' and its kind, which wrap the first one."""
    seen = set()
    while True:
        inner = error.__cause__ or error.__context__
        if not isinstance(inner, _BREAKS) or id(inner) in seen:
            return error
        seen.add(id(inner))
        error = inner


def _squeeze(text: str) -> str:
    return " ".join(text.split())


class Recorder:
    """A context manager. `in_project` tells which files are the user's."""

    def __init__(self, in_project: Callable[[str], bool]) -> None:
        self.in_project = in_project
        self.events: list[Event] = []
        self.traced: dict[str, set[int]] = {}
        self.graphs: list[int] = []
        self.cuts: list[Any] = []
        """For each graph the break that ended it, as [file, line, type]; None where the frame ended."""
        self._cut: Any = None
        self.recompiles: list[dict[str, Any]] = []
        self.missing: list[str] = []
        self._ids = _ids()
        self._saved: list[tuple[Any, str, Any]] = []

    def backend(self, graph: Any, inputs: Any, **_: Any) -> Any:
        """Counts a graph's operations and runs it as it is."""
        self.cuts.append(self._cut)
        self._cut = None
        self.graphs.append(sum(n.op in ("call_function", "call_method", "call_module") for n in graph.graph.nodes))
        return graph.forward

    @property
    def lacks_breaks(self) -> bool:
        """Whether this torch has no place to hook breaks in."""
        return not hasattr(symbolic_convert.InstructionTranslatorBase, "log_graph_break")

    # hooks

    def __enter__(self) -> Recorder:
        linetable.correct()
        base = symbolic_convert.InstructionTranslatorBase
        self._wrap(base, "log_graph_break", self._log_graph_break)
        self._wrap(base, "starts_line", self._starts_line)
        self._wrap(convert_frame.ConvertFrameAssert, "__call__", self._convert_frame)
        self._wrap(convert_frame, "get_and_maybe_log_recompilation_reasons", self._recompilation)
        return self

    def __exit__(self, *_: object) -> None:
        while self._saved:
            owner, name, value = self._saved.pop()
            setattr(owner, name, value)

    def _wrap(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        value = getattr(owner, name, None)
        if value is None:
            self.missing.append(name)
            return
        self._saved.append((owner, name, value))
        setattr(owner, name, make(value))

    def _log_graph_break(self, inner: Any) -> Any:
        def log_graph_break(tx: Any, *args: Any, **kwargs: Any) -> Any:
            error = kwargs.get("exc") or next((a for a in args if isinstance(a, BaseException)), None)
            if error is not None and not getattr(error, "logged", False):
                reason = kwargs.get("reason") or next((a for a in args if isinstance(a, str)), "")
                kind = "skip" if reason.startswith("Failed to handle") else "break"
                self._note(error, "raises" if getattr(tx, "one_graph", False) else kind, tx)
            return inner(tx, *args, **kwargs)

        return log_graph_break

    def _starts_line(self, inner: Any) -> Any:
        traced = self.traced

        def starts_line(tx: Any, line: int) -> Any:
            traced.setdefault(tx.f_code.co_filename, set()).add(line)
            return inner(tx, line)

        return starts_line

    def _convert_frame(self, inner: Any) -> Any:
        def convert(converter: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return inner(converter, frame, *args, **kwargs)
            except Exception as error:
                if not getattr(error, "logged", False):
                    kind = "skip" if isinstance(error, _BREAKS) else "error"
                    if kind == "skip" and getattr(converter, "_one_graph", False):
                        kind = "raises"
                    self._note(error, kind, None, frame.f_code)
                raise

        return convert

    def _recompilation(self, inner: Any) -> Any:
        def reasons(cache_entries: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
            found = inner(cache_entries, frame, *args, **kwargs)
            code = frame.f_code
            if found and self.in_project(code.co_filename):
                self.recompiles.append(
                    {
                        "file": code.co_filename,
                        "line": code.co_firstlineno,
                        "function": plain_name(code.co_name),
                        "reason": _squeeze(str(found[0]).partition("  # ")[0])[:300],
                    }
                )
            return found

        return reasons

    # events

    def _note(self, error: BaseException, kind: str, tx: Any, code: Any = None) -> None:
        inner = original(error)
        kind_of_break, wrapped = self._types(error, inner)
        stack = self._stack(error, tx) or self._stack(inner, None)
        if not stack and code is not None:
            stack = [self._frame(code.co_filename, code.co_firstlineno, code.co_name, None, None, None)]
        if not stack:
            return
        message = str(getattr(inner, "msg", None) or inner)
        explanation = _EXPLANATION.search(message)
        place = next((f for f in reversed(stack) if self.in_project(f["file"])), stack[-1])
        if kind == "break":
            self._cut = [place["file"], place["span"][0], kind_of_break]
        self.events.append(
            {
                "kind": kind,
                "gb_type": kind_of_break,
                "gb_id": self._ids.get(kind_of_break),
                "wrapped_by": wrapped,
                "reason": _squeeze(explanation.group(1)) if explanation else _squeeze(message)[:400],
                "hints": [_squeeze(hint) for hint in _HINT.findall(message)],
                "stack": stack,
                "skipped_frame": kind == "skip",
                "function": place["function"],
                "file": place["file"],
                "span": place["span"],
                "source": positions.line_text(place["file"], place["span"][0]),
                "in_project": self.in_project(place["file"]),
            }
        )

    def _types(self, error: BaseException, inner: BaseException) -> tuple[str, list[str]]:
        """The type of the original break, and of those that wrap it.

        Wrappers put the original's name first in their message.
        """
        outer_type = getattr(error, "gb_type", None) or type(error).__name__
        inner_type = getattr(inner, "gb_type", None) or type(inner).__name__
        wrapped = [outer_type] if inner is not error else []
        first = str(getattr(inner, "msg", inner)).split("\n", 1)[0].strip()
        if first != inner_type and first in self._ids:
            return first, wrapped or [inner_type]
        return inner_type, wrapped

    def _stack(self, error: BaseException, tx: Any) -> list[dict[str, Any]]:
        """The user's frames, outermost first.

        The translator that accepted the break knows its instruction's exact position; the frame summaries carry no
        end line.
        """
        frames = [
            (f.filename, f.lineno or 1, f.name, getattr(f, "colno", None), None, getattr(f, "end_colno", None))
            for f in getattr(error, "real_stack", None) or []
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
