"""Findings and a report, merged: each finding is confirmed, not seen, run eagerly or not reached; breaks that only
Dynamo saw become GM9.

A break belongs to a finding when it lies in the statement that the finding begins in; a compound statement counts by
its header. GM901 is a break, GM902 a frame that runs eagerly as a whole, GM903 a break that raises under
`fullgraph=True`.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from graphmend.analysis.finding import Effect, Finding
from graphmend.analysis.syntax.source import Source
from graphmend.analysis.syntax.span import Span
from graphmend.dynamo.report import Break, Report

#: why a statement was not reached whose function did not run at all
NOT_CALLED = "nothing that was run calls its function"

State = Literal["confirmed", "not seen", "runs eagerly", "not reached"]

_CODES: dict[str, tuple[str, str, Effect]] = {
    "break": ("GM901", "dynamo-break", "splits"),
    "skip": ("GM902", "dynamo-skipped-frame", "skips-frame"),
    "raises": ("GM903", "dynamo-raises", "raises"),
    "error": ("GM903", "dynamo-raises", "raises"),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check says about one finding, and why in one sentence. `breaks` are those that confirm it; of a statement
    that runs eagerly, the one that took its frame out of the graph, where that is known."""

    state: State
    reason: str
    breaks: tuple[Break, ...] = ()

    @property
    def brief(self) -> str:
        """The state in a few words; of a statement that runs eagerly, the line that it is due to."""
        if self.state == "runs eagerly" and self.breaks:
            return f"runs eagerly because of line {self.breaks[0].span.line}"
        return self.state


@dataclass(frozen=True, slots=True)
class Merged:
    """Verdicts in the order of the findings, and the GM9 findings of the file."""

    verdicts: tuple[Verdict, ...]
    only_dynamo: tuple[Finding, ...]


class Statements:
    """The statements of a text, by line: which lines belong to each, bodies of compound statements left out."""

    def __init__(self, source: Source) -> None:
        self._statements: list[tuple[int, int, ast.stmt]] = []
        self._functions: list[tuple[int, int, str]] = []
        self.definitions: dict[str, Span] = {}
        """Where each function and class stands, decorators included, by qualified name."""
        if source.tree is not None:
            self._visit(source.tree, "")

    def _visit(self, node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            name = prefix
            if isinstance(child, ast.stmt):
                first = min([child.lineno, *(d.lineno for d in getattr(child, "decorator_list", ()))])
                self._statements.append((first, _header_end(child), child))
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                name = f"{prefix}{child.name}"
                column, last = child.col_offset, child.end_lineno or child.lineno
                self.definitions.setdefault(name, Span(first, column, last, child.end_col_offset or 0))
                if not isinstance(child, ast.ClassDef):
                    self._functions.append((child.lineno, child.end_lineno or child.lineno, name))
                    name += ".<locals>"
                name += "."
            self._visit(child, name)

    def lines(self, line: int) -> range:
        """The lines of the innermost statement whose own part holds a line; the line alone where there is none."""
        best: tuple[int, int] | None = None
        for first, last, _ in self._statements:
            if first <= line <= last and (best is None or last - first <= best[1] - best[0]):
                best = (first, last)
        return range(best[0], best[1] + 1) if best else range(line, line + 1)

    def function_lines(self, line: int) -> range:
        """The lines of the innermost function around a line, behind its first one; none outside of one."""
        around = [(last - first, first) for first, last, _ in self._functions if first <= line <= last]
        length, first = min(around, default=(0, 0))
        return range(first + bool(length), first + length + 1)

    def function(self, line: int) -> str:
        """The qualified name of the innermost function around a line, as findings write it; "" outside of one."""
        around = [(last - first, name) for first, last, name in self._functions if first <= line <= last]
        return min(around)[1] if around else ""


def _header_end(statement: ast.stmt) -> int:
    end = statement.end_lineno or statement.lineno
    body = getattr(statement, "body", None) or getattr(statement, "cases", None)
    if isinstance(body, list) and body:
        first = body[0].pattern.lineno if isinstance(body[0], ast.match_case) else body[0].lineno
        return max(statement.lineno, first - 1)
    return end


def merge(
    source: Source, findings: Sequence[Finding], report: Report, called: Callable[[int], str] = "line {}".format
) -> Merged:
    """Verdicts on `findings` of `source`, and what only Dynamo saw there. `source` is the text that was checked;
    `called` says how people call a line of it.
    """
    statements = Statements(source)
    breaks = [b for b in report.breaks if same_file(b.path, source.path)]
    traced, executed = report.covered(source.path)
    taken: set[int] = set()
    verdicts = []
    for finding in findings:
        if finding.effect == "recompiles":
            verdicts.append(_compiled_anew(finding, report))
            continue
        lines = statements.lines(finding.span.line)
        matching = [n for n, b in enumerate(breaks) if b.span.line in lines]
        taken.update(matching)
        own = [breaks[n] for n in matching]
        around = statements.function_lines(finding.span.line)
        verdicts.append(
            _verdict(lines, around, own, traced, executed)
            or _eager(statements, finding.span.line, breaks, called)
            or _eager_through(source, statements, finding.span.line, report.breaks, called)
        )
    rest = _one_each(b for n, b in enumerate(breaks) if n not in taken and b.in_project)
    return Merged(tuple(verdicts), tuple(_finding(b, source, statements) for b in rest))


def same_file(one: str, other: str) -> bool:
    return one == other or os.path.realpath(one) == os.path.realpath(other)


def _verdict(
    lines: range, around: range, breaks: list[Break], traced: frozenset[int], executed: frozenset[int]
) -> Verdict | None:
    """The verdict on a statement in the lines of a function; None for one that ran, but not as a part of what was
    traced.
    """
    if breaks:
        return Verdict("confirmed", f"TorchDynamo breaks here: {_name(breaks[0])}", tuple(breaks))
    if not traced.isdisjoint(lines):
        return Verdict("not seen", "TorchDynamo traced this statement on the inputs tried and did not break")
    if executed.isdisjoint(lines):
        called = not executed.isdisjoint(around)
        return Verdict("not reached", "no input that was tried leads to this statement" if called else NOT_CALLED)
    return None


def _compiled_anew(finding: Finding, report: Report) -> Verdict:
    """The verdict on a recompilation: whether a guard failed that is about the same thing."""
    subject = re.compile(rf"(?<!\w){re.escape(finding.facts.get('subject', ''))}(?!\w)")
    for target in report.targets:
        for again in target.recompiles:
            if subject.search(again.reason):
                return Verdict("confirmed", f"TorchDynamo compiled `{again.function}` anew: {again.reason}")
    return Verdict("not reached", "the inputs that were tried do not vary it")


def _eager(statements: Statements, line: int, breaks: Iterable[Break], called: Callable[[int], str]) -> Verdict | None:
    """The verdict on a statement that ran eagerly: the break that gave up its frame, where there is one, did it."""
    function = statements.function(line)
    for item in breaks:
        if item.skipped_frame and statements.function(item.span.line) == function:
            reason = f"{called(item.span.line)} takes its whole frame out of the graph ({_name(item)})"
            return Verdict("runs eagerly", reason, (item,))
    return None


def _eager_through(
    source: Source, statements: Statements, line: int, breaks: Iterable[Break], called: Callable[[int], str]
) -> Verdict:
    """The same, where the break lies in what the function of the statement calls."""
    function = statements.function(line)
    for item in breaks:
        for frame in item.stack if item.skipped_frame else ():
            if same_file(frame.path, source.path) and statements.function(frame.span.line) == function:
                breaks_in = f"{item.function}, which breaks and takes it out of the graph ({_name(item)})"
                return Verdict("runs eagerly", f"{called(frame.span.line)} calls {breaks_in}")
    return Verdict("runs eagerly", "it is outside of what TorchDynamo traced: a frame around it runs eagerly")


def _name(item: Break) -> str:
    return f"{item.gb_id} {item.gb_type}" if item.gb_id else item.gb_type


def _one_each(breaks: Iterable[Break]) -> list[Break]:
    """One for each place: the same statement may break under several types, the first is the cause."""
    kept: dict[tuple[int, int], Break] = {}
    for item in breaks:
        kept.setdefault((item.span.line, item.span.column), item)
    return sorted(kept.values(), key=lambda b: b.span)


def _finding(item: Break, source: Source, statements: Statements) -> Finding:
    code, name, effect = _CODES[item.kind]
    function = statements.function(item.span.line)
    text = source.lines.line(item.span.line - 1).strip()
    return Finding(
        code=code,
        name=name,
        message=f"TorchDynamo breaks the graph here: {item.reason}",
        path=source.path,
        span=_clip(item.span, source),
        function=function,
        region="compiled",
        certainty="certain",
        effect=effect,
        evidence=tuple(f"{frame.function} at {os.path.basename(frame.path)}:{frame.span.line}" for frame in item.stack),
        advice=" ".join(item.hints),
        gb_id=item.gb_id,
        key=f"{code}:{function}:{text}:{item.gb_type}",
    )


def _clip(span: Span, source: Source) -> Span:
    """A span inside the text: columns of other Python versions, or of a text with a BOM, may reach past a line's
    end.
    """
    line = min(max(span.line, 1), len(source.lines))
    end_line = min(max(span.end_line, line), len(source.lines))
    column = min(span.column, len(source.lines.line(line - 1)))
    end_column = min(span.end_column, len(source.lines.line(end_line - 1)))
    if (end_line, end_column) <= (line, column):
        end_line, end_column = line, len(source.lines.line(line - 1))
    return Span(line, column, end_line, end_column)
