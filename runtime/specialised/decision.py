"""What values decided while a frame was traced, and whether those of another call decide the same.

A mask with other paddings mostly answers a question as the one before did ("is any token global?", "are all ones?").
So a guard that holds an input asks its questions again, by what the graph computes them with, where the input has other
values than the last that it let through. It can do so where one tensor decides them.

Knows Dynamo's graphs as they are in torch 2.13.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._dynamo.guards import get_verbose_code_parts
from torch._guards import Guard
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg
from torch.utils._python_dispatch import _disable_current_modes

from ..captures.attempt import Plan
from .replay import Replay, alone

#: operations that a guard runs, each some microseconds; a way that is longer is not gone again for each call
LONGEST = 40

_log = logging.getLogger(__name__)

Used = Callable[[Any], Any]
"""What a frame is compiled for, of a value: a truth, numbers, a shape."""


class Question:
    """What is computed of an input, and the answer."""

    def __init__(self, found: Replay, used: Used) -> None:
        module = _module(found)
        self._compute: Callable[[torch.Tensor], Any] = module.forward  # hooks of all modules are the program's
        self._used = used
        self._around = alone if found.is_partial else _plainly
        self._answer = repr(used(found.value))
        shapes = {name: (tuple(shape.shape), shape.stride(), shape.dtype) for name, shape in module.named_buffers()}
        self.text = f"{module.code}{shapes}{self._answer}"
        """Questions of the same text are the same."""

    def has_its_answer(self, value: torch.Tensor) -> bool:
        """Does another tensor in the place of the input decide the same?"""
        try:
            with self._around():
                return repr(self._used(self._compute(value.clone()))) == self._answer
        except Exception as error:  # what the program itself would raise for these values: its frame is traced anew
            _log.debug("other values are not understood: %s: %s", type(error).__name__, error)
            return False


def question(found: Replay, used: Used) -> Question | None:
    """What the only input of a replay is asked; None where it cannot be asked again."""
    if len(found.inputs) != 1 or len(found.way) > LONGEST:
        return None
    try:
        return Question(found, used)
    except Exception as error:  # a graph that is not understood must not end the program
        _log.debug("%s cannot be asked again: %s: %s", found.node, type(error).__name__, error)
        return None


class Held:
    """An input whose values decide something."""

    def __init__(self, value: torch.Tensor, plan: Plan) -> None:
        self._value = value
        self._plan = plan
        self._questions: dict[str, Question] = {}
        self._lines: dict[str, str] = {}
        """Where each question stands in the program; that of its values, which nothing but them answers, is empty."""

    def asks(self, question: Question | None, line: str) -> None:
        """From now on the guard asks it, or holds the values where it is None."""
        text = question.text if question is not None else ""
        self._lines[text] = line
        if question is not None:
            self._questions[text] = question

    def guard(self, builder: Any, guard: Guard) -> None:
        """Makes the guard."""
        text = get_verbose_code_parts(f"{guard.name} decides as {self._value.flatten()[:8].tolist()}...", guard)
        builder.get_guard_manager(guard).add_lambda_guard(self._holds, text, guard.user_stack)

    def _holds(self, value: Any) -> bool:
        known = self._value
        if type(value) is not torch.Tensor or value.dtype != known.dtype or value.device != known.device:
            return False
        if value.shape != known.shape or torch._C._functorch.is_functorch_wrapped_tensor(value):
            return False  # under vmap nobody may ask for its values
        if torch.equal(value, known):
            return True
        for text, line in self._lines.items():
            asked = self._questions.get(text)
            if asked is None or not asked.has_its_answer(value):
                self._plan.changes(line)
                return False
        with _plainly():
            self._value = value.clone()  # batches that come again are compared only
        return True


@contextmanager
def _plainly() -> Iterator[None]:
    with _disable_current_modes(), torch.no_grad():
        yield


def _module(found: Replay) -> GraphModule:
    """The way to the value as a function of its input, which holds nothing of the graph that it stood in."""
    graph = Graph()
    made: dict[Node, Any] = {}
    for node in found.way:
        if node in found.numbers:
            made[node] = found.numbers[node]
        elif node in found.inputs:
            made[node] = graph.placeholder("value")
        elif node in found.shapes:
            made[node] = graph.get_attr(node.name)
        elif node.op == "placeholder":
            raise ValueError(f"{node} is neither a tensor nor a number")
        else:
            args, kwargs = map_arg((node.args, node.kwargs), made.__getitem__)
            make = graph.call_method if node.op == "call_method" else graph.call_function
            made[node] = make(node.target, args, kwargs)  # type: ignore[arg-type]
    graph.output(made[found.node])
    return GraphModule({node.name: shape for node, shape in found.shapes.items()}, graph)
