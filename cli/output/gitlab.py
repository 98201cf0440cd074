"""`--output-format gitlab`: a code quality report. https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import TYPE_CHECKING, TextIO

from graphmend.cli.paths import posix

if TYPE_CHECKING:
    from graphmend.cli.checking.file_report import CheckRun

_SEVERITIES = {"error": "critical", "warning": "major", "information": "minor", "hint": "info"}


def write(run: CheckRun, out: TextIO) -> None:
    seen: Counter[str] = Counter()
    report = []
    for item in run.items:
        finding, span = item.finding, item.finding.span
        path = posix(finding.path)
        # GitLab follows a finding through commits by this; it may not hold the line
        identity = f"{path}\0{finding.code}\0{finding.key or finding.function}"
        seen[identity] += 1
        report.append(
            {
                "description": finding.message,
                "check_name": finding.code,
                "fingerprint": hashlib.sha256(f"{identity}\0{seen[identity]}".encode()).hexdigest(),
                "severity": _SEVERITIES[item.severity],
                "location": {
                    "path": path,
                    "positions": {
                        "begin": {"line": span.line, "column": span.column + 1},
                        "end": {"line": span.end_line, "column": span.end_column + 1},
                    },
                },
            }
        )
    json.dump(report, out, indent=2)
    out.write("\n")
