"""Line numbers of mended code: those of the original file, never falling, and exact where nothing changed."""

from __future__ import annotations

import ast

from hypothesis import given
from hypothesis import strategies as st

from graphmend.importer.code.line_numbers import line_map, parse

statement = st.sampled_from(
    [
        "a = 1",
        "b = (\n    2\n)",
        "if a:\n    b = 3\nelse:\n    c = 4",
        "def f():\n    return (a,\n        b)",
        'd = """x\ny"""',
        "",
        "# é",
    ]
)
program = st.lists(statement, max_size=8).map("\n".join)


@given(program, program)
def test_any_two_programs_can_be_joined(original: str, mended: str) -> None:
    tree = parse(original, mended)
    compile(tree, "<mended>", "exec")
    count = len(original.split("\n"))
    for node in ast.walk(tree):
        if isinstance(node, (ast.stmt, ast.expr)):
            assert 1 <= node.lineno <= (node.end_lineno or 0) <= count
    numbers = [line.number for line in line_map(original.split("\n"), mended.split("\n"))]
    assert numbers == sorted(numbers)


@given(program)
def test_an_unchanged_program_keeps_every_position(text: str) -> None:
    assert ast.dump(parse(text, text), include_attributes=True) == ast.dump(ast.parse(text), include_attributes=True)


def test_lines_behind_a_change_keep_their_numbers() -> None:
    original = "x = 1\nif x:\n    y = 1\nelse:\n    y = 2\nz = x.a\n"
    mended = "import math\nimport os\nx = 1\ny = math.inf\nz = x.a\n"
    tree = parse(original, mended)
    assert [node.lineno for node in tree.body] == [1, 1, 1, 2, 6]
    last = tree.body[-1]
    assert (last.col_offset, last.end_col_offset) == (0, 7)
