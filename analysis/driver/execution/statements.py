"""Statements of driver code, in order. Of a branch whose condition is not known, both sides are executed."""

from __future__ import annotations

import ast
from typing import Any

from graphmend.analysis.driver.execution.comparisons import compared, truth_of
from graphmend.analysis.driver.execution.expressions import rounds, truth
from graphmend.analysis.driver.execution.interface import Machine
from graphmend.analysis.driver.execution.members import near_chain
from graphmend.analysis.driver.execution.objects import (
    ANY,
    NONE,
    NOTHING,
    UNKNOWN,
    Atom,
    Callable,
    ClassObject,
    Compiled,
    Constant,
    Object,
    Scope,
    Site,
    Values,
    union,
)
from graphmend.analysis.program.definitions import FunctionInfo
from graphmend.analysis.syntax.nodes import DEFINITIONS
from graphmend.analysis.syntax.traversal import walk


def execute(m: Machine, body: list[ast.stmt], scope: Scope) -> bool:
    """Execute statements; False where what follows them is never reached."""
    for statement in body:
        if not m.spend():
            return True
        handler = HANDLERS.get(statement.__class__)
        try:
            if handler is not None and not handler(m, statement, scope):
                return False
        except RecursionError:  # an expression nested too deeply; what follows it is executed
            continue
    return True


def _expression(m: Machine, node: ast.Expr, scope: Scope) -> bool:
    for site in _late(m.evaluate(node.value, scope), node.value):
        site.is_dropped = True
    return True


def _late(values: Values, node: ast.expr) -> list[Site]:
    """The compile sites of a call that gives back other modules, which compile when they are called. Of a function that
    is handed over it is believed that it is compiled."""
    sites = [atom.site for atom in values if isinstance(atom, Compiled) and isinstance(atom.target, Object)]
    return [site for site in sites if site.is_late and site.node is node]


def _is_read(name: str, node: ast.stmt, scope: Scope) -> bool:
    """Whether anything may read a local variable behind a statement that binds it."""
    if scope.function is None or name in scope.shared:
        return True
    whole, own = scope.function.node, {id(n) for n in walk(node)}
    for part in walk(whole):
        repeats = isinstance(part, (ast.For, ast.AsyncFor, ast.While, *DEFINITIONS)) and part is not whole
        names = [n for n in (walk(part) if repeats else (part,)) if isinstance(n, ast.Name) and id(n) not in own]
        for one in names:
            behind = repeats or (one.lineno, one.col_offset) > (node.lineno, node.col_offset)
            if behind and one.id in (name, "locals") and isinstance(one.ctx, ast.Load):
                return True
    return False


def _assert(m: Machine, node: ast.Assert, scope: Scope) -> bool:
    m.evaluate(node.test, scope)
    return True


def _assign(m: Machine, node: ast.Assign, scope: Scope) -> bool:
    values = m.evaluate(node.value, scope)
    for site in _late(values, node.value):
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        site.is_dropped = len(names) == len(node.targets) and not any(_is_read(name, node, scope) for name in names)
    for target in node.targets:
        m.assign(target, values, scope)
    return True


def _annotated(m: Machine, node: ast.AnnAssign, scope: Scope) -> bool:
    if node.value is not None:
        m.assign(node.target, m.evaluate(node.value, scope), scope)
    return True


def _augmented(m: Machine, node: ast.AugAssign, scope: Scope) -> bool:
    added = m.evaluate(node.value, scope)
    if isinstance(node.target, ast.Name):
        m.assign(node.target, union(m.name(node.target.id, scope), added), scope)
    return True


def _return(m: Machine, node: ast.Return, scope: Scope) -> bool:
    values = m.evaluate(node.value, scope) if node.value is not None else NONE
    scope.returned = union(scope.returned, values)
    return False


def _raise(m: Machine, node: ast.Raise, scope: Scope) -> bool:
    """What follows at a top level is executed all the same: it may be another cell of a notebook."""
    return scope.function is None


def _leave(m: Machine, node: ast.stmt, scope: Scope) -> bool:
    return False


def _shared(m: Machine, node: ast.Global | ast.Nonlocal, scope: Scope) -> bool:
    scope.shared.update(node.names)
    return True


def _if(m: Machine, node: ast.If, scope: Scope) -> bool:
    return _branches(m, truth(m, node.test, scope), node.body, node.orelse, scope)


def _branches(m: Machine, test: bool | None, body: list[ast.stmt], orelse: list[ast.stmt], scope: Scope) -> bool:
    if test is not None:
        return m.execute(body if test else orelse, scope)
    before = dict(scope.variables)
    with m.perhaps():
        first = m.execute(body, scope)
        after, scope.variables = scope.variables, before
        second = m.execute(orelse, scope)
    if first and second:
        _join(scope, after)
    elif first:
        scope.variables = after
    return first or second


def _join(scope: Scope, other: dict[str, Values]) -> None:
    mine = scope.variables
    for name, values in other.items():
        known = mine.get(name)
        if known is not values:
            mine[name] = union(known, values) if known is not None else values


def _for(m: Machine, node: ast.For | ast.AsyncFor, scope: Scope) -> bool:
    for values, certain in rounds(m, m.evaluate(node.iter, scope)):
        before = dict(scope.variables)
        if certain:
            m.assign(node.target, values, scope)
            m.execute(node.body, scope)
        else:
            with m.perhaps():
                m.assign(node.target, values, scope)
                m.execute(node.body, scope)
            _join(scope, before)
    m.execute(node.orelse, scope)
    return True


def _while(m: Machine, node: ast.While, scope: Scope) -> bool:
    test = truth(m, node.test, scope)
    if test is not False:
        before = dict(scope.variables)
        with m.perhaps():
            m.execute(node.body, scope)
        if test is None:
            _join(scope, before)
    return True


def _with(m: Machine, node: ast.With | ast.AsyncWith, scope: Scope) -> bool:
    return _within(m, node.items, node.body, scope)


def _within(m: Machine, items: list[ast.withitem], body: list[ast.stmt], scope: Scope) -> bool:
    """Execute the body of a `with` statement between what its contexts do before and behind it."""
    if not items:
        return m.execute(body, scope)
    item, *more = items
    ends: list[bool] = []

    def inside(entered: Values) -> None:
        if item.optional_vars is not None:
            m.assign(item.optional_vars, union(entered, UNKNOWN), scope)
        ends.append(_within(m, more, body, scope))

    contexts = m.enter_context(item.context_expr, inside, scope)
    if not ends:  # no function that yields once: an object with methods, or one of which nothing is known
        entered = [_told(m, context, "__enter__", [], item.context_expr, scope) for context in contexts]
        inside(union(*entered) if any(entered) else contexts)
        for context in contexts:
            _told(m, context, "__exit__", [NONE, NONE, NONE], item.context_expr, scope)
    return ends[0]


def _told(m: Machine, context: Atom, name: str, arguments: list[Values], node: ast.expr, scope: Scope) -> Values:
    """What a method gives that the program defines."""
    if not isinstance(context, Object) or context.info is None:
        return NOTHING
    method = tuple(a for a in m.attribute(context, name, scope) if isinstance(a, Callable))
    return m.call(method, arguments, {}, node, scope) if method else NOTHING


def _try(m: Machine, node: ast.Try, scope: Scope) -> bool:
    before = dict(scope.variables)
    goes_on = m.execute(node.body, scope)
    if goes_on:
        goes_on = m.execute(node.orelse, scope)
    for handler in node.handlers:
        after, scope.variables = scope.variables, dict(before)
        _join(scope, after)
        with m.perhaps():
            handled = m.execute(handler.body, scope)
        if not handled:
            scope.variables = after
        elif goes_on:
            _join(scope, after)
        goes_on = goes_on or handled
    return m.execute(node.finalbody, scope) and goes_on


def _match(m: Machine, node: ast.Match, scope: Scope) -> bool:
    subject = m.evaluate(node.subject, scope)
    before, goes_on = dict(scope.variables), False
    joined = dict(before)
    for case in node.cases:
        fits = None if case.guard is not None else _fits(m, case.pattern, subject, scope)
        if fits is False:
            continue
        if fits:
            return m.execute(case.body, scope)
        scope.variables = dict(before)
        with m.perhaps():
            if m.execute(case.body, scope):
                goes_on = True
                _join(scope, joined)
                joined = scope.variables
    scope.variables = joined
    return goes_on or not any(
        isinstance(case.pattern, ast.MatchAs) and case.pattern.name is None for case in node.cases
    )


def _fits(m: Machine, pattern: ast.pattern, subject: Values, scope: Scope) -> bool | None:
    """Whether a pattern takes a value; None where that is not known. Cases before it did not."""
    if isinstance(pattern, ast.MatchValue):
        return truth_of(compared(ast.Eq(), subject, m.evaluate(pattern.value, scope)))
    if isinstance(pattern, ast.MatchSingleton):
        return truth_of(compared(ast.Is(), subject, (Constant(pattern.value),)))
    if isinstance(pattern, ast.MatchOr):
        said = {_fits(m, one, subject, scope) for one in pattern.patterns}
        return True if True in said else None if None in said else False
    return True if isinstance(pattern, ast.MatchAs) and pattern.name is None else None


def _function(m: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> bool:
    info = m.inner(node, scope)
    scope.variables[node.name] = decorated(m, info, (Callable(info, scope),), scope)
    return True


def decorated(m: Machine, info: FunctionInfo, values: Values, scope: Scope) -> Values:
    """What the name of a function stands for, after its decorators. One of which nothing is known changes nothing."""
    for decorator in reversed(info.decorators):
        made = m.call(m.evaluate(decorator, scope), [values], {}, decorator, scope)
        if made and ANY not in made:
            values = made
    return values


def _class(m: Machine, node: ast.ClassDef, scope: Scope) -> bool:
    info = m.inner_class(node, scope)
    cls = m.define_class(info, scope)
    body = Scope(scope.module, scope.function, scope)
    m.execute([s for s in node.body if not isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef))], body)
    cls.attributes.update(body.variables)
    for name, method in info.methods.items():
        if method.decorators and not (method.is_static or method.is_property):
            plain: Values = (Callable(method, scope, m.generic(info) if not method.is_classmethod else cls),)
            with_all = decorated(m, method, plain, body)
            if with_all != plain:
                cls.attributes[name] = with_all
        elif method.decorators and method.is_static:
            cls.attributes[name] = decorated(m, method, (Callable(method, scope),), body)
    _subclassed(m, cls, node, body)
    values: Values = (cls,)
    for decorator in reversed(node.decorator_list):
        made = m.call(m.evaluate(decorator, scope), [values], {}, decorator, scope)
        if made and ANY not in made:
            values = made
    scope.variables[node.name] = values
    return True


def _subclassed(m: Machine, cls: ClassObject, node: ast.ClassDef, scope: Scope) -> None:
    """The nearest base class is told of a new class, with the keywords of its statement."""
    for base in near_chain(m, cls.info)[1:]:
        hook = base.methods.get("__init_subclass__")
        if hook is not None:
            keywords = {k.arg: m.evaluate(k.value, scope) for k in node.keywords if k.arg not in (None, "metaclass")}
            around = m.class_object(base).scope or m.top_level(base.module)
            m.run(Callable(hook, around, cls), [], keywords)
            return


def _import(m: Machine, node: ast.Import | ast.ImportFrom, scope: Scope) -> bool:
    for name, qualified in scope.module.imported(node).items():
        scope.variables[name] = m.qualified(qualified)
    m.imports(node, scope)
    return True


HANDLERS: dict[type, Any] = {
    ast.Expr: _expression, ast.Assert: _assert, ast.Assign: _assign, ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Return: _return, ast.Raise: _raise, ast.Break: _leave, ast.Continue: _leave, ast.Global: _shared,
    ast.Nonlocal: _shared, ast.If: _if, ast.For: _for, ast.AsyncFor: _for, ast.While: _while, ast.With: _with,
    ast.AsyncWith: _with, ast.Try: _try, ast.Match: _match, ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function, ast.ClassDef: _class, ast.Import: _import, ast.ImportFrom: _import,
}  # fmt: skip
if hasattr(ast, "TryStar"):
    HANDLERS[ast.TryStar] = _try
