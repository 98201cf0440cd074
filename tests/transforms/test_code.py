"""Expressions keep their spelling; brackets come where precedence asks for them."""

from __future__ import annotations

import ast

import pytest

from graphmend.analysis.syntax.source import Source
from graphmend.transforms.code.expression_text import Code, is_atom


@pytest.mark.parametrize("text", ["x", "x.y", "f(x)", "x[0]", "(a + b)", "[1, 2]", "'a'", "1.5", "(a, b)"])
def test_atoms(text: str) -> None:
    assert is_atom(text)


@pytest.mark.parametrize(
    "text", ["a + b", "-x", "not x", "a if b else c", "(a) + (b)", "lambda: 1", "a, b", "3", "await x"]
)
def test_no_atoms(text: str) -> None:
    assert not is_atom(text)


def test_replacement_inside_keeps_the_rest() -> None:
    source = Source('r = f( x.item()  , "ü" ,y )\n')
    assert source.tree is not None
    call = source.tree.body[0].value  # type: ignore[attr-defined]
    assert isinstance(call, ast.Call)
    assert Code(source).text(call, {call.args[0]: "x"}) == 'f( x  , "ü" ,y )'
