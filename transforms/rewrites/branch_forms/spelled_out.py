"""Write a statement in a plainer form that other mends know.

Before:
    extra = x.mean() if x.max() > 0 else None
    if extra is None:
        return x
    return x + extra

After:
    if x.max() > 0:
        extra = x.mean()
    else:
        extra = None
    if extra is None:
        return x
    return x + extra

`parts.sort()` of a list that was made there becomes `parts = sorted(parts)`, a branch that yields on either side yields
a conditional expression, and `case p if test:` in front of `case p:` becomes one case with a branch.

Legal when:
    a name is bound to a conditional expression on a tensor of which one side is None: it cannot be selected, but what
    follows says what it means. A list that is sorted is made in front, and nothing else has got it by then. Both cases
    have the same pattern.

Differs in:
    nothing: the same is asked, evaluated and bound. It is written for the mends of branches, and stays where they
    remove the break.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import precedes, reaching
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.liveness import locals_of, reads, writes
from graphmend.transforms.code.qualified_names import called
from graphmend.transforms.code.text_edits import HOLE
from graphmend.transforms.fix import Fix, Refusal
from graphmend.transforms.if_conversion.value_tests import depends
from graphmend.transforms.rewrites.answers import asks
from graphmend.transforms.rewrites.respelled import spell

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "spelled_out"


@asks(any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement, code = facts.statement, Code(facts.source)
    match statement:
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(id=name) as own, "sort"), args=[], keywords=options)):
            plain = not _is_bound(facts, "sorted") and all(k.arg is not None for k in options)
            if not plain or not _is_own(facts, own, statement):
                return None
            given = "".join(f", {k.arg}={code.line(k.value)}" for k in options)
            return spell(NAME, "make a sorted list", facts, statement, f"{name} = sorted({name}{given})\n")
        case ast.If(
            test=test,
            body=[ast.Expr(ast.Yield(ast.expr() as then))],
            orelse=[ast.Expr(ast.Yield(ast.expr() as other))],
        ) if depends(facts, test):
            text = f"yield {code.operand(then)} if {code.line(test)} else {code.operand(other)}\n"
            return spell(NAME, "yield a conditional expression", facts, statement, text)
        case ast.Match():
            return _one_case(facts, statement, code)
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.IfExp() as chosen):
            return _with_nothing(facts, statement, name, chosen, code)
    return None


def _with_nothing(
    facts: FunctionFacts, statement: ast.stmt, name: str, chosen: ast.IfExp, code: Code
) -> Fix | Refusal | None:
    """A conditional expression that gives None on one side, as a branch."""
    sides = (chosen.body, chosen.orelse)
    nothing = [isinstance(side, ast.Constant) and side.value is None for side in sides]
    if not any(nothing) or all(nothing) or not depends(facts, chosen.test):
        return None
    then, otherwise = (f"    {name} = {code.line(side)}" for side in sides)
    lines = [f"if {code.line(chosen.test)}:", then, "else:", otherwise]
    title = "write the conditional expression as a branch"
    return spell(NAME, title, facts, statement, "\n".join(lines) + "\n")


def _one_case(facts: FunctionFacts, statement: ast.Match, code: Code) -> Fix | Refusal | None:
    """A case with a guard, and one of the same pattern without, as one case with a branch."""
    pairs = zip(statement.cases, statement.cases[1:], strict=False)
    first = next((a for a, b in pairs if a.guard is not None and _is_same(a, b) and depends(facts, a.guard)), None)
    if first is None or first.guard is None:
        return None
    lines: list[str] = [f"match {code.line(statement.subject)}:"]
    kept: list[list[ast.stmt]] = []
    for before, case in zip([None, *statement.cases], statement.cases, strict=False):
        if before is first:
            lines += ["        else:", f"            {HOLE.format(len(kept))}"]
        else:
            guard = f" if {code.line(case.guard)}" if case.guard is not None and case is not first else ""
            lines.append(f"    case {ast.unparse(case.pattern)}{guard}:")
            lines += [f"        if {code.line(first.guard)}:"] if case is first else []
            lines.append(f"        {'    ' if case is first else ''}{HOLE.format(len(kept))}")
        kept.append(case.body)
    return spell(NAME, "write the guard as a branch", facts, statement, "\n".join(lines) + "\n", *kept)


def _is_same(case: ast.match_case, other: ast.match_case) -> bool:
    return other.guard is None and ast.dump(case.pattern) == ast.dump(other.pattern)


def _is_own(facts: FunctionFacts, name: ast.Name, statement: ast.stmt) -> bool:
    """Is a list made in front of a statement of the same block, and has nothing else got it by then?"""
    made = reaching(facts, name)
    match made:
        case ast.List() | ast.ListComp():
            pass
        case ast.Call() if called(facts, made, "builtins.list", "builtins.sorted"):
            pass
        case _:
            return False
    loops = {a for a in facts.ancestors(statement) if isinstance(a, (ast.For, ast.While))}
    if not loops <= {*facts.ancestors(made)}:  # what stands behind it runs in front of it the next time
        return False
    mentions = [n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n.id == name.id]
    before = [n for n in mentions if precedes(made, n) and (n.lineno, n.col_offset) < _begin(statement)]
    inner = (n for n in nodes_in(facts.function) if isinstance(n, (ast.FunctionDef, ast.Lambda)))
    captured = any(n is not facts.function and name.id in reads(n) for n in inner)
    return not captured and all(isinstance(n.ctx, ast.Store) or _only_fills(facts, n) for n in before)


def _begin(statement: ast.stmt) -> tuple[int, int]:
    return statement.lineno, statement.col_offset


def _only_fills(facts: FunctionFacts, node: ast.Name) -> bool:
    """Does code read an element of a list, or add one to it, and keep nothing of the list itself?"""
    match above := facts.parent(node):
        case ast.Subscript(value=of, ctx=ast.Load(), slice=index):
            return of is node and not isinstance(index, ast.Slice)
        case ast.Attribute(attr="append" | "extend" | "insert"):
            call = facts.parent(above)
            return isinstance(call, ast.Call) and call.func is above and isinstance(facts.parent(call), ast.Expr)
    return False


def _is_bound(facts: FunctionFacts, name: str) -> bool:
    """Does the file give a builtin's name to something else?"""
    tree = facts.source.tree
    bound = locals_of(facts.function) | {*facts.names} | (writes(tree) if tree is not None else set())
    return name in bound
