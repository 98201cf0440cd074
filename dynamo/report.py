"""What a check answers, as plain data for the server and the command.

Knows no process and no protocol of the editor.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from graphmend.analysis.syntax.span import Span
from graphmend.dynamo.comparison import Comparison, read

Kind = Literal["break", "skip", "raises", "error"]
Status = Literal["checked", "no-inputs", "failed"]


class Frame(NamedTuple):
    """One level of the user's stack at a break; the span is in code points."""

    path: str
    function: str
    span: Span


@dataclass(frozen=True, slots=True)
class Break:
    """One place where TorchDynamo stopped tracing.

    `kind`: the graph was split (`break`), the whole frame ran eagerly (`skip`), the program raised under
    `fullgraph=True` (`raises`), or Dynamo itself failed (`error`). `path` and `span` are the innermost place in the
    user's project; `in_project` is False where no frame is. `run` counts which of the target's runs saw it first.
    """

    path: str
    span: Span
    function: str
    kind: Kind
    gb_type: str
    gb_id: str | None
    reason: str
    hints: tuple[str, ...]
    stack: tuple[Frame, ...]
    in_project: bool = True
    wrapped_by: tuple[str, ...] = ()
    count: int = 1
    run: int = 0
    source: str = ""
    """The line that the span begins in, of the text that was checked."""

    @property
    def skipped_frame(self) -> bool:
        return self.kind == "skip"


class Recompile(NamedTuple):
    """A function that was compiled again, and the guard that failed."""

    path: str
    line: int
    """That of the code which the guard was made for, else of the parameter or the function."""
    function: str
    reason: str
    times: int = 1
    seconds: float = 0.0
    """The time of these compilations."""
    limit: bool = False
    """Whether `recompile_limit` was reached: the function runs eagerly from then on."""

    @property
    def subject(self) -> str:
        """What varies: a parameter, attribute, key or mode, in one word."""
        text = re.sub(r"\bL\['(\w+)'\]|\bG\['(\w+)'\]", r"\1\2", self.reason)
        if state := re.match(r"GLOBAL_STATE changed: (\w+)", text):
            return state[1]
        tensor = re.match(r"(?:tensor|expected type of) '(.+?)' ", text)
        bare = re.sub(r"^(?:\W|not |len\(|list\(|dict\.keys\(|___\w+\(|\d)+", "", tensor[1] if tensor else text)
        path = re.match(r"[A-Za-z_]\w*(?:\[[^\]]*\]|\.[A-Za-z_]\w*(?!\w|\())*", bare)
        words = [word for word in re.findall(r"[A-Za-z_]\w*", path[0]) if word[0] != "_"] if path else []
        return words[-1] if words else ""


def compilations(target: TargetReport) -> str:
    """How often a target was compiled, and for what: ", 5 compilations: `step` changes"; nothing where it was once."""
    if target.compilations == 1:
        return ""
    names = ", ".join(f"`{name}`" for name in target.changing[:3])
    changes = "changes" if len(target.changing) == 1 else "change"
    return f", {target.compilations} compilations" + (f": {names} {changes}" if names else "")


#: recompilations of a report that are told apart
MOST_RECOMPILES = 50


def gathered(several: Iterable[Recompile]) -> tuple[Recompile, ...]:
    """Recompilations of one function for one thing as one, with how often, those that cost most first. Of very many
    the first are kept."""
    found: dict[tuple[str, str, str], Recompile] = {}
    for one in several:
        key = (one.path, one.function, one.subject or one.reason)
        known = found.get(key)
        if known is None:
            found[key] = one
        else:
            found[key] = known._replace(
                times=known.times + one.times, seconds=known.seconds + one.seconds, limit=known.limit or one.limit
            )
    return tuple(sorted(found.values(), key=lambda one: (-one.times, -one.seconds))[:MOST_RECOMPILES])


def recompile(data: Mapping[str, Any]) -> Recompile:
    return Recompile(
        data["file"],
        data["line"],
        data["function"],
        data["reason"],
        1,
        data.get("seconds", 0.0),
        data.get("limit", False),
    )


class Varied(NamedTuple):
    """A call with one thing changed of inputs that were made up: what it would be compiled anew for, if it would."""

    change: str
    recompile: Recompile | None
    raised: str | None = None
    """What it raises on such inputs; it does not count then."""


class Lines(Mapping[str, frozenset[int]]):
    """Line numbers by absolute path; a path that was never seen has none."""

    def __init__(self, lines: Mapping[str, frozenset[int]] | None = None) -> None:
        self._lines = {os.path.realpath(path): found for path, found in (lines or {}).items()}

    def __getitem__(self, path: str) -> frozenset[int]:
        return self._lines.get(os.path.realpath(path), frozenset())

    def __iter__(self) -> Any:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)


class RunInfo(NamedTuple):
    """One call of the target: which inputs, and what it raised in eager mode."""

    inputs: str
    raised: str | None


class Times(NamedTuple):
    """Milliseconds of one call; `cold` is the first one, compilation included."""

    eager: float
    compiled: float
    cold: float
    backend: str
    syncs: int | None = None
    """How often a call waits for the device; None off CUDA."""


class Batch(NamedTuple):
    """One call in a stream of batches: what differs from the inputs as given, the graphs compiled up to it, those that
    it executed, and what it raised."""

    changes: tuple[str, ...]
    compiled: int
    executed: int
    raised: str | None


@dataclass(frozen=True, slots=True)
class TargetReport:
    """What became of one target. `problem` says in one line why it was not checked, `bare` the same without what the
    checked code itself said.
    """

    name: str
    status: Status
    problem: str | None = None
    bare: str | None = None
    line: int = 0
    notes: tuple[str, ...] = ()
    origin: str = ""
    """Where the inputs come from: configuration, `example_inputs()`, comment, synthesised."""
    inputs: str = ""
    """The inputs as source text."""
    arguments: tuple[str, ...] = ()
    """Shapes of the arguments of each given call."""
    device: str = ""
    graphs: int = 0
    """Graphs that the first call handed to the backend."""
    ops: tuple[int, ...] = ()
    breaks: tuple[Break, ...] = ()
    known: int = 0
    """How many more breaks there are that a baseline knows."""
    cuts: tuple[Break | None, ...] = ()
    """For each graph the break that ended it; None where its function ended."""
    executed: Lines = field(default_factory=Lines)
    traced: Lines = field(default_factory=Lines)
    recompiles: tuple[Recompile, ...] = ()
    varied: tuple[Varied, ...] = ()
    """Of inputs that were made up: calls with one thing changed, which were not compiled."""
    runs: tuple[RunInfo, ...] = ()
    comparison: Comparison | None = None
    times: Times | None = None
    batches: tuple[Batch, ...] = ()

    @property
    def compilations(self) -> int:
        """How often the code was compiled; graphs behind a break do not count."""
        return 1 + sum(one.times for one in self.recompiles)

    @property
    def changing(self) -> tuple[str, ...]:
        """What the code was compiled anew for, each once."""
        return tuple(dict.fromkeys(one.subject for one in self.recompiles if one.subject))

    @property
    def graph_breaks(self) -> int:
        """Graphs minus one, as the GraphMend paper counts."""
        return max(self.graphs - 1, 0)


class Usage(NamedTuple):
    """What the process of a check took: seconds of processor time, and the most bytes of memory that it held."""

    seconds: float
    memory: int


@dataclass(frozen=True, slots=True)
class Report:
    """A whole check. `problem` says in one line why there is none; `remark` what is unusual of its torch; `note` why
    CUDA was not used.
    """

    path: str
    targets: tuple[TargetReport, ...] = ()
    problem: str | None = None
    bare: str | None = None
    """The problem without what the checked code itself said."""
    note: str = ""
    remark: str = ""
    torch: str = ""
    python: str = ""
    output: str = ""
    """What the checked code printed, cut in the middle where it is long."""
    seconds: float = 0.0
    usage: Usage | None = None
    """None where the system does not tell."""
    after: Report | None = None
    """The same check of the mended text, where one was asked for."""
    named: tuple[str, ...] = ()
    """Of a mended text: the differences that its mends name."""

    @property
    def breaks(self) -> tuple[Break, ...]:
        return tuple(b for target in self.targets for b in target.breaks)

    def covered(self, path: str) -> tuple[frozenset[int], frozenset[int]]:
        """(lines that Dynamo traced, lines that ran eagerly) of a file, over all targets."""
        traced = frozenset().union(*(t.traced[path] for t in self.targets)) if self.targets else frozenset()
        executed = frozenset().union(*(t.executed[path] for t in self.targets)) if self.targets else frozenset()
        return traced, executed


# from the worker's JSON


def report(path: str, data: Mapping[str, Any], output: str = "", python: str = "") -> Report:
    return Report(
        path=path,
        targets=tuple(_target(t) for t in data.get("targets", ())),
        problem=data.get("problem"),
        bare=data.get("bare", data.get("problem")),
        note=data.get("note", ""),
        remark=data.get("remark", ""),
        torch=data.get("torch", ""),
        python=python,
        output=output,
        seconds=data.get("seconds", 0.0),
    )


def _lines(data: Mapping[str, Any]) -> Lines:
    return Lines({path: frozenset(n for a, b in ranges for n in range(a, b + 1)) for path, ranges in data.items()})


def _target(data: Mapping[str, Any]) -> TargetReport:
    comparison, times = data.get("comparison"), data.get("times")
    breaks = tuple(break_(b) for b in data.get("breaks", ()))
    places = {(b.path, b.span.line, b.gb_type): b for b in reversed(breaks)}
    return TargetReport(
        name=data["name"],
        status=data["status"],
        problem=data.get("problem"),
        bare=data.get("bare", data.get("problem")),
        line=data.get("line", 0),
        notes=tuple(data.get("notes", ())),
        origin=data.get("origin", ""),
        inputs=data.get("inputs", ""),
        arguments=tuple(data.get("arguments", ())),
        device=data.get("device", ""),
        graphs=data.get("graphs", 0),
        ops=tuple(data.get("ops", ())),
        breaks=breaks,
        cuts=tuple(None if cut is None else places.get(tuple(cut)) for cut in data.get("cuts", ())),
        executed=_lines(data.get("executed", {})),
        traced=_lines(data.get("traced", {})),
        recompiles=gathered(recompile(item) for item in data.get("recompiles", ())),
        varied=tuple(
            Varied(item["change"], recompile(item["recompile"]) if item["recompile"] else None, item["raised"])
            for item in data.get("varied", ())
        ),
        runs=tuple(RunInfo(r["inputs"], r["raised"]) for r in data.get("runs", ())),
        comparison=None if comparison is None else read(comparison),
        times=None if times is None else Times(**times),
        batches=tuple(
            Batch(tuple(b["changes"]), b["compiled"], b["executed"], b["raised"]) for b in data.get("batches", ())
        ),
    )


def useful(hints: Iterable[str]) -> tuple[str, ...]:
    """Dynamo's hints, without the one that loses output: `reorderable_logging_functions` drops what functions print
    that are inlined, and prints values as they are later (torch 2.13.0).
    """
    return tuple(hint for hint in hints if "reorderable_logging_functions" not in hint)


def break_(data: Mapping[str, Any]) -> Break:
    return Break(
        path=data["file"],
        span=Span(*data["span"]),
        function=data["function"],
        kind=data["kind"],
        gb_type=data["gb_type"],
        gb_id=data["gb_id"],
        reason=data["reason"],
        hints=useful(data["hints"]),
        stack=tuple(Frame(f["file"], f["function"], Span(*f["span"])) for f in data["stack"]),
        in_project=data["in_project"],
        wrapped_by=tuple(data["wrapped_by"]),
        count=data["count"],
        run=data.get("run", 0),
        source=data.get("source", ""),
    )
