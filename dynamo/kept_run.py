"""The run of a text that others are compared with: kept for the next of them, while all that it depends on is the same.

Several answers of a model are judged one after the other, each beside the text that they are to replace.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass

from graphmend.dynamo.report import Report
from graphmend.dynamo.report_cache import stamp, text_digest
from graphmend.dynamo.requests import Request


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A check, and the folder that holds what it computed."""

    request: Request
    stamp: str
    texts: Mapping[str, str]
    """Digests of the texts that took part, by path."""
    report: Report
    folder: tempfile.TemporaryDirectory[str]

    @classmethod
    def of(cls, request: Request, torch: object, report: Report, folder: tempfile.TemporaryDirectory[str]) -> KeptRun:
        paths = {request.path}.union(
            *(lines for target in report.targets for lines in (target.executed, target.traced))
        )
        texts = {path: text_digest(path, request.texts) for path in paths}
        return cls(request, stamp(request, torch), texts, report, folder)

    def is_of(self, request: Request, torch: object) -> bool:
        """Would the same check of the same texts be made again?"""
        same = self.request == request and self.stamp == stamp(request, torch)
        return same and all(text_digest(path, request.texts) == known for path, known in self.texts.items())
