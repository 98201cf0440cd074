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
    the subject is a tensor or a number taken out of one, and each case compares it with values, or matches everything,
    without binding a name.

Differs in:
    nothing: a branch asks the same questions in the same order. It is written for the mends of branches, and stays
    where they remove the break.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Scalar
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.liveness import fresh
from graphmend.transforms.code.positions import begins_line, replaceable
from graphmend.transforms.code.qualified_names import is_tensor
from graphmend.transforms.code.text_edits import HOLE, replace_statements
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "match_branch"


class _NotComparedError(Exception):
    """A pattern that does more than compare; the message says which."""


@asks("names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    chosen = next((n for n in (facts.node, *facts.ancestors(facts.node)) if isinstance(n, ast.Match)), None)
    if chosen is None or any(n is facts.node for case in chosen.cases for s in case.body for n in nodes_in(s)):
        return None
    subject = chosen.subject
    if not is_tensor(facts, subject) and not isinstance(facts.value(subject), Scalar):
        return refuse(NAME, f"`{ast.unparse(subject)}` is neither a tensor nor a number out of one")
    if not replaceable(facts, [chosen]) or not begins_line(facts.source, chosen):
        return refuse(NAME, "the statement shares its line with another one")
    code = Code(facts.source)
    name = subject.id if isinstance(subject, ast.Name) else fresh(facts, "subject")
    lines = [] if isinstance(subject, ast.Name) else [f"{name} = {code.line(subject)}"]
    try:
        tests = [_test(code, name, case) for case in chosen.cases]
    except _NotComparedError as error:
        return refuse(NAME, str(error))
    for i, test in enumerate(tests):
        if test is None and (i == 0 or i < len(tests) - 1):
            return refuse(NAME, "a case that matches everything is not the last of several")
        lines += [f"{'elif' if i else 'if'} {test}:" if test is not None else "else:", f"    {HOLE.format(i)}"]

    def make() -> list[TextEdit]:
        return [replace_statements(facts.source, [chosen], "\n".join(lines) + "\n", *(c.body for c in chosen.cases))]

    return offer(NAME, "write the match as a branch", facts, make)


def _test(code: Code, name: str, case: ast.match_case) -> str | None:
    """What a case asks; None where it asks nothing."""
    compared = _compared(code, name, case.pattern)
    if case.guard is None:
        return None if compared is None else " or ".join(compared)
    guard = code.operand(case.guard)
    if compared is None:
        return guard
    return f"{compared[0] if len(compared) == 1 else '(' + ' or '.join(compared) + ')'} and {guard}"


def _compared(code: Code, name: str, pattern: ast.pattern) -> list[str] | None:
    """The comparisons that a pattern makes, of which one has to hold; None where it matches everything."""
    match pattern:
        case ast.MatchAs(pattern=None, name=None):
            return None
        case ast.MatchValue(value=value):
            return [f"{name} == {code.operand(value)}"]
        case ast.MatchOr(patterns=patterns):
            found = [_compared(code, name, p) for p in patterns]
            return None if None in found else [test for tests in found for test in tests or ()]
    raise _NotComparedError(f"the pattern `{ast.unparse(pattern)}` does more than compare with a value")
