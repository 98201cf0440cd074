"""Which names a piece of code reads and binds, which are alive behind a statement, and which are still free. No
values here.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def reads(*nodes: ast.AST) -> set[str]:
    """Names that are read anywhere in `nodes`, nested functions included."""
    found = {n.id for node in nodes for n in nodes_in(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return found | {
        n.target.id
        for node in nodes
        for n in nodes_in(node)
        if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)
    }


def writes(*nodes: ast.AST) -> set[str]:
    """Names that `nodes` bind or delete in the scope that they stand in."""
    return {name for node in nodes for name in _bound(node)}


_BOUND = "_graphmend_bound"


def _bound(node: ast.AST) -> frozenset[str]:
    """The names that a node binds or deletes in the scope that it stands in, kept as `nodes_in` keeps what is below."""
    found: frozenset[str] | None = node.__dict__.get(_BOUND)
    if found is None:
        found = node.__dict__[_BOUND] = frozenset(name for name, _ in bindings(node))
    return found


def stored(statements: Iterable[ast.stmt]) -> set[str]:
    """Names that are assigned anywhere in statements."""
    return {n.id for s in statements for n in nodes_in(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def always_leaves(statements: Sequence[ast.stmt]) -> bool:
    """Does a block never run past its end: does every path through it return, raise, break or continue?"""
    last = statements[-1] if statements else None
    if isinstance(last, ast.If):
        return always_leaves(last.body) and always_leaves(last.orelse)
    return isinstance(last, _LEAVES)


def bindings(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The names that `node` binds or deletes in the scope that it stands in, each with what binds it."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
        yield node.id, node
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name, node
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from (((a.asname or a.name).partition(".")[0], node) for a in node.names)
    elif (isinstance(node, ast.ExceptHandler) and node.name) or (
        isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name
    ):
        yield node.name, node
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest, node
    if isinstance(node, _SCOPES):
        return
    for child in ast.iter_child_nodes(node):
        yield from bindings(child)


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[str]:
    a = function.args
    every = [*a.posonlyargs, *a.args, *([a.vararg] if a.vararg else []), *a.kwonlyargs, *([a.kwarg] if a.kwarg else [])]
    return [arg.arg for arg in every]


@lru_cache(maxsize=32)
def locals_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    """Names that are local to a function. Its tree is not to change afterwards."""
    outside = {n for s in nodes_in(function) if isinstance(s, (ast.Global, ast.Nonlocal)) for n in s.names}
    return frozenset(({*parameters(function)} | writes(*function.body)) - outside)


def bound_anywhere(facts: FunctionFacts, name: str) -> bool:
    """Does the function, the module or Python itself bind a name?"""
    tree = facts.source.tree
    known = {*facts.names} | locals_of(facts.function) | (writes(*tree.body) if tree is not None else set())
    return name in known or hasattr(builtins, name)


def surely_bound(facts: FunctionFacts, node: ast.AST) -> set[str]:
    """Local names that are bound on every path to a node."""
    found = {*parameters(facts.function)}
    child = node
    for above in facts.ancestors(node):
        for name in ("body", "orelse", "finalbody", "handlers"):
            block = getattr(above, name, ())
            if isinstance(block, list) and child in block:
                found |= (
                    {n for s in block[: block.index(child)] for n in _surely_binds([s])}
                    if name != "handlers"
                    else set()
                )
                entered = name == "body" and isinstance(above, (ast.For, ast.AsyncFor))
                found |= writes(above.target) if entered and isinstance(above, (ast.For, ast.AsyncFor)) else set()
                if isinstance(above, (ast.If, ast.While)):
                    found |= _bound_by(above.test, holds=name == "body")
        if isinstance(above, (ast.With, ast.AsyncWith)):
            found |= {n for i in above.items if i.optional_vars is not None for n in writes(i.optional_vars)}
        if isinstance(above, ast.ExceptHandler) and above.name:
            found.add(above.name)
        if above is facts.function:
            break
        child = above
    deleted = {n.id for n in nodes_in(facts.function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Del)}
    return found - deleted


def _surely_binds(statements: list[ast.stmt]) -> set[str]:
    """Names that statements bind on every path through them."""
    found: set[str] = set()
    for statement in statements:
        match statement:
            case ast.If(body=body, orelse=orelse):
                sides = [_surely_binds(side) for side in (body, orelse) if not (side and isinstance(side[-1], _LEAVES))]
                found |= set.intersection(*sides) if sides else set()
                found |= _bound_by(statement.test)
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=last):
                ways = [h.body for h in handlers if not isinstance(h.body[-1], _LEAVES)]
                found |= set.intersection(_surely_binds([*body, *orelse]), *map(_surely_binds, ways)) | _surely_binds(
                    last
                )
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                found |= _surely_binds(body) | {n for i in items for n in writes(i)}
            case ast.For(target=target, body=body) if _runs_once(statement):
                before = takewhile(lambda s: not any(isinstance(n, _LEAVES) for n in nodes_in(s)), body)
                found |= writes(target) | _surely_binds([*before])
            case ast.For() | ast.AsyncFor() | ast.While() | ast.Match():
                pass
            case _:
                found |= writes(statement)
    return found


def _bound_by(node: ast.AST, *, holds: bool | None = None) -> set[str]:
    """Names that `n := ...` binds wherever an expression is evaluated, or `holds`."""
    match node:
        case ast.NamedExpr(target=target, value=value):
            return {target.id} | _bound_by(value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _bound_by(operand, holds=None if holds is None else not holds)
        case ast.BoolOp(op=op, values=values):
            if holds is isinstance(op, ast.And):  # each part holds, or none does
                return {name for part in values for name in _bound_by(part, holds=holds)}
            return _bound_by(values[0])
        case ast.Compare(left=left, comparators=[first, *_]):
            return _bound_by(left) | _bound_by(first)
        case ast.IfExp(test=test):
            return _bound_by(test)
        case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return set()
    return {name for child in ast.iter_child_nodes(node) for name in _bound_by(child)}


def _runs_once(loop: ast.For) -> bool:
    """Does a loop run once at least: over a display of some items?"""
    of = loop.iter
    return isinstance(of, (ast.Tuple, ast.List)) and any(not isinstance(item, ast.Starred) for item in of.elts)


@answers("order")
def alive(facts: FunctionFacts, name: str, last: ast.stmt) -> bool:
    """May `name` be read after `last` before it is bound again? Names that inner functions read always may."""
    live = _live(facts)
    return name in live.captured or name in live.after.get(last, _NOTHING)


@answers("order")
def awaited(facts: FunctionFacts, name: str, statement: ast.stmt) -> bool:
    """May what `name` is when a statement is reached be read, in it or behind it? Binding it on every path through the
    statement changes nothing else. Names that inner functions read always may.
    """
    live = _live(facts)
    return name in live.captured or name in live.into.get(statement, _NOTHING)


def live_into(statements: Sequence[ast.stmt]) -> frozenset[str]:
    """Names that statements may read before they bind them."""
    return LiveVariables(statements).before


@lru_cache(maxsize=1)
def _live(facts: FunctionFacts) -> LiveVariables:
    return LiveVariables(facts.function.body, ended_lambdas(facts))


#: they run the functions that they are given, and keep none
_RUN = frozenset({"graphmend.runtime.select", "builtins.sorted", "builtins.min", "builtins.max", "functools.reduce"})


def ended_lambdas(facts: FunctionFacts) -> frozenset[ast.AST]:
    """Lambdas that run within the statement that they stand in, and no more."""
    calls = (n for n in nodes_in(facts.function) if isinstance(n, ast.Call))
    given = (a for c in calls if _named(facts, c.func) in _RUN for a in (*c.args, *(k.value for k in c.keywords)))
    return frozenset(a for a in given if isinstance(a, ast.Lambda))


def _named(facts: FunctionFacts, function: ast.expr) -> str:
    """What a function is called in full, as the names of the module say."""
    root, dot, rest = ast.unparse(function).partition(".")
    tree = facts.source.tree
    own = root not in facts.names and tree is not None and root in writes(*tree.body)
    known = facts.names.get(root) or (f"builtins.{root}" if hasattr(builtins, root) else "")
    return "" if own or root in locals_of(facts.function) else f"{known}{dot}{rest}"


_NOTHING: frozenset[str] = frozenset()
_TRIES = (ast.Try, getattr(ast, "TryStar", ast.Try))  # Python 3.11


class _Exits(NamedTuple):
    """What is live where control goes from some statements: behind them, out of the loop, to its head, out of the
    function, and to what handles an exception.
    """

    behind: frozenset[str] = _NOTHING
    broken: frozenset[str] = _NOTHING
    again: frozenset[str] = _NOTHING
    returned: frozenset[str] = _NOTHING
    raised: frozenset[str] = _NOTHING


class LiveVariables:
    """Live variables of statements, backwards: names that may be read before they are bound. Any statement may raise.

    `before` has those in front of all, `into` and `after` those in front of and behind each statement; `captured` are
    names that inner scopes read, or that are not local. The whole is walked until the heads of its loops are known,
    once more than loops nest.
    """

    def __init__(self, statements: Sequence[ast.stmt], ended: Collection[ast.AST] = ()) -> None:
        """`ended`: inner scopes that run in the statement that they stand in, and no more."""
        self.into: dict[ast.stmt, frozenset[str]] = {}
        self.after: dict[ast.stmt, frozenset[str]] = {}
        inner = (node for s in statements for node in nodes_in(s) if node not in ended)
        self.captured = {name for node in inner for name in _captured(node)}
        self._heads: dict[ast.stmt, frozenset[str]] = {}
        known = -1
        while known != (known := sum(map(len, self._heads.values()))):
            self.before = self._block(statements, _Exits())

    def _block(self, statements: Sequence[ast.stmt], exits: _Exits) -> frozenset[str]:
        live = exits.behind
        for statement in reversed(statements):
            self.after[statement] = self.after.get(statement, _NOTHING) | live
            live = self._into(statement, exits._replace(behind=live)) | exits.raised
            self.into[statement] = self.into.get(statement, _NOTHING) | live
        return live

    def _into(self, statement: ast.stmt, exits: _Exits) -> frozenset[str]:
        """What is live in front of a statement that does not raise."""
        match statement:
            case ast.Return():
                return _read(statement) | exits.returned
            case ast.Raise():
                return _read(statement)
            case ast.Break():
                return exits.broken
            case ast.Continue():
                return exits.again
            case ast.If(test=test, body=body, orelse=orelse):
                return _read(test) | self._block(body, exits) | self._block(orelse, exits)
            case ast.While(test=test):
                return self._loop(statement, _read(test), _NOTHING, exits)
            case ast.For(target=target, iter=of) | ast.AsyncFor(target=target, iter=of):
                return _read(of) | self._loop(statement, _read(target), _stored(target), exits)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                # a context manager may end an exception: what is behind follows it
                inside = self._block(body, exits._replace(raised=exits.raised | exits.behind))
                bound = (_stored(i.optional_vars) for i in items if i.optional_vars is not None)
                return _read(*items) | inside.difference(*bound)
            case ast.Match(subject=subject, cases=cases):
                live = exits.behind
                for case in cases:
                    live |= _read(case.pattern) | (self._block(case.body, exits) - writes(case.pattern))
                    live |= _read(case.guard) - writes(case.pattern) if case.guard is not None else _NOTHING
                return _read(subject) | live
        if isinstance(statement, _TRIES):
            return self._try(statement, exits)
        return _read(statement) | (exits.behind - _binds(statement))

    def _loop(
        self,
        loop: ast.While | ast.For | ast.AsyncFor,
        read: frozenset[str],
        bound: frozenset[str],
        exits: _Exits,
    ) -> frozenset[str]:
        """What is live at the head of a loop, which reads and binds some names each time."""
        head = self._heads.get(loop, _NOTHING)
        body = self._block(loop.body, exits._replace(behind=head, again=head, broken=exits.behind))
        self._heads[loop] = head | read | (body - bound) | self._block(loop.orelse, exits)
        return self._heads[loop]

    def _try(self, statement: ast.Try, exits: _Exits) -> frozenset[str]:
        through = _Exits(*(self._block(statement.finalbody, exits._replace(behind=live)) for live in exits))
        handled = through.raised
        for handler in statement.handlers:
            body = self._block(handler.body, through) - {handler.name or ""}
            handled |= body if handler.type is None else body | _read(handler.type)
        behind = self._block(statement.orelse, through)
        return self._block(statement.body, through._replace(behind=behind, raised=handled))


def _read(*nodes: ast.AST) -> frozenset[str]:
    """Names of the scope that nodes stand in that they read or delete: not those that a comprehension or a lambda
    binds for itself.
    """
    found: set[str] = set()
    for node in nodes:
        match node:
            case ast.Name():
                found |= {node.id} if isinstance(node.ctx, (ast.Load, ast.Del)) else set()
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                found |= {name} | _read(value)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                own = _NOTHING.union(*(_stored(c.target) for c in node.generators))
                found |= _read(node.generators[0].iter)  # the only part that is evaluated in front of its names
                found |= _read(*ast.iter_child_nodes(node)) - own
            case ast.Lambda(args=arguments, body=body):
                found |= _read(arguments) | (_read(body) - {*parameters(node)})
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                found |= _read(node.args, *node.decorator_list) | _captured(node)
            case _:
                found |= _read(*ast.iter_child_nodes(node))
    return frozenset(found)


def _stored(target: ast.AST) -> frozenset[str]:
    return frozenset(n.id for n in nodes_in(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))


def _binds(statement: ast.stmt) -> frozenset[str]:
    """Names that a simple statement binds whenever it ends; not what `:=` binds, which may stand behind an `and`."""
    match statement:
        case ast.Assign(targets=targets):
            return _NOTHING.union(*map(_stored, targets))
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target, value=ast.expr()):
            return _stored(target)
        case ast.Import() | ast.ImportFrom() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return frozenset(name for name, _ in bindings(statement))
    return _NOTHING


def _captured(node: ast.AST) -> set[str]:
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return {*node.names}
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        inner = (
            _stored(n.target) for n in nodes_in(node) if isinstance(n, ast.comprehension)
        )  # not the function's own
        return reads(*node.body) - locals_of(node).difference(*inner)
    return reads(node) if isinstance(node, _SCOPES) else set()


@answers("names")
def fresh(facts: FunctionFacts, wanted: str, taken: Iterable[str] = ()) -> str:
    """`wanted`, or `wanted_2`, ...: the first that nothing in the function, the module or Python itself uses."""
    used, name, number = _used(facts) | {*taken}, wanted, 2
    while name in used:
        name, number = f"{wanted}_{number}", number + 1
    return name


@lru_cache(maxsize=1)
def _used(facts: FunctionFacts) -> frozenset[str]:
    """Names that mean something in a function; the rewrites of one finding ask again and again."""
    nodes = [*nodes_in(facts.function)]
    used = {n.id if isinstance(n, ast.Name) else n.arg for n in nodes if isinstance(n, (ast.Name, ast.arg))}
    used |= {name for n in nodes if isinstance(n, (ast.Global, ast.Nonlocal)) for name in n.names}
    used |= {*facts.names, *dir(builtins), *writes(*facts.function.body)}
    return frozenset(used | _all_names(facts.source.tree)) if facts.source.tree is not None else frozenset(used)


@lru_cache(maxsize=2)
def _all_names(tree: ast.AST) -> frozenset[str]:
    return frozenset(n.id for n in nodes_in(tree) if isinstance(n, ast.Name))
