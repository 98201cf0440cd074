"""The parts of TorchDynamo that are hooked into: what each shows, and what it must look like, by version of torch.

Measured with the versions that have a row in `docs/torch-versions.md`; for 2.9 and 2.11 read from their sources. A
newer torch is held against the newest line.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .. import versions


class Place(NamedTuple):
    """A function of Dynamo: `module:Class` or `module`, its name, and parameters that its signature must have."""

    owner: str
    name: str
    parameters: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.owner.replace(':', '.')}.{self.name}"


class Hook(NamedTuple):
    """What is lost without it, and where it goes, by the version from which on it is there."""

    shows: str
    places: Mapping[tuple[int, int], Place]

    def place(self, version: str) -> Place:
        known = versions.release(version) or versions.NEWEST
        return self.places[max((since for since in self.places if since <= known), default=min(self.places))]


_CONVERT, _TRANSLATE = "torch._dynamo.convert_frame", "torch._dynamo.symbolic_convert"
_TRANSLATOR = f"{_TRANSLATE}:InstructionTranslatorBase"
_REASONS = "get_and_maybe_log_recompilation_reasons"

HOOKS = {
    "accepted": Hook(
        "the breaks that Dynamo goes on behind, with their reasons",
        {
            (2, 8): Place(_TRANSLATE, "log_graph_break", ("reason", "user_stack")),
            (2, 10): Place(_TRANSLATOR, "log_graph_break", ("reason", "user_stack")),
            (2, 11): Place(_TRANSLATOR, "log_graph_break", ("reason", "exc")),
        },
    ),
    "converted": Hook(
        "the breaks that leave a whole frame to plain Python",
        {(2, 8): Place(f"{_CONVERT}:ConvertFrameAssert", "__call__", ("frame",))},
    ),
    "line": Hook("the lines that are traced", {(2, 8): Place(_TRANSLATOR, "starts_line", ("lineno",))}),
    "recompiled": Hook(
        "why a frame is compiled again",
        {
            (2, 8): Place(_CONVERT, _REASONS, ("cache_entry", "frame")),
            (2, 13): Place(_CONVERT, _REASONS, ("cache_entries", "frame")),
        },
    ),
    "graph": Hook(
        "the graphs of a command that is watched",
        {(2, 8): Place("torch._dynamo.output_graph:OutputGraph", "call_user_compiler", ("gm",))},
    ),
}


def lack(hook: Hook, version: str) -> str | None:
    """What a torch lacks for a hook; None where it is as the table says."""
    place = hook.place(version)
    function = getattr(_owner(place), place.name, None)
    if not callable(function):
        return f"it has no {place}"
    absent = [name for name in place.parameters if name not in _parameters(function)]
    return f"{place} takes no {' and no '.join(absent)}" if absent else None


class Installed:
    """Hooks that are in place; `remove` puts Dynamo's own functions back."""

    def __init__(self) -> None:
        self._saved: list[tuple[Any, str, Any]] = []

    def wrap(self, place: Place, make: Callable[[Any], Any]) -> None:
        """Puts `make(function)` in the place of a function; nothing where it is missing."""
        owner = _owner(place)
        function = getattr(owner, place.name, None)
        if function is not None:
            self._saved.append((owner, place.name, function))
            setattr(owner, place.name, make(function))

    def remove(self) -> None:
        while self._saved:
            owner, name, function = self._saved.pop()
            setattr(owner, name, function)


def named(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments of a call by the names of its parameters, as far as they fit."""
    return {**dict(zip(_parameters(function), args, strict=False)), **kwargs}


def _owner(place: Place) -> Any:
    module, _, name = place.owner.partition(":")
    try:
        owner = importlib.import_module(module)
    except ImportError:
        return None
    return getattr(owner, name, None) if name else owner


def _parameters(function: Any) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []
