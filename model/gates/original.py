"""What a replacement is held against: everything that the original function reads, calls, binds and stores."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterator, Mapping, Sequence

from graphmend.model.gates import allowed
from graphmend.model.gates.text import Function, function_of

WHOLE = (ast.Call, ast.Raise, ast.Import, ast.ImportFrom)
"""What may stand in a replacement word for word, whatever it does."""


class Original:
    """One function of the user's, and what the names of its module mean.

    `imports` gives the qualified name of what the module imports, such as `{"F": "torch.nn.functional"}`.
    """

    def __init__(self, source: str, imports: Mapping[str, str]) -> None:
        self.source = source
        self.function = function_of(source)
        nodes = list(ast.walk(self.function))
        self.parameters = parameters(self.function)
        self.bindings = bindings(self.function)
        self._binders: dict[str, frozenset[str]] = {}
        self._within = {
            name: qualified
            for name, binders in self.bindings.items()
            if name not in self.parameters and (qualified := _imported(name, binders)) is not None
        }
        self.imports = {**imports, **self._within}
        """Of the module and of the function itself."""
        self.chains = {ast.unparse(n) for n in nodes if isinstance(n, (ast.Attribute, ast.Name)) and _is_read(n)}
        self.whole = {ast.unparse(n) for n in nodes if isinstance(n, WHOLE)}
        self.callees = {ast.unparse(n.func) for n in nodes if isinstance(n, ast.Call)}
        self.arguments: dict[str, set[str]] = {}
        """What is given to each function that is called, as text."""
        for call in (n for n in nodes if isinstance(n, ast.Call)):
            given = (ast.unparse(value) for value in (*call.args, *(keyword.value for keyword in call.keywords)))
            self.arguments.setdefault(ast.unparse(call.func), set()).update(given)
        called = {id(n.func) for n in nodes if isinstance(n, ast.Call)}
        called |= {id(n.value) for n in nodes if isinstance(n, ast.Attribute)}
        self.handed = {
            ast.unparse(n) for n in nodes if isinstance(n, (ast.Attribute, ast.Name)) and id(n) not in called
        }
        """What stands for itself somewhere, and not only as what is called or read from."""
        self.fills = {ast.unparse(n) for n in nodes if isinstance(n, (ast.Assign, ast.AugAssign, ast.Call))}
        self.changed = {
            ast.unparse(n.func.value)
            for n in nodes
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and allowed.mutates(n.func.attr)
        }
        """What methods of it change in place."""
        self.texts = _declared_texts(self.function)
        statements = [n.value for n in nodes if isinstance(n, ast.Expr)]
        self.dropped = {ast.unparse(n.func) for n in statements if isinstance(n, ast.Call)}
        """What is called for its effect: nobody looks at the value."""
        self.strings = {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, (str, bytes))}
        self.numbers = {n.value for n in nodes if isinstance(n, ast.Constant) and is_number(n.value)}
        self.formatted = {ast.unparse(n) for n in nodes if isinstance(n, ast.JoinedStr)}
        self.stores = {ast.unparse(n) for n in nodes if isinstance(n, ast.Attribute) and not _is_read(n)}
        self.stored_items = {
            ast.unparse(n.value) for n in nodes if isinstance(n, ast.Subscript) and not isinstance(n.ctx, ast.Load)
        }
        self.heads = {head for n in nodes if (head := head_of(n)) is not None}

    def binders(self, name: str) -> frozenset[str]:
        """The texts of what binds a name."""
        if name not in self._binders:
            self._binders[name] = frozenset(ast.unparse(node) for node in self.bindings.get(name, ()))
        return self._binders[name]

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
        if name not in self._within and (name in self.bindings or name in self.parameters):
            return None
        return self.imports.get(name)

    def imports_alone(self, name: str, binders: Sequence[ast.AST]) -> bool:
        """Whether the imports of the original's own body, and nothing else, bind a name in a replacement too."""
        return name in self._within and {ast.unparse(binder) for binder in binders} <= self.binders(name)

    def is_foreign(self, callee: str) -> bool:
        """Whether a function or object stands outside the project, or is one of the module's own objects: nobody here
        knows what its calls do. `callee` is a dotted name, such as `os.remove` or `LOG.write_text`.
        """
        root, dot, _ = callee.partition(".")
        if root not in self._within and (root in self.bindings or root in self.parameters):
            return False
        qualified = self.imports.get(root)
        if qualified is None:
            return hasattr(builtins, root) or bool(dot)
        top = qualified.partition(".")[0]
        if top == "torch":
            return callee.replace(".", "").isidentifier() and allowed.reaches_out(
                ".".join([qualified, *callee.split(".")[1:]])
            )
        return top in sys.stdlib_module_names or top in ("numpy", "builtins")


def _declared_texts(function: Function) -> frozenset[str]:
    """The parameters that are text or paths by their annotation or default."""
    a = function.args
    every = [*a.posonlyargs, *a.args]
    defaults = [*zip(every[len(every) - len(a.defaults) :], a.defaults, strict=True)]
    defaults += [(arg, value) for arg, value in zip(a.kwonlyargs, a.kw_defaults, strict=True) if value is not None]
    found = {arg.arg for arg, value in defaults if isinstance(value, ast.Constant) and isinstance(value.value, str)}
    for arg in (*every, *a.kwonlyargs):
        if arg.annotation is not None:
            names = {n.id for n in ast.walk(arg.annotation) if isinstance(n, ast.Name)}
            found |= {arg.arg} if names & {"str", "bytes", "Path", "PathLike"} else set()
    return frozenset(found)


def _imported(name: str, binders: Sequence[ast.AST]) -> str | None:
    """What a name means that imports in the function alone bind; None for any other."""
    found = set()
    for binder in binders:
        if not isinstance(binder, (ast.Import, ast.ImportFrom)):
            return None
        for alias in binder.names:
            if (alias.asname or alias.name).partition(".")[0] != name:
                continue
            if isinstance(binder, ast.ImportFrom):
                found.add(f"{'.' * binder.level}{binder.module or ''}.{alias.name}")
            else:
                found.add(alias.name if alias.asname else name)
    return found.pop() if len(found) == 1 else None


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
