"""A test on a tensor that is asked once more than it was: what it gave is kept under a name."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Tensor
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.liveness import fresh, stored
from graphmend.transforms.fix import Difference
from graphmend.transforms.if_conversion.selection import NotSelectableError
from graphmend.transforms.if_conversion.tensor_predicates import NotATensorError, Predicates
from graphmend.transforms.if_conversion.value_tests import split
from graphmend.transforms.legality.memory import changed_in_place, shares
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


class Asked(NamedTuple):
    """A test under a name."""

    static: str
    """What of it is known while tracing, and stands in front; empty where nothing is."""
    name: str
    lines: list[str]
    """What binds the name."""
    negated: bool
    """Does the test hold where the name does not?"""

    @property
    def holds(self) -> str:
        return f"not {self.name}" if self.negated else self.name

    @property
    def fails(self) -> str:
        return self.name if self.negated else f"not {self.name}"


def named(predicates: Predicates, test: ast.expr, behind: Sequence[ast.stmt]) -> Asked:
    """A name for what a test gives, which is asked again in front of the statements `behind` it."""
    facts, code = predicates.facts, predicates.code
    negated = False
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, negated = test.operand, not negated
    static, tests = split(facts, test)
    if not tests or (static and negated):
        raise NotATensorError("the test is not about tensors alone")
    head = " and ".join(code.operand(s) for s in static)
    if len(tests) == 1 and not isinstance(tests[0], ast.BoolOp):
        one = tests[0]
        if not shares(facts, one).fresh and isinstance(facts.value(one), Tensor) and changed_in_place(facts, one):
            raise NotSelectableError(f"`{ast.unparse(one)}` may be changed in place before it is asked again")
        if isinstance(one, ast.Name) and one.id not in stored(behind):
            return Asked(head, one.id, [], negated)
        text = code.line(one)
    else:
        text = predicates.all_of(tests)
    name = fresh(facts, "condition", predicates.taken)
    predicates.taken.append(name)
    return Asked(head, name, [f"{name} = {text}"], negated)


@answers("memory")
def keeps(facts: FunctionFacts, tests: Sequence[ast.expr], text: str) -> bool:
    """Is a test, written as a tensor, one that nothing else shares memory with: `flag.item()` is written `flag`."""
    written = ast.parse(text, mode="eval").body
    view = isinstance(written, ast.Call) and ast.unparse(written).endswith(".reshape(())")
    if view or isinstance(written, (ast.Name, ast.Attribute, ast.Subscript)):
        return False
    return len(tests) > 1 or shares(facts, tests[0]).fresh or text != Code(facts.source).line(tests[0])


def of_several_elements(facts: FunctionFacts, test: ast.expr) -> list[Difference]:
    """How a test differs that may be asked less often: of several elements it raises."""
    _, tests = split(facts, test)
    values = (facts.value(t) for t in tests)
    if all(not isinstance(v, Tensor) or v.rank == 0 for v in values):
        return []
    return [Difference("exception", "a test of several elements raises only where it is asked")]
