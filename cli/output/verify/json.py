"""`graphmend verify --output-format json`: one array, an item for each file.

Rows and columns count from 1, in code points.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

from graphmend.dynamo.verdict import judge

if TYPE_CHECKING:
    from graphmend.analysis.syntax.span import Span
    from graphmend.cli.verifying.static_findings import Judged
    from graphmend.dynamo.comparison import Comparison
    from graphmend.dynamo.report import Break, Report, TargetReport
    from graphmend.dynamo.watched_command import Watched


def write(reports: Sequence[Report], judged: Sequence[Sequence[Judged]], out: TextIO) -> None:
    items = [
        {**report_item(report), "findings": [_finding(item) for item in found]}
        for report, found in zip(reports, judged, strict=True)
    ]
    json.dump(items, out, indent=2)
    out.write("\n")


def write_watched(watched: Watched, out: TextIO) -> None:
    item = {
        "command": list(watched.command),
        "exit_status": watched.status,
        "problem": watched.problem,
        "processes": watched.processes,
        "graphs": watched.graphs,
        "breaks": [break_item(item) for item in watched.breaks],
        "known_breaks": watched.known,
        "recompiles": [_recompile(item) for item in watched.recompiles],
    }
    json.dump(item, out, indent=2)
    out.write("\n")


def report_item(report: Report) -> dict[str, Any]:
    return {
        "filename": report.path,
        "problem": report.problem,
        "note": report.note,
        "remark": report.remark,
        "torch": report.torch,
        "python": report.python,
        "seconds": report.seconds,
        "targets": [target_item(target, report.named) for target in report.targets],
        "output": report.output,
        "after": report_item(report.after) if report.after is not None else None,
    }


def _finding(item: Judged) -> dict[str, Any]:
    finding = item.finding
    return {
        "code": finding.code,
        "message": finding.message,
        "function": finding.function,
        **_place(finding.span),
        "verdict": item.state,
        "reason": item.reason,
    }


def comparison_item(comparison: Comparison, named: Sequence[str]) -> dict[str, Any]:
    judged = judge(comparison, named)
    return {
        "equal": comparison.equal,
        "passes": judged.passes,
        "runs": comparison.runs,
        "differences": list(comparison.differences),
        "silenced": list(comparison.silenced),
        "named": [item._asdict() for item in judged.named],
        "unnamed": [item._asdict() for item in judged.unnamed],
        "remarks": list(comparison.remarks),
        "gradients": comparison.gradients,
        "largest_difference": comparison.largest,
        "largest_rounding": comparison.rounding,
    }


def target_item(target: TargetReport, named: Sequence[str] = ()) -> dict[str, Any]:
    comparison, times = target.comparison, target.times
    return {
        "name": target.name,
        "status": target.status,
        "problem": target.problem,
        "notes": list(target.notes),
        "inputs": target.inputs,
        "origin": target.origin,
        "arguments": list(target.arguments),
        "device": target.device,
        "graphs": target.graphs,
        "graph_breaks": target.graph_breaks,
        "ops": list(target.ops),
        "cuts": [target.breaks.index(item) if item in target.breaks else None for item in target.cuts],
        "breaks": [break_item(item) for item in target.breaks],
        "known_breaks": target.known,
        "recompiles": [_recompile(item) for item in target.recompiles],
        "compilations": target.compilations,
        "varied": [
            {
                "change": one.change,
                "recompile": _recompile(one.recompile) if one.recompile is not None else None,
                "raised": one.raised,
            }
            for one in target.varied
        ],
        "runs": [run._asdict() for run in target.runs],
        "comparison": comparison_item(comparison, named) if comparison is not None else None,
        "times": times._asdict() if times is not None else None,
        "batches": [batch._asdict() for batch in target.batches],
    }


def break_item(item: Break) -> dict[str, Any]:
    return {
        "filename": item.path,
        **_place(item.span),
        "function": item.function,
        "kind": item.kind,
        "skipped_frame": item.skipped_frame,
        "gb_id": item.gb_id,
        "gb_type": item.gb_type,
        "reason": item.reason,
        "hints": list(item.hints),
        "count": item.count,
        "in_project": item.in_project,
        "source": item.source.strip(),
        "stack": [{"filename": f.path, "function": f.function, **_place(f.span)} for f in item.stack],
    }


def _place(span: Span) -> dict[str, Any]:
    return {
        "location": {"row": span.line, "column": span.column + 1},
        "end_location": {"row": span.end_line, "column": span.end_column + 1},
    }


def _recompile(item: Any) -> dict[str, Any]:
    return {
        "filename": item.path,
        "row": item.line,
        "function": item.function,
        "reason": item.reason,
        "subject": item.subject,
        "times": item.times,
        "seconds": item.seconds,
        "limit": item.limit,
    }
