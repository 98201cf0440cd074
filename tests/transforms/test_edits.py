"""Edits touch what they replace and nothing else, to the byte."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

from graphmend.analysis.facts.function_facts import FunctionFacts
from graphmend.analysis.syntax.source import Source
from graphmend.analysis.syntax.span import Span
from graphmend.transforms.code.positions import is_elif, replaceable
from graphmend.transforms.code.text_edits import HOLE, apply, checked, insert_before, replace_statements
from graphmend.transforms.fix import TextEdit, Unmendable


def parsed(text: str, kind: type[ast.stmt] = ast.If) -> tuple[Source, FunctionFacts, ast.stmt]:
    source = Source(text)
    assert source.tree is not None, source.problem
    nodes = list(ast.walk(source.tree))
    function = next(n for n in nodes if isinstance(n, ast.FunctionDef))
    node = next(n for n in ast.walk(function) if isinstance(n, kind))
    return source, FunctionFacts(source, function, node, {}, {}, {}, frozenset(), "2.13"), node


def replaced(text: str, new: str, kept: Callable[[ast.If], list[ast.stmt]] | None = None) -> str:
    source, _, node = parsed(text)
    assert isinstance(node, ast.If)
    return apply(text, [replace_statements(source, [node], new, *([kept(node)] if kept else []))], source)


def test_only_the_statement_changes() -> None:
    text = "def f(x):\n    # above\n    if x:\n        y = 1\n    # below\n    return  x ;\n"
    assert replaced(text, "y = 2\n") == "def f(x):\n    # above\n    y = 2\n    # below\n    return  x ;\n"


def test_line_endings_and_tabs_are_kept() -> None:
    text = "def f(x):\r\n\tif x:\r\n\t\ty = 1\r\n\treturn y\r\n"
    made = replaced(text, "if y:\n    z = 2\n")
    assert made == "def f(x):\r\n\tif y:\r\n\t\tz = 2\r\n\treturn y\r\n"


def test_two_spaces_are_kept() -> None:
    text = "def f(x):\n  if x:\n    y = 1\n  return y\n"
    assert replaced(text, "if y:\n    z = 2\n") == "def f(x):\n  if y:\n    z = 2\n  return y\n"


def test_statements_that_stay_keep_comments_and_long_strings() -> None:
    text = 'def f(x):\n    if x:\n        # why\n        y = """a\n  b"""  # here\n    return y\n'
    made = replaced(text, f"if z:\n    {HOLE.format(0)}\n", lambda node: node.body)
    assert made == 'def f(x):\n    if z:\n        # why\n        y = """a\n  b"""  # here\n    return y\n'


def test_comments_that_would_be_lost_move_above() -> None:
    text = "def f(x):\n    if x:  # one\n        # two\n        y = 1  # three\n    return y\n"
    assert replaced(text, "y = 2\n") == "def f(x):\n    # one\n    # two\n    y = 2  # three\n    return y\n"


def test_a_statement_behind_a_colon_gets_its_own_lines() -> None:
    text = "def f(x):\n    if x: y = 1\n    return y\n"
    source, _, node = parsed(text, ast.Assign)
    made = apply(text, [replace_statements(source, [node], "if z:\n    y = 2\n")], source)
    assert made == "def f(x):\n    if x:\n        if z:\n            y = 2\n    return y\n"


def test_an_elif_becomes_an_else() -> None:
    text = "def f(x):\n    if x:\n        y = 1\n    elif z:\n        y = 2\n    return y\n"
    source, _, node = parsed(text)
    assert isinstance(node, ast.If)
    inner = node.orelse[0]
    assert is_elif(source, inner)
    made = apply(text, [replace_statements(source, [inner], "y = 3\n")], source)
    assert made == "def f(x):\n    if x:\n        y = 1\n    else:\n        y = 3\n    return y\n"


def test_before() -> None:
    text = "def f(x):\n    if x:\n        y = 1\n"
    source, _, node = parsed(text)
    assert (
        apply(text, [insert_before(source, node, "a = 1\n")], source)
        == "def f(x):\n    a = 1\n    if x:\n        y = 1\n"
    )


def test_columns_count_code_points() -> None:
    text = 'def f(x):\n    s = "äöü😀"; y = 1\n    if "😀" in s: pass\n    return y\n'
    assert replaced(text, "y = 2\n") == 'def f(x):\n    s = "äöü😀"; y = 1\n    y = 2\n    return y\n'


@pytest.mark.parametrize(
    ("text", "can"),
    [
        ("def f(x):\n    y = 1\n", True),
        ("def f(x):\n    y = 1  # note\n", True),
        ("def f(x): y = 1\n", True),
        ("def f(x):\n    y = 1; z = 2\n", False),
        ("def f(x): y = 1; z = 2\n", False),
    ],
)
def test_replaceable(text: str, can: bool) -> None:
    _, facts, node = parsed(text, ast.Assign)
    assert replaceable(facts, [node]) is can


def test_a_definition_that_would_not_parse_is_refused() -> None:
    _, facts, _ = parsed("class A:\n    def f(x):\n        if x:\n            y = 1\n")
    with pytest.raises(Unmendable, match="would not parse"):
        checked(facts, lambda: [TextEdit(Span(3, 8, 3, 13), "if (")])


def test_edits_that_overlap_are_refused() -> None:
    _, facts, _ = parsed("def f(x):\n    if x:\n        y = 1\n")
    with pytest.raises(Unmendable, match="overlap"):
        checked(facts, lambda: [TextEdit(Span(2, 4, 2, 8), "a"), TextEdit(Span(2, 6, 2, 9), "b")])
