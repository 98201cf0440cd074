"""Choose between the results of two modules instead of between the modules.

Before:
    net = self.large if x.abs().max() > 1 else self.small
    return net(x) + x

After:
    condition = x.abs().max() > 1
    return (self.large(x) if condition else self.small(x)) + x

Legal when:
    a name is bound to one of two modules or functions, by a conditional expression or by both sides of a branch, and is
    only called behind that in its block; or what is chosen is called at once. The choice between the results is mended
    next.

Differs in:
    nothing: the same one is called, with the same arguments.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Container, Tensor
from graphmend.analysis.program.entities import Instance
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.liveness import fresh, reads, writes
from graphmend.transforms.code.positions import begins_line, replaceable
from graphmend.transforms.code.qualified_names import is_tensor
from graphmend.transforms.code.text_edits import replace_expression, replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.memory import shares
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "chosen_call"
_TITLE = "choose between the results of the modules"


class _Choice(NamedTuple):
    """A test, and what is chosen by it."""

    test: ast.expr
    then: ast.expr
    otherwise: ast.expr

    def result(self, code: Code, call: ast.Call, test: str) -> str:
        """The call of what is chosen, as a choice between calls."""
        texts = [code.text(call, {call.func: code.operand(side)}) for side in (self.then, self.otherwise)]
        return f"({texts[0]} if {test} else {texts[1]})"


@asks("memory", "names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = facts.statement
    chosen = next((n for n in (facts.node, *facts.ancestors(facts.node)) if isinstance(n, ast.IfExp)), None)
    name: str | None = None
    match statement:
        case ast.If(
            test=test,
            body=[ast.Assign(targets=[ast.Name(id=one)], value=then)],
            orelse=[ast.Assign(targets=[ast.Name(id=other)], value=otherwise)],
        ) if one == other:
            choice, name = _Choice(test, then, otherwise), one
        case ast.Assign(targets=[ast.Name(id=one)], value=ast.IfExp() as value) if value is chosen:
            choice, name = _Choice(value.test, value.body, value.orelse), one
        case _ if chosen is not None:
            choice = _Choice(chosen.test, chosen.body, chosen.orelse)
        case _:
            return None
    if not all(_is_path(side) and _is_module(facts, side) for side in (choice.then, choice.otherwise)):
        return None
    if not (
        facts.node is choice.test or any(n is facts.node for n in ast.walk(choice.test)) or facts.node is statement
    ):
        return None
    return _at_once(facts, chosen, choice) if name is None and chosen else _named(facts, statement, name or "", choice)


def _at_once(facts: FunctionFacts, chosen: ast.IfExp, choice: _Choice) -> Fix | Refusal:
    call = facts.parent(chosen)
    if not (isinstance(call, ast.Call) and call.func is chosen):
        return refuse(NAME, "what is chosen is more than called")
    code = Code(facts.source)
    text = choice.result(code, call, code.operand(choice.test))
    return offer(NAME, _TITLE, facts, lambda: [replace_expression(facts.source, call, text)])


def _named(facts: FunctionFacts, statement: ast.stmt, name: str, choice: _Choice) -> Fix | Refusal:
    """`net = a if test else b`, and calls of `net` behind it."""
    block = facts.body_of(statement)
    behind = block[block.index(statement) + 1 :]
    inside = {n for s in (statement, *behind) for n in ast.walk(s)}
    calls: list[ast.Call] = []
    for node in ast.walk(facts.function):
        if not (isinstance(node, ast.Name) and node.id == name):
            continue
        if isinstance(node.ctx, ast.Store):
            if any(n is node for n in ast.walk(statement)):
                continue
            return refuse(NAME, f"`{name}` is bound elsewhere as well")
        call = facts.parent(node)
        if not (isinstance(call, ast.Call) and call.func is node and node in inside):
            return refuse(NAME, f"`{name}` is more than called")
        calls.append(call)
    if not calls or any(c is not d and c in ast.walk(d) for c in calls for d in calls):
        return refuse(NAME, f"`{name}` is called inside its own arguments, or not at all")
    if writes(*behind) & (reads(choice.then, choice.otherwise) | {name}) or _changes(behind, choice):
        return refuse(NAME, "what is chosen from changes before it is called")
    if not (replaceable(facts, [statement]) and begins_line(facts.source, statement)):
        return refuse(NAME, "the statement shares its line with another one")
    code, condition = Code(facts.source), fresh(facts, "condition")
    test = code.line(choice.test)
    if not is_tensor(facts, choice.test):
        return refuse(NAME, f"`{ast.unparse(choice.test)}` is not known to be a tensor")
    known = facts.value(choice.test)
    single = isinstance(known, Tensor) and known.rank == 0
    differences = [] if single else [Difference("exception", "a test of several elements raises later")]
    if not shares(facts, choice.test).fresh:
        test = f"{code.operand(choice.test)}.clone()"

    def make() -> list[TextEdit]:
        edits = [replace_statements(facts.source, [statement], f"{condition} = {test}\n")]
        return [*edits, *(replace_expression(facts.source, c, choice.result(code, c, condition)) for c in calls)]

    return offer(NAME, _TITLE, facts, make, differences)


def _changes(statements: list[ast.stmt], choice: _Choice) -> bool:
    """Is an attribute of the same name stored to?"""
    names = {n.attr for side in (choice.then, choice.otherwise) for n in ast.walk(side) if isinstance(n, ast.Attribute)}
    nodes = [n for s in statements for n in ast.walk(s)]
    return any(isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) and n.attr in names for n in nodes)


def _is_path(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _is_module(facts: FunctionFacts, node: ast.expr) -> bool:
    value = facts.value(node)
    if isinstance(value, ExternalInstance):
        return value.cls.startswith("torch.nn.")
    return isinstance(value, Instance) or (isinstance(value, Container) and value.kind == "modules")
