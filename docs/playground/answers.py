"""What the playground shows of a text: its findings with their evidence and mends, and the diff of the safe mends."""

from __future__ import annotations

import difflib
import json
from typing import Any

from graphmend.analysis.check import Result, check
from graphmend.analysis.finding import Finding
from graphmend.analysis.syntax.source import Source
from graphmend.transforms.fix import Fix
from graphmend.transforms.mend import mend, mend_all

PATH = "model.py"


def answer(text: str) -> str:
    """The findings of a module's text, as JSON for the page."""
    source = Source(text, PATH)
    result = check(source)
    findings = [_finding(finding, result) for finding in result.findings]
    failed = source.problem if source.tree is None else None  # what parsing says
    problem = f"line {failed.line}: {failed.message}" if failed is not None else ""
    diff, note = _diff(source) if findings else ("", "")
    return json.dumps({"findings": findings, "problem": problem, "diff": diff, "note": note})


def _finding(finding: Finding, result: Result) -> dict[str, Any]:
    answers = mend(finding, result.facts(finding))
    span = finding.span
    return {
        "code": finding.code,
        "name": finding.name,
        "message": finding.message,
        "region": finding.region,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
        "evidence": finding.evidence,
        "advice": finding.advice,
        "mends": [_described(fix) for fix in answers if isinstance(fix, Fix)],
    }


def _described(fix: Fix) -> str:
    reason = f": {fix.reason}" if fix.reason else ""
    return f"mend ({fix.applicability}): {fix.title}{reason if fix.applicability != 'safe' else ''}"


def _diff(source: Source) -> tuple[str, str]:
    """The safe mends as a unified diff; what to say where there is none."""
    try:
        mended = mend_all(source, unsafe=False)
    except ImportError:  # libcst, which cuts out and puts back whole statements, has parts that are compiled
        return "", "Whole statements move in these mends; `graphmend check --diff` shows how."
    lines = (text.splitlines() for text in (source.text, mended.source.text))
    return "\n".join(difflib.unified_diff(*lines, PATH, PATH, lineterm="")), ""
