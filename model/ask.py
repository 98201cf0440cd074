"""One question from its subject to a verified mend: asks, converts, gates, verifies, asks again.

What an executed text printed or raised is never sent back: a retry says which gate it was, in our own words.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from graphmend.analysis.check import Result
from graphmend.analysis.torch_facts import load
from graphmend.model import prompt, splice, trial
from graphmend.model.endpoint import Declined, Unanswered
from graphmend.model.gates.form import lost_reads, new_numbers, read
from graphmend.model.gates.original import Original
from graphmend.model.gates.text import Unfit
from graphmend.model.meaning import Message, Model, NotOfType
from graphmend.model.question import Impossible, Replacement, without_break
from graphmend.model.subject import extent, function_text, subject
from graphmend.transforms.code.text_edits import apply
from graphmend.transforms.fix import Fix, Refusal, TextEdit

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding
    from graphmend.dynamo.report import Report

TRIES = 3
REWRITE = "model"


class Verify(Protocol):
    """Runs the original and the replaced text of the file side by side, the latter confined."""

    async def __call__(self, mended: str) -> Report: ...


class Gate(NamedTuple):
    """A gate that an answer came to: empty `says` where it passed."""

    name: str
    says: str
    seconds: float


class Asked(NamedTuple):
    """What is asked about: one finding of a result, its facts, why no rule mends it, and shapes of example inputs."""

    result: Result
    finding: Finding
    facts: FunctionFacts
    refusals: Sequence[Refusal] = ()
    shapes: Sequence[str] = ()


@dataclass
class Answer:
    """What became of a question. `fix` where an answer passed every gate; `problem` says why there is none."""

    fix: Fix | None = None
    problem: str = ""
    unanswered: bool = False
    """Nobody answered: asking about other breaks would end likewise."""
    requests: int = 0
    gates: list[list[Gate]] = field(default_factory=list)
    """Of each try, in order, up to the first that failed."""
    text: str = ""
    """The whole file with the replacement."""
    breaks: tuple[int, int] | None = None
    runs: int = 0


def conversation(asked: Asked) -> list[Message]:
    """What would be sent; raises `prompt.TooLong`."""
    return prompt.messages(without_break, subject(asked.finding, asked.facts, asked.refusals, asked.shapes))


async def ask(
    asked: Asked,
    model: Model,
    name: str,
    look: trial.Look,
    verify: Verify,
    *,
    tries: int = TRIES,
    rounding: bool = True,
    tell: Callable[[str], None] = lambda stage: None,
) -> Answer:
    """Asks a model, called `name` where its mend is shown, for a function without the break.

    `look` analyses a text of the file as the first time. Cancelling the task ends the check; the caller cancels the
    endpoint.
    """
    answer = Answer()
    try:
        messages = conversation(asked)
    except prompt.TooLong as error:
        answer.problem = str(error)
        return answer
    for number in range(1, tries + 1):
        tell(f"asking {name}" + (f", try {number}" if number > 1 else ""))
        try:
            text = await asyncio.to_thread(model.complete, messages, without_break.schema)
        except Unanswered as error:
            answer.problem, answer.unanswered = str(error), not isinstance(error, Declined)
            return answer
        answer.requests += 1
        attempt = _Attempt(asked, name, look, verify, rounding, answer)
        answer.gates.append(attempt.gates)
        try:
            if await attempt.passes(text, tell):
                return answer
        except _Given as given:
            answer.problem = str(given)
            return answer
        except Unfit as error:
            answer.problem = error.shown if isinstance(error, trial.Differs) else str(error)
            messages = [*messages, Message("assistant", text), prompt.again(str(error))]
    return answer


class _Given(Exception):
    """The model says that it cannot be done."""


class _Attempt:
    """The gates of one answer, in order."""

    def __init__(
        self, asked: Asked, name: str, look: trial.Look, verify: Verify, rounding: bool, answer: Answer
    ) -> None:
        self.asked = asked
        self.name = name
        self.look = look
        self.verify = verify
        self.rounding = rounding
        self.answer = answer
        self.gates: list[Gate] = []

    async def passes(self, text: str, tell: Callable[[str], None]) -> bool:
        """Whether a mend came of an answer; raises `Unfit` at the first gate that it fails."""
        source, facts = self.asked.facts.source, self.asked.facts
        where = extent(facts)
        original = Original(function_text(source, where), facts.names)
        with self._gate("type"):
            given = _converted(text)
        if isinstance(given, Impossible):
            raise _Given(f"{self.name} sees no way: {_line(given.reason)}")
        with self._gate("form"):
            function = read(given.source, original, load(facts.torch_version))
        with self._gate("reads"):
            lost = lost_reads(function, original)
            if lost:
                raise Unfit(f"the answer does not read {', '.join(lost)} any more")
        with self._gate("text"):
            span, new = splice.edit(source, where, given.source, function)
            edits = (TextEdit(span, new),)
            mended = apply(source.text, edits, source)
        with self._gate("re-check"):
            doubtful = trial.recheck(self.asked.result, self.asked.finding, mended, self.look)
        tell("checking the answer with TorchDynamo")
        with self._gate("run"):
            report = await self.verify(mended)
            lines = new.count("\n") + 1
            seen = trial.verified(report, self.asked.finding, doubtful, where, lines, self.rounding)
        numbers = new_numbers(function, original)
        self.answer.fix = Fix(
            REWRITE,
            f"Rewrite {facts.function.name}, by {self.name}, verified on {seen.runs} runs",
            "unsafe",
            "; ".join(_reasons(self.name, seen, given, numbers)),
            lambda: edits,
            differences=seen.differences,
        )
        self.answer.problem, self.answer.text = "", mended
        self.answer.breaks, self.answer.runs = seen.breaks, seen.runs
        return True

    @contextmanager
    def _gate(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        except Unfit as error:
            self.gates.append(Gate(name, str(error), time.monotonic() - began))
            raise
        self.gates.append(Gate(name, "", time.monotonic() - began))


def _converted(text: str) -> Replacement | Impossible:
    try:
        return without_break.convert(text)
    except NotOfType as error:
        raise Unfit(str(error)) from None


def _reasons(name: str, seen: trial.Verified, given: Replacement, numbers: Sequence[str]) -> Iterator[str]:
    yield f"written by {name}, verified on {seen.runs} runs"
    yield from (difference.says for difference in seen.differences)
    yield from (f"{name} says: {_line(claim)}" for claim in given.differs)
    if numbers:
        yield f"new numbers: {', '.join(numbers)}"


def _line(text: str) -> str:
    """Text of a model on one line of bounded length, printable characters alone."""
    return "".join(c if c.isprintable() else " " for c in text)[:200].strip()
