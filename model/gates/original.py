"""What a replacement is held against: everything that the original function reads, calls, binds and stores."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterator, Mapping

from graphmend.model.gates.text import Function, function_of

WHOLE = (ast.Call, ast.Raise, ast.Import, ast.ImportFrom)
"""What may stand in a replacement word for word, whatever it does."""


class Original:
    """One function of the user's, and what the names of its module mean.

    `imports` gives the qualified name of what the module imports, such as `{"F": "torch.nn.functional"}`.
    """

    def __init__(self, source: str, imports: Mapping[str, str]) -> None:
        self.source = source
        self.imports = imports
        self.function = function_of(source)
        nodes = list(ast.walk(self.function))
        self.chains = {ast.unparse(n) for n in nodes if isinstance(n, (ast.Attribute, ast.Name)) and _is_read(n)}
        self.whole = {ast.unparse(n) for n in nodes if isinstance(n, WHOLE)}
        self.callees = {ast.unparse(n.func) for n in nodes if isinstance(n, ast.Call)}
        called = {id(n.func) for n in nodes if isinstance(n, ast.Call)}
        self.handed = {
            ast.unparse(n) for n in nodes if isinstance(n, (ast.Attribute, ast.Name)) and id(n) not in called
        }
        """What stands for itself somewhere, and not only as what is called."""
        self.strings = {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, (str, bytes))}
        self.numbers = {n.value for n in nodes if isinstance(n, ast.Constant) and is_number(n.value)}
        self.formatted = {ast.unparse(n) for n in nodes if isinstance(n, ast.JoinedStr)}
        self.stores = {ast.unparse(n) for n in nodes if isinstance(n, ast.Attribute) and not _is_read(n)}
        self.stored_items = {
            ast.unparse(n.value) for n in nodes if isinstance(n, ast.Subscript) and not isinstance(n.ctx, ast.Load)
        }
        self.heads = {head for n in nodes if (head := head_of(n)) is not None}
        self.parameters = parameters(self.function)
        self.bindings = bindings(self.function)

    def binders(self, name: str) -> set[str]:
        """The texts of what binds a name."""
        return {ast.unparse(node) for node in self.bindings.get(name, ())}

    def callees_bound_to(self, name: str) -> set[str]:
        """What is called to give a name its value."""
        values = [node.value for node in self.bindings.get(name, ()) if isinstance(node, ast.Assign)]
        return {ast.unparse(value.func) for value in values if isinstance(value, ast.Call)}

    @property
    def first(self) -> str | None:
        """The first parameter: `self` of a method."""
        return next(iter(self.parameters), None)

    def is_module(self, name: str) -> str | None:
        """The qualified name of a name of the module; None where a parameter or local name hides it."""
        if name in self.bindings or name in self.parameters:
            return None
        return self.imports.get(name)

    def is_foreign(self, callee: str) -> bool:
        """Whether a function or object stands outside the project, or is one of the module's own objects: nobody here
        knows what its calls do. `callee` is a dotted name, such as `os.remove` or `LOG.write_text`.
        """
        root, dot, _ = callee.partition(".")
        if root in self.bindings or root in self.parameters:
            return False
        qualified = self.imports.get(root)
        if qualified is None:
            return hasattr(builtins, root) or bool(dot)
        top = qualified.partition(".")[0]
        return top in sys.stdlib_module_names or top in ("numpy", "builtins")


def is_number(value: object) -> bool:
    return isinstance(value, (int, float, complex)) and not isinstance(value, bool)


def head_of(node: ast.AST) -> str | None:
    """The part of a statement or expression that a replacement may not invent; None for what it may."""
    match node:
        case ast.With(items=items) | ast.AsyncWith(items=items):
            return f"{type(node).__name__} {', '.join(ast.unparse(item.context_expr) for item in items)}"
        case ast.ExceptHandler(type=kind):
            return f"except {ast.unparse(kind) if kind is not None else ''}"
        case ast.Raise() | ast.Import() | ast.ImportFrom() | ast.Global() | ast.Nonlocal() | ast.Delete():
            return ast.unparse(node)
        case ast.Assert(msg=message):
            return f"assert {ast.unparse(message) if message is not None else ''}"
        case ast.ClassDef() | ast.AsyncFunctionDef() | ast.FunctionDef(decorator_list=[_, *_]):
            return ast.unparse(node)
        case ast.MatchClass():
            return ast.unparse(node)
        case ast.Try() | ast.Yield() | ast.YieldFrom() | ast.Await() | ast.AsyncFor() | ast.Match():
            return type(node).__name__
        case _ if type(node).__name__ in ("TryStar", "TypeAlias", "TemplateStr", "Interpolation"):
            return ast.unparse(node)
    return None


def parameters(function: Function) -> list[str]:
    """The names of all parameters, in order."""
    a = function.args
    every = [*a.posonlyargs, *a.args, *([a.vararg] if a.vararg else []), *a.kwonlyargs, *([a.kwarg] if a.kwarg else [])]
    return [argument.arg for argument in every]


def bindings(function: Function) -> dict[str, list[ast.AST]]:
    """Each name that is bound in a function, inner scopes included, with the statement or expression that binds it.

    What holds statements of its own is given without them.
    """
    found: dict[str, list[ast.AST]] = {}
    for node in ast.walk(function):
        for name in _bound(node, function):
            found.setdefault(name, []).append(_binder(node))
    return found


def _bound(node: ast.AST, function: Function) -> Iterator[str]:
    match node:
        case ast.Assign(targets=targets):
            for target in targets:
                yield from _names(target)
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target) | ast.NamedExpr(target=target):
            yield from _names(target)
        case ast.For(target=target) | ast.AsyncFor(target=target) | ast.comprehension(target=target):
            yield from _names(target)
        case ast.With(items=items) | ast.AsyncWith(items=items):
            for item in items:
                if item.optional_vars is not None:
                    yield from _names(item.optional_vars)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            if node is not function:
                yield name
                yield from () if isinstance(node, ast.ClassDef) else parameters(node)
        case ast.Lambda(args=a):
            yield from (argument.arg for argument in ast.walk(a) if isinstance(argument, ast.arg))
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in names)


def _names(target: ast.expr) -> Iterator[str]:
    return (n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))


def _binder(node: ast.AST) -> ast.AST:
    """What binds, without the statements inside."""
    match node:
        case ast.For(target=target, iter=over) | ast.AsyncFor(target=target, iter=over):
            return ast.For(target=target, iter=over, body=[ast.Pass()], orelse=[], lineno=0)
        case ast.With(items=items) | ast.AsyncWith(items=items):
            return ast.With(items=items, body=[ast.Pass()], lineno=0)
        case ast.ExceptHandler(type=kind, name=name):
            return ast.ExceptHandler(type=kind, name=name, body=[ast.Pass()], lineno=0)
    return node


def _is_read(node: ast.Attribute | ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)
