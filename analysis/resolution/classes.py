"""Classes: their bases, method resolution, and whether they are modules or configuration."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.external import ExternalName
from graphmend.analysis.lattice.values import Value
from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo
from graphmend.analysis.program.entities import Class
from graphmend.analysis.resolution.names import named
from graphmend.analysis.syntax.traversal import walk

if TYPE_CHECKING:
    from graphmend.analysis.resolution.interface import ProgramView

#: classes from outside whose subclasses torch.compile traces as modules
MODULE_ROOTS = frozenset({"torch.nn.Module", "torch.nn.modules.module.Module"})

#: base classes of functions that bring their own derivative, and the class of what their methods share
_AUTOGRAD_ROOTS = frozenset({"torch.autograd.Function", "torch.autograd.function.Function"})
AUTOGRAD_CONTEXT = "torch.autograd.function.FunctionCtx"

#: libraries' own base classes, known to derive from torch.nn.Module, for when their source is out of reach
LIBRARY_MODULES = frozenset({"PreTrainedModel", "LightningModule", "ModelMixin", "MessagePassing", "BaseModule"})

#: bases without available source that give no operation of an object a meaning
PLAIN_BASES = frozenset({"builtins.object", "abc.ABC", "typing.Generic", "typing.Protocol"})

_INFINITE = 30


def bases(session: ProgramView, info: ClassInfo) -> list[Value]:
    return [named(session, info.module, b) for b in info.node.bases]


def mro(info: ClassInfo, session: ProgramView | None = None) -> list[ClassInfo]:
    """The class and its bases with available source, depth first, each once: C3 but for rare diamonds."""
    if info.chain is not None:
        return info.chain
    if session is None:
        return [info]
    found: list[ClassInfo] = []
    stack = [info]
    while stack and len(found) < _INFINITE:
        cls = stack.pop(0)
        if cls in found:
            continue
        found.append(cls)
        stack = [b.info for b in bases(session, cls) if isinstance(b, Class)] + stack
    info.chain = found
    return found


def outside_bases(session: ProgramView, info: ClassInfo) -> list[str]:
    """The qualified names of bases without available source."""
    known = session.outside.get(info)
    if known is None:
        known = [b.name for cls in mro(info, session) for b in bases(session, cls) if isinstance(b, ExternalName)]
        session.outside[info] = known
    return known


def is_module_class(session: ProgramView, info: ClassInfo) -> bool:
    """Whether a class derives from torch.nn.Module, as far as its bases are known."""
    known = session.module_classes.get(info)
    if known is None:
        session.module_classes[info] = False
        known = session.module_classes[info] = any(
            b in MODULE_ROOTS or b.startswith("torch.nn.") or b.rpartition(".")[2] in LIBRARY_MODULES
            for b in outside_bases(session, info)
        )
    return known


def is_autograd_function(session: ProgramView, info: ClassInfo) -> bool:
    """Whether a class derives from torch.autograd.Function."""
    return not _AUTOGRAD_ROOTS.isdisjoint(outside_bases(session, info))


def is_config(name: str) -> bool:
    """Whether an external class holds configuration, by its name: nothing else is known about it."""
    return name.rpartition(".")[2].endswith(("Config", "Configuration", "Args", "Arguments", "Options", "Namespace"))


def is_config_class(session: ProgramView, info: ClassInfo) -> bool:
    return is_config(info.name) and not is_module_class(session, info)


def find_method(
    session: ProgramView, info: ClassInfo, name: str, after: ClassInfo | None = None
) -> FunctionInfo | None:
    """A method by name, from the class or its bases; with `after`, as `super()` in that class finds it."""
    chain = mro(info, session)
    if after is not None and after in chain:
        chain = chain[chain.index(after) + 1 :]
    for cls in chain:
        if (method := cls.methods.get(name)) is not None:
            return method
    return None


def is_never_initialised(session: ProgramView, info: ClassInfo) -> bool:
    """Whether a class is a torch.nn.Module whose own `__init__` calls nothing and sets nothing."""
    init = info.methods.get("__init__")
    if init is None or init.assigns or isinstance(init.node, ast.Lambda) or not is_module_class(session, info):
        return False
    return not any(isinstance(node, (ast.Call, ast.Attribute)) for part in init.node.body for node in walk(part))
