"""`--statistics`: how often each rule found something, most often first."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, TextIO

from graphmend.cli.output.concise import mark

if TYPE_CHECKING:
    from graphmend.cli.checking.file_report import CheckRun


def write(run: CheckRun, out: TextIO, *, as_json: bool = False) -> None:
    counts = Counter(item.finding.code for item in run.items)
    names = {item.finding.code: item.finding.name for item in run.items}
    mendable = Counter(item.finding.code for item in run.items if mark(item))
    rows = sorted(counts.items(), key=lambda row: (-row[1], row[0]))
    if as_json:
        data = [{"code": c, "name": names[c], "count": n, "mendable": mendable[c]} for c, n in rows]
        json.dump(data, out, indent=2)
        out.write("\n")
        return
    for code, number in rows:
        note = f"  ({mendable[code]} mendable)" if mendable[code] else ""
        out.write(f"{number:>6}  {code}  {names[code]}{note}\n")
