"""Select among the cases of a `match` on a tensor.

Before:
    match k:
        case 0:
            return x + 1
        case _:
            return x

After:
    return torch.where(k == 0, x + 1, x)

Legal when:
    the subject is a tensor that is only compared with numbers, each case returns one value or binds one and the
    same name, and the last case matches everything; the values are tensors of one shape that only compute.

Differs in:
    as for `where`: all cases are computed.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import constant, is_tensor
from graphmend.transforms.code.text_edits import replace_statements
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.blocks import Block
from graphmend.transforms.if_conversion.selection import RETURN, NotSelectableError, SideValue, aliasing, select
from graphmend.transforms.if_conversion.tensor_predicates import Predicates
from graphmend.transforms.legality.gradients import gradient_differences
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "match_where"


@asks("effects", "totality", "memory", "shapes", "gradients", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    chosen = next((n for n in (facts.node, *facts.ancestors(facts.node)) if isinstance(n, ast.Match)), None)
    if chosen is None or not is_tensor(facts, chosen.subject):
        return None
    imports = Imports(facts)
    predicates = Predicates(facts, imports)
    try:
        text = _selected(facts, chosen, predicates)
    except NotSelectableError as error:
        return refuse(NAME, str(error))
    if not replaceable(facts, [chosen]):
        return refuse(NAME, "the statement shares its line with another one")

    def make() -> list[TextEdit]:
        return [*imports.edits(), replace_statements(facts.source, [chosen], text + "\n")]

    return offer(NAME, "compute all cases and select with torch.where", facts, make, predicates.differences)


def _selected(facts: FunctionFacts, chosen: ast.Match, predicates: Predicates) -> str:
    block = Block(facts, predicates, "case", chosen, chosen)
    subject = predicates.code.operand(chosen.subject)
    asked = facts.value(chosen.subject)
    if not (isinstance(asked, Tensor) and asked.rank == 0):
        subject += ".reshape(())"  # one element, as a case asks for a truth value
    heads: set[str] = set()
    cases: list[tuple[str | None, SideValue]] = []
    for case in chosen.cases:
        match case.body:
            case [ast.Return(value=ast.expr() as value)]:
                heads.add("return ")
            case [ast.Assign(targets=[ast.Name(id=name)], value=value)]:
                heads.add(f"{name} = ")
            case _:
                raise NotSelectableError("a case does more than return a value or bind a name")
        if case.guard is not None:
            raise NotSelectableError("a case has a guard")
        cases.append((_test(subject, case.pattern), block.choice(value)))
    if len(heads) != 1:
        raise NotSelectableError("the cases bind different names")
    if cases[-1][0] is not None or any(test is None for test, _ in cases[:-1]):
        raise NotSelectableError("no last case matches everything")
    block.run([])
    predicates.differences += gradient_differences(facts, chosen, [[c.node for _, c in cases]])
    head = heads.pop()
    name = RETURN if head == "return " else head.removesuffix(" = ")
    result = cases[-1][1]
    for test, choice in reversed(cases[:-1]):
        assert test is not None
        predicates.differences += aliasing(facts, name, choice, result, chosen)
        instead = (*choice.instead, *result.nodes)
        result = SideValue(select(predicates, test, choice, result), choice.node, choice.meta, instead=instead)
    if subject not in result.text:
        raise NotSelectableError("all cases give the same: nothing would ask for the subject, which may raise")
    return f"{head}{result.text}"


def _test(subject: str, pattern: ast.pattern) -> str | None:
    """A pattern as a comparison; None for one that matches everything."""
    match pattern:
        case ast.MatchAs(pattern=None, name=None):
            return None
        case ast.MatchValue(value=value) if isinstance(constant(value), (int, float)):
            return f"{subject} == {ast.unparse(value)}"
        case ast.MatchOr(patterns=patterns):
            tests = [_test(subject, p) for p in patterns]
            if None not in tests:
                return " | ".join(f"({t})" for t in tests)
    raise NotSelectableError(f"the pattern `{ast.unparse(pattern)}` is no number")
