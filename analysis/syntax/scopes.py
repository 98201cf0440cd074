"""Names that a scope binds: which are a function's own, and whether one is certainly unbound where it is read."""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Protocol

from graphmend.analysis.syntax.nodes import DEFINITIONS, FunctionNode
from graphmend.analysis.syntax.traversal import push_children, walk

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_COMPOUND = (*_LOOPS, ast.If, ast.With, ast.AsyncWith, ast.Try, ast.Match)
_Position = tuple[int, int]

#: names that every module has, those of interactive shells and profilers included
ALWAYS_BOUND = frozenset(
    (
        *dir(builtins),
        *"__file__ __path__ __builtins__ __class__ __dict__ __annotations__ __module__ __qualname__ WindowsError "
        "get_ipython display In Out _ __ ___ _ih _oh _dh exit quit reveal_type reveal_locals profile unicode xrange "
        "basestring long raw_input unichr reduce".split(),
    )
)
#: words of a text that may bind names out of sight
BINDS_UNSEEN = ("globals(", "exec(", "eval(", "__builtin", "builtins.", "setattr(", "vars(", "sys.modules", "%run")


class _Scope(Protocol):
    """A function whose names are asked for."""

    @property
    def node(self) -> FunctionNode: ...

    @property
    def bindings(self) -> Bindings: ...


class Bindings:
    """What binds the names of one function: by name, the places, in no order."""

    def __init__(self, function: FunctionNode) -> None:
        self._function = function
        self._loops: list[ast.stmt] = []
        self._named: set[str] = set()
        """Bound by `:=`, in the middle of an expression."""
        self.places: dict[str, list[_Position]] = {}
        self.deletions: dict[str, list[_Position]] = {}
        other: set[str] = set()
        for node in _own_nodes(function):
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                other.update(node.names)
            elif isinstance(node, _LOOPS):
                self._loops.append(node)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del):
                self.deletions.setdefault(node.id, []).append(_start(node))
            for name in _bound_by(node):
                self.places.setdefault(name, []).append(_start(node))
            if isinstance(node, ast.NamedExpr) and isinstance(node.target, ast.Name):
                self._named.add(node.target.id)
        for name in other:
            self.places.pop(name, None)
        self.parameters = frozenset(parameter_names(function))

    def is_unbound(self, name: str, node: ast.expr, statement: ast.stmt) -> bool:
        """Whether one of the function's own names is unbound on every run that gets to `node` in `statement`: nothing
        that binds it stands before, and no loop around both leads back."""
        if (name not in self.places and name not in self.parameters) or name in self._named:
            return False
        here = _start(node)
        until = here if isinstance(statement, _COMPOUND) else _start(statement)  # it binds when all of it was read
        places = self.places.get(name, [])
        if any(_holds(loop, here) and any(_holds(loop, place) for place in places) for loop in self._loops):
            return False
        deleted = max(self._deleted_before(name, here), default=None)
        if deleted is None:
            return name not in self.parameters and not any(place < until for place in places)
        return not any(deleted < place < until for place in places)

    def _deleted_before(self, name: str, here: _Position) -> Iterator[_Position]:
        """Where the top level of the function deletes a name, before a place that is at the top level behind it."""
        if name not in self.deletions or isinstance(self._function, ast.Lambda):
            return
        for statement in self._function.body:
            if isinstance(statement, ast.Delete) and _start(statement) < here:
                yield from (place for place in self.deletions[name] if _holds(statement, place))


def bound_in(*trees: ast.AST) -> Counter[str]:
    """The names that any scope of some trees binds, and how often; `*` where one imports all names of a module."""
    found: list[str] = []
    for node in (node for tree in trees for node in walk(tree)):
        if isinstance(node, ast.Name):  # most nodes that bind are names, and most names do not
            if isinstance(node.ctx, ast.Store):
                found.append(node.id)
        elif not isinstance(node, (ast.Attribute, ast.Call, ast.Constant)):
            found += _bound_by(node)
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                found += node.names
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                found += parameter_names(node)
    return Counter(found)


def parameter_names(function: FunctionNode) -> Iterator[str]:
    """The names of all parameters."""
    given = function.args
    extra = (p for p in (given.vararg, given.kwarg) if p is not None)
    return (p.arg for p in (*given.posonlyargs, *given.args, *given.kwonlyargs, *extra))


def is_shared(info: _Scope, name: str) -> bool:
    """Whether a name of a function is a global, or a variable that an inner function reads."""
    if name not in info.bindings.places and name not in info.bindings.parameters:
        return True
    body = [] if isinstance(info.node, ast.Lambda) else info.node.body
    inner = (
        n for part in body for n in walk(part) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
    )
    return any(isinstance(n, ast.Name) and n.id == name for function in inner for n in walk(function))


def certainly_read(function: FunctionNode) -> Iterator[ast.Name]:
    """The names that every call of a function reads that gets to its end: those of its first simple statements."""
    body: Iterable[ast.AST] = [ast.Expr(function.body)] if isinstance(function, ast.Lambda) else function.body
    for statement in body:
        if not isinstance(statement, (ast.Assign, ast.Expr, ast.Return)) or statement.value is None:
            return
        yield from _names_evaluated(statement.value)
        if not isinstance(statement, ast.Expr):
            return


def _names_evaluated(node: ast.AST) -> Iterator[ast.Name]:
    """The names that an expression reads whatever their values are."""
    if isinstance(node, ast.Name):
        yield node
    elif isinstance(node, (ast.BinOp, ast.Call, ast.Attribute, ast.UnaryOp, ast.Subscript, ast.Tuple, ast.List)):
        for child in ast.iter_child_nodes(node):
            yield from _names_evaluated(child)


def _own_nodes(function: FunctionNode) -> Iterator[ast.AST]:
    """The nodes of a function's own scope: not those of inner functions, nor what a comprehension binds for itself."""
    stack: list[ast.AST] = [function.body] if isinstance(function, ast.Lambda) else list(reversed(function.body))
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, _COMPREHENSIONS):
            stack.extend(n for n in walk(node) if isinstance(n, ast.NamedExpr))
        elif not isinstance(node, DEFINITIONS):
            push_children(node, stack)


def _bound_by(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Store):
            yield node.id
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from (a.asname or a.name.partition(".")[0] for a in node.names)
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        if node.name:
            yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest


def _start(node: ast.AST) -> _Position:
    return (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))


def _holds(node: ast.stmt, place: _Position) -> bool:
    """Whether a place is within a statement."""
    return _start(node) <= place <= (node.end_lineno or 0, node.end_col_offset or 0)
