"""Names at a module's top level (definitions, imports, globals, builtins), and qualified names wherever they are
defined."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.evidence import Evidence
from graphmend.analysis.lattice.external import ExternalName, UndefinedName, UnresolvedName
from graphmend.analysis.lattice.values import FALSE, UNKNOWN, Const, Container, Static, Tensor, Value, join_all
from graphmend.analysis.program.definitions import ModuleInfo
from graphmend.analysis.program.entities import Class
from graphmend.analysis.program.project import NEVER_READ
from graphmend.analysis.syntax.nodes import dotted
from graphmend.analysis.syntax.scopes import ALWAYS_BOUND

if TYPE_CHECKING:
    from graphmend.analysis.resolution.interface import ProgramView

#: a module that re-exports more modules than this by `*` is a library's front door; looking behind all of them costs
#: too much
_MOST_STARS = 12
#: imports of a name from one module to the next that are followed to its definition
_MOST_IMPORTS = 4


def starred(module: ModuleInfo) -> list[str]:
    """The modules that are looked through for a name of a module, as it imports all of theirs."""
    return module.stars if len(module.stars) <= _MOST_STARS else []


def named(session: ProgramView, module: ModuleInfo, node: ast.expr) -> Value:
    """The definition that a dotted expression at a module's top level stands for."""
    text = dotted(node)
    if text is None:
        return UNKNOWN
    first, *rest = text.split(".")
    value = global_name(session, module, first)
    for part in rest:
        if isinstance(value, ExternalName):
            value = resolve(session, f"{value.name}.{part}")
        elif isinstance(value, Class) and part in value.info.classes:
            value = Class(value.info.classes[part])
        else:
            return UNKNOWN
    return value


def alias_of(session: ProgramView, module: ModuleInfo, node: ast.expr) -> tuple[ModuleInfo, ast.expr] | None:
    """The module and expression that a name for a type stands for: `OptTensor = Optional[Tensor]`."""
    text = dotted(node)
    for _ in range(_MOST_IMPORTS):
        if text is None:
            return None
        if text in module.globals:
            expressions = module.globals[text]
            is_type = len(expressions) == 1 and isinstance(expressions[0], (ast.Subscript, ast.BinOp, ast.Constant))
            return (module, expressions[0]) if is_type else None
        first, _, rest = text.partition(".")
        qualified = module.imports.get(first)
        if qualified is None:
            return None
        owner, _, text = (f"{qualified}.{rest}" if rest else qualified).rpartition(".")
        package = owner.partition(".")[0]
        if not owner or package in NEVER_READ or session.torch.skips(package):
            return None
        source = session.project.module(owner)
        if source is None:
            return None
        module = source
    return None


def global_name(session: ProgramView, module: ModuleInfo, name: str) -> Value:
    """The value of a name at a module's top level, or of the builtin."""
    cache = module.value_cache
    value = cache.get(name)
    if value is None:
        cache[name] = UNKNOWN  # a definition in a circle
        value = cache[name] = _global(session, module, name)
    return value


def _global(session: ProgramView, module: ModuleInfo, name: str) -> Value:
    if name in module.functions:
        return session.decorated(module.functions[name])
    if name in module.classes:
        return Class(module.classes[name])
    if name in module.imports:
        return resolve(session, module.imports[name])
    if name in module.globals:
        return _global_variable(session, module, name)
    if name in module.annotations:
        return session.declared(module, module.annotations[name], name, module.name)
    for star in starred(module):
        other = session.project.module(star)
        if other is not None and other is not module:
            value = global_name(session, other, name)
            if not (isinstance(value, ExternalName) and value.name.startswith("builtins.")):
                return value
        elif star.partition(".")[0] == "torch":
            return ExternalName(f"{star}.{name}")
    if name == "__name__":
        return Const(module.name)
    if name in ALWAYS_BOUND:
        return ExternalName(f"builtins.{name}")
    is_bound = bool(module.stars) or module.bound.may_bind(name, module.source.tree, module.source.text)
    return (UnresolvedName if is_bound else UndefinedName)(f"builtins.{name}")


def _global_variable(session: ProgramView, module: ModuleInfo, name: str) -> Value:
    expressions = module.globals[name]
    value = join_all(session.reading.evaluate(module, e) for e in expressions[:4])
    if isinstance(value, Const) and (len(expressions) > 1 or name in module.rebound):
        return Static(value.type) if value.value is not None else UNKNOWN
    if isinstance(value, Container) and value.kind in ("list", "dict", "set"):
        return (
            Container(value.kind, None, value.element if value.items else value.of, value.fields)
            if value.items != ()
            else Container(value.kind)
        )
    return _from_outside(value, name)


def _from_outside(value: Value, name: str) -> Value:
    """A global tensor enters the graph as an input."""
    if isinstance(value, Tensor):
        origin = Evidence("is a Tensor at module level", name, value.origin)
        return value.__class__(
            origin, value.rank, value.dtype, value.shape, likely=value.likely, graph_input=True, ndarray=value.ndarray
        )
    return value


def resolve(session: ProgramView, qualified: str) -> Value:
    """The value of a qualified name: a definition whose source is available, else an `ExternalName`."""
    here = session.module
    if here is not None and here.name and qualified.startswith(here.name + "."):
        return _resolve(session, qualified)  # the text at hand may differ from the one that others import
    resolved = session.project.resolved
    known = resolved.get(qualified)
    if known is None:
        if qualified in ("typing.TYPE_CHECKING", "typing_extensions.TYPE_CHECKING"):
            return FALSE
        resolved[qualified] = ExternalName(qualified)  # a definition in a circle
        known = resolved[qualified] = _resolve(session, qualified)
    return known


def _resolve(session: ProgramView, qualified: str) -> Value:
    owner, _, name = qualified.rpartition(".")
    package = qualified.partition(".")[0]
    if not owner or package in NEVER_READ or session.torch.skips(package):
        return ExternalName(qualified)
    if session.module is not None and owner == session.module.name:
        return global_name(session, session.module, name)
    module = session.project.module(owner)
    if module is not None:
        value = global_name(session, module, name)
        if not (isinstance(value, ExternalName) and value.name == f"builtins.{name}"):
            return value
    return ExternalName(qualified)
