"""`--output-format json`: one array, an item a finding. Scripts rely on its keys; they are only ever added to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from graphmend.cli.checking.file_report import CheckRun, ReportedFinding


def write(run: CheckRun, out: TextIO) -> None:
    json.dump([as_json(item) for item in run.items], out, indent=2, ensure_ascii=False)
    out.write("\n")


def as_json(item: ReportedFinding) -> dict[str, Any]:
    """One item. Rows and columns count from 1, columns in code points; in a notebook, rows count in the `cell`."""
    finding = item.finding
    cell = {} if item.cell is None else {"cell": item.cell}
    return {
        "code": finding.code,
        "name": finding.name,
        "message": finding.message,
        "filename": finding.path,
        **cell,
        "location": {"row": finding.span.line, "column": finding.span.column + 1},
        "end_location": {"row": finding.span.end_line, "column": finding.span.end_column + 1},
        "function": finding.function,
        "region": finding.region,
        "certainty": finding.certainty,
        "effect": finding.effect,
        "default_flags_only": finding.default_flags_only,
        "severity": item.severity,
        "evidence": list(finding.evidence),
        "advice": finding.advice,
        "gb_id": finding.gb_id,
        "url": item.url,
        "fixes": [
            {
                "applicability": offer.applicability,
                "message": offer.message,
                "reason": offer.reason,
                "differences": list(offer.differences),
            }
            for offer in item.offers
        ],
        "refusal": item.refusal,
        "related": [
            {
                "filename": place.path,
                "location": {"row": place.span.line, "column": place.span.column + 1},
                "end_location": {"row": place.span.end_line, "column": place.span.end_column + 1},
                "message": place.message,
            }
            for place in finding.related
        ],
    }
