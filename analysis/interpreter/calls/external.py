"""Calls of functions without available source: an event for the rules, and a value by the library they belong to."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from graphmend.analysis.interpreter.calls import builtins, higher_order
from graphmend.analysis.interpreter.calls.bodies import OPERATORS, operator
from graphmend.analysis.interpreter.calls.gradient_mode import SETS_GRADIENTS
from graphmend.analysis.interpreter.calls.library import library
from graphmend.analysis.interpreter.calls.torch_calls import torch_call
from graphmend.analysis.interpreter.events import Call, CustomCall
from graphmend.analysis.interpreter.operations import errors
from graphmend.analysis.lattice.arguments import Arguments, Keywords
from graphmend.analysis.lattice.external import ExternalName, Intrinsic
from graphmend.analysis.lattice.values import FALSE, STATIC, Const, Container, Tensor, Value, join, marked
from graphmend.analysis.program.entities import Instance
from graphmend.analysis.resolution.custom_operators import by_name
from graphmend.analysis.resolution.tracing_answers import WHILE_TRACING
from graphmend.analysis.syntax.traversal import walk
from graphmend.analysis.tensors import operations
from graphmend.analysis.tensors.numpy_calls import numpy_call

if TYPE_CHECKING:
    from graphmend.analysis.interpreter.interface import Walk


#: functions that call their first argument with the others
_CALLS_ITS_ARGUMENT = frozenset({"torch.utils.checkpoint.checkpoint"})


_CHECKPOINT_OPTIONS = frozenset({"use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug"})


#: calls its third argument with those behind it, as one node of the graph
_ON_HOST = "graphmend.runtime.on_host"

#: calls its second argument with those behind it, as one node of the graph, and gives a number as a tensor
_NUMBER_ON_HOST = "graphmend.runtime.number_on_host"

#: gives its second argument, after a function has stored to it as one node of the graph
_STORES_ON_HOST = "graphmend.runtime.stores_on_host"

#: chooses between what two functions give
_SELECTS = "graphmend.runtime.select"

#: gives what the function of torch does, as one node of the graph
_IN_GRAPH = {"graphmend.runtime.ctc_loss": "torch.nn.functional.ctc_loss"}


_WANTS_GRADIENT = "torch.Tensor.requires_grad_"


def _returns_detached(node: ast.AST) -> bool:
    """Whether all that a function returns is cut off from its history."""
    returned = [n.value for n in walk(node) if isinstance(n, ast.Return)]
    return bool(returned) and all(
        isinstance(v, ast.Call) and isinstance(v.func, ast.Attribute) and v.func.attr in ("detach", "item")
        for v in returned
    )


#: makes of a function one whose calls are a part of the graph by itself
_REGION = "torch.compiler.nested_compile_region"


def _regional(function: Value, w: Walk, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    """A call of what `nested_compile_region` gives."""
    if isinstance(node, ast.expr):
        w.emit(Call, node, f"{_REGION}.<locals>.call", function, args, keywords)
    return w.apply(function, args, keywords, node)


def _consume(w: Walk, keywords: Keywords, node: ast.AST) -> None:
    """`torch.autograd.grad` frees what the history of its outputs has saved, unless it is told to keep it."""
    kept = {"retain_graph", "create_graph"} & keywords.keys()
    if kept or not isinstance(node, ast.Call) or not node.args or not w.session.stack.traced:
        return
    given = node.args[0].elts if isinstance(node.args[0], (ast.Tuple, ast.List)) else [node.args[0]]
    for one in given:
        known = w.env.get(one.id) if isinstance(one, ast.Name) else None
        if isinstance(one, ast.Name) and isinstance(known, Tensor) and not known.likely:
            w.env[one.id] = marked(known, ("consumed", node))


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
    if not w.silent and name.startswith("torch."):
        errors.torch_called(w, node, name, receiver, args, keywords)
    if name.startswith("torch.ops.") and isinstance(node, ast.expr) and (own := by_name(w.module, name)) is not None:
        w.emit(CustomCall, node, own, args)
    if name in OPERATORS and (value := operator(w, name, args, keywords, node)) is not None:
        return value
    if (
        name.startswith("torch.")
        and ("generator" in keywords or any(isinstance(a, Instance) for a in args))
        and isinstance(node, ast.expr)
    ):
        w.emit(Call, node, "torch.operation", ExternalName(name), args, keywords)
    if "out" in keywords and isinstance(node, ast.expr) and name.startswith("torch."):
        w.emit(Call, node, "torch.out", None, args, keywords)
    if name in _CALLS_ITS_ARGUMENT and args:
        passed = {k: v for k, v in keywords.items() if k not in _CHECKPOINT_OPTIONS}
        return w.apply(args[0], args[1:], passed, node)
    if name == _ON_HOST and len(args) > 2:
        w.silent += 1
        try:
            return w.apply(args[2], args[3:], keywords, node)
        finally:
            w.silent -= 1
    if name == _NUMBER_ON_HOST and args:
        return torch_call(w, "torch.empty", None, (Container("tuple", ()),), {"dtype": args[0]}, node)
    if name == _STORES_ON_HOST and len(args) > 1:
        return args[1]
    if name in _IN_GRAPH:
        return torch_call(w, _IN_GRAPH[name], None, args, keywords, node)
    if name == _SELECTS and len(args) == 3:
        if isinstance(args[0], Const):
            return w.apply(args[1] if args[0].value else args[2], (), {}, node)
        # while tracing both functions are called, and where their results agree a new tensor is selected
        return join(w.apply(args[1], (), {}, node), w.apply(args[2], (), {}, node))
    if name in _MAPS_TREE and len(args) >= 2:
        function, tree = args[1:3] if name.endswith("_only") and len(args) > 2 else args[:2]
        return higher_order.mapped_tree(w, function, tree, node)
    if name in ("torch.vmap", "torch.func.vmap", "torch.compile") and args:
        return args[0]
    if name == _REGION and args:
        return Intrinsic(_REGION, partial(_regional, args[0]), args)
    if takes_function and (value := higher_order.function(w, name, args, keywords, node)) is not None:
        return value
    root = name.partition(".")[0]
    if name == "torch.autograd.grad":
        _consume(w, keywords, node)
    if name in SETS_GRADIENTS:
        w.situation.gradients_off = False  # from here to the end of the context around it
    if root == "torch":
        return torch_call(w, name, receiver, args, keywords, node)
    if root == "builtins":
        return builtins.builtin(w, name[9:], args, keywords, node)
    if root == "numpy":
        return numpy_call(name, receiver, args, keywords, node)
    return library(w, name, receiver, args, keywords, node)
