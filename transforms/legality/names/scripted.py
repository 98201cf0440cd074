"""Which functions of a file TorchScript compiles as well: it knows a part of Python, without lambdas, and has no
functions of a runtime. Those that are marked as such are no finding's; here they are handed to a call.
"""

from __future__ import annotations

import ast
from functools import lru_cache

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.legality.names.replaced import named_in

_SCRIPTING = ("torch.jit.script", "torch.jit.script_method")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def is_scripted(function: ast.AST, tree: ast.Module | None, names: tuple[tuple[str, str], ...]) -> bool:
    """Is a function, or the class around it, compiled by TorchScript, or called by what is? `names` are the imports."""
    return any(node is function for node in _scripted(tree, names))


@lru_cache(maxsize=8)
def _scripted(tree: ast.Module | None, names: tuple[tuple[str, str], ...]) -> frozenset[ast.AST]:
    if tree is None:
        return frozenset()
    imports = dict(names)
    calls = [n for n in nodes_in(tree) if isinstance(n, ast.Call) and named_in(n.func, imports) in _SCRIPTING]
    waiting = [name for call in calls for argument in call.args for name in _named(argument)]
    if not waiting:
        return frozenset()
    defined = [n for n in nodes_in(tree) if isinstance(n, _DEFINITIONS)]
    found: set[ast.AST] = set()
    seen: set[str] = set()
    while waiting:
        if (name := waiting.pop()) not in seen:
            seen.add(name)
            inside = [n for d in defined if d.name == name for n in nodes_in(d)]
            found |= {n for n in inside if isinstance(n, _DEFINITIONS)}
            waiting += [name for n in inside if isinstance(n, ast.Call) for name in _named(n.func)]
    return frozenset(found)


def _named(node: ast.expr) -> set[str]:
    """The names of functions and classes that an expression may stand for."""
    return {
        n.id if isinstance(n, ast.Name) else n.attr for n in nodes_in(node) if isinstance(n, (ast.Name, ast.Attribute))
    }
