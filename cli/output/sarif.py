"""`--output-format sarif`: SARIF 2.1.0, as code scanning services read it.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/sarif-v2.1.0-os.html
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from graphmend import __version__
from graphmend.analysis.rules.documentation import CODE
from graphmend.cli.checking.file_report import PAGE
from graphmend.cli.rule_catalogue import Documented, rules

if TYPE_CHECKING:
    from graphmend.analysis.syntax.span import Span
    from graphmend.cli.checking.file_report import CheckRun, Offer, ReportedFinding

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "information": "note", "hint": "note"}
_ROOT = "SRCROOT"


def write(run: CheckRun, out: TextIO) -> None:
    known = rules()
    order = {code: index for index, code in enumerate(known)}
    document = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "graphmend",
                        "version": __version__,
                        "semanticVersion": __version__,
                        "informationUri": PAGE.partition("/blob/")[0],
                        "rules": [_rule(rule) for rule in known.values()],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {_ROOT: {"uri": Path.cwd().as_uri() + "/"}},
                "invocations": [_invocation(run)],
                "results": [_result(item, order) for item in run.items],
            }
        ],
    }
    json.dump(document, out, indent=2, ensure_ascii=False)
    out.write("\n")


def _rule(rule: Documented) -> dict[str, Any]:
    does = " ".join(rule.sections.get("What it does", rule.message).split())
    why = " ".join(rule.sections.get("Why it breaks", "").split())
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": does},
        "fullDescription": {"text": f"{does} {why}".strip()},
        "help": {"text": _plain(rule), "markdown": _markdown(rule)},
        "helpUri": PAGE.format(code=rule.code),
        "defaultConfiguration": {"level": "warning"},
        "properties": {"tags": [rule.family], "preview": rule.preview},
    }


def _plain(rule: Documented) -> str:
    return "\n\n".join(f"{heading}:\n{text}" for heading, text in rule.sections.items()) or rule.message


def _markdown(rule: Documented) -> str:
    parts = [f"## {rule.name} ({rule.code})"]
    for heading, text in rule.sections.items():
        parts.append(f"### {heading}\n\n" + (f"```python\n{text}\n```" if heading in CODE else text))
    return "\n\n".join(parts)


def _invocation(run: CheckRun) -> dict[str, Any]:
    notes = [{"level": "error", "message": {"text": problem}} for problem in run.problems]
    return {"executionSuccessful": not run.problems, "toolExecutionNotifications": notes}


def _result(item: ReportedFinding, order: dict[str, int]) -> dict[str, Any]:
    finding = item.finding
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "level": _LEVELS[item.severity],
        "message": {"text": "\n".join([finding.message, *(f"- {sentence}" for sentence in finding.evidence)])},
        "locations": [_location(finding.path, finding.span, finding.function)],
        "partialFingerprints": {"graphmendKey/v1": finding.key},
        "properties": {
            "region": finding.region,
            "certainty": finding.certainty,
            "effect": finding.effect,
            "breakId": finding.gb_id,
            "noMend": item.refusal,
        },
    }
    if finding.code in order:  # rules of TorchDynamo's own findings are not described here
        result["ruleIndex"] = order[finding.code]
    if finding.related:
        result["relatedLocations"] = [
            {"id": number, **_location(place.path, place.span), "message": {"text": place.message}}
            for number, place in enumerate(finding.related)
        ]
    fixes = [_fix(offer, finding.path) for offer in item.offers if offer.edits]
    if fixes:
        result["fixes"] = fixes
    return result


def _location(path: str, span: Span, function: str = "") -> dict[str, Any]:
    physical = {"artifactLocation": _artifact(path), "region": _region(span)}
    if not function:
        return {"physicalLocation": physical}
    return {
        "physicalLocation": physical,
        "logicalLocations": [{"fullyQualifiedName": function, "kind": "function"}],
    }


def _artifact(path: str) -> dict[str, Any]:
    try:
        relative = Path(path).relative_to(os.getcwd())
    except ValueError:
        return {"uri": Path(path).as_uri()}
    # a percent sign or a space in a name would not be a URI as it stands
    return {"uri": Path("/", relative).as_uri().removeprefix("file:///"), "uriBaseId": _ROOT}


def _region(span: Span) -> dict[str, int]:
    return {
        "startLine": span.line,
        "startColumn": span.column + 1,
        "endLine": span.end_line,
        "endColumn": span.end_column + 1,
    }


def _fix(offer: Offer, path: str) -> dict[str, Any]:
    replacements = [
        {"deletedRegion": _region(edit.span), "insertedContent": {"text": edit.text}} for edit in offer.edits
    ]
    return {
        "description": {"text": f"{offer.message} ({offer.applicability}): {offer.reason}"},
        "artifactChanges": [{"artifactLocation": _artifact(path), "replacements": replacements}],
    }
