"""What in a module can be run: compiled functions and objects, `nn.Module` classes, and whatever was named."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import torch

from .errors import Unusable


class Target:
    """Something to compile and call.

    `kind` is "class" (an instance must be made first), "object" (a module that exists) or "function". `method` is
    the method of a class's instance that is called; None means the instance itself.
    """

    def __init__(self, name: str, kind: str, value: Any, method: str | None = None) -> None:
        self.name = name
        self.kind = kind
        self.value = value
        self.method = method

    @property
    def line(self) -> int:
        value = getattr(self.value, "_torchdynamo_orig_callable", self.value)
        try:
            return inspect.getsourcelines(value if self.kind != "object" else type(value))[1]
        except (OSError, TypeError):
            return 0


class CompileSites:
    """Stands in for `torch.compile` while the user's module runs: same call, counting backend, and a list of what
    was compiled.
    """

    def __init__(self, backend: Callable[..., Any]) -> None:
        self.backend = backend
        self.inner = torch.compile
        self.made: list[Any] = []

    def compile(self, model: Any = None, **options: Any) -> Any:
        if model is None:
            return lambda model: self.compile(model, **options)
        if str(getattr(model, "__module__", None)).startswith("torch._higher_order_ops."):
            return _as_torch_runs_it(self.inner(model, **options))
        kept = {name: options[name] for name in ("fullgraph", "dynamic", "disable") if name in options}
        made = self.inner(model, backend=self.backend, **kept)
        self.made.append(made)
        return made

    def compiled(self, value: Any) -> bool:
        """Whether a value is what `torch.compile` made, or a module on which `.compile()` was called."""
        in_place = isinstance(value, torch.nn.Module) and getattr(value, "_compiled_call_impl", None) is not None
        return in_place or any(value is made for made in self.made)

    def install(self) -> None:
        torch.compile = self.compile


def _as_torch_runs_it(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.cond` and its like compile their operands in eager mode too; left uncompiled they have no gradients."""

    def call(*args: Any, **kwargs: Any) -> Any:
        with torch.compiler.set_stance("default"):
            return compiled(*args, **kwargs)

    return call


def find(module: ModuleType, names: list[str], sites: CompileSites) -> list[Target]:
    """The named targets, or all that the module offers."""
    if names:
        return [named(module, name) for name in names]
    compiled = [
        target
        for name, value in list(vars(module).items())
        if sites.compiled(value) and (target := as_target(name, value)) is not None
    ]
    return compiled + roots(module)


def named(module: ModuleType, name: str) -> Target:
    """`Class`, `function`, `Class.method` or a module-level object."""
    head, _, rest = name.partition(".")
    if not hasattr(module, head):
        raise Unusable(f"{module.__file__} has no {head}{_similar(module, head)}")
    target = as_target(head, getattr(module, head))
    if target is None:
        raise Unusable(f"{head} in {module.__file__} is neither a function nor an nn.Module")
    if not rest and target.kind != "function" and _only_raises(target.value):
        own = [n for n, v in vars(_class(target.value)).items() if inspect.isfunction(v) and not n.startswith("_")]
        raise Unusable(f"{head} has no forward; name a method of it: {', '.join(f'{head}.{n}' for n in own)}")
    if rest and rest != "forward":
        if not callable(getattr(target.value, rest, None)):
            raise Unusable(f"{head} has no method {rest}")
        return Target(name, target.kind, target.value, rest)
    return target


def _similar(module: ModuleType, name: str) -> str:
    import difflib

    close = difflib.get_close_matches(name, [n for n in vars(module) if not n.startswith("__")], 1)
    return f" (did you mean {close[0]}?)" if close else ""


def as_target(name: str, value: Any) -> Target | None:
    if isinstance(value, type):
        return Target(name, "class", value) if callable(value) and issubclass(value, torch.nn.Module) else None
    if isinstance(value, torch.nn.Module):
        return Target(name, "object", value)
    return Target(name, "function", value) if callable(value) else None


def roots(module: ModuleType) -> list[Target]:
    """The `nn.Module` classes of the file that are no part of another one of its classes."""
    own = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, torch.nn.Module)
        and value.__module__ == module.__name__
        and value.__name__ == name
        and has_forward(value)
    }
    parts = _used_in_constructors(module, set(own))
    bases = {base.__name__ for value in own.values() for base in value.__mro__[1:]}
    chosen = [n for n in own if n not in parts and n not in bases] or list(own)
    return [Target(name, "class", own[name]) for name in chosen]


def imported(module: ModuleType, is_own: Callable[[str], bool]) -> dict[str, list[str]]:
    """By file of the project's own: the `nn.Module` classes that a module without any has from it."""
    found: dict[str, list[str]] = {}
    for value in list(vars(module).values()):
        classes = list(vars(value).values()) if isinstance(value, ModuleType) else [value]
        for cls in classes:
            if isinstance(cls, type) and issubclass(cls, torch.nn.Module) and has_forward(cls):
                name, home = cls.__name__, sys.modules.get(cls.__module__)
                file = getattr(home, "__file__", None)
                if file and is_own(file) and getattr(home, name, None) is cls:
                    found.setdefault(file, []).append(name)
    return {file: list(dict.fromkeys(names)) for file, names in found.items()}


def has_forward(value: type) -> bool:
    if inspect.isabstract(value):
        return False
    return getattr(value, "forward", None) is not None and not _only_raises(value)


def _only_raises(value: Any) -> bool:
    """Whether a module has no `forward` but the one that it inherits, which only raises."""
    called = _class(value)
    inherited = called.__call__ is torch.nn.Module.__call__
    return inherited and getattr(getattr(called, "forward", None), "__name__", "") == "_forward_unimplemented"


def _class(value: Any) -> Any:
    return value if isinstance(value, type) else type(value)


def _used_in_constructors(module: ModuleType, names: set[str]) -> set[str]:
    """Classes that another class of the file makes or hands on."""
    try:
        tree = ast.parse("".join(linecache.getlines(module.__file__ or "")))
    except (SyntaxError, ValueError):
        return set()
    used = set()
    for definition in ast.walk(tree):
        if isinstance(definition, ast.ClassDef):
            used |= {name for name in _names(definition.body) if name in names and name != definition.name}
    return used


def _names(node: Any) -> Iterator[str]:
    """The names that code uses; those in annotations, and in questions what an object is, make nothing."""
    if isinstance(node, list):
        for item in node:
            yield from _names(item)
    elif isinstance(node, ast.Name):
        yield node.id
    elif (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass")
    ):
        yield from _names(node.args[:1])
    elif isinstance(node, ast.AST):
        for field, value in ast.iter_fields(node):
            if field not in ("annotation", "returns"):
                yield from _names(value)
