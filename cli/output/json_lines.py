"""`--output-format json-lines`: for programs that show findings as they come. A line for each file when it is checked,
and for all of them again in the end, as the checks of other files may have found more in it. Mends are not looked for.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

from graphmend.cli.output.json import as_json

if TYPE_CHECKING:
    from graphmend.cli.checking.file_report import CheckRun, ReportedFinding


def write(run: CheckRun, out: TextIO) -> None:
    items: dict[str, list[ReportedFinding]] = defaultdict(list)
    for item in run.items:
        items[item.finding.path].append(item)
    for path in run.files:
        tell(path, items[path], (len(run.files), len(run.files)), out)


def tell(
    path: str, items: Iterable[ReportedFinding], progress: tuple[int, int], out: TextIO, notes: Iterable[str] = ()
) -> None:
    """The findings of one file, and how many of how many files are checked."""
    checked, files = progress
    found = {"items": [as_json(item) for item in items], "notes": list(notes)}
    out.write(json.dumps({"filename": path, "checked": checked, "files": files, **found}, ensure_ascii=False) + "\n")
    out.flush()
