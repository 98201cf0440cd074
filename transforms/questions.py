"""What a rewrite may ask about code at a place, as a closed list, and the record of what it did ask and was
told under a condition.

A function that answers such a question says so (`answers`), and a rewrite declares which ones it needs
(`rewrites/answers.py`). A question inside the answer to another one belongs to that answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import Literal, ParamSpec, TypeVar

Question = Literal[
    "effects",
    "random",
    "totality",
    "memory",
    "order",
    "domain",
    "dtypes",
    "numbers",
    "shapes",
    "gradients",
    "context",
    "names",
]

QUESTIONS: dict[Question, str] = {
    "effects": "Does it write, draw, print, warn, or run what is not known?",
    "random": "Which random numbers are drawn, and does a graph still draw them?",
    "totality": "Can it raise, where it is evaluated although it was not before?",
    "memory": "Who else sees this memory, and who changes it in place?",
    "order": "What is read, stored or bound again, before and behind it?",
    "domain": "Over which elements does this compute?",
    "dtypes": "Which dtypes may come, and does the operation exist for them?",
    "numbers": "May a tensor stand for this Python number, in which precision?",
    "shapes": "Do the shapes stay?",
    "gradients": "Do gradients and their flags stay?",
    "context": "Who calls this code, and who sees its exceptions?",
    "names": "What does a name mean here, and which ones are free?",
}

P = ParamSpec("P")
K = TypeVar("K")
R = TypeVar("R")


class UndeclaredQuestionError(Exception):
    """A rewrite asks what it does not declare."""

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self.question = question


@dataclass
class Asking:
    """A rewrite at work: what it declares, and what it has asked so far."""

    declared: frozenset[Question]
    asked: set[Question] = field(default_factory=set)
    answering: bool = False
    """Is an answer being found, whose own questions do not count?"""
    granted: set[str] = field(default_factory=set)
    """What answers took for granted that the code in sight does not show: a sentence for each."""

    def ask(self, question: Question) -> None:
        self.asked.add(question)
        if question not in self.declared:
            raise UndeclaredQuestionError(question)


_ASKING: ContextVar[Asking | None] = ContextVar("asking", default=None)


@contextmanager
def asking(declared: Iterable[Question]) -> Iterator[Asking]:
    """The questions that are asked inside are those of one rewrite."""
    outer, now = _ASKING.get(), Asking(frozenset(declared))
    token = _ASKING.set(now)
    try:
        yield now
    finally:
        _ASKING.reset(token)
        if outer is not None:
            outer.granted |= now.granted


def take_for_granted(says: str) -> None:
    """An answer holds only where something is so that the code in sight does not show; a mend that is decided by it
    differs where it is not.
    """
    if (now := _ASKING.get()) is not None:
        now.granted.add(says)


def answers(question: Question) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """The decorated function answers a question; UndeclaredQuestionError where the rewrite that asks does not declare
    it.
    """

    def of(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def answer(*args: P.args, **kwargs: P.kwargs) -> R:
            now = _ASKING.get()
            if now is None or now.answering:
                return function(*args, **kwargs)
            now.ask(question)
            now.answering = True
            try:
                return function(*args, **kwargs)
            finally:
                now.answering = False

        return answer

    return of


def kept(function: Callable[[K], R]) -> Callable[[K], R]:
    """The last result of a function of one argument is kept, and with it what was asked for it: whoever is given it
    has asked that too.
    """
    last: list[tuple[K, R, frozenset[Question], frozenset[str]]] = []

    @wraps(function)
    def result(argument: K) -> R:
        now = _ASKING.get()
        before = last[0] if last else None  # one look: another thread may replace it
        if before is not None and before[0] == argument:
            _, found, asked, granted = before
            if now is not None:
                now.granted |= granted
            if now is not None and not now.answering:
                for question in asked:
                    now.ask(question)
            return found
        with asking(QUESTIONS if now is None else now.declared) as own:
            found = function(argument)
        last[:] = [(argument, found, frozenset(own.asked), frozenset(own.granted))]
        if now is not None:
            now.asked |= own.asked
        return found

    return result
