"""Forms of code around a number: patterns that only compare it, expressions that hand it on."""

from __future__ import annotations

import ast


def compares(pattern: ast.pattern) -> bool:
    """Does a pattern ask for nothing but equality?"""
    inner = pattern.patterns if isinstance(pattern, ast.MatchOr) else [pattern]
    return all(
        isinstance(p, ast.MatchValue) or (isinstance(p, ast.MatchAs) and p.name is None and p.pattern is None)
        for p in inner
    )


def handed_on(node: ast.expr) -> set[str]:
    """Names whose very number an expression hands on."""
    match node:
        case ast.Name(id=name):
            return {name}
        case ast.IfExp(body=body, orelse=orelse):
            return handed_on(body) | handed_on(orelse)
        case ast.BoolOp(values=values):
            return {n for v in values for n in handed_on(v)}
        case ast.NamedExpr(target=target, value=value):
            return {target.id} | handed_on(value)
        case ast.Call(func=ast.Name(id="max" | "min" | "abs"), args=args):
            return {n for a in args for n in handed_on(a)}
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return handed_on(operand)
    return set()
