"""The breaks that a command line names, as questions: those that no mend answers which may be applied."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from graphmend.analysis.syntax.source import Source
from graphmend.cli.failures import UsageError
from graphmend.model import prompt
from graphmend.model.ask import Answer, Asked, conversation
from graphmend.transforms.fix import Fix, Refusal
from graphmend.transforms.offers import mend
from graphmend.workspace import files
from graphmend.workspace.analysed_file import AnalysedFile
from graphmend.workspace.config import Configuration, Configurations, absolute

_PLACE = re.compile(r"(?P<file>.*?)(?::(?P<line>\d+))?\Z", re.DOTALL)


class File:
    """One file that is asked about. `take` puts a mended text in the place of the one before."""

    def __init__(self, path: Path, lines: frozenset[int], configuration: Configuration, python: str | None) -> None:
        self.path = path
        self.configuration = configuration
        self._file = AnalysedFile(path, configuration, python)
        self.look = self._file.look
        try:
            self.source = self._file.source
        except files.FileProblem as problem:
            raise UsageError(f"{path}: {problem}") from None
        if self.source.tree is None and self.source.problem is not None:
            raise UsageError(f"{path}:{self.source.problem.line}: does not parse: {self.source.problem.message}")
        found = list(self.breaks())
        wanted = [each for each in found if not lines or each.asked.finding.span.line in lines]
        if lines and not wanted:
            raise UsageError(f"{path}: no break without a mend stands in line {', '.join(map(str, sorted(lines)))}")
        self._waiting = {each.asked.finding.key for each in wanted}
        self._only = lines

    def breaks(self) -> Iterator[Break]:
        """The breaks of the file as it stands that no permitted mend answers, in order of the text."""
        result = self.look(self.source)
        for finding in result.findings:
            facts = result.facts(finding)
            if facts is None or finding.code.startswith("GM0"):
                continue
            answers = mend(finding, facts)
            if any(isinstance(a, Fix) and a.applicability != "display" for a in answers):
                continue
            refusals = [a for a in answers if isinstance(a, Refusal)]
            yield Break(self, Asked(result, finding, facts, refusals))

    def wanted(self) -> list[Break]:
        """The breaks that the command line names."""
        return [each for each in self.breaks() if not self._only or each.asked.finding.key in self._waiting]

    def next_break(self) -> Break | None:
        """The next one that was not asked about; None at the end."""
        for each in self.breaks():
            if each.asked.finding.key in self._waiting:
                self._waiting.discard(each.asked.finding.key)
                return each
        return None

    def take(self, text: str) -> None:
        self.source = Source(text, self.source.path)

    def write(self) -> None:
        """Writes the file where its text changed; raises `UsageError` where it was changed by somebody else."""
        if self.source.text != self._file.read.text:
            try:
                files.replace(self.path, self._file.read.encode(self.source.text), expected=self._file.read.data)
            except files.FileProblem as problem:
                raise UsageError(f"{self.path}: {problem}") from None


@dataclass(frozen=True, eq=False)
class Break:
    """A break that may be asked about."""

    file: File
    asked: Asked

    @property
    def characters(self) -> int:
        """How much would be sent; 0 where the function is too long."""
        try:
            return sum(len(message.text) for message in conversation(self.asked))
        except prompt.TooLong:
            return 0


class Done(NamedTuple):
    """A question that was asked, and what became of it."""

    asked: Break
    answer: Answer


def read(texts: Sequence[str], configurations: Configurations, python: str | None) -> list[File]:
    """The files that are named, each once, in the order of the command line."""
    lines: dict[Path, set[int]] = {}
    whole: set[Path] = set()
    for text in texts:
        match = _PLACE.match(text)
        assert match is not None
        given = match["line"] if not Path(text).exists() else None
        path = absolute(Path(match["file"] if given else text))
        if not path.is_file():
            raise UsageError(f"{match['file']} does not exist or is no file")
        lines.setdefault(path, set())
        if given:
            lines[path].add(int(given))
        else:
            whole.add(path)
    return [
        File(path, frozenset() if path in whole else frozenset(found), configurations.of_file(path), python)
        for path, found in lines.items()
    ]
