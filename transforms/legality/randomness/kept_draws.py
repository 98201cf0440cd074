"""What becomes of draws where code does not ask for them any more.

In plain Python a number is drawn whether anybody reads it or not. In a graph a draw that nothing reads is dead code:
backends other than `eager` (`aot_eager`, `inductor`; measured with torch 2.13) do not make it unless
`torch._inductor.config.fallback_random` is set, and all later numbers are others. A branch that asks for a value keeps
it alive, since the graph ends there and gives it out.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.liveness import locals_of, parameters, reads, writes
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.randomness.draws import draws, from_torch
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


@answers("random")
def left_out(facts: FunctionFacts, *nodes: ast.AST) -> list[Difference]:
    """The draws that do not happen while compiled where code is left out there, and what it alone reads."""
    inside = [f"`{shortened(call)}` is not drawn while compiled" for call in draws(facts, *nodes)]
    return [Difference("random", says) for says in dict.fromkeys(inside)] + unread(facts, *nodes)


@answers("random")
def unread(facts: FunctionFacts, *nodes: ast.AST) -> list[Difference]:
    """The names in code that hold what torch draws, and that nothing else keeps alive."""
    drawn = reads(*nodes) & _drawn_names(facts)
    if not drawn:
        return []
    alive = _alive(facts, nodes)
    return [Difference("random", f"a backend that drops dead code does not draw `{n}`") for n in sorted(drawn - alive)]


@answers("random")
def orphaned(facts: FunctionFacts) -> list[Difference]:
    """The draws that nothing reads once Python asks for no value of the finding's statement: those that it reads and
    whose results, which the mended statement computes from them, are read nowhere.
    """
    statement = facts.statement
    if not isinstance(statement, (ast.If, ast.While, ast.Assign, ast.AnnAssign)):
        return []
    drawing = [c for c in draws(facts, statement) if from_torch(facts, c)]
    if not drawing and not reads(statement) & _drawn_names(facts):
        return []
    if any(_keeps(facts, s) for s in nodes_in(statement)) or _changed(statement) & _alive(facts, (statement,)):
        return []
    says = "a backend that drops dead code does not draw {}: nothing else reads what `{}` computes"
    names = sorted({f"`{shortened(c)}`" for c in drawing} | {f"`{n}`" for n in reads(statement) & _drawn_names(facts)})
    return [Difference("random", says.format(" and ".join(names), shortened(statement)))]


@lru_cache(maxsize=1)
def _drawn_names(facts: FunctionFacts) -> frozenset[str]:
    """The local names that hold what torch draws, or what is computed from that."""
    found: set[str] = set()
    assigned = [n for n in nodes_in(facts.function) if isinstance(n, (ast.Assign, ast.AnnAssign, ast.AugAssign))]
    assigned += [n for n in nodes_in(facts.function) if isinstance(n, ast.NamedExpr)]  # type: ignore[misc]
    grows = True
    while grows:
        grows = False
        for node in assigned:
            names = writes(node) - found
            if node.value is None or not names:
                continue
            if reads(node.value) & found or any(from_torch(facts, c) for c in draws(facts, node.value)):
                found |= names
                grows = True
    return frozenset(found - {*parameters(facts.function)})


def _alive(facts: FunctionFacts, without: tuple[ast.AST, ...]) -> set[str]:
    """The names that something outside some code keeps alive: what leaves the function, or is asked by Python."""
    skipped = {n for node in without for n in nodes_in(node)}
    alive: set[str] = set()
    flows: list[tuple[set[str], set[str]]] = []
    for node in nodes_in(facts.function):
        if node in skipped or node is facts.function:
            continue
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and not _keeps(facts, node):
            flows.append((_changed(node), _reads(node, skipped)))
        else:
            alive |= {name for part in _used(facts, node) for name in _reads(part, skipped)}
    grows = True
    while grows:
        before = len(alive)
        for written, read in flows:
            if written & alive:
                alive |= read
        grows = len(alive) > before
    return alive


def _reads(node: ast.AST, skipped: set[ast.AST]) -> set[str]:
    return {name for n in nodes_in(node) if n not in skipped for name in _read(n)}


def _read(node: ast.AST) -> set[str]:
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        return {node.target.id}
    return {node.id} if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) else set()


def _used(facts: FunctionFacts, node: ast.AST) -> list[ast.AST]:
    """The parts of a node whose values are used whatever becomes of its results."""
    match node:
        case ast.If(test=asked) | ast.While(test=asked) | ast.For(iter=asked) | ast.Match(subject=asked):
            return [asked]
        case ast.With(items=items):
            return [*items]
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda() | ast.ClassDef() | ast.comprehension():
            return [node]
    return [node] if _keeps(facts, node) else []


def _keeps(facts: FunctionFacts, node: ast.AST) -> bool:
    """Does a statement give a value out of the function, by returning, storing, raising or calling?"""
    if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
        mine = locals_of(facts.function) - {*parameters(facts.function)}
        return any(not isinstance(r, ast.Name) or r.id not in mine for t in _targets(node) for r in _roots(t))
    return isinstance(node, (ast.Return, ast.Expr, ast.Raise, ast.Assert, ast.Delete))


def _changed(node: ast.AST) -> set[str]:
    """The names that code binds, and those into whose values it stores."""
    stores = (ast.Assign, ast.AugAssign, ast.AnnAssign)
    targets = [t for n in nodes_in(node) if isinstance(n, stores) for t in _targets(n)]
    return writes(node) | {r.id for t in targets for r in _roots(t) if isinstance(r, ast.Name)}


def _targets(node: ast.Assign | ast.AugAssign | ast.AnnAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def _roots(target: ast.expr) -> list[ast.expr]:
    """What a target binds or stores into: `x` in `x[0][1]`, the attribute in `a.b[0]`."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return [root for part in target.elts for root in _roots(part)]
    while isinstance(target, (ast.Subscript, ast.Starred)):
        target = target.value
    return [target]
