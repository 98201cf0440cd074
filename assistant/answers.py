"""What the tools answer, as small plain data: an assistant pays for each character."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any, NamedTuple

from graphmend.analysis.check import Result
from graphmend.analysis.finding import Finding
from graphmend.analysis.torch_facts import load
from graphmend.model.gatekeeper import Gate, Passed
from graphmend.model.prompt import RULES
from graphmend.model.subject import extent, function_text
from graphmend.transforms.code.text_edits import apply
from graphmend.transforms.fix import Fix, Refusal, Unmendable
from graphmend.transforms.offers import mend

Data = dict[str, Any]


class Look(NamedTuple):
    """A file as it was analysed; `accept` are the kinds of differences with which its user counts a mend as safe."""

    result: Result
    accept: Sequence[str] = ()

    def offers(self, finding: Finding) -> list[Fix | Refusal]:
        """Every mend of a finding, best first, then why there are no others."""
        return mend(finding, self.result.facts(finding), self.accept)


def findings(look: Look, limit: int, offset: int) -> Data:
    """One page of what was found, in order of the text."""
    every = look.result.findings
    page = every[offset : offset + limit]
    answer: Data = {"total": len(every), "findings": [_finding(look, item) for item in page]}
    if offset + len(page) < len(every):
        answer["more"] = offset + len(page)
    return answer


def _finding(look: Look, finding: Finding) -> Data:
    kinds = [a.applicability for a in look.offers(finding) if isinstance(a, Fix)]
    return {
        "key": finding.key,
        "code": finding.code,
        "line": finding.span.line,
        "function": finding.function,
        "message": finding.message,
        "effect": finding.effect,
        "certainty": finding.certainty,
        "mend": next((kind for kind in ("safe", "unsafe") if kind in kinds), "none"),
    }


def explanation(look: Look, finding: Finding) -> Data:
    """Everything that is known of one finding, with the function's text and what a replacement must keep to."""
    facts = look.result.facts(finding)
    answers = look.offers(finding)
    reason = load(facts.torch_version if facts is not None else None).break_reason(finding.gb_id or "")
    answer: Data = {
        **_finding(look, finding),
        "evidence": finding.evidence,
        "advice": finding.advice,
        "no_mend_because": list(dict.fromkeys(a.reason for a in answers if isinstance(a, Refusal))),
    }
    if reason is not None:
        answer["torchdynamo"] = {"explanation": reason.explanation, "hints": reason.hints}
    if facts is not None:
        where = extent(facts)
        answer["source"] = {"first_line": where.first, "text": function_text(facts.source, where)}
        answer["rules_for_a_replacement"] = RULES
    return answer


def diff(look: Look, finding: Finding, path: str, *, unsafe: bool) -> Data:
    """The best permitted mend as a unified diff; nothing is written."""
    answers, source = look.offers(finding), look.result.source
    allowed = ("safe", "unsafe") if unsafe else ("safe",)
    for fix in answers:
        if isinstance(fix, Fix) and fix.applicability in allowed:
            try:
                text = apply(source.text, fix.edits(), source)
            except Unmendable:
                continue
            return {
                "title": fix.title,
                "applicability": fix.applicability,
                "differences": [difference._asdict() for difference in fix.differences],
                "diff": unified(source.text, text, path),
            }
    if any(isinstance(a, Fix) and a.applicability == "unsafe" for a in answers):
        return {"diff": None, "why": "its mend is unsafe; say unsafe to see it"}
    return {"diff": None, "why": "; ".join(dict.fromkeys(a.reason for a in answers if isinstance(a, Refusal)))}


def unified(before: str, after: str, path: str) -> str:
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), f"a/{path}", f"b/{path}")
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def judgement(gates: Sequence[Gate], passed: Passed | None) -> Data:
    """What became of a replacement."""
    answer: Data = {"passed": passed is not None, "gates": [gate.name for gate in gates if not gate.says]}
    failed = next((gate for gate in gates if gate.says), None)
    if failed is not None:
        answer["failed"] = {"gate": failed.name, "says": failed.says}
    if passed is not None:
        before, after = passed.seen.breaks
        answer |= {
            "runs": passed.seen.runs,
            "breaks": {"before": before, "after": after},
            "differences": [difference._asdict() for difference in passed.seen.differences],
            "gone": [finding.key for finding in passed.gone],
        }
        if passed.numbers:
            answer["new_numbers"] = passed.numbers
    return answer
