"""Which calls end the graph: what was measured first, then what Dynamo's trace rules say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from graphmend.analysis.torch_facts import measured, measured_numpy, measured_torch

_NOTHING: tuple[None, None] = (None, None)
_SKIPPED = ("GB0007", "a function that Dynamo's trace rules skip")
_UNFOLDED = ("GB0208", "an operation whose Python result can neither be computed while tracing nor stand in a graph")
_ENDS_IN_C = ("GB0007", "a function that ends in C, as nearly all of SciPy's do")
_NO_COUNTERPART = ("GB0294", "a NumPy function that torch._numpy has no counterpart of")
#: modules of NumPy below which nothing is traced; those of the second group are objects that call C
_NOT_TRACED = ("GB0007", "a part of NumPy that torch._numpy has no counterpart of")
_NOT_MODELLED = ("GB0156", "a part of NumPy that torch._numpy has no counterpart of")
_NUMPY_MODULES = {
    **dict.fromkeys(("polynomial", "ma", "ctypeslib", "rec"), _NOT_TRACED),
    **dict.fromkeys(("char", "strings", "emath", "scimath"), _NOT_MODELLED),
}
_OF_FUNCTION = ("GB0290", "a method of a NumPy function")
_OF_UFUNCS = frozenset({"reduce", "accumulate", "outer", "at", "reduceat"})
#: in the tables of the trace rules, but what a call of them does was not measured
_UNSURE = ("torch.compiler.", "torch.jit.")


@lru_cache(maxsize=1)
def _breaks() -> dict[str, tuple[str, str]]:
    return {
        name: (gb_id, reason)
        for gb_id, reason, names in (*measured.BREAKS, *measured_torch.BREAKS)
        for name in names.split()
    }


@lru_cache(maxsize=1)
def _traced() -> frozenset[str]:
    return frozenset((measured.TRACED + measured_torch.TRACED).split())


@lru_cache(maxsize=1)
def _numpy_only() -> frozenset[str]:
    return frozenset(f"numpy.{name}" for name in measured_numpy.NUMPY_ONLY.split())


class Refusals:
    """The refusals of one torch version; `rules` is the `dynamo` section of its data file.

    `calls` holds what this version breaks on although the newest one traces it: name to (id, type of break); `traced`
    what it traces although the newest one breaks on it.
    """

    def __init__(
        self, rules: Mapping[str, Any], calls: Mapping[str, tuple[str, str]], traced: Iterable[str], minor: str
    ) -> None:
        self._traced_here = frozenset(traced)
        self._calls = {name: (gb_id, f"torch {minor} breaks there: {kind}") for name, (gb_id, kind) in calls.items()}
        self._refused = frozenset(rules["refused"])
        self._unfolded = frozenset(rules["unfolded"])
        self._folded = frozenset(rules["folded"]) | frozenset(rules["polyfilled"])
        self._skipped = frozenset(rules["skipped"]) - frozenset(rules["inlined_when_called"])
        self._in_graph: Mapping[str, str] = rules["traced"]
        self._numpy: Mapping[str, str] = rules["numpy"]

    def of(self, name: str, argument: str | None) -> tuple[str, str] | tuple[None, None]:
        """Break id and reason of a call; twice None where it traces, or nothing is known."""
        by_argument = None if argument is None else measured.BY_ARGUMENT.get((name, argument))
        if by_argument is not None:
            return by_argument if by_argument[0] else _NOTHING
        owner, _, last = name.rpartition(".")
        if argument == "tensor" and owner in measured.NOT_WITH_TENSORS:
            return measured.NOT_WITH_TENSORS[owner]
        if name in self._traced_here:
            return _NOTHING
        measured_here = None if argument == "input" else self._calls.get(name)  # they are measured on computed tensors
        found = measured_here or _breaks().get(name)
        if found is not None:
            return found
        if name in _traced():
            return _NOTHING
        if name.startswith("numpy."):
            return self._of_numpy(name)
        if name in self._unfolded:
            return _UNFOLDED
        if name.startswith("scipy.") and last[:1].islower():
            return _ENDS_IN_C
        by_module = measured.MODULES.get(owner)
        if by_module is not None and last[:1].islower():
            return by_module
        return _SKIPPED if self._is_skipped(name, owner, last) else _NOTHING

    def skips(self, package: str) -> bool:
        """Whether Dynamo traces into nothing of a top-level package: what it defines need not be read."""
        return package in self._skipped

    def has_numpy(self, name: str) -> bool:
        """Whether torch._numpy has a counterpart of a NumPy function."""
        owner, _, last = name.rpartition(".")
        return last in self._numpy.get(owner, "").split()

    def _of_numpy(self, name: str) -> tuple[str, str] | tuple[None, None]:
        owner, _, last = name.rpartition(".")
        if last in _OF_UFUNCS and self.has_numpy(owner):
            return _OF_FUNCTION
        of_module = _NUMPY_MODULES.get(name.removeprefix("numpy.").removeprefix("lib.").partition(".")[0])
        if of_module is not None and owner != "numpy":
            return of_module
        return _NO_COUNTERPART if name in _numpy_only() and not self.has_numpy(name) else _NOTHING

    def _is_skipped(self, name: str, owner: str, last: str) -> bool:
        if name in self._folded or last in self._in_graph.get(owner, "").split():
            return False
        if name in self._refused:
            return not name.startswith(_UNSURE)
        return name.partition(".")[0] in self._skipped and last[:1].islower() and not name.startswith(("abc.", "re."))
