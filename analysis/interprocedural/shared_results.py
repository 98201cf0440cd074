"""Results of calls into other modules, shared by all files of a project.

A result is shared if the function, its arguments and the result carry no evidence and nothing that the checked file
defines; it is computed with an empty call stack, so the order of files does not matter. Every model that contains
another one calls `AutoModel.from_config(config)`, for instance, and walking there takes as long as checking the file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.environment import Environment
from graphmend.analysis.lattice.external import ExternalInstance, ExternalName
from graphmend.analysis.lattice.values import UNKNOWN, Choice, Container, Static, Value
from graphmend.analysis.program.entities import Class, Function, Instance, Method, Record, Super

if TYPE_CHECKING:
    from graphmend.analysis.interprocedural.interface import Analysis
    from graphmend.analysis.program.definitions import FunctionInfo, ModuleInfo


def shared_result(session: Analysis, info: FunctionInfo, env: Environment, walk: Callable[[], Value]) -> Value | None:
    """The shared result of a function of another module, which is entered for its value alone; `walk` computes it. None
    where the function or an argument belongs to the checked file, so that nothing can be shared."""
    here = session.module
    if info.module is here or not all(_is_from_outside(value, here) for value in env.values()):
        return None
    results = session.project.results
    key = (info, session.torch, session.stack.traced, session.mode, tuple((k, v.key) for k, v in env.items()))
    known = results.get(key)
    if known is None:
        with session.isolated():
            value = walk()
        if not _is_from_outside(value, here):
            return value
        known = results[key] = value, env  # the environment keeps alive what the key identifies
    return known[0]


def _is_from_outside(value: Value, here: ModuleInfo | None) -> bool:
    """Whether a value carries no evidence and nothing that the module `here` defines."""
    if value is UNKNOWN or isinstance(value, (Static, ExternalName, ExternalInstance)):
        return True
    if isinstance(value, Instance) and value.given and not all(_is_from_outside(v, here) for v in value.given.values()):
        return False
    if isinstance(value, (Class, Instance)):
        return value.info.module is not here
    if isinstance(value, Function):
        bound = value.bound is None or _is_from_outside(value.bound, here)
        return bound and value.closure is None and value.info.module is not here
    if isinstance(value, Choice):
        return all(_is_from_outside(option, here) for option in value.options)
    if isinstance(value, Container):
        parts = (*(value.items or ()), *([value.of] if value.of is not None else ()), *(value.fields or {}).values())
        made_here = isinstance(value, Record) and value.info.module is here
        return not made_here and all(_is_from_outside(part, here) for part in parts)
    if isinstance(value, (Method, Super)):
        return _is_from_outside(value.receiver, here)
    return False
