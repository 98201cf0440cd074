"""What the choice of roots asks of functions' texts, with the answers: while those of the functions that an edit
touches are as before, so are the roots, however many other functions there are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, TypeVar, cast

from graphmend.analysis.program.definitions import FunctionInfo

if TYPE_CHECKING:
    from graphmend.analysis.resolution.interface import ProgramView

Answer = TypeVar("Answer", bound=Hashable)
Question = Callable[["ProgramView", FunctionInfo], Answer]


def ask(session: ProgramView, info: FunctionInfo, question: Question[Answer]) -> Answer:
    """What a function's text, with the declarations of its parameters, says to a question; asked once."""
    answers = session.asked.setdefault(info, {})
    if question not in answers:
        answers[question] = question(session, info)
    return cast("Answer", answers[question])


def answer_as_before(session: ProgramView, edited: Iterable[FunctionInfo]) -> bool:
    """Whether some functions say to every question what they said when it was asked."""
    return all(
        question(session, info) == before for info in edited for question, before in session.asked.get(info, {}).items()
    )
