"""Branch inside a context that only switches gradients instead of entering it in a branch.

Before:
    if self.step == 0:
        with torch.no_grad():
            self.mean.copy_(x.mean(0))

After:
    with torch.no_grad():
        if self.step == 0:
            self.mean.copy_(x.mean(0))

Legal when:
    a side of a branch on a tensor is nothing but a `with` of `torch.no_grad()` or `torch.enable_grad()`, and the other
    side is none, or one of the same context. The test is asked in that context then: it only computes, with torch and
    Python, and looks at nothing that depends on whether gradients are recorded.

Differs in:
    nothing: the same statements run, in the same context. It is written for the mends of branches, and stays where
    they remove the break.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.positions import is_elif, replaceable
from graphmend.transforms.code.qualified_names import called, qualified
from graphmend.transforms.code.text_edits import HOLE, replace_statements
from graphmend.transforms.fix import Fix, Refusal
from graphmend.transforms.if_conversion.value_tests import depends, effects_of_test
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.legality.gradients.sides import told_by
from graphmend.transforms.legality.randomness.draws import draws
from graphmend.transforms.rewrites.answers import asks, prepare, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "context_outside"


@asks("effects", "random", "gradients", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = facts.statement
    if not isinstance(statement, ast.If) or not depends(facts, statement.test):
        return None
    sides = [side for side in (statement.body, statement.orelse) if side]
    contexts = [_context(facts, side) for side in sides]
    if any(context is None for context in contexts) or len({ast.unparse(c) for c in contexts if c}) != 1:
        return None
    if not replaceable(facts, [statement]) or is_elif(facts.source, statement):
        return refuse(NAME, "the statement shares its line with another one")
    drawn = effects(facts, *filter(lambda c: _is_new(facts, c), draws(facts, statement.test)))  # once, as before
    if blockers := [effect for effect in effects_of_test(facts, statement.test) if effect not in drawn]:
        return refuse(NAME, blockers[0])
    if told := told_by(facts, statement.test):
        return refuse(NAME, f"`{told}` may depend on whether gradients are recorded")
    code = Code(facts.source)
    lines = [f"with {code.line(contexts[0])}:"] if contexts[0] is not None else []
    lines += [f"    if {code.line(statement.test)}:", f"        {HOLE.format(0)}"]
    lines += ["    else:", f"        {HOLE.format(1)}"] if statement.orelse else []
    kept = [side[0].body for side in sides if isinstance(side[0], ast.With)]
    return prepare(
        NAME,
        "branch inside the context",
        facts,
        lambda: [replace_statements(facts.source, [statement], "\n".join(lines) + "\n", *kept)],
    )


def _is_new(facts: FunctionFacts, call: ast.Call) -> bool:
    """Does a draw give new numbers, and look at no tensor?"""
    name = qualified(facts, call.func) or ""
    return name in _NEW or name.startswith(("random.", "numpy.random."))


_NEW = frozenset({"torch.rand", "torch.randn", "torch.randint", "torch.randperm"})


def _context(facts: FunctionFacts, side: Sequence[ast.stmt]) -> ast.expr | None:
    """The context in which all of a side stands, where it only switches gradients."""
    match side:
        case [ast.With(items=[ast.withitem(context_expr=context, optional_vars=None)])]:
            return context if called(facts, context, "torch.no_grad", "torch.enable_grad") else None
    return None
