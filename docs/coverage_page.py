"""The page on what is found of TorchDynamo's own list of graph breaks, made from `tests/analysis/coverage/kinds`."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from graphmend.analysis.check import check
from graphmend.analysis.rules import RULES
from graphmend.analysis.settings import Settings
from graphmend.analysis.syntax.source import Source

_ROWS = Path(__file__).resolve().parents[1] / "tests" / "analysis" / "coverage" / "rows.py"
_NAMES = {rule.code: rule.name for rule in RULES}
_PAGES = "https://meta-pytorch.org/compile-graph-break-site/gb/{}.html"

_TEXT = """\
# Coverage of TorchDynamo's graph breaks

torch 2.13.0 numbers {all} kinds of graph breaks (`torch/_dynamo/graph_break_registry.json`). This page has a row for
each. It is made from the programs in `tests/analysis/coverage/kinds`, which TorchDynamo judges in the tests: each
*breaks* with exactly that number, and its nearest neighbour, on the right, does not.

| | kinds |
|---|---|
| a program reaches them | {reached} |
| of these, `graphmend check --preview` finds | {found} ({share:.1%}) |
| neighbours with a finding | {false} |
| no program is known to reach them | {unreachable} |
| only running tells | {run_time} |
| a number that torch 2.13 raises nowhere | {retired} |

| break | kind | found by | breaks | stays quiet |
|---|---|---|---|---|
"""


def _rows() -> ModuleType:
    spec = importlib.util.spec_from_file_location("rows", _ROWS)
    assert spec is not None
    assert spec.loader is not None
    rows = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(rows)
    return rows


def _findings(program: Any) -> list[tuple[int, str]]:
    found = check(Source(program.whole, "example.py"), settings=Settings(preview=True)).findings
    return [(finding.span.line, finding.code) for finding in found]


def found_by(row: Any) -> str:
    """The code of the rule that finds a row's break; an empty text where none does."""
    return next((code for line, code in _findings(row.breaks) if line in row.breaks.lines), "")


def coverage_page() -> str:
    """The page."""
    rows = _rows()
    known = rows.read()
    reached = [row for row in known if row.breaks]
    found = {row.gb_id: found_by(row) for row in reached}
    lines = [_line(row, found.get(row.gb_id, ""), rows.MARK) for row in known]
    said = sum(map(bool, found.values()))
    head = _TEXT.format(
        all=len(known),
        reached=len(reached),
        found=said,
        share=said / len(reached),
        false=sum(bool(_findings(row.quiet)) for row in reached),
        unreachable=sum(bool(row.unreachable) for row in known),
        run_time=sum(bool(row.run_time) for row in known),
        retired=sum(row.retired for row in known),
    )
    return head + "\n".join(lines) + "\n"


def _line(row: Any, code: str, mark: str) -> str:
    """A row of the table."""
    start = f"| [{row.gb_id}]({_PAGES.format(row.gb_id.lower())}) | {_cell(row.kind)} | "
    if row.breaks:
        rule = f"[{code}](rules/{code}.md) {_NAMES[code]}" if code else "not found"
        return f"{start}{rule} | {_code(_marked(row, mark))} | {_code(_differs(row, mark))} |"
    if row.unreachable:
        return f"{start}no program is known to reach it | {_cell(row.unreachable)} | raised in {row.raised} |"
    if row.run_time:
        said = f"`verify` reports it at {row.verify}" if row.verify else "`verify` reports it"
        return f"{start}only running tells | {_cell(row.run_time)} | {said}; raised in {row.raised} |"
    return f"{start}torch 2.13 raises it nowhere | the number is kept | |"


def _marked(row: Any, mark: str) -> str:
    line: str = next(line for line in row.breaks.text.splitlines() if line.endswith(mark))
    return line.removesuffix(mark).strip()


def _differs(row: Any, mark: str) -> str:
    """The first line of the quiet program that the other one does not have, or the line in place of the marked one."""
    have = {line.removesuffix(mark) for line in row.breaks.text.splitlines()}
    lines = row.quiet.text.splitlines()
    return next((line.strip() for line in lines if line not in have), _marked(row, mark))


def _code(text: str) -> str:
    return f"`` {_cell(text)} ``" if "`" in text else f"`{_cell(text)}`"


def _cell(text: str) -> str:
    return text.strip().replace("|", "\\|")
