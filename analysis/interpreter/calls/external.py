"""Calls of functions without available source: an event for the rules, and a value by the library they belong to."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.interpreter.calls import builtins, higher_order
from graphmend.analysis.interpreter.calls.bodies import OPERATORS, operator
from graphmend.analysis.interpreter.calls.gradient_mode import SETS_GRADIENTS
from graphmend.analysis.interpreter.calls.library import library
from graphmend.analysis.interpreter.calls.torch_calls import torch_call
from graphmend.analysis.interpreter.events import Call
from graphmend.analysis.lattice.arguments import Arguments, Keywords
from graphmend.analysis.lattice.external import ExternalName
from graphmend.analysis.lattice.values import FALSE, STATIC, Value, join
from graphmend.analysis.program.entities import Instance
from graphmend.analysis.resolution.tracing_answers import WHILE_TRACING
from graphmend.analysis.syntax.traversal import walk
from graphmend.analysis.tensors import operations
from graphmend.analysis.tensors.numpy_calls import numpy_call

if TYPE_CHECKING:
    from graphmend.analysis.interpreter.interface import Walk


#: functions that call their first argument with the others
_CALLS_ITS_ARGUMENT = frozenset({"torch.utils.checkpoint.checkpoint"})


_CHECKPOINT_OPTIONS = frozenset({"use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug"})


#: chooses between what two functions give
_SELECTS = "graphmend.runtime.select"


_WANTS_GRADIENT = "torch.Tensor.requires_grad_"


def _returns_detached(node: ast.AST) -> bool:
    """Whether all that a function returns is cut off from its history."""
    returned = [n.value for n in walk(node) if isinstance(n, ast.Return)]
    return bool(returned) and all(
        isinstance(v, ast.Call) and isinstance(v.func, ast.Attribute) and v.func.attr in ("detach", "item")
        for v in returned
    )


_MAPS_TREE = frozenset({"torch.utils._pytree.tree_map", "torch.utils._pytree.tree_map_only"})


def external(w: Walk, name: str, receiver: Value | None, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    """The value of a call of a function without available source; tells the rules of it."""
    session = w.session
    known = WHILE_TRACING.get(name)
    if known is not None:
        return known
    if name in session.settings.returns_tensor:
        return operations.result(None, node, "returns a Tensor, as the configuration says")
    if name in session.settings.static:
        return STATIC
    takes_function = name in higher_order.KNOWN
    answer = higher_order.predicate_result(w, name, args, keywords, node) if takes_function else None
    if name == _WANTS_GRADIENT and not w.depth and _returns_detached(w.info.node):
        answer = FALSE
    if not w.silent and isinstance(node, ast.expr) and session.listens(name):
        w.emit(Call, node, name, receiver, args, keywords, answer)
    if name in OPERATORS and (value := operator(w, name, args, keywords, node)) is not None:
        return value
    if name.startswith("torch.") and any(isinstance(a, Instance) for a in args) and isinstance(node, ast.expr):
        w.emit(Call, node, "torch.operation", ExternalName(name), args, keywords)
    if "out" in keywords and isinstance(node, ast.expr) and name.startswith("torch."):
        w.emit(Call, node, "torch.out", None, args, keywords)
    if name in _CALLS_ITS_ARGUMENT and args:
        passed = {k: v for k, v in keywords.items() if k not in _CHECKPOINT_OPTIONS}
        return w.apply(args[0], args[1:], passed, node)
    if name == _SELECTS and len(args) == 3:
        # while tracing both functions are called, and where their results agree a new tensor is selected
        return join(w.apply(args[1], (), {}, node), w.apply(args[2], (), {}, node))
    if name in _MAPS_TREE and len(args) >= 2:
        function, tree = args[1:3] if name.endswith("_only") and len(args) > 2 else args[:2]
        return higher_order.mapped_tree(w, function, tree, node)
    if name in ("torch.vmap", "torch.func.vmap", "torch.compile") and args:
        return args[0]
    if takes_function and (value := higher_order.function(w, name, args, keywords, node)) is not None:
        return value
    root = name.partition(".")[0]
    if name in SETS_GRADIENTS:
        w.situation.gradients_off = False  # from here to the end of the context around it
    if root == "torch":
        return torch_call(w, name, receiver, args, keywords, node)
    if root == "builtins":
        return builtins.builtin(w, name[9:], args, keywords, node)
    if root == "numpy":
        return numpy_call(name, receiver, args, keywords, node)
    return library(w, name, receiver, args, keywords, node)
