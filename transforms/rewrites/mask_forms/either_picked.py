"""Reduce what a mask picks, and what takes its place where that is too few, instead of reducing the one or the other.

Before:
    hard = loss[loss > t]
    if hard.numel() < k:
        hard, _ = loss.topk(k)
    return hard.mean()

After:
    hard = loss[loss > t]
    other = loss.topk(k)[0]
    return (other.mean() if hard.numel() < k else hard.mean())

Legal when:
    a branch binds the name of what a mask picks to another tensor, or binds a name to the one or the other, and nothing
    else; these are only computed; behind the branch the name is read by what gives one number, and neither it nor what
    the test reads is bound again.

Differs in:
    what takes the place is always computed, and may raise. It is written for the mends of masks, and stays where they
    remove the break.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code, shortened
from graphmend.transforms.code.liveness import alive, fresh, reads, stored
from graphmend.transforms.code.positions import begins_line, is_elif, replaceable
from graphmend.transforms.code.text_edits import replace_expression, replace_statements
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.legality.memory import changed_in_place
from graphmend.transforms.legality.outside.bound_anew import bound_anew
from graphmend.transforms.legality.rows.masked_elements import picked
from graphmend.transforms.legality.speculation import speculate
from graphmend.transforms.rewrites.answers import asks, prepare, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "either_picked"


class _Either(NamedTuple):
    """A branch that binds the name of what a mask picks to something else."""

    branch: ast.If
    name: str
    value: ast.expr
    item: int | None
    """Which item of the value; None for all of it."""
    first: ast.expr | None = None
    """What the mask picks, where both sides bind the name."""
    if_picked: bool = False
    """Does the test hold where the mask picks?"""


@asks("effects", "totality", "memory", "order", "domain", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    either = _either(facts)
    if either is None:
        return None
    branch, name = either.branch, either.name
    block = facts.body_of(branch)
    behind = block[block.index(branch) + 1 :]
    if not (begins_line(facts.source, branch) and replaceable(facts, [branch])) or is_elif(facts.source, branch):
        return refuse(NAME, "the branch shares its line with another statement")
    if block is not facts.function.body:
        return refuse(NAME, "the branch stands inside another statement")
    more = next((n for n in stored(branch.body) - {name} if alive(facts, n, branch)), None)
    if more is not None:
        return refuse(NAME, f"`{more}` is bound as well, and read behind the branch")
    always = [either.value, *([either.first] if either.first is not None else [])]
    if found := [*effects(facts, branch.test), *speculate(facts, *always).blockers]:
        return refuse(NAME, found[0])
    read = reads(branch.test, *always) | {name}
    if again := sorted(read & stored(behind)) or [n for n in sorted(read) if changed_in_place(facts, n)]:
        return refuse(NAME, f"`{again[0]}` changes before what is picked is reduced")
    for part in (branch.test, *always):
        if (outside := bound_anew(facts, part, behind)) is not None:
            return refuse(NAME, f"`{outside}` may change before what is picked is reduced")
    uses: dict[ast.expr, list[ast.expr]] = {}
    for node in (n for s in behind for n in nodes_in(s)):
        if isinstance(node, ast.Name) and node.id == name:
            whole = _number(facts, node)
            if whole is None or effects(facts, whole):
                return refuse(NAME, f"`{shortened(facts.parent(node) or node)}` is not one number of what is picked")
            uses.setdefault(whole, []).append(node)
    if not uses:
        return None

    def make() -> list[TextEdit]:
        code, other = Code(facts.source), fresh(facts, "other")
        value = code.line(either.value) if either.item is None else f"{code.operand(either.value)}[{either.item}]"
        test = code.operand(branch.test) if isinstance(branch.test, ast.IfExp) else code.text(branch.test)
        lines, kept = f"{other} = {value}\n", name
        if either.first is not None:
            kept = fresh(facts, "picked", [other])
            lines = f"{kept} = {code.line(either.first)}\n{lines}"
        edits = [replace_statements(facts.source, [branch], lines)]
        for whole, nodes in uses.items():
            sides = [code.text(whole, dict.fromkeys(nodes, one)) for one in (other, kept)]
            then, otherwise = reversed(sides) if either.if_picked else sides
            text = f"({then} if {test} else {otherwise})"
            edits.append(replace_expression(facts.source, whole, text))
        return edits

    differences = speculate(facts, *always).differences
    return prepare(NAME, "reduce what is picked and what takes its place", facts, make, differences)


def _either(facts: FunctionFacts) -> _Either | None:
    """The branch behind the finding that binds the name of what is picked anew, or that both sides of bind."""
    above = facts.parent(facts.statement)
    match above:
        case ast.If(
            body=[ast.Assign(targets=[ast.Name(id=name)], value=one)],
            orelse=[ast.Assign(targets=[ast.Name(id=own)], value=two)],
        ) if name == own:
            for first, other, then in ((one, two, True), (two, one, False)):
                if picked(facts, first) is not None and facts.node in {*nodes_in(first)}:
                    return _Either(above, name, other, None, first, then)
    match facts.statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if picked(facts, value) is not None:
            pass
        case _:
            return None
    block = facts.body_of(facts.statement)
    for statement in block[block.index(facts.statement) + 1 :]:
        match statement:
            case ast.If(body=[ast.Assign(targets=[target], value=other)], orelse=[]):
                match target:
                    case ast.Name(id=own) if own == name:
                        return _Either(statement, name, other, None)
                    case ast.Tuple(elts=targets):
                        names = [t.id if isinstance(t, ast.Name) else None for t in targets]
                        if name in names and None not in names:
                            return _Either(statement, name, other, names.index(name))
        if name in stored([statement]):
            return None
    return None


def _number(facts: FunctionFacts, node: ast.expr) -> ast.expr | None:
    """The smallest expression around a read that gives a tensor of one number."""
    for above in facts.ancestors(node):
        if not isinstance(above, ast.expr) or isinstance(above, _OTHERWISE):
            return None
        value = facts.value(above)
        if isinstance(value, Tensor) and value.rank == 0:
            return above
    return None


_OTHERWISE = (ast.Lambda, ast.IfExp, ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)
