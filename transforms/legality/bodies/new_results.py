"""Calls of the program's own functions and modules that give a tensor which nothing else has."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Container, Value, options
from graphmend.analysis.program.entities import Function, Instance, class_of
from graphmend.transforms.legality.bodies.layers import Does, Effect
from graphmend.transforms.legality.bodies.module_effects import of_function, of_module
from graphmend.transforms.legality.bodies.new_memory import Returned
from graphmend.transforms.legality.bodies.own_object import result_of, result_of_module
from graphmend.transforms.legality.bodies.replaced_modules import (
    is_made_by_argument,
    is_put_elsewhere,
    is_rearranged,
)
from graphmend.transforms.legality.own_functions import is_the_only_one
from graphmend.transforms.legality.rows.modules import has_hooks

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_KEEPS = Effect.UNKNOWN | Effect.STAYS


def gives_new_memory(facts: FunctionFacts, call: ast.Call) -> bool:
    """Does a call of what the program defines give memory of its own, and keep no part of it, if it gives a tensor?"""
    called = [*options(facts.value(call.func))]
    return bool(called) and all(_gives_new(facts, call, one) for one in called)


def _gives_new(facts: FunctionFacts, call: ast.Call, called: Value) -> bool:
    match called:
        case Function(info=info, bound=bound) if is_the_only_one(facts, call):
            owner = bound.info if isinstance(bound, Instance) and not info.is_static else None
            return _is_new(result_of(info, owner), lambda: of_function(info, owner, {}))
        case Container(kind="modules") | Instance():
            if (tree := facts.source.tree) is None or has_hooks(tree) or _may_be_another(facts, call.func, tree):
                return False
            return _is_new(result_of_module(called), lambda: of_module(called, tree, {}))
    return False


def _may_be_another(facts: FunctionFacts, module: ast.expr, tree: ast.AST) -> bool:
    """May an attribute hold another module than its class says?"""
    match module:
        case ast.Attribute(value=of, attr=attr) if (owner := class_of(facts.value(of))) is not None:
            return is_put_elsewhere(attr, tree) or is_rearranged(attr, tree) or is_made_by_argument(owner, attr)
    return True


def _is_new(returned: Returned, does: Callable[[], Does]) -> bool:
    if returned is Returned.MADE:
        return not does().effect & _KEEPS
    return returned is Returned.ALONE
