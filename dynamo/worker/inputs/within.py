"""A module as another one of the project calls it: the owner of a `Block` is made and run, and what its first `Block`
is given there is kept. For what nobody calls alone, and whose inputs only make sense together.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import inspect
import itertools
import os
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch.utils._pytree import tree_map

from ..discover import Target, has_forward
from ..project import classes, files
from . import examples, produced, synthesis
from .examples import Arguments, Example
from .variation import variants

ALONE_SECONDS = 15.0
MOST_SECONDS = 12.0
"""For all owners together, and theirs."""
MOST_OWNERS = 6
MOST_FILES = 20


class _Owner(NamedTuple):
    target: Target
    module: ModuleType


def made_up(target: Target, module: ModuleType, entries: list[dict[str, str]]) -> Iterator[Example]:
    """What the target shows of itself for a while, then what other modules give it and its owners do, then the rest."""
    alone = synthesis.candidates(target, module, entries)
    limit = files.Limit(ALONE_SECONDS)
    for example in alone:
        yield example
        if limit.is_over:
            break
    yield from produced.candidates(target, module, entries)
    yield from candidates(target, module, entries)
    yield from alone


def candidates(target: Target, module: ModuleType, entries: list[dict[str, str]]) -> Iterator[Example]:
    """The target as its owners call it, one example each; nothing for what no other module makes.

    Whole models come first, which make what makes it: a project's scripts make those, and call them.
    """
    if target.kind != "class" or target.method is not None or not issubclass(target.value, torch.nn.Module):
        return
    owners = _all_owners(_Owner(target, module))
    limit = files.Limit(MOST_SECONDS)
    for number, owner in enumerate(owners):
        example = _called(owner, target.value, entries, limit.part(1 / (len(owners) - number)))
        if example is not None:
            yield example


def _called(
    owner: _Owner, cls: type[torch.nn.Module], entries: list[dict[str, str]], limit: files.Limit
) -> Example | None:
    tries = itertools.chain(
        examples.declared(owner.target, owner.module, entries),
        synthesis.candidates(owner.target, owner.module, entries),
    )
    for example in tries:
        if limit.is_over:
            break
        try:
            found = _run(example, cls)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            example.failed(error)
        else:
            return None if found is None else _example(example, owner.target.name, *found)
    return None


def _all_owners(part: _Owner) -> list[_Owner]:
    """What makes a part, and what makes that, the farthest first."""
    found = {part.target.value: part}
    for owner in (queue := [part]):
        for other in _owners(owner.target, owner.module):
            if other.target.value not in found:
                found[other.target.value] = other
                queue.append(other)
    return queue[:0:-1][:MOST_OWNERS]


def _owners(target: Target, module: ModuleType) -> Iterator[_Owner]:
    """The modules that name the target's class: those of its file, then of files that only define something."""
    name = target.value.__name__
    word = re.compile(rf"\b{re.escape(name)}\b")
    for where in (module, *_other_modules(module, word)):
        made_with = _named_beside(where, word)
        for other, value in list(vars(where).items()):
            own = isinstance(value, type) and issubclass(value, torch.nn.Module) and value.__module__ == where.__name__
            if not own or issubclass(value, target.value) or other != value.__name__ or not has_forward(value):
                continue
            if word.search(classes.text_of(value)) or other in made_with:
                yield _Owner(Target(other, "class", value), where)


def _named_beside(module: ModuleType, word: re.Pattern[str]) -> set[str]:
    """What the functions of a module name that name the class: `build_model` makes both, one around the other."""
    functions = (v for v in vars(module).values() if inspect.isfunction(v) and v.__module__ == module.__name__)
    return {n for f in functions if word.search(classes.text_of(f)) for n in f.__code__.co_names}


def _other_modules(module: ModuleType, word: re.Pattern[str]) -> Iterator[ModuleType]:
    path = getattr(module, "__file__", None)
    if path is None:
        return
    root, real = files.import_root(path), os.path.realpath(path)
    number = 0
    for other in files.walk(root):
        if number == MOST_FILES:
            return
        if os.path.realpath(other) == real or word.search(files.text_of(other)) is None:
            continue
        number += 1
        dotted = os.path.relpath(other, root)[: -len(".py")].replace(os.sep, ".").removesuffix(".__init__")
        if classes.only_defines(other) and all(part.isidentifier() for part in dotted.split(".")):
            with contextlib.suppress(Exception):  # a neighbour that cannot be imported is none of the user's concern
                yield importlib.import_module(dotted)


def _run(example: Example, cls: type[torch.nn.Module]) -> tuple[str, Arguments] | None:
    """The first part of a class that the owner calls, by its path, and what with; None where it calls none."""
    variants.seed(0)
    owner: torch.nn.Module = example.build()
    found: list[tuple[str, Arguments]] = []

    def keeps(path: str) -> Any:
        def hook(part: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            if not found:
                found.append((path, _copied((args, kwargs))))

        return hook

    for path, part in owner.named_modules():
        if path and type(part) is cls:
            part.register_forward_pre_hook(keeps(path), with_kwargs=True)
    variants.seed(0)
    args, kwargs = example.inputs()[0]
    with torch.compiler.set_stance("force_eager"):
        owner(*args, **kwargs)
    return found[0] if found else None


def _example(of: Example, owner: str, path: str, arguments: Arguments) -> Example:
    return Example(
        f"as {path} of {owner} is called",
        of.text,
        lambda: of.build().get_submodule(path),
        lambda: [_copied(arguments)],
        declared=False,
        of_owner=True,
    )


def _copied(arguments: Arguments) -> Arguments:
    """Arguments that no call has changed, and that no gradient goes through."""

    def one(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.detach().clone()
        try:
            return copy.deepcopy(value)
        except Exception:
            return value

    return tree_map(one, arguments)  # type: ignore[no-any-return]
