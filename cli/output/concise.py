"""`--output-format concise`: a line a finding, `path:row:column: CODE message`, as editors' error parsers expect it.

With `--show-fixes`, `[*]` marks a finding that `--fix` mends, `[-]` one that it mends with `--unsafe-fixes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from graphmend.cli.checking.file_report import CheckRun, ReportedFinding


def write(run: CheckRun, out: TextIO) -> None:
    for item in run.items:
        out.write(f"{item.place}: {item.finding.code} {mark(item)}{item.finding.message}\n")


def mark(item: ReportedFinding) -> str:
    """Whether `--fix` would remove a break, in three characters and a space; "" where it stays."""
    kinds = {offer.applicability for offer in item.offers if not offer.narrows}
    return "[*] " if "safe" in kinds else "[-] " if "unsafe" in kinds else ""
