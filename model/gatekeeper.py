"""The gates that every new text of a function passes, whoever wrote it: a model that was asked, or an assistant."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from graphmend.analysis.syntax.source import Source
from graphmend.analysis.torch_facts import load
from graphmend.model import splice, trial
from graphmend.model.gates.boundaries import moved
from graphmend.model.gates.form import hard_coded, lost_reads, new_numbers, read
from graphmend.model.gates.original import Original
from graphmend.model.gates.text import Unfit, function_of
from graphmend.model.subject import extent, function_text
from graphmend.transforms.code.text_edits import apply
from graphmend.transforms.fix import TextEdit

if TYPE_CHECKING:
    from graphmend.analysis.check import Result
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding
    from graphmend.dynamo.report import Report


class Look(Protocol):
    """How the analysis looks at a text of the file: with the project and the settings of the first look."""

    def __call__(self, text: Source) -> Result: ...


class Verify(Protocol):
    """Runs the original and the replaced text of the file side by side, the latter confined."""

    async def __call__(self, mended: str) -> Report: ...


class Gate(NamedTuple):
    """A gate that a text came to: empty `says` where it passed."""

    name: str
    says: str
    seconds: float


class Passed(NamedTuple):
    """A text that passed every gate."""

    edits: tuple[TextEdit, ...]
    text: str
    """The whole file with the new function."""
    seen: trial.Verified
    numbers: tuple[str, ...]
    """New numbers in it, for the user to look at."""
    gone: tuple[Finding, ...]


class Gatekeeper:
    """The gates of one text, in order; `gates` tells of those that it came to.

    `wanted` are the findings of the function of which one at least must be gone. With `rounding` results may differ by
    it.
    """

    def __init__(
        self,
        result: Result,
        wanted: Sequence[Finding],
        facts: FunctionFacts,
        look: Look,
        verify: Verify,
        *,
        rounding: bool = True,
    ) -> None:
        self.gates: list[Gate] = []
        self._result = result
        self._wanted = wanted
        self._facts = facts
        self._look = look
        self._verify = verify
        self._rounding = rounding

    async def judge(self, text: str, tell: Callable[[str], None] = lambda stage: None) -> Passed:
        """Raises `Unfit` at the first gate that the text fails."""
        source, facts = self._facts.source, self._facts
        where = extent(facts)
        original = Original(function_text(source, where), facts.names)
        with self.gate("form"):
            function = read(text, original, load(facts.torch_version))
        with self.gate("reads"):
            lost = lost_reads(function, original)
            if lost:
                raise Unfit(f"the answer does not read {', '.join(lost)} any more")
            gone = hard_coded(function, original)
            if gone is not None:
                raise Unfit(f"the answer has a new number and does not call {gone} any more, which may have given it")
            other = moved(function, original.function)
            if other is not None:
                raise Unfit(f"the answer has `{other[0]}`, where the original has `{other[1]}`")
        with self.gate("text"):
            span, new = splice.edit(source, where, text, function)
            edits = (TextEdit(span, new),)
            mended = apply(source.text, edits, source)
        with self.gate("re-check"), _collector_paused():
            looked = self._look(Source(mended, source.path))
            try:
                checked = trial.recheck(self._result, self._wanted, looked)
            finally:
                looked.close()
        tell("checking the answer with TorchDynamo")
        with self.gate("run"):
            report = await self._verify(mended)
            lines = new.count("\n") + 1
            trial.reached(report, function_of(new), original, source.path, where.first)
            seen = trial.verified(report, checked.gone[0], checked.new, where, lines, self._rounding)
        return Passed(edits, mended, seen, tuple(new_numbers(function, original)), checked.gone)

    @contextmanager
    def gate(self, name: str) -> Iterator[None]:
        """What is done at a gate; a text that is stopped there is remembered with the reason."""
        began = time.monotonic()
        try:
            yield
        except Unfit as error:
            self.gates.append(Gate(name, str(error), time.monotonic() - began))
            raise
        self.gates.append(Gate(name, "", time.monotonic() - began))


@contextmanager
def _collector_paused() -> Iterator[None]:
    """No collection of cycles meanwhile: it would look through all that is known of the file, which takes longer than
    the analysis of its new text, and finds nothing, as that is released at once."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
