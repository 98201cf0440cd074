"""`graphmend rule`: what a rule finds, why that breaks the graph, and what to write instead."""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
from dataclasses import asdict

from graphmend.analysis.rules.documentation import CODE
from graphmend.analysis.settings import current_code
from graphmend.cli.checking.file_report import PAGE
from graphmend.cli.failures import UsageError
from graphmend.cli.rule_catalogue import Documented, rules
from graphmend.workspace.options import did_you_mean


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rules", nargs="*", metavar="CODE", help="rules by code or name")
    parser.add_argument("--all", action="store_true", help="every rule")
    parser.add_argument("--output-format", choices=("text", "json"), default="text")


def run(args: argparse.Namespace) -> int:
    if args.all == bool(args.rules):
        raise UsageError("rule: name rules by code, or say --all")
    chosen = list(rules().values()) if args.all else [_find(text) for text in args.rules]
    if args.output_format == "json":
        data = [as_json(rule) for rule in chosen]
        json.dump(data if args.all or len(data) > 1 else data[0], sys.stdout, indent=2, ensure_ascii=False)
        sys.stdout.write("\n")
    else:
        sys.stdout.write("\n\n".join(as_text(rule) for rule in chosen))
    return 0


def _find(text: str) -> Documented:
    known = rules()
    by_name = {rule.name: rule for rule in known.values()}
    found = known.get(current_code(text.upper())) or by_name.get(text.lower())
    if found is None:
        if re.search(r"\.(py|ipynb)(:\d+)*$", text):
            place = text.partition(":")[0]
            raise UsageError(f"`{text}` is no rule; `graphmend check --verbose {place}` explains what it finds there")
        family = [code for code in known if text and code.startswith(text.upper())]
        if family:
            raise UsageError(f"`{text}` names several rules: {', '.join(family)}")
        raise UsageError(f"unknown rule `{text}`{did_you_mean(text, [*known, *by_name])}")
    return found


def as_json(rule: Documented) -> dict[str, object]:
    """A rule as data; scripts rely on the keys."""
    return {**asdict(rule), "family": rule.family, "url": PAGE.format(code=rule.code)}


def as_text(rule: Documented) -> str:
    """A rule's page for a terminal."""
    title = f"{rule.code} {rule.name}" + (" (preview)" if rule.preview else "")
    parts = [title, "=" * len(title), ""]
    for heading, text in rule.sections.items():
        body = textwrap.indent(text, "    ") if heading in CODE else text
        parts += [heading, "-" * len(heading), body, ""]
    return "\n".join(parts)
