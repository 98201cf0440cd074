"""Where the text of a method gives its instance attributes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend.analysis.syntax.nodes import growth, pattern, statements_of

_REGISTERING = frozenset({"register_buffer", "register_parameter", "add_module", "register_module"})


def assignments(body: list[ast.stmt], me: str) -> Iterator[tuple[str, ast.stmt, ast.expr]]:
    """`me.name = value`: name, statement and value, in the order of the text."""
    for statement in statements_of(body):
        targets: list[ast.expr] = []
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
            targets = [statement.target]
        value: ast.expr | None = getattr(statement, "value", None)
        if value is None:
            continue
        for target in targets:
            for one, its in _pairs(target, value):
                if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == me:
                    yield one.attr, statement, its


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """`a, b = c, d` is `a = c` and `b = d`."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]


#: the names of what an object of a class of containers holds: what its methods add, and what its base is made with
ELEMENTS, GIVEN = "[]", "super()"
_ADDS = ("add_module", "register_module")


def growths(body: list[ast.stmt], me: str) -> Iterator[tuple[str, ast.expr, bool]]:
    """What is added to `me.name`, or as `ELEMENTS` to `me` itself: name, value, and whether that may be a sequence. Of
    what is added in a way that is not known the value is the call.
    """
    for statement in statements_of(body):
        if (grown := growth(statement)) is not None:
            match grown[0]:
                case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner == me:
                    yield name, grown[1], grown[2]
                case ast.Name(id=owner) if owner == me:
                    yield ELEMENTS, grown[1], grown[2]
            continue
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(ast.Call(func=ast.Name(id="super")), "__init__")) as call):
                for given in call.args:
                    yield GIVEN, given.value if isinstance(given, ast.Starred) else given, True
            case ast.Expr(value=ast.Call(func=ast.Attribute(ast.Name(id=owner), called), args=[_, module])) if (
                owner == me and called in _ADDS
            ):
                yield ELEMENTS, module, False
            case ast.Expr(value=ast.Call(func=ast.Attribute(ast.Name(id=owner), called)) as call) if (
                owner == me and called in (*_ADDS, "update", "insert", "extend", "append", "setdefault")
            ):
                yield ELEMENTS, call, False
            case ast.Expr(value=ast.Call(args=args) as call) if any(
                isinstance(a, ast.Name) and a.id == me for a in args
            ):
                yield ELEMENTS, call, False


def registrations(body: list[ast.stmt]) -> Iterator[tuple[str, str, ast.Call]]:
    """`self.register_buffer("name", ...)` and the like: name, method called, call."""
    for statement in statements_of(body):
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or not call.args:
            continue
        if call.func.attr in _REGISTERING and (name := pattern(call.args[0])) is not None:
            yield name, call.func.attr, call
