"""Every mend that is offered in real files parses, answers its finding and leaves all other functions as they were.

GRAPHMEND_FUZZ sets how much is looked at; `make fuzz` looks at many files.
"""

from __future__ import annotations

import ast
import contextlib
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphmend.analysis.check import check
from graphmend.analysis.finding import Finding
from graphmend.analysis.syntax.source import Source
from graphmend.transforms.code.text_edits import apply
from graphmend.transforms.fix import Fix, TextEdit, Unmendable
from graphmend.transforms.mend import mend, mend_all

MENDS = int(os.environ.get("GRAPHMEND_FUZZ", "60")) // 6


def others(source: Source, function: str) -> dict[str, list[str]]:
    """The text of all functions and classes of the top level but the one that `function` stands in."""
    found: dict[str, list[str]] = {}
    assert source.tree is not None
    for node in source.tree.body:
        defines = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        if defines and node.name != function.partition(".")[0]:
            found.setdefault(node.name, []).append(source.segment(source.span(node)))
    return found


def offered(source: Source) -> Iterator[tuple[Finding, Fix, tuple[TextEdit, ...]]]:
    """The mends that a user may choose, with their edits."""
    result = check(source)
    for finding in result.findings:
        for fix in mend(finding, result.facts(finding)):
            if isinstance(fix, Fix) and fix.applicability != "display":
                with contextlib.suppress(Unmendable):
                    yield finding, fix, fix.edits()


#: rewrites that change the calls of the function that a finding is in
AT_CALLS = {"on_host", "body_of_call"}


@pytest.mark.many
def test_offered_mends_of_real_files(real_files: list[Path]) -> None:
    chance, looked_at = random.Random(MENDS), 0
    for path in chance.sample(real_files, len(real_files)):
        source = Source(path.read_text("utf-8"), str(path))
        before = looked_at
        for finding, fix, edits in offered(source):
            mended = Source(apply(source.text, edits, source), str(path))
            about = f"{path}:{finding.span.line} {finding.code} {fix.rewrite}"
            assert mended.tree is not None, about
            assert mended.text != source.text, about
            if fix.rewrite not in AT_CALLS:
                assert others(mended, finding.function) == others(source, finding.function), about
            looked_at += 1
        if looked_at > before:
            once = mend_all(source, unsafe=True).source
            assert not mend_all(once, unsafe=True).applied, path
        if looked_at >= MENDS:
            return
    assert looked_at
