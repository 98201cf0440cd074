"""What happens when an expression is evaluated although its branch was not taken: its effects and its exceptions,
asked at once.

The answers are sentences: a blocker is a reason to refuse, a difference has to be named by an unsafe mend.
"""

from __future__ import annotations

import ast
from collections.abc import Container
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.bodies.in_vain import InVain, in_vain
from graphmend.transforms.legality.effects import effects, is_layer, warns
from graphmend.transforms.legality.rows.modules import has_hooks
from graphmend.transforms.legality.totality import kept_from_raising, may_raise

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_ZEROS = Difference(
    "zero-gradients", "parameters that only the side not taken uses get zeros for gradients instead of None"
)
_HOOKS = Difference("state", "hooks of modules run where these are called in vain")


@dataclass
class Speculation:
    """What evaluating code in vain may do."""

    blockers: list[str] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    draws: bool = False
    """Does it draw from torch's default generators, which are put back?"""


def speculate(
    facts: FunctionFacts,
    *expressions: ast.expr,
    protected: Container[ast.expr] = frozenset(),
    at: ast.stmt | None = None,
    put_back: bool = False,
) -> Speculation:
    """What evaluating expressions in vain may do: side effects block, and an exception that a test is there to prevent;
    any other possible exception differs.

    `protected` and `at` are those of `may_raise`. With `put_back` torch's default generators are as before where the
    code was evaluated in vain, so that it may draw from them, and modules may be called that do.
    """
    vain = in_vain(facts, *expressions) if put_back else InVain()
    blockers = effects(facts, *expressions, hooks=False, apart=vain.calls)
    blockers += kept_from_raising(facts, *expressions, protected=protected, at=at)
    found = Speculation(blockers, may_raise(facts, *expressions, protected=protected, at=at), vain.draws)
    found.differences += vain.differences
    found.differences += warns(facts, *expressions)
    if vain.modules or _calls_layer(facts, *expressions):
        found.differences += [_ZEROS, *([_HOOKS] if has_hooks(facts.source.tree) else [])]
    return found


def repeatable(facts: FunctionFacts, *expressions: ast.expr) -> bool:
    """May expressions be evaluated more than once: no random numbers, no side effects, no layer with hooks?"""
    return not effects(facts, *expressions) and not _calls_layer(facts, *expressions)


def _calls_layer(facts: FunctionFacts, *expressions: ast.expr) -> bool:
    return any(isinstance(n, ast.Call) and is_layer(facts, n.func) for e in expressions for n in nodes_in(e))
