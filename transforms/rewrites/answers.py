"""How a rewrite words its answer, so that all of them say the same things in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from graphmend.transforms.code.text_edits import checked
from graphmend.transforms.fix import Applicability, Difference, Fix, Refusal, TextEdit

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

Make = Callable[[], Iterable[TextEdit]]


def offer(
    rewrite: str,
    title: str,
    facts: FunctionFacts,
    make: Make,
    differences: Iterable[Difference] = (),
    *,
    silences: bool = False,
    narrows: bool = False,
) -> Fix:
    """A fix that is safe where nothing differs, and unsafe in the ways that `differences` name otherwise."""
    differs = tuple(dict.fromkeys(differences))
    same = "values, gradients, side effects and exceptions stay the same"
    reason = "; ".join(difference.says for difference in differs) or same
    applicability: Applicability = "unsafe" if differs else "safe"
    return Fix(rewrite, title, applicability, reason, lambda: checked(facts, make), silences, differs, narrows)


def show(rewrite: str, title: str, facts: FunctionFacts, make: Make, reason: str) -> Fix:
    """A fix that is shown and never applied by itself."""
    return Fix(rewrite, title, "display", reason, lambda: checked(facts, make))


def refuse(rewrite: str, reason: str) -> Refusal:
    return Refusal(rewrite, reason)
