"""Whether a call that Dynamo is tracing would find, when the graph runs, the world that it finds in plain Python.

Tracing delays what the program does to Python objects until the graph has run, and a graph has no `with`, no handled
exception and no stack. Knows Dynamo's tracer, as it is in torch 2.13.
"""

from __future__ import annotations

import logging
import sys
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch._dynamo.variables.ctx_manager import CatchWarningsCtxManagerVariable

_BODIES = ("autograd.Function",)
"""Operators with a body in which effects happen as in plain Python. Checkpointing is none: it would not repeat them."""

_WORLD = (sys, torch._tensor_str.PRINT_OPTS)
"""Objects that all output depends on."""


class Uncapturable(Exception):
    """The call must be made outside the graph."""


def check(tx: Any) -> None:
    """Raises `Uncapturable` where the frame `tx` of `emit` traces code that no output can leave in order."""
    if tx.parent is None or tx.export:
        raise Uncapturable("an exported program finds no table")
    if torch._C._functorch.peek_interpreter_stack() is not None:
        raise Uncapturable("vmap and the gradient transforms have no rule for our operator")
    tracer = tx.output.current_tracer
    if tracer.parent is not None and tracer.source_target not in _BODIES:
        raise Uncapturable("in the body of an operator such as torch.cond, AOTAutograd 2.13 drops effects")
    for thing in _WORLD:
        check_unchanged(tx, thing)


def check_unchanged(tx: Any, value: Any) -> None:
    """Raises where the traced code has written to an attribute of `value`: it is written only after the graph."""
    for variable, changes in tx.output.side_effects.store_attr_mutations.items():
        if changes and getattr(variable, "value", None) is value:
            raise Uncapturable(f"the region changes {value!r}")


def check_function(tx: Any, function: Any, kwargs: dict[str, Any]) -> None:
    """Raises for a function that looks at what a graph does not have."""
    if function is warnings.warn:
        if any(isinstance(context, CatchWarningsCtxManagerVariable) for context in _contexts(tx)):
            raise Uncapturable("the graph runs outside of catch_warnings")
    elif getattr(function, "__module__", None) in ("warnings", "_warnings", traceback.__name__):
        raise Uncapturable("it changes the filters of warnings, or shows the exception that is handled")
    if function is logging.exception or getattr(function, "__func__", None) is logging.Logger.exception:
        raise Uncapturable("it shows the exception that is handled")
    if kwargs.get("exc_info") or kwargs.get("stack_info"):
        raise Uncapturable("it shows the exception that is handled, or the stack")


def _contexts(tx: Any) -> Iterator[Any]:
    """The contexts whose `with` statements the traced frames are in."""
    while tx is not None:
        yield from (block.with_context for block in tx.block_stack)
        tx = tx.parent
