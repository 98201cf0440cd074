"""Every rule with its documentation, read from the rule itself."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from graphmend.analysis.rules.documentation import sections

FAMILIES = {
    "GM0": "GraphMend's own comments",
    "GM1": "control flow on tensors",
    "GM2": "output and other side effects",
    "GM3": "scalars taken out of tensors",
    "GM4": "data-dependent shapes",
    "GM5": "Python and environment",
    "GM6": "autograd and other torch calls",
    "GM7": "recompilations",
    "GM9": "seen by TorchDynamo only",
}


@dataclass(frozen=True)
class Documented:
    """A rule as users meet it."""

    code: str
    name: str
    message: str
    advice: str
    preview: bool
    versions: str
    sections: dict[str, str]

    @property
    def family(self) -> str:
        return FAMILIES[self.code[:3]]


@lru_cache(maxsize=1)
def rules() -> dict[str, Documented]:
    """All rules by code, in the order of their codes."""
    from graphmend.analysis.findings.suppressions import UnusedSuppression
    from graphmend.analysis.rules import RULES
    from graphmend.dynamo.codes import CODES

    found = [_documented(rule) for rule in (UnusedSuppression, *map(type, RULES), *CODES)]
    return {rule.code: rule for rule in sorted(found, key=lambda rule: rule.code)}


def _documented(rule: Any) -> Documented:
    return Documented(
        code=rule.code,
        name=rule.name,
        message=rule.message,
        advice=getattr(rule, "advice", ""),
        preview=rule.preview,
        versions=getattr(rule, "versions", ""),
        sections=sections(inspect.getdoc(rule) or ""),
    )
