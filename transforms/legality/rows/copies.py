"""Whether a program may tell the copy of a part of a tensor from a view of it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.qualified_names import qualified
from graphmend.transforms.legality.context import telling
from graphmend.transforms.legality.memory import changed_in_place, escapes, shares
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.outside.identity import identified
from graphmend.transforms.legality.own_functions import may_keep
from graphmend.transforms.legality.rows.masked_elements import WORKS
from graphmend.transforms.legality.writes.handed import handed_between
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

#: reductions that give one number, which has no layout, where they are given nothing
OF_ALL = frozenset("sum mean prod norm max min amax amin std var".split())


@answers("memory")
def seen_as_view(facts: FunctionFacts, node: ast.Subscript) -> bool:
    """May the program see whether a part is a view or a copy? Not where the part is only computed with."""
    if telling(facts, {"aliasing"}) is not None:
        return True
    above = facts.parent(node)
    if isinstance(above, ast.Attribute):
        above = facts.parent(above)
    if isinstance(above, ast.Call) and above.func is not node and may_keep(facts, above):
        return True
    if isinstance(above, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call)):
        return not shares(facts, above).fresh
    if isinstance(above, ast.Assign) and isinstance(name := above.targets[0], ast.Name) and len(above.targets) == 1:
        return escapes(facts, name.id) or identified(facts, name.id)
    return True


@answers("memory")
def outdated(facts: FunctionFacts, node: ast.Subscript) -> bool:
    """May a part that is given a name be read after what it is a part of has changed in place, which a copy misses?"""
    above = facts.parent(node)
    if not (
        isinstance(above, ast.Assign) and len(above.targets) == 1 and isinstance(name := above.targets[0], ast.Name)
    ):
        return False
    uses = _loads(facts, name.id)
    changed = changed_in_place(facts, node.value, behind=facts.statement)
    return bool(uses) and (changed or handed_between(facts, [node.value], uses) is not None)


@answers("shapes")
def layout_shows(facts: FunctionFacts, node: ast.Subscript) -> bool:
    """May other strides of a part show in what is computed of it? Not where all of it becomes one number."""
    above = facts.parent(node)
    if isinstance(above, ast.Assign) and len(above.targets) == 1 and isinstance(name := above.targets[0], ast.Name):
        return not all(_becomes_a_number(facts, use) for use in _loads(facts, name.id))
    return not _becomes_a_number(facts, node)


def _becomes_a_number(facts: FunctionFacts, node: ast.expr) -> bool:
    _, call = worked_into(facts, node)
    if call is None or call.keywords or not isinstance(facts.value(call), Tensor):
        return False
    folder, _, last = (qualified(facts, call.func) or "").rpartition(".")
    return last in OF_ALL and folder in ("torch", "torch.Tensor") and len(call.args) == (folder == "torch")


def worked_into(facts: FunctionFacts, node: ast.expr) -> tuple[ast.expr, ast.Call | None]:
    """What is computed element by element of a value, and the call that takes it then; None where no call does."""
    while True:
        above = facts.parent(node)
        call = facts.parent(above) if isinstance(above, ast.Attribute) else above
        if isinstance(above, (ast.BinOp, ast.UnaryOp, ast.Compare)):
            node = above
            continue
        if not isinstance(call, ast.Call):
            return node, None
        folder, _, last = (qualified(facts, call.func) or "").rpartition(".")
        if folder not in known.FUNCTIONAL or last not in WORKS:
            return node, call
        node = call


def _loads(facts: FunctionFacts, name: str) -> list[ast.Name]:
    names = (n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n.id == name)
    return [n for n in names if isinstance(n.ctx, ast.Load)]
