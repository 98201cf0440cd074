"""How a rewrite asks and answers: the questions that it declares, and the verdict, which is formed here alone.

A mend is safe where nothing differs, unsafe where each difference is named, and refused where a proof is missing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.fstrings import written_out
from graphmend.transforms.code.text_edits import checked
from graphmend.transforms.fix import Applicability, Difference, Fix, Refusal, TextEdit, Unmendable
from graphmend.transforms.legality.context import listing_module, observed, reading_names, telling
from graphmend.transforms.legality.gradients.not_finite import POISONED, poisons, trains
from graphmend.transforms.legality.in_place import inferred, needed, recomputed
from graphmend.transforms.legality.names.overloaded import overloading
from graphmend.transforms.legality.names.replaced import replaced_in_torch
from graphmend.transforms.legality.names.scripted import is_scripted
from graphmend.transforms.legality.outside.callers import written_by_callers
from graphmend.transforms.legality.outside.identity import asked_by_callers
from graphmend.transforms.legality.randomness.kept_draws import orphaned
from graphmend.transforms.legality.totality import observed_around, uncaught, uncaught_around
from graphmend.transforms.questions import Question, UndeclaredQuestionError, asking

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

Make = Callable[[], Iterable[TextEdit]]
#: None means that the rewrite has nothing to say about code of this form
Decide = Callable[["Finding", "FunctionFacts"], Fix | Refusal | None]


@dataclass(frozen=True)
class Rewrite:
    """A rewrite and the questions that it declares: one that it asks all the same is a refusal."""

    decide: Decide
    asks: tuple[Question, ...]
    any_value: bool = False
    """Is it right for every kind of value, and not for tensors alone?"""
    leaves_names: bool = False
    """Does every name of the function mean what it meant, behind each of its statements?"""
    ends_try: bool = False
    """Does it take the only `try` around away, and ask about what that caught itself?"""

    @property
    def module(self) -> str:
        return self.decide.__module__

    @property
    def name(self) -> str:
        return self.module.rpartition(".")[2]

    def __call__(self, finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
        try:
            with asking(self.asks) as asked:
                answer = self.decide(finding, facts)
        except UndeclaredQuestionError as error:
            return refuse(self.name, _undeclared(error))
        if not isinstance(answer, Fix):
            return answer
        if answer.applicability != "display" and (spelled := written_out(facts, facts.node)) is not None:
            return refuse(self.name, f"an f-string writes `{shortened(spelled)}` as it is spelled")
        if asked.granted:
            answer = _differing(answer, [Difference("callers", says) for says in sorted(asked.granted)])
        if (overloads := overloading(facts)) is not None:
            return refuse(self.name, f"`{overloads}` may do something else where torch's operations are called")
        if (other := replaced_in_torch(facts.source.tree, tuple(facts.names.items()))) is not None:
            return refuse(self.name, f"`{other}` puts something else in the place of what torch has")
        if answer.applicability != "display" and is_scripted(
            facts.function, facts.source.tree, tuple(facts.names.items())
        ):
            return refuse(self.name, f"`{facts.function.name}` is compiled by TorchScript, too")
        kinds = {difference.kind for difference in answer.differences}
        if answer.applicability != "display" and (teller := telling(facts, kinds)) is not None:
            return refuse(self.name, f"`{teller}` would tell the difference")
        if answer.applicability != "display" and poisons(facts, answer.differences):
            if trains(facts):
                return refuse(self.name, "where values are not finite, which is asked for, gradients would become NaN")
            answer = _differing(answer, [POISONED])
        if "aliasing" in kinds and (written := written_by_callers(facts)) is not None:
            return refuse(self.name, f"a caller changes `{written}` in place, and would change, or see, a copy")
        if "aliasing" in kinds and (call := asked_by_callers(facts)) is not None:
            return refuse(self.name, f"which tensor `{call}` gives is asked for, and it would be a copy")
        if "exception" in kinds and not self.ends_try and observed(facts, facts.statement):
            return refuse(self.name, "a `try` around it would see that exceptions differ, and do something else")
        if "exception" in kinds and (caller := observed_around(facts)) is not None:
            return refuse(self.name, f"a `try` in `{caller}` would see that exceptions differ, and do something else")
        caught = finding.effect != "recompiles" and not self.ends_try
        if caught and (raising := uncaught(facts)) is not None:
            return refuse(self.name, f"no `except` would see `{ast.unparse(raising)}` raise in a graph")
        if finding.effect != "recompiles" and (unseen := uncaught_around(facts)) is not None:
            answer = _differing(answer, [unseen])
        if not self.leaves_names and (reader := reading_names(facts)) is not None:
            return refuse(self.name, f"`{reader}` sees which names there are and what they mean")
        if (listing := listing_module(facts)) is not None and self._imports(answer):
            return refuse(self.name, f"`{listing}` would list the name that is imported for it")
        if not answer.narrows and (forgotten := orphaned(facts)):
            answer = _differing(answer, forgotten)
        if finding.effect != "recompiles" and (target := inferred(facts)) is not None:
            return refuse(self.name, f"under inference_mode no graph changes `{ast.unparse(target)}` in place")
        for changed in (recomputed(facts), needed(facts)) if finding.effect != "recompiles" else ():
            answer = _differing(answer, [changed]) if changed is not None else answer
        answer = replace(answer, edits=self._made(answer))
        return answer if self.any_value or finding.certainty == "certain" else _doubted(answer)

    def _imports(self, fix: Fix) -> bool:
        try:
            return any(re.search(r"(?m)^\s*(?:from|import) ", edit.text) for edit in self._made(fix)())
        except Unmendable:
            return False

    def _made(self, fix: Fix) -> Callable[[], tuple[TextEdit, ...]]:
        def edits() -> tuple[TextEdit, ...]:
            try:
                with asking(self.asks):
                    return fix.edits()
            except UndeclaredQuestionError as error:
                raise Unmendable(_undeclared(error)) from error

        return edits


def asks(
    *questions: Question, any_value: bool = False, leaves_names: bool = False, ends_try: bool = False
) -> Callable[[Decide], Rewrite]:
    """Declares which questions (`transforms/questions.py`) a rewrite decides by."""
    return lambda decide: Rewrite(decide, questions, any_value, leaves_names, ends_try)


def _undeclared(error: UndeclaredQuestionError) -> str:
    return f"the rewrite does not declare its question about {error.question}"


def _differing(fix: Fix, more: Iterable[Difference]) -> Fix:
    """A fix that differs in more than its rewrite says."""
    differs = tuple(dict.fromkeys((*fix.differences, *more)))
    if fix.applicability == "display":
        return replace(fix, differences=differs)
    title = fix.title.removesuffix(_SAME)
    reason = "; ".join(each.says for each in differs)
    return replace(fix, title=title, applicability="unsafe", reason=reason, differences=differs)


def _doubted(fix: Fix) -> Fix:
    """A safe mend of something that is only likely a tensor is not safe."""
    if fix.applicability != "safe":
        return fix
    difference = Difference("type", "what it works on is likely, but not certainly, a tensor")
    title = fix.title.removesuffix(_SAME)
    return replace(fix, title=title, applicability="unsafe", reason=difference.says, differences=(difference,))


_SAME = ", nothing lost"
"""How titles of safe mends of output end."""


def offer(
    rewrite: str,
    title: str,
    facts: FunctionFacts,
    make: Make,
    differences: Iterable[Difference] = (),
    *,
    silences: bool = False,
    narrows: bool = False,
    leaves_size: bool = False,
) -> Fix:
    """A fix that is safe where nothing differs, and unsafe in the ways that `differences` name otherwise."""
    differs = tuple(dict.fromkeys(differences))
    same = "values, gradients, side effects and exceptions stay the same"
    reason = "; ".join(difference.says for difference in differs) or same
    applicability: Applicability = "unsafe" if differs else "safe"
    title = title.removesuffix(_SAME) if differs else title
    edits = partial(checked, facts, make)
    return Fix(rewrite, title, applicability, reason, edits, silences, differs, narrows, leaves_size)


def prepare(rewrite: str, title: str, facts: FunctionFacts, make: Make, differences: Iterable[Difference] = ()) -> Fix:
    """A fix that gives code the form that other mends are about."""
    return replace(offer(rewrite, title, facts, make, differences), prepares=True)


def show(rewrite: str, title: str, facts: FunctionFacts, make: Make, reason: str) -> Fix:
    """A fix that is shown and never applied by itself."""
    return Fix(rewrite, title, "display", reason, lambda: checked(facts, make))


def refuse(rewrite: str, reason: str) -> Refusal:
    return Refusal(rewrite, reason)
