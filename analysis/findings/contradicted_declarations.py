"""Declarations that are wrong: a parameter is annotated as a tensor, or used like one, and every call in sight passes
something else.

A function that tracing starts at, or that is called with a value nobody knows, is walked with what its declaration
says. Where the calls that are known contradict it, what follows from the declaration alone is not believed.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from graphmend.analysis.interprocedural.summaries import FunctionSummary
from graphmend.analysis.interprocedural.verdicts import Verdict
from graphmend.analysis.lattice.dependence import Parameter, may_hold_tensor, parts_of
from graphmend.analysis.lattice.evidence import DeclaredEvidence
from graphmend.analysis.lattice.values import NONE, UNKNOWN, Container, Scalar, Static, Value, tensor_in


class KnownCalls:
    """What the walks that tracing gets to pass to each function."""

    def __init__(self, summaries: Iterable[FunctionSummary]) -> None:
        self._all = tuple(summaries)

    def contradict(self, verdict: Verdict) -> bool:
        """Whether a verdict rests on the declaration of a parameter that all known calls contradict."""
        origin = verdict.breaks.origin.first if verdict.breaks.origin is not None else None
        if not isinstance(origin, DeclaredEvidence) or not isinstance(origin.node, str):
            return False
        passed = [a.env.get(origin.node, UNKNOWN) for a in self._of_function.get(origin.where, ())]
        itself = [tensor_in(v) is not None for v in passed if _is_declared(v, origin)]
        known = [v for v in passed if not _is_declared(v, origin)]
        return all(itself) and any(map(_is_no_tensor, known)) and not any(map(may_hold_tensor, known))

    def may_contradict(self, parameter: Parameter) -> bool:
        """Whether a call that is known passes something else than a tensor for a parameter."""
        where, name = parameter
        return any(_is_no_tensor(a.env.get(name, UNKNOWN)) for a in self._of_function.get(where, ()))

    @cached_property
    def _of_function(self) -> dict[tuple[str, str], list[FunctionSummary]]:
        found: dict[tuple[str, str], list[FunctionSummary]] = {}
        for summary in self._all:
            info = summary.info
            found.setdefault((info.module.name, info.qualname), []).append(summary)
        return found


def _is_declared(value: Value, origin: DeclaredEvidence) -> bool:
    """Whether a value is what the declaration made of the parameter, and no call's."""
    return any(part.origin is not None and part.origin.first is origin for part in parts_of(value))


def _is_no_tensor(value: Value) -> bool:
    """Whether a value is known to be there, and to be no tensor itself."""
    if isinstance(value, Static):
        return value.type is not None and value is not NONE
    return isinstance(value, (Container, Scalar))
