"""A page for each rule, made from its docstring, its examples and the catalogue of rewrites; and the list of all."""

from __future__ import annotations

import re
from itertools import groupby

from graphmend.analysis.check import check
from graphmend.analysis.rules import RULES
from graphmend.analysis.rules.documentation import CODE
from graphmend.analysis.settings import RENAMED, Settings
from graphmend.analysis.syntax.source import Source
from graphmend.cli.rule_catalogue import FAMILIES, Documented, rules
from graphmend.transforms.catalogue import CATALOGUE

#: the page of a kind of break, by its id
BREAKS = "https://meta-pytorch.github.io/compile-graph-break-site/gb/{}.html"

_PLACEHOLDER = re.compile(r"\{\w+\}")
_LINK = re.compile(r"^(https?://\S+)$", re.MULTILINE)


def rule_pages() -> dict[str, str]:
    """File names and texts of the whole folder."""
    found = {f"{rule.code}.md": page(rule) for rule in rules().values()}
    moved = {
        f"{old}.md": f"# {old}\n\nThis rule is [{new}]({new}.md) now. Comments and settings may name either.\n"
        for old, new in RENAMED.items()
    }
    return {"README.md": overview(list(rules().values())), **found, **moved}


def overview(listed: list[Documented]) -> str:
    """The list of rules by family."""
    lines = [
        "# Rules",
        "",
        "One page a rule, made from the rule's own docstring and examples. The examples are tests: TorchDynamo",
        "breaks on those under *Breaks*, at the finding's line, and makes one graph of those under *Does not break*.",
        "",
        "On a terminal `graphmend explain GM101` prints the same, and so does its other name `graphmend rule GM101`:",
        "one rule or several, by code or name (`graphmend explain GM101 tensor-assert`); `--all` every one;",
        "`--output-format json` data for programs.",
    ]
    for family, members in groupby(listed, key=lambda rule: rule.code[:3]):
        title = FAMILIES[family]
        lines += ["", f"## {family}: {title}", "", "| rule | name | finds |", "|---|---|---|"]
        for rule in members:
            preview = " (preview)" if rule.preview else ""
            lines.append(f"| [{rule.code}]({rule.code}.md) | {rule.name}{preview} | {first_sentence(rule)} |")
    return "\n".join(lines) + "\n"


def first_sentence(rule: Documented) -> str:
    text = " ".join(rule.sections["What it does"].split())
    sentence = re.match(r".*?(?<![.])[.](?![.])(?=\s|$)|.*", text)
    return (sentence[0] if sentence else text).removesuffix(".").replace("|", "\\|")


def page(rule: Documented) -> str:
    """One rule's page."""
    title = f"# {rule.code}: {rule.name}" + (" (preview)" if rule.preview else "")
    parts = [title, "", f"*{FAMILIES[rule.code[:3]]}*", "", f"> {_PLACEHOLDER.sub('…', rule.message)}", ""]
    for heading, text in rule.sections.items():
        parts += [f"## {heading}", "", *_section(heading, text, rule.code), ""]
    parts += _examples(rule.code)
    return "\n".join(parts).rstrip() + "\n"


def _section(heading: str, text: str, code: str) -> list[str]:
    if heading in CODE:
        return ["```python", text, "```"]
    if heading == "Mends":
        return [text, *_rewrites(code)]
    if heading == "References":
        return [_LINK.sub(r"* <\1>", text), *(f"* [{gb}]({BREAKS.format(gb.lower())})" for gb in break_ids(code))]
    return [text]


def _rewrites(code: str) -> list[str]:
    names = [rewrite.name for known, rewrites in CATALOGUE if known == code for rewrite in rewrites]
    links = [f"[{name}](../rewrites/{name}.md)" for name in dict.fromkeys(names)]
    return ["", f"Tried in this order: {', '.join(links)}."] if links else []


def _examples(code: str) -> list[str]:
    rule = next((rule for rule in RULES if rule.code == code), None)
    parts: list[str] = []
    breaks = ("Breaks", "Does not break") if not code.startswith("GM7") else ("Compiles anew", "Is compiled once")
    for heading, examples in zip(breaks, (rule.invalid, rule.valid), strict=True) if rule else ():
        parts += [f"## {heading}", ""]
        for example in examples:
            parts += ["```python", example.strip("\n"), "```", ""]
    return parts


def break_ids(code: str) -> list[str]:
    """The ids of the breaks that a rule's examples show."""
    rule = next((rule for rule in RULES if rule.code == code), None)
    texts = rule.invalid if rule else ()
    found = (f for text in texts for f in check(Source(text, "example.py"), settings=Settings(preview=True)).findings)
    return sorted({finding.gb_id for finding in found if finding.code == code and finding.gb_id})
