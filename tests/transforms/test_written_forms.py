"""What a rewrite writes has been run at least once: each statement of a rewrite that makes text runs while programs
are mended that other tests judge.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import test_judged
import test_programs
from fuzz_mends import mending
from fuzz_mends.given import programs
from judge import mend_text

import graphmend.transforms.rewrites

HERE = Path(__file__).parent
ROOM = Path(graphmend.transforms.rewrites.__file__).resolve().parent

#: what is shown to the user and never applied
SHOWN = {"cond", "capture_switch", "fullgraph"}
_WRITES = {"replace_expression", "replace_statements", "insert_after", "insert_before", "insert_above", "merged_edit"}
_SAYS = {"refuse", "Difference", "NotSelectableError", "NotATensorError", "NeedsPythonNumberError"}


def mended() -> Iterator[Callable[[], object]]:
    """Calls that mend the programs of other tests, in the ways in which these judge them."""
    for name in "branches loops guards output scalars shapes python while_loops".split():
        for body in test_judged.family(name).values():
            yield lambda body=body: mend_text(test_judged.case(body))  # type: ignore[misc]
    for body in test_judged.family("indices").values():
        yield lambda body=body: mend_text(test_judged.case(body, "x, n"))  # type: ignore[misc]
    for text in test_programs.PROGRAMS.values():
        yield lambda text=text: mend_text(test_programs.HEAD + text)  # type: ignore[misc]
    for program in programs(HERE / "attacks"):
        yield lambda text=program.text: mending.mended(text, unsafe=True)  # type: ignore[misc]
    for program in programs(HERE / "attacks" / "written.txt"):
        yield lambda text=program.text: mending.offered(text)  # type: ignore[misc]


def writing(path: Path) -> dict[tuple[int, int], str]:
    """The statements of a rewrite that make text, as first and last line, with the function that each stands in."""
    found: dict[tuple[int, int], str] = {}
    for function in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(function, ast.FunctionDef) or _says_why(function):
            continue
        for node in ast.walk(function):
            if isinstance(node, (ast.Return, ast.Assign, ast.AugAssign, ast.Expr)) and _makes_text(node):
                found[node.lineno, node.end_lineno or node.lineno] = f"{path.stem}.{function.name}"
    return found


def _says_why(function: ast.FunctionDef) -> bool:
    """Does a function give the reason why there is no mend, or None?"""
    return function.returns is not None and ast.unparse(function.returns) == "str | None"


def _makes_text(statement: ast.stmt) -> bool:
    called = {n.func.id for n in ast.walk(statement) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    if called & _SAYS or (isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "says"):
        return False
    return bool(called & _WRITES) or any(isinstance(n, ast.JoinedStr) for n in ast.walk(statement))


def lines_run(calls: Iterator[Callable[[], object]]) -> set[tuple[str, int]]:
    """The lines of rewrites that run in some calls."""
    found: set[tuple[str, int]] = set()
    known: dict[str, str] = {}

    def enter(frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        path = known.get(name) or known.setdefault(name, str(Path(name).resolve()))
        return step if path.startswith(str(ROOM)) else None

    def step(frame: FrameType, event: str, argument: Any) -> Any:
        found.add((known[frame.f_code.co_filename], frame.f_lineno))
        return step

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        for call in calls:
            call()
    finally:
        sys.settrace(before)
    return found


@pytest.mark.many
def test_each_text_that_a_rewrite_writes_is_judged() -> None:
    run = lines_run(mended())
    assert run
    never = {
        f"{function}, line {first}"
        for path in sorted(ROOM.glob("*/*.py"))
        for (first, last), function in writing(path).items()
        if path.stem not in SHOWN and not any((str(path), line) in run for line in range(first, last + 1))
    }
    assert not never
