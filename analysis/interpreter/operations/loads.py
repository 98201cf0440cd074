"""Loads of values that TorchDynamo does not take in: wherever traced code reads one, it gives the frame up."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.interpreter.events import Load
from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Choice, Const, SparseTensor, Value
from graphmend.analysis.program.entities import Function, Instance
from graphmend.analysis.resolution.classes import find_method, outside_bases
from graphmend.analysis.torch_facts.measured_torch import UNTAKEN

if TYPE_CHECKING:
    from graphmend.analysis.interpreter.interface import Walk

#: the classes of values among which some are not taken in
MAY_BE_UNTAKEN: frozenset[type[Value]] = frozenset({ExternalInstance, Choice, Instance, SparseTensor})


def loaded(w: Walk, node: ast.expr, value: Value, owner: Value | None = None) -> None:
    """Emit a `Load` event where `node` reads a value that Dynamo does not take in, from an attribute of `owner` if that
    is given."""
    if not w.session.stack.traced or w.silent or not is_untaken(w, value):
        return
    if isinstance(owner, Instance) and isinstance(node, ast.Attribute):
        lookup = find_method(w.session, owner.info, "__getattr__")
        if (
            lookup is not None
        ):  # modules do not stand in the instance's dict: Dynamo traces the look-up, and breaks there
            w.session.enter(Function(lookup, bound=owner), (Const(node.attr),), {}, w, node)
            return
    w.emit(Load, node, value)


def is_untaken(w: Walk, value: Value) -> bool:
    """Whether Dynamo does not take a value in, or one of those that it may be."""
    if isinstance(value, Choice):
        return any(is_untaken(w, option) for option in value.options)
    if isinstance(value, ExternalInstance):
        return value.cls in UNTAKEN and not value.made_inside
    if isinstance(value, Instance):
        return any(base in UNTAKEN for base in outside_bases(w.session, value.info))
    return isinstance(value, SparseTensor)
