"""What comes from outside tensor code: text, and what the standard library or an object of the module gave.

A path or a command that the original hands to one function must not reach another one, by whatever names it travels.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from graphmend.model.gates import allowed
from graphmend.model.gates.original import Original

_NUMBERS = frozenset("abs all any bool complex divmod float int isinstance len pow range round sum".split())
"""Builtins whose result is a number, or numbers."""


class Outside:
    """Which expressions of a replacement may hold such a value.

    `bindings` is what binds each name in it, `is_torch` says of a call's function that its result is torch's.
    """

    def __init__(
        self,
        function: ast.AST,
        original: Original,
        bindings: Mapping[str, list[ast.AST]],
        is_torch: Callable[[ast.Call], bool],
    ) -> None:
        self._original = original
        self._bindings = bindings
        self._is_torch = is_torch
        self._local = {*bindings, *original.parameters}
        self._names: set[str] = {*original.texts} - {*bindings}
        self._spread(function)

    def reaches(self, node: ast.AST) -> bool:
        """Whether an expression may hold such a value, or a container or function with one."""
        match node:
            case ast.Constant(value=value):
                return isinstance(value, (str, bytes))
            case ast.JoinedStr():
                return True
            case ast.Name(id=name):
                return name in self._names or self._is_object(name)
            case ast.Compare() | ast.Lambda():
                return False
            case ast.Subscript(value=value) | ast.IfExp(body=value, orelse=ast.Constant(value=None)):
                return self.reaches(value)
            case ast.Dict(values=values):
                return any(map(self.reaches, values))
            case ast.Call(func=function):
                if self._is_torch(node) or (isinstance(function, ast.Name) and function.id in _NUMBERS):
                    return False
                if self.is_foreign(function) and not self._is_plain(function):
                    return True
                if not self._is_plain(function) and not isinstance(function, ast.Attribute):
                    return False
                base = [function.value] if isinstance(function, ast.Attribute) else []
                return any(map(self.reaches, [*base, *node.args, *(keyword.value for keyword in node.keywords)]))
            case ast.Attribute(value=ast.Name(id=name)) if self._original.is_module(name) is not None:
                return not (self._original.is_module(name) or "").startswith(("torch", "math"))
        return any(map(self.reaches, ast.iter_child_nodes(node)))

    def is_foreign(self, function: ast.expr) -> bool:
        """Whether what is called stands outside the project, or hangs on what does."""
        root = function
        while isinstance(root, (ast.Attribute, ast.Subscript, ast.Call)):
            root = root.func if isinstance(root, ast.Call) else root.value
        if not isinstance(root, ast.Name) or (root.id in self._local and self._original.is_module(root.id) is None):
            return False
        return self._original.is_foreign(ast.unparse(function))

    def came(self, name: str) -> bool:
        """Whether a local name may hold such a value."""
        return name in self._names

    def _is_object(self, name: str) -> bool:
        """Whether a name is an object of the module: neither local, nor a builtin, nor a module of torch's."""
        if name in self._local or name in allowed.BUILTINS:
            return False
        return self._original.is_module(name) not in allowed.MODULES

    def _is_plain(self, function: ast.expr) -> bool:
        return isinstance(function, ast.Name) and (function.id in allowed.BUILTINS or function.id in self._bindings)

    def _spread(self, function: ast.AST) -> None:
        """From name to name, until no more are reached; what one local function is given, any of them may be."""
        inner = {
            name: node
            for name, binders in self._bindings.items()
            for node in binders
            if isinstance(node, (ast.FunctionDef, ast.Lambda))
        }
        calls = [n for n in ast.walk(function) if isinstance(n, ast.Call) and self._is_plain(n.func)]
        while True:
            before = len(self._names)
            for name, binders in self._bindings.items():
                if name not in self._names and any(self.reaches(value) for b in binders for value in _values(b)):
                    self._names.add(name)
            if inner and any(self.reaches(argument) for call in calls for argument in _arguments(call)):
                self._names |= {name for name, node in inner.items() if getattr(node, "name", None) != name}
            if len(self._names) == before:
                return


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _values(binder: ast.AST) -> list[ast.expr]:
    """What a name may get its value from."""
    match binder:
        case ast.Assign(value=value) | ast.NamedExpr(value=value) | ast.AugAssign(value=value):
            return [value]
        case ast.AnnAssign(value=value):
            return [value] if value is not None else []
        case ast.For(iter=over) | ast.AsyncFor(iter=over) | ast.comprehension(iter=over):
            return [over]
        case ast.With(items=items) | ast.AsyncWith(items=items):
            return [item.context_expr for item in items]
    return []
