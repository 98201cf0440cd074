"""A module on what the module before it gives: where the project hands a loss its model's outputs, the model is run,
and its outputs' shapes are the first inputs to try.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch

from ..discover import Target
from ..project import classes, files, outputs
from ..project.values import UNKNOWN, Output
from . import examples, from_project, synthesis
from .examples import Example
from .reading.shapes import Tensor, changed
from .variation import variants

MOST_SECONDS = 12.0
"""For the modules before one, all together."""
MOST_TARGETS = 24
"""Ways to make up what outputs are compared with."""
DEEPEST = 2
"""How many modules before another one are run: a backbone, and the head behind it."""


def candidates(
    target: Target, module: ModuleType, entries: list[dict[str, str]], limit: files.Limit | None = None, depth: int = 0
) -> Iterator[Example]:
    """Examples of a target that the project calls with what its modules give; none of any other."""
    if target.kind == "object":
        return
    limit = limit or files.Limit(MOST_SECONDS)
    known: dict[str, Any] = {}

    def given(calls: list[from_project.Inputs]) -> list[from_project.Inputs] | None:
        found = [outputs.filled(each, made) for each in calls if outputs.holds(each)]
        return [other for each in found if not _is_unknown(each) for other in (*_with_targets(each), each)] or None

    def made(output: Output) -> Any:
        name = output.cls.node.name
        if name not in known:
            known[name] = _run(output, module, entries, limit, depth)
        try:
            return from_project.of_run(outputs.part_of(known[name], output.path))
        except (LookupError, TypeError, AttributeError, RuntimeError):
            return UNKNOWN

    yield from synthesis.candidates(target, module, entries, given)


def _run(output: Output, module: ModuleType, entries: list[dict[str, str]], limit: files.Limit, depth: int) -> Any:
    """What the module gives that an output is of; UNKNOWN where no inputs of it are found in time."""
    cls = vars(module).get(output.cls.node.name) or classes.named(output.cls.scope.path, output.cls.node.name)
    where = sys.modules.get(getattr(cls, "__module__", ""))
    if not (isinstance(cls, type) and issubclass(cls, torch.nn.Module)) or where is None:
        return UNKNOWN
    owner = Target(cls.__name__, "class", cls)
    tries = itertools.chain(examples.declared(owner, where, entries), synthesis.candidates(owner, where, entries))
    if depth < DEEPEST:
        tries = itertools.chain(tries, candidates(owner, where, entries, limit, depth + 1))
    for example in tries:
        if limit.is_over:
            break
        try:
            variants.seed(0)
            made = example.build()
            args, kwargs = example.inputs()[0]
            with torch.compiler.set_stance("force_eager"):
                return made(*args, **kwargs)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            example.failed(error)
    return UNKNOWN


def _with_targets(inputs: from_project.Inputs) -> Iterator[from_project.Inputs]:
    """The inputs with what is unknown of them made of the outputs' shapes: they are what these are compared with."""
    args, kwargs = inputs
    given: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
    unknown = [name for name, value in given.items() if value is UNKNOWN]
    shapes: list[tuple[int, ...]] = []
    changed(list(given.values()), lambda t: shapes.append(t.shape) if t.kind in ("float", "unit") else None)
    targets = {each.text(): each for shape in shapes if len(shape) > 1 for each in _targets(shape)}
    for some in itertools.islice(itertools.product(targets.values(), repeat=len(unknown)), MOST_TARGETS):
        told = {**given, **dict(zip(unknown, some))}  # noqa: B905
        yield [told[number] for number in range(len(args))], {name: told[name] for name in kwargs}


def _targets(shape: tuple[int, ...]) -> Iterator[Tensor]:
    """What an output of a shape may be compared with: classes for each example, place or word; another such output."""
    batch, _, *places = shape
    yield Tensor("int", (batch,), 2)
    if places:
        yield Tensor("int", (batch, *places), 2)
        yield Tensor("int", (batch, 1, *places), 2)
    if len(places) == 1:
        yield Tensor("int", shape[:-1], 2)
    yield Tensor("unit", shape)


def _is_unknown(inputs: from_project.Inputs) -> bool:
    args, kwargs = inputs
    return all(each is UNKNOWN for each in (*args, *kwargs.values()))
