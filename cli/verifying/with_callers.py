"""A file mended along with what imports it: what breaks in it may only be known from the values that callers give."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from graphmend.analysis.check import Result, check
from graphmend.analysis.syntax.source import Source
from graphmend.transforms.rounds import Run
from graphmend.workspace.analysed_file import AnalysedFile

if TYPE_CHECKING:
    from graphmend.transforms.mend import Applied


def mended_for(
    source: Source, file: AnalysedFile, callers: Sequence[AnalysedFile], texts: dict[str, str], *, unsafe: bool
) -> tuple[Source, list[Applied]]:
    """The text of `file`, which is `source` now, with the mends that the checks of `callers` ask for as well, and these
    mends. The callers read `texts`, which hold the mended text then.
    """
    run = Run(_Together(source, file, callers, texts))
    run.to_the_end(unsafe)
    return run.state.sources.get(source.path, source), run.applied


class _Together:
    """The files of a run; only the called one is changed."""

    def __init__(
        self, source: Source, file: AnalysedFile, callers: Sequence[AnalysedFile], texts: dict[str, str]
    ) -> None:
        self._own, self._file, self._texts = source, file, texts
        self._callers = {str(caller.path): caller for caller in callers}
        self.checked = (source.path, *self._callers)
        self.replace(source)

    def check(self, path: str) -> Result:
        if path == self._own.path:
            return check(self._own, self._file.project, self._file.settings)
        caller = self._callers[path]
        return check(caller.source, caller.project, caller.settings)

    def accepted(self, path: str) -> Collection[str]:
        return tuple(self._file.configuration["accept"])

    def source(self, path: str) -> Source | None:
        return self._own if path == self._own.path else None

    def replace(self, source: Source) -> None:
        self._own = source
        self._texts[source.path] = source.text
        for file in (self._file, *self._callers.values()):
            file.project.forget(source.path, *self._callers)
