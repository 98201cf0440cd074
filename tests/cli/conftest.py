"""A stand-in for the analysis, so that tests of the command do not depend on what the rules find today.

Every line that holds `BREAK` is a finding GM101, `ASSUMED` one in a region that is only assumed to be compiled, and
`PRINT` a GM201; the mend of a GM101 replaces its word by `MENDED`, and is safe where the line also says `SAFE`.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from graphmend.analysis.check import Result
from graphmend.analysis.finding import Finding
from graphmend.analysis.settings import Settings
from graphmend.analysis.syntax.source import Source
from graphmend.analysis.syntax.span import Span
from graphmend.cli.main import main
from graphmend.transforms.fix import Fix, Refusal, TextEdit

WORDS = {"BREAK": "GM101", "ASSUMED": "GM101", "PRINT": "GM201"}


@dataclass
class Outcome:
    """What a run of the command left behind."""

    status: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command in this process."""

    def run(*arguments: str | Path) -> Outcome:
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    return run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that the command runs in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRAPHMEND_CACHE_DIR", str(tmp_path.parent / f"{tmp_path.name}-cache"))
    return tmp_path


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Puts the stand-in in the place of the analysis; the paths that were analysed, in order."""
    checked: list[str] = []

    def check(source: Source, project: object = None, settings: Settings | None = None, **_: object) -> Result:
        checked.append(source.path)
        settings = settings or Settings()
        findings = find(source) if source.tree is not None else ()
        return Result(source, tuple(finding for finding in findings if settings.selects(finding.code)))

    monkeypatch.setattr("graphmend.cli.checking.file_checker.check", check)
    monkeypatch.setattr("graphmend.transforms.mend.check", check)
    for module in ("mend", "offers"):
        monkeypatch.setattr(f"graphmend.transforms.{module}.mend", mend)
    monkeypatch.setattr(Result, "facts", lambda self, finding: Facts(self, finding))
    return checked


class Facts:
    """What the stand-ins ask of the facts of a finding."""

    def __init__(self, result: Result, finding: Finding) -> None:
        self.source = result.source
        tree = result.source.tree
        assert tree is not None
        statements = (node for node in ast.walk(tree) if isinstance(node, ast.stmt))
        self.statement = next(s for s in statements if s.lineno <= finding.span.line <= (s.end_lineno or 0))

    def recall(self) -> None:
        """There is nothing to make."""


def find(source: Source) -> tuple[Finding, ...]:
    counts: Counter[str] = Counter()
    found = []
    for number, line in enumerate(source.text.splitlines(), 1):
        for word, code in WORDS.items():
            column = line.find(word)
            if column >= 0:
                key = f"{code}:f:{' '.join(line.partition('#')[0].split())}"
                counts[key] += 1
                found.append(
                    Finding(
                        code=code,
                        name="tensor-branch" if code == "GM101" else "print",
                        message=f"{word} breaks the graph",
                        path=source.path,
                        span=Span(number, column, number, column + len(word)),
                        function="f",
                        region="assumed" if word == "ASSUMED" else "compiled",
                        certainty="certain",
                        effect="splits",
                        evidence=("x is a parameter of f", f"{word} asks for its value"),
                        gb_id="GB0170",
                        key=f"{key}:{counts[key]}",
                    )
                )
    return tuple(found)


def mend(finding: Finding, facts: Facts, accept: object = ()) -> list[Fix | Refusal]:
    line = facts.source.lines.line(finding.span.line - 1)
    if finding.code != "GM101":
        return [Refusal("where", "the other side is not known")]
    safe = "SAFE" in line
    edits = (TextEdit(finding.span, "MENDED"),)
    return [Fix("where", "use torch.where", "safe" if safe else "unsafe", "both sides run", lambda: edits)]
