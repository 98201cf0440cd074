"""The local names of a replacement that hold results of torch: no path and no command, whatever is done with them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from graphmend.model.gates.original import Original


def tensors(
    bindings: Mapping[str, list[ast.AST]],
    original: Original,
    is_torch: Callable[[ast.Call], bool],
    came: Callable[[str], bool],
) -> frozenset[str]:
    """The names whose every new value is a result of torch, or of a function of the project that gave the name its
    value in the original.

    `bindings` is what binds each name in the replacement, `is_torch` says of a call that its function is torch's,
    `came` of a name that its value may come from outside tensor code.
    """
    found: set[str] = set()

    def gives(node: ast.AST | None, name: str, known: set[str]) -> bool:
        match node:
            case ast.Assign(value=value) | ast.NamedExpr(value=value) | ast.AnnAssign(value=value):
                return gives(value, name, known)
            case ast.AugAssign(op=operator):
                return not isinstance(operator, ast.Mod) and name in known
            case ast.Call(func=function) if is_torch(node):
                return True
            case ast.Call(func=function) if not came(name) and is_own(ast.unparse(function), name):
                return True
            case ast.Call(func=ast.Attribute(value=value)) | ast.Subscript(value=value) | ast.Attribute(value=value):
                return gives(value, name, known)
            case ast.BinOp(left=left, op=ast.Mod()):
                return gives(left, name, known)
            case ast.BinOp(left=left, right=right):
                return gives(left, name, known) or gives(right, name, known)
            case ast.UnaryOp(operand=value):
                return gives(value, name, known)
            case ast.IfExp(body=left, orelse=right):
                return gives(left, name, known) and gives(right, name, known)
            case ast.Name(id=read):
                return read in known
        return False

    def is_own(callee: str, name: str) -> bool:
        return callee in original.callees_bound_to(name) and not original.is_foreign(callee)

    while True:
        before = len(found)
        for name, binders in bindings.items():
            if name not in found and any(gives(binder, name, found) for binder in binders):
                itself = found | {name}
                own = original.binders(name)
                if all(gives(binder, name, itself) or ast.unparse(binder) in own for binder in binders):
                    found.add(name)
        if len(found) == before:
            return frozenset(found)
