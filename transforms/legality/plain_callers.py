"""Which code of a file is certainly not traced: nothing that may be compiled calls it, as far as the file tells."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from graphmend.analysis.facts.function_facts import above
from graphmend.transforms.questions import answers

_Function = ast.FunctionDef | ast.AsyncFunctionDef
#: decorators that compile nothing
_PLAIN = frozenset(
    f"{folder}{name}" for folder in ("", "torch.") for name in ("no_grad()", "inference_mode()", "enable_grad()")
) | {"staticmethod", "classmethod"}


class Callers:
    """Follows functions to their callers: each use is a plain call, from code that is itself not traced."""

    def __init__(self, tree: ast.Module, parents: Mapping[ast.AST, ast.AST]) -> None:
        self._parents = parents
        self._seen: dict[_Function, bool] = {}
        self._named: dict[str, list[ast.AST]] = {}
        for node in ast.walk(tree):
            name = _mentioned(node)
            if name is not None:
                self._named.setdefault(name, []).append(node)

    @answers("context")
    def are_plain(self, node: ast.AST) -> bool:
        """Is the code around a node certainly not traced?"""
        around = list(above(self._parents, node))
        if any(isinstance(outer, ast.Lambda) for outer in around):
            return False
        return all(
            self._is_plain(outer) for outer in around if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef))
        )

    def _is_plain(self, function: _Function) -> bool:
        if function not in self._seen:
            self._seen[function] = True  # those that call each other are as plain as the others that call them
            self._seen[function] = self._is_own(function) and all(
                self._is_called(use) for use in self._named.get(function.name, ())
            )
        return self._seen[function]

    def _is_own(self, function: _Function) -> bool:
        """Does nobody but who names a function call it?"""
        if any(ast.unparse(decorator) not in _PLAIN for decorator in function.decorator_list):
            return False
        cls = self._parents[function]
        if not isinstance(cls, ast.ClassDef):
            return True
        return not (cls.bases or cls.keywords or cls.decorator_list or function.name.startswith("__"))

    def _is_called(self, use: ast.AST) -> bool:
        call = self._parents[use]
        return isinstance(call, ast.Call) and call.func is use and self.are_plain(use)


def _mentioned(node: ast.AST) -> str | None:
    """The name that a node may mean a function by."""
    match node:
        case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()):
            return name
        case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(name)), *_]):
            return name
    return None
