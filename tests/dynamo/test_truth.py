"""The recorder against measured truth: every thirtieth pattern, and the syntax of the oldest Python that torch runs
on.
"""

from __future__ import annotations

import ast
import importlib.metadata
import json
from pathlib import Path

import pytest

from graphmend.analysis.torch_facts import versions

from .conftest import Checks


@pytest.mark.torch
def test_breaks_stand_where_they_were_measured(checks: Checks, shared: Path) -> None:
    patterns = shared / "truth" / "patterns"
    minor = ".".join(importlib.metadata.version("torch").split(".")[:2])
    expected = patterns / ("expected.json" if minor == versions()[-1] else f"expected-{minor}.json")
    if not expected.is_file():
        pytest.skip(f"no lines were measured with torch {minor}")
    for case in json.loads(expected.read_text())[::30]:
        report = checks(patterns / case["file"])
        assert report.problem is None
        found = {b.span.line for b in report.breaks if b.in_project}
        statements = [range(b["statement"][0], b["statement"][1] + 1) for b in case["breaks"]]
        assert all(not found.isdisjoint(statement) for statement in statements), case["file"]
        assert all(any(line in statement for statement in statements) for line in found), case["file"]


def test_the_worker_parses_on_python_3_9(root: Path) -> None:
    for path in (root / "dynamo" / "worker").rglob("*.py"):
        ast.parse(path.read_text("utf-8"), str(path), feature_version=(3, 9))
