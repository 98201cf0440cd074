"""Write the body of a function of the file in the place of its call.

Before:
    def picked(x, mask):
        return x[mask], mask.sum()

    values, count = picked(x, x > 0)
    return values.sum() / count

After:
    mask = x > 0
    values, count = x[mask], mask.sum()
    return values.sum() / count

Legal when:
    the function is the one in sight whatever is called, calls nothing that may tell in which function it stands (as
    what logs or warns does), has one end, and no names that mean something else where it is called; arguments are given
    their names in their order, and what else the statement evaluates before the call only computes. The function itself
    stays, for its other calls. Where a finding stands in it, all its calls in traced code are written so; of a branch,
    the calls that are steps of its sides and do more than compute.

Differs in:
    nothing; a method is taken to be the one in sight. It is written for the mends of code that stands together, and
    stays where they remove the break.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.liveness import surely_bound
from graphmend.transforms.code.text_edits import insert_before, replace_expression, replace_statements
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.branch_statement import branch
from graphmend.transforms.if_conversion.value_tests import depends
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.legality.outside.pure_bodies import only_computes
from graphmend.transforms.legality.speculation import repeatable
from graphmend.transforms.rewrites.answers import asks, prepare, refuse
from graphmend.transforms.rewrites.inlining.forms.calls import (
    LONGEST,
    NOT_PLAIN,
    Call,
    NotInlinedError,
    body_of,
    called,
    calls_of,
    check,
)
from graphmend.transforms.rewrites.inlining.forms.named_body import named_body

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "body_of_call"
_MAYBE = (ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda, ast.JoinedStr)


@asks("effects", "names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    refusal: Refusal | None = None
    for find in (_of_argument, _of_sides, calls_of):
        try:
            if calls := find(facts):
                return _written(facts, calls)
        except NotInlinedError as error:
            refusal = refusal or refuse(NAME, str(error))
    return refusal


def _written(facts: FunctionFacts, calls: list[Call]) -> Fix:
    for call in calls:
        _check(call)
    if len({_statement(call) for call in calls}) < len(calls):
        raise NotInlinedError(f"`{calls[0].definition.name}` is called twice in a statement")
    taken: list[str] = []
    texts = [_Inlining(call, taken) for call in calls]

    def make() -> list[TextEdit]:
        return [edit for each in texts for edit in each.edits()]

    return prepare(NAME, f"write the body of `{calls[0].definition.name}` in the place of its call", facts, make)


def _of_argument(facts: FunctionFacts) -> list[Call]:
    """The call that is given what the finding is about."""
    if not isinstance(facts.node, ast.expr):
        return []
    for above in facts.ancestors(facts.node):
        if isinstance(above, ast.stmt):
            break
        if isinstance(above, ast.Call) and (found := called(facts, above)) is not None:
            return [found]
    return []


def _of_sides(facts: FunctionFacts) -> list[Call]:
    """The calls that are steps of the branch that the finding is about, and do more than compute."""
    statement = branch(facts)
    if statement is None or not depends(facts, statement.test):
        return []
    found: list[Call] = []
    for step in (n for s in (*statement.body, *statement.orelse) for n in nodes_in(s) if isinstance(n, ast.stmt)):
        node = statement_value(step)
        if isinstance(node, ast.Call) and effects(facts, node) and (call := called(facts, node)) is not None:
            found.append(call)
    return found


def _check(call: Call) -> None:
    """May the body stand where the call stands?"""
    facts, definition = call.facts, call.definition
    name, body = definition.name, body_of(definition)
    nodes = [n for statement in body for n in nodes_in(statement)]
    statement = _statement(call)
    if len([n for n in nodes if isinstance(n, ast.stmt)]) > LONGEST:
        raise NotInlinedError(f"`{name}` is long")
    ends = [n for n in nodes if isinstance(n, ast.Return)]
    if (
        any(isinstance(n, (*NOT_PLAIN, ast.Yield)) for n in nodes)
        or len(ends) > 1
        or (ends and ends[0] is not body[-1])
    ):
        raise NotInlinedError(f"`{name}` has several ends, or names of its own inside")
    gives = bool(ends) and ends[0].value is not None
    if not gives and not (isinstance(statement, ast.Expr) and statement.value is call.node):
        raise NotInlinedError(f"`{name}` does not end with what it gives")
    check(call, statement)
    if statement_value(statement) is call.node:
        return
    within = {*nodes_in(call.node), *facts.ancestors(call.node)}
    value = statement_value(statement)
    beside = [n for n in nodes_in(value) if n not in within] if value is not None else []
    if any(isinstance(n, (ast.NamedExpr, ast.Await, ast.Yield)) for n in beside):
        raise NotInlinedError(f"what stands beside the call of `{name}` is evaluated before it")
    # what stands to the left is evaluated first, but for what comes behind stars in a call
    spread = any(_spreads(n) for n in nodes_in(statement))
    before = [n for n in beside if isinstance(n, ast.expr) and (spread or _is_left_of(n, call.node))]
    given = [*call.node.args, *(k.value for k in call.node.keywords)]
    if not only_computes(call.function.info) or effects(facts, *given):
        before = [n for n in before if not _is_only_named(facts, n, within)]
        if any(not isinstance(n, ast.Constant) for n in before):
            raise NotInlinedError(f"what stands beside the call of `{name}` is computed before it")
    elif not all(repeatable(facts, n) for n in before if isinstance(n, ast.Call)):
        raise NotInlinedError(f"what stands beside the call of `{name}` does more than compute")


def _spreads(node: ast.AST) -> bool:
    """`*values` or `**values`."""
    return isinstance(node, ast.Starred) or (isinstance(node, ast.keyword) and node.arg is None)


def _is_only_named(facts: FunctionFacts, node: ast.expr, within: set[ast.AST]) -> bool:
    """Is it a local name, surely bound, whose object is taken as it is: all that is done with it comes later?"""
    above = facts.parent(node)
    if isinstance(above, ast.Dict):
        spread = (value for key, value in zip(above.keys, above.values, strict=True) if key is None)
        if any(value is node for value in spread):
            return False
    return isinstance(node, ast.Name) and above in within and node.id in surely_bound(facts, node)


def _is_left_of(node: ast.expr, other: ast.expr) -> bool:
    return (node.lineno, node.col_offset) < (other.lineno, other.col_offset)


def statement_value(statement: ast.stmt) -> ast.expr | None:
    """What a statement evaluates first, once."""
    match statement:
        case ast.Assign(value=value) | ast.AnnAssign(value=value) | ast.Return(value=value) | ast.Expr(value=value):
            return value
        case ast.AugAssign(target=ast.Name(), value=value) | ast.For(iter=value):
            return value
    return None


def _statement(call: Call) -> ast.stmt:
    """The statement that evaluates the call, each time that it runs."""
    child: ast.AST = call.node
    for above in call.facts.ancestors(call.node):
        if isinstance(above, ast.stmt):
            if statement_value(above) is not child:
                raise NotInlinedError(f"the call of `{call.definition.name}` is no plain part of a statement")
            return above
        if isinstance(above, _MAYBE):
            raise NotInlinedError(f"the call of `{call.definition.name}` may not be evaluated, or more than once")
        child = above
    raise NotInlinedError(f"the call of `{call.definition.name}` stands outside of functions")


class _Inlining:
    """The texts of one call: what stands in front of its statement, and in its place."""

    def __init__(self, call: Call, taken: list[str]) -> None:
        """`taken` are names that other calls need, to which those of this one are added."""
        self._call = call
        facts, definition = call.facts, call.definition
        code, body = Code(facts.source), body_of(definition)
        named = named_body(call, taken)
        self._lines, replace = named.lines, named.replace
        last = body[-1] if isinstance(body[-1], ast.Return) else None
        for step in body[: len(body) - (last is not None)]:
            indent = " " * facts.source.span(step).column
            self._lines.append(textwrap.dedent(indent + code.text(step, replace)) + "\n")
        self._result = ""
        if last is None or last.value is None:
            return
        whole = statement_value(_statement(call)) is call.node
        self._result = code.line(last.value, replace) if whole else code.operand(last.value, replace)

    def edits(self) -> Iterator[TextEdit]:
        source, statement = self._call.facts.source, _statement(self._call)
        if not self._result:
            yield replace_statements(source, [statement], "".join(self._lines) or "pass\n")
            return
        if self._lines:
            yield insert_before(source, statement, "".join(self._lines))
        yield replace_expression(source, self._call.node, self._result)
