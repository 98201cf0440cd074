"""Every kind of graph break of torch 2.13: TorchDynamo judges both programs of a row, and so does the analysis."""

from __future__ import annotations

import ast
import importlib.util
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from graphmend.analysis.check import check
from graphmend.analysis.settings import Settings
from graphmend.analysis.syntax.source import Source

_SPEC = importlib.util.spec_from_file_location("coverage_rows", Path(__file__).with_name("rows.py"))
assert _SPEC is not None
assert _SPEC.loader is not None
rows = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(rows)

ROWS = rows.read()
#: of the kinds that a program reaches, so many are not found, and so many neighbours have a finding
MISSED, FALSE = 10, 0
REACHED = [pytest.param(row, id=row.gb_id) for row in ROWS if row.breaks]


def _lines(program: Any) -> set[int]:
    found = check(Source(program.whole, "example.py"), settings=Settings(preview=True)).findings
    return {finding.span.line for finding in found}


def test_each_number_has_one_row() -> None:
    assert max(Counter(row.gb_id for row in ROWS).values()) == 1
    assert len(ROWS) == 517


def test_each_row_says_how_its_kind_is_known() -> None:
    for row in ROWS:
        if not row.breaks and not row.retired:
            assert row.raised, f"{row.gb_id} does not say where it is raised"


@pytest.mark.torch
@pytest.mark.many
@pytest.mark.parametrize("row", REACHED)
def test_dynamo_breaks_with_this_number(row: Any, dynamo: Any) -> None:
    verdict = dynamo({"example.py": row.breaks.whole}, "example.py", row.breaks.run)
    assert (row.breaks.line, row.kind) in verdict.kinds, verdict


@pytest.mark.torch
@pytest.mark.many
@pytest.mark.parametrize("row", REACHED)
def test_dynamo_does_not_break_the_neighbour(row: Any, dynamo: Any) -> None:
    verdict = dynamo({"example.py": row.quiet.whole}, "example.py", row.quiet.run)
    assert not verdict.breaks, verdict
    assert verdict.error is None
    assert verdict.graphs or "export" in row.quiet.text, "nothing is compiled"


@pytest.fixture(scope="module")
def folder() -> Path:
    """Where TorchDynamo lives, of torch 2.13."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("needs torch")
    torch = Path(spec.submodule_search_locations[0])
    if not (torch / "version.py").read_text("utf-8").count("2.13."):
        pytest.skip("needs torch 2.13")
    return torch / "_dynamo"


def test_the_rows_are_torchs_own_list(folder: Path) -> None:
    known = json.loads((folder / "graph_break_registry.json").read_text("utf-8"))
    assert {(row.gb_id, row.kind.strip()) for row in ROWS} == {(k, v[0]["Gb_type"].strip()) for k, v in known.items()}


@pytest.mark.many
def test_the_places_that_raise_them(folder: Path) -> None:
    raised: dict[str, set[tuple[str, str]]] = {}
    for path in folder.rglob("*.py"):
        text = path.read_text("utf-8")
        if "gb_type" in text:
            tree = ast.parse(text)
            for function in ast.walk(tree):
                if isinstance(function, ast.FunctionDef):
                    _note(function, path.relative_to(folder).as_posix(), raised)
    for row in ROWS:
        places = raised.get(row.kind, set())
        assert bool(places) != row.retired, row
        for said in row.raised.split("; ") if row.raised else ():
            file, function = (part.strip("`") for part in said.split(", "))
            assert (file, function) in places, row


def _note(function: ast.FunctionDef, file: str, raised: dict[str, set[tuple[str, str]]]) -> None:
    """Notes the kinds that a function raises."""
    for node in ast.walk(function):
        if isinstance(node, ast.keyword) and node.arg == "gb_type" and isinstance(node.value, ast.Constant):
            raised.setdefault(node.value.value, set()).add((file, function.name))


def test_the_analysis_finds_them_and_leaves_their_neighbours_alone() -> None:
    reached = [row for row in ROWS if row.breaks]
    missed = [row.gb_id for row in reached if _lines(row.breaks).isdisjoint(row.breaks.lines)]
    false = [row.gb_id for row in reached if _lines(row.quiet)]
    assert len(missed) <= MISSED, missed
    assert len(false) <= FALSE, false
