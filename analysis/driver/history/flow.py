"""Loops, contexts and what leaves them, round by round: the first few rounds are executed one after the other, also
where it is not known how many there are."""

from __future__ import annotations

import ast
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from graphmend.analysis.driver.execution import expressions, statements
from graphmend.analysis.driver.execution.expressions import truth
from graphmend.analysis.driver.execution.objects import UNKNOWN, Named, Object, Scope, union
from graphmend.analysis.driver.guards.atoms import only
from graphmend.analysis.driver.guards.facts import MODES
from graphmend.analysis.driver.history import forms

if TYPE_CHECKING:
    from graphmend.analysis.driver.history.interface import Recorder

#: rounds of a `while` whose condition stays unknown
_UNKNOWN_ROUNDS = 3
#: and of any other
_MOST = 6


def _for(m: Recorder, node: ast.For | ast.AsyncFor, scope: Scope) -> bool:
    for values in forms.items_of(m, m.evaluate(node.iter, scope)):
        m.assign(node.target, values, scope)
        if _round(m, node.body, scope):
            return m.signal != "return"
    m.execute(node.orelse, scope)
    return m.signal != "return"


def _while(m: Recorder, node: ast.While, scope: Scope) -> bool:
    for done in range(_MOST):
        test = truth(m, node.test, scope)
        if test is False or (test is None and done >= _UNKNOWN_ROUNDS):
            break
        if _round(m, node.body, scope):
            return m.signal != "return"
    return m.signal != "return"


def _round(m: Recorder, body: list[ast.stmt], scope: Scope) -> bool:
    """One round of a loop; True where it leaves the loop."""
    m.execute(body, scope)
    left = m.signal in ("break", "return")
    if m.signal != "return":
        m.signal = ""
    return left


def _leave(m: Recorder, node: ast.Break | ast.Continue, scope: Scope) -> bool:
    if m.is_certain:
        m.signal = "break" if isinstance(node, ast.Break) else "continue"
    return False


def _return(m: Recorder, node: ast.Return, scope: Scope) -> bool:
    statements.HANDLERS[ast.Return](m, node, scope)
    if m.is_certain:
        m.signal = "return"
    return False


def _if(m: Recorder, node: ast.If, scope: Scope) -> bool:
    test = truth(m, node.test, scope)
    if test is not None:
        return m.execute(node.body if test else node.orelse, scope)
    before, outer = dict(scope.variables), m.choices
    with m.perhaps():
        m.choices = (*outer, (node, True))
        first = m.execute(node.body, scope)
        after, scope.variables = scope.variables, before
        m.choices = (*outer, (node, False))
        second = m.execute(node.orelse, scope)
        m.choices = outer
    if first and second:
        for name, values in after.items():
            known = scope.variables.get(name)
            scope.variables[name] = values if known is None or known is values else union(known, values)
    elif first:
        scope.variables = after
    return first or second


def _with(m: Recorder, node: ast.With | ast.AsyncWith, scope: Scope) -> bool:
    with ExitStack() as stack:
        for item in node.items:
            _enter(m, item.context_expr, scope, stack)
            values = m.evaluate(item.context_expr, scope)
            if item.optional_vars is not None:
                m.assign(item.optional_vars, union(values, UNKNOWN), scope)
        return m.execute(node.body, scope)


def _enter(m: Recorder, context: ast.expr, scope: Scope, stack: ExitStack) -> None:
    if not isinstance(context, ast.Call):
        return
    function = m.evaluate(context.func, scope)
    name = function[0].name if len(function) == 1 and isinstance(function[0], Named) else ""
    mode, value = MODES.get(name, ("", None))
    enabled = next((k.value for k in context.keywords if k.arg in ("enabled", "mode")), None)
    if enabled is None and value is None and context.args:
        enabled = context.args[0]
    if mode:
        said = only(m.evaluate(enabled, scope)) if enabled is not None else True
        if isinstance(said, bool):
            chosen = said if value is None else value if said else m.modes[mode]
            stack.enter_context(m.mode(mode, chosen))


def _augmented(m: Recorder, node: ast.AugAssign, scope: Scope) -> bool:
    old = m.evaluate(node.target, scope)
    added = m.evaluate(node.value, scope)
    held = old[0] if len(old) == 1 else None
    if isinstance(held, Object) and held.items is not None and isinstance(node.op, ast.Add):
        held.items.extend(forms.items_of(m, added))
        expressions.bounded(held)
        return True
    m.assign(node.target, forms.operation(m, node.op, old, added), scope)
    return True


HANDLERS: dict[type, Any] = {
    ast.For: _for, ast.AsyncFor: _for, ast.While: _while, ast.Break: _leave, ast.Continue: _leave,
    ast.Return: _return, ast.If: _if, ast.With: _with, ast.AsyncWith: _with, ast.AugAssign: _augmented,
}  # fmt: skip
