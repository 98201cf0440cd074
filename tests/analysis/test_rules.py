"""Every rule: its documentation has the fixed form; the analysis and TorchDynamo itself judge its examples."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from graphmend.analysis import rules
from graphmend.analysis.check import check
from graphmend.analysis.finding import Finding
from graphmend.analysis.rules import RULES
from graphmend.analysis.rules.rule import Rule
from graphmend.analysis.settings import Settings
from graphmend.analysis.syntax.source import Source

HEADINGS = ["What it does", "Why it breaks", "Example", "Use instead", "Mends", "References"]
FOLDER = Path(rules.__file__).parent
EXAMPLES = [
    pytest.param(rule, kind, text, id=f"{rule.code}-{kind}-{number}")
    for rule in RULES
    for kind in ("valid", "invalid")
    for number, text in enumerate(getattr(rule, kind))
]


def findings(text: str) -> tuple[Finding, ...]:
    return check(Source(text, "example.py"), settings=Settings(preview=True)).findings


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_documentation_has_its_headings_in_order(rule: Rule) -> None:
    text = inspect.getdoc(rule)
    assert text is not None
    assert re.findall(r"^([A-Z][\w ]+):$", text, re.MULTILINE) == HEADINGS
    for part in re.split(r"^[A-Z][\w ]+:$", text, flags=re.MULTILINE)[1:]:
        assert part.strip()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_names(rule: Rule) -> None:
    assert re.fullmatch(r"GM[1-7]\d\d", rule.code)
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.name)
    assert rule.events
    assert rule.message
    assert rule.valid, "a rule shows what it leaves alone"


def test_codes_and_names_are_unique() -> None:
    assert len({r.code for r in RULES}) == len({r.name for r in RULES}) == len(RULES)


def test_every_file_of_the_folder_holds_one_listed_rule() -> None:
    files = {p.stem for p in FOLDER.glob("*/*.py")} - {"__init__"}
    listed = [type(r).__module__.rpartition(".")[2] for r in RULES]
    assert sorted(listed) == sorted(files)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_the_folder_is_the_family(rule: Rule) -> None:
    families = ("control_flow", "output", "scalars", "shapes", "python", "torch_api", "recompilation")
    assert type(rule).__module__.split(".")[-2] == families[int(rule.code[2]) - 1]


@pytest.mark.parametrize(("rule", "kind", "text"), EXAMPLES)
def test_analysis_judges_the_examples(rule: Rule, kind: str, text: str) -> None:
    found = [(f.span.line, f.code) for f in findings(text)]
    if kind == "valid":
        assert found == []
    else:
        assert rule.code in {code for _, code in found}, f"found {found}; the first rule in RULES that judges speaks"


def _effects(rule: Rule) -> set[str]:
    return {f.effect for text in rule.invalid for f in findings(text) if f.code == rule.code}


@pytest.mark.torch
@pytest.mark.parametrize(("rule", "kind", "text"), EXAMPLES)
def test_dynamo_judges_the_examples(rule: Rule, kind: str, text: str, dynamo: Any) -> None:
    run = "calls()" if "def calls" in text else "[f(*a) for a in example_inputs()]"
    verdict = dynamo({"example.py": text}, "example.py", [run])
    if kind == "valid":
        assert verdict.error is None
        assert verdict.graphs
        assert not verdict.breaks
        assert verdict.graphs == 1 or "recompiles" not in _effects(rule), "each call compiles anew"
    elif all(f.effect == "recompiles" for f in findings(text)):
        assert not verdict.breaks
        assert verdict.graphs > 1
    else:
        lines = {line for _, line in verdict.lines}
        assert {f.span.line for f in findings(text) if f.code == rule.code} & lines, f"TorchDynamo breaks at {verdict}"
        assert {f.span.line for f in findings(text)} >= lines, f"TorchDynamo breaks at {verdict}"
