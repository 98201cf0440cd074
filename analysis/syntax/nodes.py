"""Questions that syntax alone answers: the statements of a scope, a dotted name, whether a body is a stub."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_GLOBAL = re.compile(r"(?:^|[:;])[ \t\f]*global\s", re.MULTILINE)
#: statements with no others of their scope inside
_FLAT = frozenset({
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return,
    ast.Import, ast.ImportFrom, ast.Raise, ast.Assert, ast.Pass, ast.Delete, ast.Global, ast.Nonlocal, ast.Break,
    ast.Continue,
})  # fmt: skip


def says_global(text: str) -> bool:
    """Whether a text may hold a `global` statement."""
    return _GLOBAL.search(text) is not None


def statements_of(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of one scope, those inside `if`, `try`, `with` and loops too, but not those of inner scopes."""
    for statement in body:
        yield statement
        if statement.__class__ in _FLAT:
            continue
        for block in ("body", "orelse", "finalbody"):
            if inner := getattr(statement, block, None):
                yield from statements_of(inner)
        for handler in getattr(statement, "handlers", ()):
            yield from statements_of(handler.body)
        for case in getattr(statement, "cases", ()):
            yield from statements_of(case.body)


_DISPLAYS = (ast.Tuple, ast.List)


def bound_names(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The names of a target with what is written for each: `A, B = 1, 2` too."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, _DISPLAYS) and isinstance(value, _DISPLAYS) and len(target.elts) == len(value.elts):
        starred = any(isinstance(part, ast.Starred) for part in (*target.elts, *value.elts))
        for inner, part in zip(target.elts, value.elts, strict=True) if not starred else ():
            yield from bound_names(inner, part)


def loop_variables(loop: ast.For) -> Iterator[tuple[str, ast.expr]]:
    """The names that a loop binds, each with an expression for its value: `next(xs)`, `next(xs)[0]`."""
    first = ast.Call(ast.Name("next", ast.Load()), [loop.iter], [])
    targets = loop.target.elts if isinstance(loop.target, (ast.Tuple, ast.List)) else [loop.target]
    for i, target in enumerate(targets):
        whole = target is loop.target
        value = first if whole else ast.Subscript(first, ast.Constant(i), ast.Load())
        if isinstance(target, ast.Name):
            yield target.id, ast.fix_missing_locations(ast.copy_location(value, loop.iter))


def growth(statement: ast.stmt) -> tuple[ast.expr, ast.expr, bool] | None:
    """What a statement adds to a list or dict: (container, added, whether that is a sequence of elements and no single
    one). For `xs.append(x)`, `xs.extend(ys)`, `xs += ys` and `xs[key] = x`; None for any other statement."""
    if isinstance(statement, ast.AugAssign):
        return (statement.target, statement.value, True) if isinstance(statement.op, ast.Add) else None
    if isinstance(statement, ast.Assign):
        target = statement.targets[0]
        return (target.value, statement.value, False) if isinstance(target, ast.Subscript) else None
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.args and not call.keywords:
        if call.func.attr in ("append", "add", "insert"):
            return call.func.value, call.args[-1], False
        if call.func.attr == "extend":
            return call.func.value, call.args[0], True
    return None


def names_in(node: ast.AST) -> set[str]:
    """The names that an expression reads."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def dotted(node: ast.expr) -> str | None:
    """`a.b.c` as text; None for anything but names and attributes."""
    if isinstance(node, ast.Name):
        return node.id
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    parts.append(node.id)
    return ".".join(reversed(parts))


def pattern(node: ast.expr) -> str | None:
    """A string constant; an f-string with a star for each field; None for anything else."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    texts = [part.value if isinstance(part, ast.Constant) else "*" for part in parts]
    if texts in ([], ["*"]) or not all(isinstance(text, str) for text in texts):
        return None
    return "".join(str(text) for text in texts)


def is_stub(node: FunctionNode) -> bool:
    """Whether a body only has docstrings, `pass` and `raise`."""
    if isinstance(node, ast.Lambda):
        return False
    return all(
        isinstance(s, (ast.Pass, ast.Raise)) or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
        for s in node.body
    )


def as_statement(node: ast.Lambda) -> ast.Return:
    """What the body of a lambda does, as the statement that it stands for."""
    return ast.copy_location(ast.Return(node.body), node.body)
