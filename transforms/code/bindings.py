"""What the names of a function are bound to, as expressions. No values here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.liveness import locals_of, parameters, writes

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

HELD = "held_"
"""What the names begin with that mends give to places for as long as they are made."""


class Bound(NamedTuple):
    value: ast.expr | None
    """What a name is bound to; None where that is not written as an expression."""
    part: bool = False
    """Is it a part of it: an item, an element of what a loop runs over?"""


@lru_cache(maxsize=2)
def bindings(facts: FunctionFacts) -> dict[str, list[Bound]]:
    """Everything that each local name is bound to, anywhere in the function."""
    found: dict[str, list[Bound]] = {}
    for node in nodes_in(facts.function):
        for name, bound in _binds(node):
            found.setdefault(name, []).append(bound)
    return found


def stores(facts: FunctionFacts, name: str) -> int:
    """How often a name is written as a target, or deleted, anywhere in the function."""
    nodes = nodes_in(facts.function)
    return sum(isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load) for n in nodes)


def reaching(facts: FunctionFacts, node: ast.Name) -> ast.expr | None:
    """What a name is bound to where it is read, changes in place aside; None where several bindings may reach it."""
    return bound_at(facts, node.id, node)


def bound_at(facts: FunctionFacts, name: str, place: ast.AST) -> ast.expr | None:
    """The same of any name, at a place in the function."""
    if name not in _written(facts.function):
        return None
    child: ast.AST = place
    for above in facts.ancestors(place):
        if isinstance(above, _OWN_NAMES) and above is not facts.function:
            return None
        for block in (getattr(above, field, ()) for field in ("body", "orelse", "finalbody")):
            if not (isinstance(block, list) and child in block):
                continue
            for statement in reversed(block[: block.index(child)]):
                match statement:
                    case ast.Assign(targets=[target], value=value):
                        bound = [one for target_name, one in _unpacked(target, value) if target_name == name]
                        if len(bound) == 1 and not bound[0].part:
                            return bound[0].value
                if name in _bound_in(statement):
                    return None
        loop = isinstance(above, (ast.For, ast.AsyncFor, ast.While))
        if (loop or isinstance(above, (ast.Try, ast.ExceptHandler))) and name in _bound_in(above):
            return None
        if above is facts.function:
            return None
        child = above
    return None


def still(facts: FunctionFacts, name: ast.Name) -> ast.expr | None:
    """What a name was bound to, where all names in that are bound to the same where the name is read, too."""
    made = reaching(facts, name)
    names = [n for n in nodes_in(made) if isinstance(n, ast.Name)] if made is not None else []
    same = (
        stores(facts, n.id) == 0 or ((then := reaching(facts, n)) is not None and then is bound_at(facts, n.id, name))
        for n in names
    )
    return made if all(same) else None


def straight(facts: FunctionFacts, node: ast.Name) -> ast.Name | None:
    """A name that is read once in a call of the function, by code of its own: what stands behind it does not reach it.
    None where a loop, an inner function or a comprehension stands around it.
    """
    for above in facts.ancestors(node):
        if above is facts.function:
            return node
        if isinstance(above, (ast.For, ast.AsyncFor, ast.While, *_OWN_NAMES)):
            return None
    return None


def precedes(value: ast.expr, node: ast.expr) -> bool:
    """Does an expression end in front of another one in the text?"""
    end = value.end_lineno or 0, value.end_col_offset or 0
    return end <= (node.lineno, node.col_offset)


_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def has_own_names(facts: FunctionFacts, node: ast.AST) -> bool:
    """Does an expression stand in a comprehension or a lambda, whose names mean nothing in front of the statement?"""
    return any(isinstance(above, _OWN_NAMES) for above in facts.ancestors(node) if isinstance(above, ast.expr))


def is_read_earlier(facts: FunctionFacts, node: ast.Name) -> bool:
    """Is a name read before anything in the function binds it, or before the statement that is mended, and not again
    in a loop?
    """
    if not has_own_names(facts, node) and _has_run(facts, node):
        return True
    stores = [
        n for n in nodes_in(facts.function)
        if isinstance(n, ast.Name) and n.id == node.id and isinstance(n.ctx, ast.Store)
    ]  # fmt: skip
    first = min(((n.lineno, n.col_offset) for n in stores), default=None)
    looped = any(isinstance(a, _LOOPS) for n in stores for a in facts.ancestors(n))
    if first is None or looped:
        return False
    statement = next((a for a in facts.ancestors(node) if isinstance(a, ast.stmt)), None)
    if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
        anew = any(n is node for n in nodes_in(statement.value))  # `x = f(x)`
        return node.lineno < first[0] or (anew and first == (statement.lineno, statement.col_offset))
    return node.lineno < first[0]


def _has_run(facts: FunctionFacts, node: ast.expr) -> bool:
    """Has code run for the last time when the statement that is mended is reached, or the branch around that?"""
    above = [*facts.ancestors(facts.statement)]
    inner = [a for a in facts.ancestors(node) if isinstance(a, _FUNCTIONS) and a is not facts.function]
    whole = [a for a in above if isinstance(a, ast.stmt) and a is not facts.function and not isinstance(a, _LOOPS)]
    begin = min(s.lineno for s in (facts.statement, *whole))
    loops = {a for a in above if isinstance(a, _LOOPS)}
    return not inner and node.lineno < begin and loops.isdisjoint(facts.ancestors(node))


def always_evaluated(facts: FunctionFacts, node: ast.AST) -> bool:
    """Is an expression evaluated once whenever its statement, which is a simple one, runs?"""
    for above in facts.ancestors(node):
        if isinstance(above, (*_OWN_NAMES, *_PERHAPS)):
            return False
        if isinstance(above, ast.stmt):
            return isinstance(above, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr))
    return False


def bound_before(facts: FunctionFacts, statement: ast.stmt, name: str) -> ast.expr | None:
    """What a name was bound to last where a statement is reached from in front of it, by an assignment that always
    runs then; None where that is not known. What the statement itself binds in a loop does not count.
    """
    child: ast.AST = statement
    for above in facts.ancestors(statement):
        for block in (getattr(above, part, ()) for part in ("body", "orelse", "finalbody")):
            if not (isinstance(block, list) and child in block):
                continue
            for earlier in reversed(block[: block.index(child)]):
                if name in writes(earlier):
                    given = [b for n, b in _binds(earlier) if n == name]
                    only = isinstance(earlier, (ast.Assign, ast.AnnAssign)) and len(given) == 1
                    return given[0].value if only and not given[0].part else None
        if not isinstance(above, (ast.If, ast.With)):
            return None
        child = above
    return None


_OWN_NAMES = (
    ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.FunctionDef, ast.AsyncFunctionDef,
    ast.ClassDef,
)  # fmt: skip
#: functions that read what they are given, and keep no part of it that can be changed
_LOOK = frozenset("len sum min max sorted tuple list".split())
_PERHAPS = (ast.IfExp, ast.BoolOp, ast.Compare, ast.NamedExpr)


@lru_cache(maxsize=32)
def _written(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The names that a function binds anywhere by statements of its own. Its tree is not to change afterwards."""
    return writes(*function.body)


def _bound_in(statement: ast.AST) -> set[str]:
    """The names that a statement binds, changes in place aside; kept as `nodes_in` keeps what is below it."""
    found: set[str] | None = statement.__dict__.get(_BOUND)
    if found is None:
        found = statement.__dict__[_BOUND] = _without_changes(statement)
    return found


_BOUND = "_graphmend_bound_anew"


def _without_changes(statement: ast.AST) -> set[str]:
    if isinstance(statement, ast.AugAssign):
        return set()
    changed = [n.target for n in nodes_in(statement) if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)]
    if not changed:
        return writes(statement)
    names = {n.id for n in changed}
    stores = (n for n in nodes_in(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    bound = {n.id for n in stores if n.id in names and n not in changed}
    return writes(statement) - (names - bound)


def _binds(node: ast.AST) -> Iterator[tuple[str, Bound]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _unpacked(target, value)
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, Bound(value)
        case ast.NamedExpr(target=ast.Name(id=name), value=value):
            yield name, Bound(value)
        case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
            for name in _names_in(target):
                yield name, Bound(value, part=True)
        case ast.comprehension(target=target, iter=value):
            for name in _names_in(target):
                yield name, Bound(value, part=True)
        case ast.withitem(optional_vars=ast.expr() as target):
            for name in _names_in(target):
                yield name, Bound(None)
        case ast.ExceptHandler(name=str(name)):
            yield name, Bound(None)
        case ast.Match(subject=value, cases=cases):
            for case in cases:
                for name, whole in _captured(case.pattern):
                    yield name, Bound(value, part=not whole)


def _captured(pattern: ast.pattern, whole: bool = True) -> Iterator[tuple[str, bool]]:
    """The names that a pattern binds, and of each whether it is what is matched as a whole."""
    match pattern:
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            yield name, whole and isinstance(pattern, ast.MatchAs)
    whole = whole and isinstance(pattern, (ast.MatchAs, ast.MatchOr))
    for inner in ast.iter_child_nodes(pattern):
        if isinstance(inner, ast.pattern):
            yield from _captured(inner, whole)


def _unpacked(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, Bound]]:
    if isinstance(target, ast.Name):
        yield target.id, Bound(value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        same = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
        starred = any(isinstance(e, ast.Starred) for e in target.elts)
        if same and not starred and isinstance(value, (ast.Tuple, ast.List)):
            for one, other in zip(target.elts, value.elts, strict=True):
                yield from _unpacked(one, other)
        else:
            for name in _names_in(target):
                yield name, Bound(value, part=True)


def _names_in(target: ast.expr) -> list[str]:
    return [n.id for n in nodes_in(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def name_given(facts: FunctionFacts, node: ast.expr) -> str | None:
    """The name that an assignment gives what `node` evaluates to, as it stands or out of a tuple: `a, b = node, x`."""
    above = facts.parent(node)
    if isinstance(above, ast.Assign) and len(above.targets) == 1 and above.value is node:
        return above.targets[0].id if isinstance(above.targets[0], ast.Name) else None
    if not isinstance(above, (ast.Tuple, ast.List)) or any(isinstance(e, ast.Starred) for e in above.elts):
        return None
    match facts.parent(above):
        case ast.Assign(targets=[ast.Tuple(elts=targets) | ast.List(elts=targets)], value=value) if value is above:
            target = targets[above.elts.index(node)] if len(targets) == len(above.elts) else None
            return target.id if isinstance(target, ast.Name) else None
    return None


_DISPLAYS = (ast.Dict, ast.List, ast.Tuple, ast.Set)


_BISECT = tuple(f"bisect.bisect{side}" for side in ("", "_left", "_right"))


def display_of(facts: FunctionFacts, table: ast.expr) -> ast.Dict | ast.List | ast.Tuple | ast.Set | None:
    """The display that a table is, or that its name always stands for, and that is only read."""
    if isinstance(table, _DISPLAYS):
        return table
    if not isinstance(table, ast.Name):
        return None
    local = table.id in locals_of(facts.function)
    bound = (reaching(facts, table) or _only(facts, table.id)) if local else _of_module(facts, table.id)
    scope = facts.function if local else facts.source.tree
    if not isinstance(bound, _DISPLAYS) or scope is None:
        return None
    if local and stores(facts, table.id) > 1:
        return None
    only_read: list[ast.expr] = []
    for node in nodes_in(scope):
        match node:
            case ast.Subscript(value=value, ctx=ast.Load()) | ast.Call(func=ast.Attribute(value=value, attr="get")):
                only_read.append(value)
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[value]):
                only_read.append(value)
            case ast.Call(func=ast.Name(id=of), args=[value], keywords=[]) if of in _LOOK and of not in facts.names:
                only_read.append(value)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=of), attr=attr), args=[value, _]):
                only_read += [value] if f"{facts.names.get(of)}.{attr}" in _BISECT else []
    loads = [n for n in nodes_in(scope) if isinstance(n, ast.Name) and n.id == table.id and isinstance(n.ctx, ast.Load)]
    return bound if all(load in only_read for load in loads) else None


def _only(facts: FunctionFacts, name: str) -> ast.expr | None:
    """What a local name is bound to, once and for the whole function."""
    bound = bindings(facts).get(name, [])
    return bound[0].value if len(bound) == 1 and not bound[0].part and name not in parameters(facts.function) else None


def _of_module(facts: FunctionFacts, name: str) -> ast.expr | None:
    """What a name of the module is bound to, once and at its top."""
    tree = facts.source.tree
    if tree is None:
        return None
    found = [
        s.value
        for s in tree.body
        if isinstance(s, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in s.targets)
    ]
    stored = sum(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in nodes_in(tree))
    return found[0] if len(found) == stored == 1 else None
