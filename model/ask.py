"""One question from its subject to a verified mend: asks, converts, gates, verifies, asks again.

What an executed text printed or raised is never sent back: a retry says which gate it was, in our own words.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.check import Result
from graphmend.model import prompt
from graphmend.model.endpoint import Declined, Unanswered
from graphmend.model.gatekeeper import Gate, Gatekeeper, Look, Passed, Verify
from graphmend.model.gates.text import Unfit
from graphmend.model.meaning import Message, Model, NotOfType
from graphmend.model.question import Impossible, Replacement, without_break
from graphmend.model.subject import subject
from graphmend.transforms.fix import Fix, Refusal

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

TRIES = 3
REWRITE = "model"


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
    look: Look,
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
    sent = model.requests
    for number in range(1, tries + 1):
        tell(f"asking {name}" + (f", try {number}" if number > 1 else ""))
        try:
            text = await asyncio.to_thread(model.complete, messages, without_break.schema)
        except Unanswered as error:
            answer.problem, answer.unanswered = str(error), not isinstance(error, Declined)
            return answer
        finally:
            answer.requests = model.requests - sent
        keeper = Gatekeeper(asked.result, (asked.finding,), asked.facts, look, verify, rounding=rounding)
        try:
            await _attempt(asked, name, text, keeper, answer, tell)
            return answer
        except _Given as given:
            answer.problem = str(given)
            return answer
        except Unfit as error:
            answer.problem = str(error)
            messages = [*messages, Message("assistant", text), prompt.again(str(error))]
    return answer


class _Given(Exception):
    """The model says that it cannot be done."""


async def _attempt(
    asked: Asked, name: str, text: str, keeper: Gatekeeper, answer: Answer, tell: Callable[[str], None]
) -> None:
    """Makes a mend of one answer; raises `Unfit` at the first gate that it fails."""
    answer.gates.append(keeper.gates)
    with keeper.gate("type"):
        given = _converted(text)
    if isinstance(given, Impossible):
        raise _Given(f"{name} sees no way: {_line(given.reason)}")
    passed = await keeper.judge(given.source, tell)
    seen, edits = passed.seen, passed.edits
    answer.fix = Fix(
        REWRITE,
        f"Rewrite {asked.facts.function.name}, by {name}, verified on {seen.runs} runs",
        "unsafe",
        "; ".join(_reasons(name, passed, given)),
        lambda: edits,
        differences=seen.differences,
    )
    answer.problem, answer.text = "", passed.text
    answer.breaks, answer.runs = seen.breaks, seen.runs


def _converted(text: str) -> Replacement | Impossible:
    try:
        return without_break.convert(text)
    except NotOfType as error:
        raise Unfit(str(error)) from None


def _reasons(name: str, passed: Passed, given: Replacement) -> Iterator[str]:
    yield f"written by {name}, verified on {passed.seen.runs} runs"
    yield from (difference.says for difference in passed.seen.differences)
    yield from (f"{name} says: {_line(claim)}" for claim in given.differs)
    if passed.numbers:
        yield f"new numbers: {', '.join(passed.numbers)}"


def _line(text: str) -> str:
    """Text of a model on one line of bounded length, printable characters alone."""
    return "".join(c if c.isprintable() else " " for c in text)[:200].strip()
