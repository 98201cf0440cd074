"""Tensors that code which is not known may change in place, between the place where they are and where they would be
read.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.program.entities import Function
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.liveness import reads
from graphmend.transforms.code.qualified_names import qualified
from graphmend.transforms.legality.memory import shares
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.outside.pure_bodies import only_computes
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_KNOWN = (*known.FUNCTIONAL, "builtins", "math")


@answers("memory")
def handed_between(facts: FunctionFacts, tensors: Collection[ast.expr], uses: Collection[ast.expr]) -> ast.Call | None:
    """A call of code that is not known, behind the node of the finding and before the last use, or in a loop around one
    of them, which is given one of the tensors, a view of it, or its owner; None where there is none.
    """
    begin, end = _place(facts.node), max(_end(use) for use in uses)
    around = [a for a in facts.ancestors(facts.node) if isinstance(a, _LOOPS)]
    for use in uses:
        loops = [a for a in facts.ancestors(use) if isinstance(a, _LOOPS) and a not in around]
        end = max([end, *map(_end, loops)])
    for node in nodes_in(facts.function):
        if not isinstance(node, ast.Call) or not begin <= _place(node) <= end or not _is_unknown(facts, node):
            continue
        if any(_reaches(facts, node, tensor) for tensor in tensors):
            return node
    return None


def _reaches(facts: FunctionFacts, call: ast.Call, tensor: ast.expr) -> bool:
    wanted = shares(facts, tensor)
    roots = {path.partition(".")[0].partition("[")[0] for path in wanted.paths} | reads(tensor)
    inner = [call.func.value] if isinstance(call.func, ast.Attribute) else []
    for one in (*inner, *call.args, *(k.value for k in call.keywords)):
        if shares(facts, one).paths & wanted.paths:
            return True
        computed = isinstance(facts.value(one), Tensor) and shares(facts, one).fresh
        if roots & reads(one) and not computed:  # its owner, or what holds it
            return True
    own = [f for f in nodes_in(facts.function) if isinstance(f, _FUNCTIONS) and f is not facts.function]
    return any(roots & reads(f) for f in own)


def _is_unknown(facts: FunctionFacts, call: ast.Call) -> bool:
    """Does a call run code that may change its arguments?"""
    value = facts.value(call.func)
    if isinstance(value, ExternalInstance) and value.cls.startswith("torch.nn."):
        return False
    if isinstance(value, Function) and value.bound is None and only_computes(value.info):
        return False
    return (qualified(facts, call.func) or "").rpartition(".")[0] not in _KNOWN


def _place(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _end(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "end_lineno", 0) or 0, getattr(node, "end_col_offset", 0) or 0
