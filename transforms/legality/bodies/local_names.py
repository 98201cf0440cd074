"""What the local names of a function stand for, by all that ever binds them, in whichever order."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.liveness import writes

IsNew = Callable[[ast.expr], "bool | None"]
_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)


class LocalNames:
    """The names of one function."""

    def __init__(
        self, body: Iterable[ast.AST], given: Iterable[str], is_new: Callable[[ast.expr], bool | None]
    ) -> None:
        """`is_new`: does an expression give a tensor or a number that nothing else has? None for a name."""
        self.given = frozenset(given)
        self._bound: dict[str, list[tuple[ast.AST, ast.expr | None]]] = {}
        for node in (n for whole in body for n in nodes_in(whole)):
            for name, value in bindings_of(node):
                self._bound.setdefault(name, []).append((node, value))
        self._is_new = is_new
        self.made = frozenset(self._made())
        """Those that only ever stand for what was computed here."""
        self.held = frozenset(n for n in self._bound if self._only(n, lambda v: isinstance(v, _DISPLAYS)))
        """Those that only ever stand for containers that were made here."""

    def is_local(self, name: str) -> bool:
        return name in self.given or name in self._bound

    def is_bound_again(self, name: str) -> bool:
        return name in self._bound

    def looped_over(self, name: str) -> list[ast.expr]:
        """What loops run through that bind a name, or the second name of `enumerate`; nothing where it is bound
        otherwise, too.
        """
        found: list[ast.expr] = []
        for node, _ in self._bound.get(name, []):
            match node:
                case ast.For(target=ast.Name(), iter=each) | ast.comprehension(target=ast.Name(), iter=each):
                    found.append(each)
                case ast.For(
                    target=ast.Tuple(elts=[ast.Name(), ast.Name(id=second)]),
                    iter=ast.Call(func=ast.Name(id="enumerate"), args=[each, *_]),
                ) if second == name:
                    found.append(each)
                case _:
                    return []
        return found if name not in self.given else []

    def may_be_given(self, name: str) -> bool:
        """May a name stand for something that the function was given, or that an object holds?"""
        direct = (ast.Name, ast.Attribute, ast.Subscript, ast.IfExp, ast.BoolOp, ast.Starred)
        return name in self.given or any(v is None or isinstance(v, direct) for _, v in self._bound.get(name, []))

    def is_number(self, name: str) -> bool:
        """Does a name only ever stand for sizes and constants, which nothing changes in place?"""
        return name in self._bound and self._only(name, _is_size)

    def _only(self, name: str, holds: Callable[[ast.expr], bool]) -> bool:
        values = [value for _, value in self._bound[name]]
        return name not in self.given and all(v is not None and holds(v) for v in values)

    def _made(self) -> set[str]:
        made = {n for n in self._bound if n not in self.given}

        def is_new(value: ast.expr) -> bool:
            told = self._is_new(value)
            return told if told is not None else isinstance(value, ast.Name) and value.id in made

        while left := {n for n in made if not self._only(n, is_new)}:
            made -= left
        return made


def _is_size(value: ast.expr) -> bool:
    match value:
        case ast.Constant(value=bool() | int() | float()):
            return True
        case ast.Subscript(value=ast.Attribute(attr="shape"), slice=index):
            return not isinstance(index, ast.Slice)
        case ast.Call(func=ast.Attribute(attr="size" | "dim" | "numel" as asked), args=args):
            return bool(args) or asked != "size"
        case ast.Call(func=ast.Name(id="len")):
            return True
        case ast.BinOp(left=left, right=right):
            return _is_size(left) and _is_size(right)
    return False


def bindings_of(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    """The names that a node binds, and of what each is, or is a part."""
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from ((name, value) for target in targets for name in writes(target))
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, value
        case ast.NamedExpr(target=ast.Name(id=name), value=value):
            yield name, value
        case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
            yield from ((name, value) for name in writes(target))
        case ast.withitem(optional_vars=ast.expr() as target):
            yield from ((name, None) for name in writes(target))
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name, None
        case ast.ExceptHandler(name=str() as name):
            yield name, None


def root_of(node: ast.expr) -> str | None:
    """The name that a path begins with."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
