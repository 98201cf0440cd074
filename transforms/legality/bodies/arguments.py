"""What is known of the arguments of a call where it is made: None, False and True."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from itertools import takewhile

#: what is known of the arguments of a call, by position or name: None, False, True, UNSET, or `...` for anything;
#: `**` is there where further ones may be given
Arguments = Mapping[str | int, object]

MORE = "**"


class _Unset:
    """What is known of a flag that is False or None."""

    def __bool__(self) -> bool:
        return False


UNSET = _Unset()


def known_arguments(node: ast.Call, names: Mapping[str, object]) -> Arguments:
    """What is known of the arguments of a call, where some names are known to stand for None, False or True."""
    found: dict[str | int, object] = {}
    plain = [*takewhile(lambda argument: not isinstance(argument, ast.Starred), node.args)]
    places: list[tuple[str | int, ast.expr]] = [*enumerate(plain)]
    places += [(k.arg, k.value) for k in node.keywords if k.arg is not None]
    for place, value in places:
        found[place] = names.get(value.id, ...) if isinstance(value, ast.Name) else constant_of(value)
    if any(k.arg is None for k in node.keywords) or any(isinstance(a, ast.Starred) for a in node.args):
        found[MORE] = ...
    return found


def constant_of(node: ast.expr | None) -> object:
    """None, False or True, where an expression says so; `...` for anything else."""
    plain = isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, bool))
    return node.value if plain and isinstance(node, ast.Constant) else ...


def decided(test: ast.expr, names: Mapping[str, object]) -> bool | None:
    """What a test comes to where some names are known to stand for None, False or True; None where it is open."""
    match test:
        case ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[ast.Constant(value=None)]):
            if name in names and isinstance(op, (ast.Is, ast.IsNot)) and names[name] is not UNSET:
                return (names[name] is None) is isinstance(op, ast.Is)
        case ast.Name(id=name) if name in names:
            return bool(names[name])
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = decided(operand, names)
            return None if inner is None else not inner
        case ast.BoolOp(op=op, values=values):
            found = [decided(v, names) for v in values]
            if isinstance(op, ast.And):
                return False if False in found else (True if all(found) else None)
            return True if True in found else (False if all(f is False for f in found) else None)
    return None
