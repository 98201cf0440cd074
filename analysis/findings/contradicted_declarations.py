"""Wrong declarations: a parameter is annotated as a tensor, or used like one, and every known call passes something
else.

A root, and a function that is called with an unknown value, is analysed with the values that its parameters declare.
Verdicts that rest on such a declaration alone are dropped where the known calls contradict it.
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
    """The arguments for which each function was analysed, over all summaries that tracing reaches."""

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
        """Whether some known call passes something else than a tensor for a parameter."""
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
    """Whether a value comes from this declaration of the parameter, and not from an argument of a call."""
    return any(part.origin is not None and part.origin.first is origin for part in parts_of(value))


def _is_no_tensor(value: Value) -> bool:
    """Whether a value is known to be neither None nor a tensor."""
    if isinstance(value, Static):
        return value.type is not None and value is not NONE
    return isinstance(value, (Container, Scalar))
