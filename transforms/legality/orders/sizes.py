"""How many places there are, as code writes it."""

from __future__ import annotations

import ast


def is_counted(size: ast.expr) -> bool:
    """Is a size written as one of something, or as a number, which is never negative?"""
    match size:
        case ast.Constant(value=int()):
            return True
        case ast.Call(func=ast.Name(id="len")) | ast.Call(func=ast.Attribute(attr="size" | "numel" | "nelement")):
            return True
        case ast.Subscript(value=ast.Attribute(attr="shape")):
            return True
    return False


def is_size(count: ast.expr, tensor: ast.expr) -> bool:
    """Is it how many rows a tensor has?"""
    wanted = ast.unparse(tensor)
    match count:
        case ast.Call(func=ast.Name(id="len"), args=[of]):
            return ast.unparse(of) == wanted
        case ast.Call(func=ast.Attribute(value=of, attr="size"), args=[ast.Constant(value=0)]):
            return ast.unparse(of) == wanted
        case ast.Subscript(value=ast.Attribute(value=of, attr="shape"), slice=ast.Constant(value=0)):
            return ast.unparse(of) == wanted
    return False
