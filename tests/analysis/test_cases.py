"""The cases in `cases/*.md`: small modules whose comments say what is found on a line; TorchDynamo judges them too.

A case is a ```python block under a heading, which names it. In its comments:

    # run: f(torch.ones(4))         an expression that TorchDynamo judges the case by; there may be several
    # GM101                         a finding that begins on this line: certain, and it splits the graph
    # GM101 likely skips-frame      another certainty or effect, or `default` for breaks under default flags only
    # GM101 unseen                  a finding that TorchDynamo does not get to in these runs
    # missed                        a break that the analysis does not know of, by decision
    # file: pkg/base.py             what follows is another file; the last file is the one that is checked

`python xfail` marks a limitation that waits for its cure. `PRELUDE` stands before every file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from graphmend.analysis.check import check
from graphmend.analysis.program.project import Project
from graphmend.analysis.syntax.source import Source

from .folder import Folder

FOLDER = Path(__file__).with_name("cases")
PRELUDE = """\
import functools, logging, math, typing
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union
"""

_BLOCK = re.compile(
    r"^#+ (?P<heading>[^\n]+)$|^```python(?P<xfail> xfail)?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_MARK = re.compile(r"# (GM\d{3}|missed)((?: (?:likely|skips-frame|raises|recompiles|default|unseen))*)")


class Mark(NamedTuple):
    """A finding as a case expects it."""

    path: str
    line: int
    code: str
    certainty: str
    effect: str
    default_only: bool


class Case(NamedTuple):
    """One block: its files, the last of which is checked."""

    files: dict[str, str]
    xfail: bool

    @property
    def main(self) -> str:
        return list(self.files)[-1]

    @property
    def run(self) -> list[str]:
        return re.findall(r"^# run: (.*)$", "".join(self.files.values()), re.MULTILINE)

    def marks(self) -> Iterator[tuple[Mark, set[str]]]:
        for path, text in self.files.items():
            for line, content in enumerate(text.splitlines(), 1):
                for code, words in _MARK.findall(content):
                    said = set(words.split())
                    effect = (said & {"skips-frame", "raises", "recompiles"} or {"splits"}).pop()
                    certainty = "likely" if "likely" in said else "certain"
                    yield Mark(path, line, code, certainty, effect, "default" in said), said


def cases() -> Iterator[tuple[str, Case]]:
    """Every case with a name of its own."""
    for page in sorted(FOLDER.glob("*.md")):
        heading, number = "", 0
        for block in _BLOCK.finditer(page.read_text("utf-8")):
            if block["heading"]:
                heading, number = re.sub(r"\W+", "-", block["heading"].lower()).strip("-"), 0
                continue
            number += 1
            parts = re.split(r"^# file: (\S+)\n", "# file: main.py\n" + block["text"], flags=re.MULTILINE)[1:]
            files = {path: PRELUDE + text for path, text in zip(parts[::2], parts[1::2], strict=True)}
            if len(files) > 1 and not files["main.py"].removeprefix(PRELUDE).strip():
                del files["main.py"]
            yield f"{page.stem}-{heading}-{number}", Case(files, block["xfail"] is not None)


CASES = dict(cases())


@pytest.fixture(params=[pytest.param(c, id=n) for n, c in CASES.items()])
def case(request: pytest.FixtureRequest) -> Case:
    made: Case = request.param
    if made.xfail and request.function is test_analysis_finds_what_is_marked:
        request.applymarker(pytest.mark.xfail(strict=True, reason="a known limitation"))
    return made


def test_analysis_finds_what_is_marked(case: Case) -> None:
    result = check(Source(case.files[case.main], case.main), Project(Folder(case.files)))
    everything = [*result.findings, *(f for findings in result.elsewhere.values() for f in findings)]
    found = {(f.path, f.span.line, f.code, f.certainty, f.effect, f.default_flags_only) for f in everything}
    assert found == {tuple(mark) for mark, _ in case.marks() if mark.code != "missed"}


@pytest.mark.torch
def test_dynamo_breaks_where_it_is_marked(case: Case, dynamo: Any) -> None:
    if not case.run:
        pytest.skip("the case says nothing to run")
    verdict = dynamo(case.files, case.main, case.run)
    assert verdict.lines == {(mark.path, mark.line) for mark, said in case.marks() if "unseen" not in said}, verdict
