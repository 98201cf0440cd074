"""Which mends a finding has, best first."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from graphmend.transforms.catalogue import rewrites_for
from graphmend.transforms.fix import Fix, Refusal

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding


class Applied(NamedTuple):
    """A mend that was applied, and the finding that it answers."""

    finding: Finding
    fix: Fix
    text: str
    """The text in which the finding stands: that of its round."""


def mend(finding: Finding, facts: FunctionFacts | None) -> list[Fix | Refusal]:
    """Every mend of a finding, best first, then every refusal. `facts` are those of its function, if it is in one.

    A mend that keeps all output comes before one that silences it, and where both keep it the safe one first:
    that is the order of the catalogue, made stable by what each rewrite can prove here.
    """
    if facts is None:
        return [Refusal("", "it stands in no function's body, which a mend would rewrite")]
    answers = [rewrite(finding, facts) for rewrite in rewrites_for(finding)]
    fixes = [a for a in answers if isinstance(a, Fix)]
    refusals = [a for a in answers if isinstance(a, Refusal)]
    keeping = [f for f in fixes if not f.silences]
    rank = {"safe": 0, "unsafe": 1, "display": 2}
    keeping.sort(key=lambda f: rank[f.applicability])
    silencing = sorted((f for f in fixes if f.silences), key=lambda f: rank[f.applicability])
    return [*keeping, *silencing, *refusals]
