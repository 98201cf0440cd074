"""What is evaluated for certain: by an expression, by statements on every path, before a statement is reached.

An expression that was evaluated before, with names that still mean the same, raises nothing new.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Static, Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.liveness import reads, writes
from graphmend.transforms.code.qualified_names import qualified

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_BLOCKS = ("body", "orelse", "finalbody")


def place_of(facts: FunctionFacts) -> ast.stmt:
    """The statement in whose place code is evaluated that stood in its branch: of branches on what is not known while
    tracing the outermost around the finding.
    """
    place = facts.statement
    for above in facts.ancestors(place):
        if not isinstance(above, ast.If) or isinstance(facts.value(above.test), Static):
            break
        place = above
    return place


@lru_cache(maxsize=8)
def evaluated_before(facts: FunctionFacts, at: ast.stmt) -> tuple[ast.expr, ...]:
    """The expressions that are evaluated whenever a statement is reached, or by itself on every path, and whose names
    mean the same there.
    """
    found = list(certain(at, _behind(facts, at)))
    changed: set[str] = set()
    child: ast.AST = at
    for above in facts.ancestors(at):
        block = next((b for name in _BLOCKS if child in (b := getattr(above, name, ()))), None)
        if isinstance(above, _LOOPS):
            changed |= _changed(facts, [above])
        if block is not None:
            for statement in reversed(block[: block.index(child)]):
                changed |= _changed(facts, [statement])
                found += (e for e in certain(statement) if not reads(e) & changed)
        if above is facts.function:
            break
        if isinstance(above, ast.ExceptHandler) or (isinstance(above, ast.Try) and child not in above.body):
            changed |= _changed(facts, [above])
        else:
            found += (e for e in _head(above) if not reads(e) & changed)
        child = above
    return tuple(found)


def raised_before(facts: FunctionFacts, at: ast.stmt, node: ast.expr) -> bool:
    """Is an expression of the same text as `node`, and with names that mean the same there, evaluated whenever a
    statement is reached?
    """
    others = _by_text(facts, at).get(ast.unparse(node), ())
    if not any(other is not node for other in others):
        return False
    changed = changed_on_the_way(facts, at, node)
    return changed is not None and not reads(node) & changed


@lru_cache(maxsize=8)
def _by_text(facts: FunctionFacts, at: ast.stmt) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for node in evaluated_before(facts, at):
        if not isinstance(node, (ast.Constant, ast.Name)):
            found.setdefault(ast.unparse(node), []).append(node)
    return found


def changed_on_the_way(facts: FunctionFacts, at: ast.stmt, node: ast.AST) -> set[str] | None:
    """The names that may be bound or written between the beginning of a statement and a node in it or behind it; None
    where the node stands elsewhere.
    """
    changed: set[str] = set()
    child = node
    if node is at:
        return changed
    for above in facts.ancestors(node):
        if isinstance(child, ast.stmt):
            block = next((b for name in _BLOCKS if child in (b := getattr(above, name, ()))), [child])
            inside = at in block
            if inside and block.index(child) < block.index(at):
                return None
            changed |= _changed(facts, block[block.index(at) if inside else 0 : block.index(child)])
            if inside:
                return changed
        if isinstance(above, _LOOPS):
            changed |= _changed(facts, [above])
        if above is at:
            return changed
        child = above
    return None


def certain(node: ast.AST, behind: Iterable[ast.stmt] = ()) -> Iterator[ast.expr]:
    """The expressions that are evaluated whenever a node is; `behind` is what runs next where a side of an `if` that
    returns is not taken.
    """
    match node:
        case ast.If(test=test, body=body, orelse=orelse):
            yield from certain(test)
            first, second = ([*side, *([] if _leaves(side) else behind)] for side in (body, orelse))
            yield from _common(_of_block(first), _of_block(second))
        case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
            for item in items:
                yield from certain(item.context_expr)
            yield from _of_block(body)
        case ast.stmt():
            yield from _head(node)
        case ast.BoolOp(values=[first, *_]):
            yield node
            yield from certain(first)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield node
            yield from certain(test)
            yield from _common([*certain(body)], [*certain(orelse)])
        case ast.Compare(left=left, comparators=[first, *_]):
            yield node
            yield from certain(left)
            yield from certain(first)
        case ast.Lambda() | ast.Name(ctx=ast.Store() | ast.Del()):
            pass
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            yield node
            yield from certain(node.generators[0].iter)
        case ast.expr():
            yield node
            yield from _children(node)


def _children(node: ast.AST) -> Iterator[ast.expr]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield from certain(child)
        elif isinstance(child, ast.keyword):
            yield from certain(child.value)


def _head(node: ast.AST) -> Iterator[ast.expr]:
    """What a statement evaluates itself, its blocks aside."""
    match node:
        case ast.If(test=test) | ast.While(test=test):
            yield from certain(test)
        case ast.For(iter=iterated) | ast.AsyncFor(iter=iterated):
            yield from certain(iterated)
        case ast.With(items=items) | ast.AsyncWith(items=items):
            for item in items:
                yield from certain(item.context_expr)
        case ast.Match(subject=subject):
            yield from certain(subject)
        case ast.Assert(test=test):
            yield from certain(test)
        case ast.Try() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            pass
        case ast.stmt():
            yield from _children(node)


def _of_block(statements: Iterable[ast.stmt]) -> list[ast.expr]:
    """What a block evaluates on every path, as long as the names mean what they do at its beginning."""
    found: list[ast.expr] = []
    bound: set[str] = set()
    for statement in statements:
        found += (e for e in certain(statement) if not reads(e) & bound)
        bound |= writes(statement) | _written(statement)
        if isinstance(statement, (ast.Return, ast.Raise, ast.Break, ast.Continue, ast.If, *_LOOPS, ast.Try)):
            break
    return found


def _common(one: list[ast.expr], other: list[ast.expr]) -> list[ast.expr]:
    """What both evaluate, by text."""
    texts = [{ast.unparse(e): None for e in side if not isinstance(e, ast.Constant)} for side in (one, other)]
    both = texts[0].keys() & texts[1].keys()
    return [e for e in (*one, *other) if ast.unparse(e) in both]


def _leaves(statements: list[ast.stmt]) -> bool:
    return bool(statements) and isinstance(statements[-1], (ast.Return, ast.Raise, ast.Break, ast.Continue))


def _behind(facts: FunctionFacts, at: ast.stmt) -> list[ast.stmt]:
    """What runs behind a branch of which a side returns."""
    if not isinstance(at, ast.If) or not any(_leaves(side) for side in (at.body, at.orelse)):
        return []
    block = facts.body_of(at)
    return block[block.index(at) + 1 :]


def _changed(facts: FunctionFacts, statements: Iterable[ast.AST]) -> set[str]:
    """The names that statements bind, or through which they may write."""
    found: set[str] = set()
    for statement in statements:
        found |= writes(statement) | _written(statement)
        for node in nodes_in(statement):
            if isinstance(node, ast.Call) and not _is_pure(facts, node):
                owner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
                inside = [n for e in (*owner, *node.args, *node.keywords) for n in nodes_in(e)]
                # what a tensor is like stays, whoever writes to it
                found |= {n.id for n in inside if isinstance(n, ast.Name) and not isinstance(facts.value(n), Tensor)}
    return found


def _is_pure(facts: FunctionFacts, node: ast.Call) -> bool:
    value = facts.value(node.func)
    if isinstance(value, ExternalInstance):
        return value.cls.startswith("torch.nn.")
    return (qualified(facts, node.func) or "").startswith(_PURE)


_PURE = ("torch.", "math.", "builtins.", "logging.", "warnings.")


def _written(statement: ast.AST) -> set[str]:
    """The names that places which a statement stores to begin with, and receivers of methods in place."""
    found: set[str] = set()
    for node in nodes_in(statement):
        place: ast.AST | None = None
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            place = node
        elif isinstance(node, ast.AugAssign):
            place = node.target
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_"):
            place = node.func
        while isinstance(place, (ast.Attribute, ast.Subscript)):
            place = place.value
        if isinstance(place, ast.Name):
            found.add(place.id)
    return found
