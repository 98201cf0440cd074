"""Inputs for code that declares none: the object to call (`constructors`), then its arguments, from what annotations,
source, layers and names say; and what an error message says that it wanted instead.

Each candidate is a source text such as `Net(16, heads=2)(torch.randn(2, 16))`; an eager run decides whether it fits.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import itertools
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import torch

from ..discover import Target
from ..errors import Unusable
from . import constructors
from .examples import Example, evaluate, from_call, namespace, shown_init, speaks_about
from .from_project import Inputs, outputs_unknown
from .search import Search
from .variation import variants
from .ways import Ways

MOST_REMADE = 24
"""Constructor calls that one failing call leads to."""
FEW = 4
"""Constructor calls that an error leads to which is more likely one of the inputs."""
SLOW_SECONDS = 0.2


Given = Callable[[list[Inputs]], "list[Inputs] | None"]


def candidates(
    target: Target, module: ModuleType, entries: list[dict[str, str]], inputs_of: Given = outputs_unknown
) -> Iterator[Example]:
    """Examples to try, likely ones first; each failure may add better ones.

    A declared `init` without inputs is used. `inputs_of` says which of the inputs that the project gives an object are
    tried; None leaves the object out. With one, nothing else is tried.
    """
    given = [shown_init(target, e["init"]) for e in entries if e.get("init") and speaks_about(e, target)]
    makings = map(constructors.Making, given) if given else constructors.makings(target, module)
    for making, made, found in _made(makings, target, module):
        text = making.text
        if isinstance(made, Unusable):
            yield _failing(text, made)
            continue
        prefix = text if target.method is None else f"{text}.{target.method}"
        if (inputs := inputs_of(making.calls)) is None:
            continue
        ways = Ways(made.instance, made.function, vars(module))
        search = Search(ways, made.function, inputs, whole=inputs_of is not outputs_unknown)
        for number, (combination, failed) in enumerate(search.tries()):
            if found.asked and number > FEW:
                break
            arguments = [v if n.startswith("*") else f"{n}={v}" for n, v in combination.items()]
            example = from_call(target, module, f"{prefix}({', '.join(arguments)})")
            example.origin, example.declared = making.origin, False
            example.build, example.failed = (
                made.for_a_try,
                _both(failed, functools.partial(found.of_run, made.run(example))),
            )
            yield example


def _made(
    makings: Iterator[constructors.Making], target: Target, module: ModuleType
) -> Iterator[tuple[constructors.Making, Made | Unusable, _After]]:
    """Each way with the object that it makes, or why it makes none; then what that asks for, or what an error of a run
    asks for that is told.
    """
    seen: set[tuple[str, str]] = set()
    guessed: list[constructors.Making] = []
    for first in itertools.chain(makings, _one_by_one(guessed)):
        queue = [first]
        for number, making in enumerate(queue):
            if number > MOST_REMADE:
                break
            if making.key in seen:
                continue
            seen.add(making.key)
            found = _After(making, queue, guessed)
            try:
                made: Made | Unusable = Made(making.text, target, module)
            except Unusable as error:
                made = error
                found.of_constructor(error)
            yield making, made, found


def _one_by_one(guessed: list[constructors.Making]) -> Iterator[constructors.Making]:
    for number in range(MOST_REMADE):
        if number < len(guessed):
            yield guessed[number]


class _After:
    """What the errors of one way to make the object lead to."""

    def __init__(
        self, making: constructors.Making, queue: list[constructors.Making], guessed: list[constructors.Making]
    ) -> None:
        self.making = making
        self.queue = queue
        self.guessed = guessed
        self.told = False
        self.asked = False
        """Whether an error asked for another setting: then other inputs will not do."""

    def of_constructor(self, error: BaseException, run: constructors.Run | None = None) -> None:
        for other in self.making.after(error, run):
            self.asked |= other.asked
            (self.guessed if other.guessed else self.queue).append(other)

    def of_run(self, run: constructors.Run, error: BaseException) -> None:
        if isinstance(error, _OF_SETTINGS):  # of what was made, not of a tensor's shape
            self.of_constructor(error, run)
        elif not self.told:
            self.guessed += [other for other in self.making.after(error, None) if other.guessed][:FEW]
        self.told = True


_OF_SETTINGS = (TypeError, AttributeError, KeyError, NotImplementedError)


def _both(*told: Callable[[BaseException], None]) -> Callable[[BaseException], None]:
    def tell(error: BaseException) -> None:
        for each in told:
            each(error)

    return tell


class Made:
    """The object that a constructor's text makes. Each try gets one that no other try has changed."""

    def __init__(self, text: str, target: Target, module: ModuleType) -> None:
        self.text = text
        self.module = module
        self.target = target
        began = time.monotonic()
        self.instance = self._make()
        self._slow = time.monotonic() - began > SLOW_SECONDS
        self._fresh = True

    def _make(self) -> Any:
        variants.seed(0)
        return evaluate(self.text, namespace(self.module), "constructor of " + self.target.name)

    def for_a_try(self) -> Any:
        """The object, as it was made: to copy the weights of a large model takes less time than to draw them."""
        if self._slow and isinstance(self.instance, torch.nn.Module):
            with contextlib.suppress(Exception):  # not everything can be copied
                return copy.deepcopy(self.instance)
        made = self.instance if self._fresh else self._make()
        self._fresh = False
        return made

    def run(self, example: Example) -> constructors.Run:
        """Calls another such object with an example's inputs."""

        def run(instance: Any) -> None:
            variants.seed(0)
            args, kwargs = example.inputs()[0]
            called = instance if self.target.method is None else getattr(instance, self.target.method)
            with torch.compiler.set_stance("force_eager"):
                called(*args, **kwargs)

        return run

    @property
    def function(self) -> Any:
        """What is called, as Python sees it."""
        called = self.instance if self.target.method is None else getattr(self.instance, self.target.method)
        is_module = called is self.instance and isinstance(called, torch.nn.Module)
        return called.forward if is_module else getattr(called, "_torchdynamo_orig_callable", called)


def _failing(text: str, error: Unusable) -> Example:
    """A constructor that raises: kept as a candidate, so that its reason is told."""

    def build() -> Any:
        raise error

    return Example("synthesised", text, build, lambda: [((), {})], declared=False)
