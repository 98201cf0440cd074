"""The statements of a replacement that its original has not."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from graphmend.model.gates.original import Original
from graphmend.model.gates.text import Function


def own_statements(function: Function, original: Original) -> Iterator[ast.stmt]:
    """The statements that stand in a replacement alone, or behind conditions that do; not those of functions inside."""
    known = _conditioned(original.function.body, ())
    texts = {(tests, ast.unparse(statement)) for tests, statement in known}
    for tests, statement in _conditioned(function.body, ()):
        if (tests, ast.unparse(statement)) not in texts:
            yield statement


def _conditioned(body: Sequence[ast.stmt], tests: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], ast.stmt]]:
    """The simple statements that compute something, with the conditions around them."""
    for statement in body:
        match statement:
            case ast.If(test=test):
                yield from _conditioned(statement.body, (*tests, ast.unparse(test)))
                yield from _conditioned(statement.orelse, (*tests, f"not {ast.unparse(test)}"))
            case (
                ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Pass() | ast.Global() | ast.Nonlocal()
            ):
                pass
            case ast.Expr(value=ast.Constant()):
                pass
            case _:
                inner = [value for _, value in ast.iter_fields(statement) if isinstance(value, list)]
                blocks = [block for block in inner if block and isinstance(block[0], ast.stmt)]
                handlers = [h.body for block in inner for h in block if isinstance(h, ast.ExceptHandler)]
                if not blocks and not handlers:
                    yield tests, statement
                for block in (*blocks, *handlers):
                    yield from _conditioned(block, tests)
