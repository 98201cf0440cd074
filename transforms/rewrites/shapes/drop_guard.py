"""Store under a mask without asking whether the mask picks anything.

Before:
    if m.any():
        x[m] = x[m] * 2

After:
    x[m] = x[m] * 2

Legal when:
    the body only stores under the very mask that the test asks about: numbers, or what is computed one by one from
    the elements that it picks. Copies of the tensor in front of that are made always.

Differs in:
    nothing, where the body makes no copy and gradients are off, or the tensor is a new one that nothing has read:
    where the mask picks nothing, nothing is stored. Otherwise a leaf that asks for gradients raises, and backward
    that needs the old value.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.transforms.code.positions import is_elif, replaceable
from graphmend.transforms.code.qualified_names import called, is_tensor, method
from graphmend.transforms.code.text_edits import HOLE, replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.in_place import writable, written_on_both_sides
from graphmend.transforms.legality.masked_elements import is_mask, picked
from graphmend.transforms.legality.speculation import repeatable, speculate
from graphmend.transforms.rewrites.answers import offer, refuse
from graphmend.transforms.rewrites.shapes.masked_store import one_by_one

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "drop_guard"


def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = facts.statement
    if not isinstance(statement, ast.If) or statement.orelse:
        return None
    mask = _asked(facts, statement.test)
    copied = [c for s in statement.body if (c := _copied(facts, s))]
    if mask is not None and not repeatable(facts, mask):
        return refuse(NAME, f"`{ast.unparse(mask)}` is not the same each time it is evaluated")
    if mask is None or not all(_stores(facts, s, mask) or _copied(facts, s) for s in statement.body):
        return None
    if len(copied) == len(statement.body):
        return None
    if not replaceable(facts, [statement]) or is_elif(facts.source, statement):
        return refuse(NAME, "the statement shares its line with another one")

    def make() -> list[TextEdit]:
        return [replace_statements(facts.source, [statement], f"{HOLE.format(0)}\n", statement.body)]

    differences = [Difference("aliasing", f"`{name}` is a copy even where the mask picks nothing") for name in copied]
    roots = dict.fromkeys(n for s in statement.body for n in _written(s) if n not in copied)
    differences += [written_on_both_sides(n) for n in roots if not writable(facts, statement, n)]
    return offer(NAME, "store without asking first", facts, make, differences)


def _written(statement: ast.stmt) -> list[str]:
    """The text of what a store changes."""
    targets = statement.targets if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    places = targets if isinstance(targets, list) else [targets]
    return [ast.unparse(p.value) for p in places if isinstance(p, ast.Subscript)]


def _asked(facts: FunctionFacts, test: ast.expr) -> ast.expr | None:
    """The mask of `m.any()`, `m.any().item()`, `m.sum() > 0`."""
    match test:
        case ast.Call(func=ast.Attribute(value=ast.Call() as inner, attr="item"), args=[], keywords=[]):
            return _asked(facts, inner)
        case ast.Call(func=ast.Name(id="bool"), args=[ast.Call() as inner], keywords=[]):
            return _asked(facts, inner)
        case ast.Compare(left=left, ops=[ast.Gt() | ast.NotEq()], comparators=[ast.Constant(value=0)]):
            mask = _quantified(facts, left, "sum")
        case _:
            mask = _quantified(facts, test, "any")
    return mask if mask is not None and is_mask(facts, mask) else None


def _quantified(facts: FunctionFacts, node: ast.expr, how: str) -> ast.expr | None:
    """`m` of `m.any()` or `torch.any(m)`."""
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    if called(facts, node, f"torch.{how}"):
        return node.args[0] if len(node.args) == 1 else None
    if method(facts, node, how) and not node.args and isinstance(node.func, ast.Attribute):
        return node.func.value
    return None


def _copied(facts: FunctionFacts, statement: ast.stmt) -> str | None:
    """The name in `x = x.clone()`."""
    match statement:
        case ast.Assign(
            targets=[ast.Name(id=name)],
            value=ast.Call(func=ast.Attribute(value=ast.Name(id=source) as tensor, attr="clone"), args=[], keywords=[]),
        ) if name == source and is_tensor(facts, tensor):
            return name
    return None


def _stores(facts: FunctionFacts, statement: ast.stmt, mask: ast.expr) -> bool:
    """Does a statement only store under a mask?"""
    match statement:
        case ast.Assign(targets=[ast.Subscript() as target], value=value):
            pass
        case ast.AugAssign(target=ast.Subscript() as target, value=value):
            pass
        case _:
            return False
    found, wanted = picked(facts, target), ast.unparse(mask)
    if found is None or ast.unparse(found.mask) != wanted or speculate(facts, value).blockers:
        return False
    inner = {
        n: ""
        for n in ast.walk(value)
        if isinstance(n, ast.expr) and (p := picked(facts, n)) and ast.unparse(p.mask) == wanted
    }
    return one_by_one(facts, value, inner)
