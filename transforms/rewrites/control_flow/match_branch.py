"""Write a `match` on a tensor, or on a number taken out of one, as a branch.

Before:
    match mode.item():
        case 0:
            y = x + 1
        case 1 | 2:
            y = x * 2
        case _:
            y = x

After:
    subject = mode.item()
    if subject == 0:
        y = x + 1
    elif subject == 1 or subject == 2:
        y = x * 2
    else:
        y = x

Legal when:
    the subject is a tensor or a number taken out of one, or a tuple of these and of others that is written there; or
    what a case asks besides, behind its `if`, is about a tensor, and the subject may be anything. Each case compares it
    with values, or matches everything. A name that a case binds is read in that case only.

Differs in:
    nothing: a branch asks the same questions in the same order. It is written for the mends of branches, and stays
    where they remove the break.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Scalar
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.liveness import fresh
from graphmend.transforms.code.positions import begins_line, replaceable
from graphmend.transforms.code.qualified_names import is_tensor, number_type
from graphmend.transforms.code.text_edits import HOLE, replace_statements
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "match_branch"
#: combinations of more truth values than so many are not gone through
_MOST = 4


class _NotComparedError(Exception):
    """A pattern that does more than compare; the message says which."""


@asks("effects", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    chosen = next((n for n in (facts.node, *facts.ancestors(facts.node)) if isinstance(n, ast.Match)), None)
    if chosen is None or any(n is facts.node for case in chosen.cases for s in case.body for n in nodes_in(s)):
        return None
    subject = chosen.subject
    parts = subject.elts if isinstance(subject, ast.Tuple) else [subject]
    guarded = any(n is facts.node for c in chosen.cases if c.guard is not None for n in nodes_in(c.guard))
    if not guarded and not any(is_tensor(facts, part) or isinstance(facts.value(part), Scalar) for part in parts):
        return refuse(NAME, f"`{ast.unparse(subject)}` is neither a tensor nor a number out of one")
    if not replaceable(facts, [chosen]) or not begins_line(facts.source, chosen):
        return refuse(NAME, "the statement shares its line with another one")
    code = Code(facts.source)
    asked = _Asked(facts, code, subject, [case.guard for case in chosen.cases if case.guard is not None])
    try:
        for part in parts:
            asked.name(part)
        for case in chosen.cases:
            asked.bind(case)
        tests = [asked.test(case) for case in chosen.cases]
    except _NotComparedError as error:
        return refuse(NAME, str(error))
    if asked.are_all([case for case in chosen.cases if case.guard is None]) and chosen.cases[-1].guard is None:
        tests[-1] = None
    lines = list(asked.lines)
    for i, test in enumerate(tests):
        if test is None and (i == 0 or i < len(tests) - 1):
            return refuse(NAME, "a case that matches everything is not the last of several")
        lines += [f"{'elif' if i else 'if'} {test}:" if test is not None else "else:", f"    {HOLE.format(i)}"]

    def make() -> list[TextEdit]:
        return [replace_statements(facts.source, [chosen], "\n".join(lines) + "\n", *(c.body for c in chosen.cases))]

    return offer(NAME, "write the match as a branch", facts, make)


class _Asked:
    """What the cases of a `match` ask of its subject, or of the parts of a tuple."""

    def __init__(self, facts: FunctionFacts, code: Code, subject: ast.expr, guards: Iterable[ast.expr]) -> None:
        self._facts, self._code, self._is_tuple = facts, code, isinstance(subject, ast.Tuple)
        self._copies = self._is_tuple or bool(effects(facts, *guards))  # what may bind the subject's name anew
        self._names: list[str] = []
        self._are_truths: list[bool] = []
        self.lines: list[str] = []

    def name(self, part: ast.expr) -> None:
        """Evaluates a part of the subject once."""
        if isinstance(part, ast.Starred):
            raise _NotComparedError(f"how many subjects `{ast.unparse(part)}` are is not known")
        value = self._facts.value(part)
        self._are_truths.append(isinstance(value, Scalar) and value.type == "bool")
        if isinstance(part, ast.Name) and not self._copies:
            self._names.append(part.id)
            return
        self._names.append(fresh(self._facts, "subject", self._names))
        self.lines.append(f"{self._names[-1]} = {self._code.line(part)}")

    def bind(self, case: ast.match_case) -> None:
        """Binds the names of a case beforehand, which nothing else may read or bind."""
        for pattern, name in self._parts(case.pattern):
            for part in ast.walk(pattern):
                if isinstance(part, ast.MatchAs) and part.name is not None:
                    mentions = [n for n in nodes_in(self._facts.function) if isinstance(n, ast.Name)]
                    inside = {n for s in (*case.body, case.guard) if s is not None for n in nodes_in(s)}
                    also = [p for p in nodes_in(self._facts.function) if isinstance(p, ast.MatchAs)]
                    other = any(n.id == part.name and n not in inside for n in mentions)
                    if other or any(p.name == part.name and p is not part for p in also):
                        raise _NotComparedError(f"`{part.name}` is read or bound outside of its case, too")
                    if part is not pattern:
                        raise _NotComparedError(f"the pattern `{ast.unparse(pattern)}` names a part of what it matches")
                    self.lines.append(f"{part.name} = {name}")

    def _parts(self, pattern: ast.pattern) -> list[tuple[ast.pattern, str]]:
        """The patterns of a case, each with the name of what it is asked of."""
        if not self._is_tuple:
            return [(pattern, self._names[0])]
        match pattern:
            case ast.MatchSequence(patterns=patterns) if len(patterns) == len(self._names):
                if not any(isinstance(p, ast.MatchStar) for p in patterns):
                    return list(zip(patterns, self._names, strict=True))
            case ast.MatchAs(pattern=None, name=None):
                return []
        raise _NotComparedError(f"the pattern `{ast.unparse(pattern)}` does more than compare with values")

    def test(self, case: ast.match_case) -> str | None:
        """What a case asks; None where it asks nothing."""
        parts = self._parts(case.pattern)
        tests = [t for pattern, name in parts if (t := self._compared(name, pattern)) is not None]
        several = len(tests) + (case.guard is not None) > 1
        asked = [f"({' or '.join(t)})" if several and len(t) > 1 else " or ".join(t) for t in tests]
        if case.guard is not None:
            asked.append(self._code.operand(case.guard))
        return " and ".join(asked) or None

    def _compared(self, name: str, pattern: ast.pattern) -> list[str] | None:
        """The comparisons that a pattern makes, of which one has to hold; None where it matches everything."""
        match pattern:
            case ast.MatchAs(pattern=None):
                return None
            case ast.MatchAs(pattern=ast.pattern() as inner):
                return self._compared(name, inner)
            case ast.MatchValue(value=value):
                if not isinstance(value, ast.Constant) and number_type(self._facts, value) is None:
                    raise _NotComparedError(f"`{ast.unparse(value)}` is not known to be a number")
                return [f"{name} == {self._code.operand(value)}"]
            case ast.MatchSingleton(value=bool(truth)) if self._are_truths[self._names.index(name)]:
                return [name if truth else f"not {name}"]
            case ast.MatchSingleton(value=None):
                return [f"{name} is None"]
            case ast.MatchOr(patterns=patterns):
                found = [self._compared(name, p) for p in patterns]
                return None if None in found else [test for tests in found for test in tests or ()]
        raise _NotComparedError(f"the pattern `{ast.unparse(pattern)}` does more than compare with a value")

    def are_all(self, cases: list[ast.match_case]) -> bool:
        """Is there a case for each combination of truth values?"""
        if not all(self._are_truths) or len(self._names) > _MOST:
            return False
        patterns = [[pattern for pattern, _ in self._parts(case.pattern)] for case in cases]
        return all(
            any(all(_takes(p, truth) for p, truth in zip(given, truths, strict=False)) for given in patterns)
            for truths in itertools.product((True, False), repeat=len(self._names))
        )


def _takes(pattern: ast.pattern, truth: bool) -> bool:
    """Does a pattern match a truth value?"""
    match pattern:
        case ast.MatchAs(pattern=None):
            return True
        case ast.MatchAs(pattern=ast.pattern() as inner):
            return _takes(inner, truth)
        case ast.MatchSingleton(value=value):
            return value is truth
        case ast.MatchOr(patterns=patterns):
            return any(_takes(p, truth) for p in patterns)
    return False
