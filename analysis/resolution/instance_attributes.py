"""Attributes of instances, by what the class and its bases assign, register and declare."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.evidence import Evidence
from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import (
    FALSE,
    NONE,
    UNKNOWN,
    Choice,
    Const,
    Container,
    Static,
    Tensor,
    Value,
    join_all,
)
from graphmend.analysis.program.attribute_flags import set_outside, switched
from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo
from graphmend.analysis.program.entities import Class, Instance
from graphmend.analysis.program.instance_stores import ELEMENTS, GIVEN
from graphmend.analysis.resolution.annotations import annotated
from graphmend.analysis.resolution.classes import bases, find_method, mro, outside_bases
from graphmend.analysis.syntax.traversal import walk

if TYPE_CHECKING:
    from graphmend.analysis.resolution.interface import ProgramView

#: calls and readings within each other behind which an attribute's assignments are not read
_DEEPEST = 8
#: additions to a container that are looked at; with more, it may hold something else
_MOST_GROWTHS = 16


def instance_attribute(session: ProgramView, info: ClassInfo, name: str) -> Value | None:
    """The value of `self.name`; None where no class with available source mentions it."""
    session.note_attribute_read(info, name)
    if name in info.attribute_cache:
        return info.attribute_cache[name]
    info.attribute_cache[name] = UNKNOWN  # a definition in a circle
    value = _elements(session, info) if name == ELEMENTS else None
    for cls in mro(info, session) if name != ELEMENTS else ():
        value = _own_attribute(session, info, cls, name)
        if value is not None:
            break
    info.attribute_cache[name] = value
    return value


def is_override(session: ProgramView, info: ClassInfo, name: str) -> bool:
    """Is an attribute where a property's setter keeps what other code puts in the place of what the property computes?
    Nothing else gives it a value then, and an object has none as long as nobody does.
    """
    session.note_attribute_read(info, name)
    chain = mro(info, session)
    if any(name in own for c in chain for own in (c.assigned, c.registered, c.names, c.methods, c.classes)):
        return False
    setters = [setter for c in chain for setter in c.setters.values()]
    kept = [(setter.parameters[-1].arg, value) for setter in setters for n, _, value in setter.assigns if n == name]
    return bool(kept) and all(isinstance(value, ast.Name) and value.id == given for given, value in kept)


def member_names(session: ProgramView, info: ClassInfo) -> list[str]:
    """The names of all methods and attributes of a class and its bases with available source."""
    chain = mro(info, session)
    return list(dict.fromkeys(n for c in chain for n in (*c.methods, *c.registered, *c.assigned, *c.names)))


def _own_attribute(session: ProgramView, info: ClassInfo, cls: ClassInfo, name: str) -> Value | None:
    if name in cls.registered:
        return _registered(session, cls, name)
    if name in cls.assigned:
        values = [*_values_assigned(session, info, cls, name), *_before_assigned(session, info, cls, name)]
        if values == [FALSE] and not switched(cls.module, name):
            return FALSE
        return _settled(_grown(session, info, cls, name, join_all(values)), name)
    if name in cls.annotations:
        value = annotated(session, cls.module, cls.annotations[name], f"{cls.name}.{name}", cls.qualname)
        if value is not UNKNOWN:
            return value
    if name in cls.names:
        value = session.reading.evaluate(cls.module, cls.names[name])
        off = isinstance(value, Const) and value.value is False and not switched(cls.module, name)
        return FALSE if off else _settled(value, name)
    if name in cls.classes:
        return Class(cls.classes[name])
    return None


def _grown(session: ProgramView, info: ClassInfo, cls: ClassInfo, name: str, value: Value) -> Value:
    """The list or dict that methods assign to an attribute, with what methods add to it."""
    if name not in cls.grown or not isinstance(value, Container) or value.kind not in ("modules", "list", "dict"):
        return value
    info.attribute_cache[name] = value
    held = [] if value.items == () or (value.items is None and value.of is None) else [value.element]
    held += [UNKNOWN] if len(cls.grown[name]) > _MOST_GROWTHS else []
    for method, expression, is_sequence in cls.grown[name][:_MOST_GROWTHS]:
        more = _assigned(session, info, method, expression)
        held.append(more.element if is_sequence and isinstance(more, Container) else more)
    return Container(value.kind, None, join_all(held), value.fields)


#: the kind of what an object of a class that derives from one of these is
_CONTAINERS = {"torch.nn.Sequential": "modules", "torch.nn.ModuleList": "modules", "torch.nn.ModuleDict": "dict"}


def _elements(session: ProgramView, info: ClassInfo) -> Value | None:
    """What an object of a class that derives from one of torch's containers holds: what its own code puts there, and
    the modules that it keeps as attributes, which are elements, too.
    """
    kinds = [_CONTAINERS[base] for base in outside_bases(session, info) if base in _CONTAINERS]
    held: list[Value] = []
    for cls in mro(info, session) if kinds else ():
        own = not any(isinstance(base, Class) for base in bases(session, cls))
        growths = [*cls.grown.get(ELEMENTS, ()), *(cls.grown.get(GIVEN, ()) if own else ())]
        held += [UNKNOWN] if len(growths) > _MOST_GROWTHS else []
        for method, expression, may_be_sequence in growths[:_MOST_GROWTHS]:
            more = _assigned(session, info, method, expression)
            several = may_be_sequence and isinstance(more, Container) and more.kind != "modules"
            held.append(more.element if several and isinstance(more, Container) else more)
        kept = [instance_attribute(session, info, name) for name in cls.assigned]
        held += [value for value in kept if isinstance(value, (Instance, ExternalInstance))]
    return Container(kinds[0], of=join_all(held)) if held else None


def _values_assigned(session: ProgramView, info: ClassInfo, cls: ClassInfo, name: str) -> list[Value]:
    """The values that methods assign to an attribute; those computed from its old value come last."""
    assigned = [(method, expression) for method, _, expression in cls.assigned[name][:4]]
    anew = [a for a in assigned if not _mentions(a[1], a[0].parameters[0].arg, name)]
    values = [_assigned(session, info, *a) for a in anew]
    if not values and (method := find_method(session, info, name)) is not None:
        info.attribute_cache[name] = session.decorated(method, bound=Instance(info))  # `self.f = wrap(self.f)`
        return [_assigned(session, info, *a) for a in assigned]
    if values and len(anew) < len(assigned):
        info.attribute_cache[name] = join_all(values)
        values += [_assigned(session, info, *a) for a in assigned if a not in anew]
    return values or [UNKNOWN]


def _before_assigned(session: ProgramView, info: ClassInfo, cls: ClassInfo, name: str) -> list[Value]:
    """What an attribute is that no `__init__` assigns, until another method does: what the class's body says."""
    bodies = [one for one in mro(info, session) if name in one.names]
    if not bodies or any(method.name == "__init__" for method, *_ in cls.assigned[name]):
        return []
    return [session.reading.evaluate(bodies[0].module, bodies[0].names[name])]


def _mentions(expression: ast.expr, me: str, attr: str) -> bool:
    """Whether an expression reads `me.attr`."""
    if isinstance(expression, (ast.Constant, ast.Name)):
        return False
    return any(
        isinstance(n, ast.Attribute) and n.attr == attr and isinstance(n.value, ast.Name) and n.value.id == me
        for n in walk(expression)
    )


def _settled(value: Value, name: str) -> Value:
    """An assigned value as methods read it: other code may assign another one, so constants are not kept."""
    if isinstance(value, Const):
        return UNKNOWN if value.value is None else Static(value.type)
    if isinstance(value, Choice) and NONE in value.options:
        return join_all(
            [*(o if not isinstance(o, Const) else Static(o.type) for o in value.options if o is not NONE), NONE]
        )
    if isinstance(value, Tensor):
        origin = Evidence("is a Tensor attribute", f"self.{name}", value.origin)
        shape = value.shape if value.shape is not None else ("shape", name)
        dtype = value.dtype if value.dtype is not None else ("dtype", name)
        number = value.ndarray and value.rank == 0  # Dynamo knows the value of one that was there before
        return value.__class__(
            origin,
            value.rank,
            dtype,
            shape,
            likely=value.likely,
            graph_input=True,
            ndarray=value.ndarray,
            constant=number,
        )
    if isinstance(value, Container) and value.kind in ("list", "dict", "set"):
        return (
            Container(value.kind, None, value.element if value.items else value.of, value.fields)
            if value.items != ()
            else Container(value.kind)
        )
    return value


def _registered(session: ProgramView, cls: ClassInfo, name: str) -> Value:
    how, method, call = cls.registered[name]
    if how in ("add_module", "register_module"):
        return _assigned(session, cls, method, call.args[1]) if len(call.args) > 1 else UNKNOWN
    given = (
        call.args[1]
        if len(call.args) > 1
        else next((k.value for k in call.keywords if k.arg in ("tensor", "param")), None)
    )
    value = _assigned(session, cls, method, given) if given is not None else UNKNOWN
    says = "is a buffer, so a Tensor" if how == "register_buffer" else "is a parameter, so a Tensor"
    known = value if isinstance(value, Tensor) and not set_outside(cls.module, name) else None
    tensor = Tensor(
        Evidence(says, f"self.{name}"),
        known.rank if known else None,
        known.dtype if known and known.dtype is not None else ("dtype", name),
        known.shape if known and known.shape is not None else ("shape", name),
        likely=set_outside(cls.module, name),
        graph_input=True,
    )
    if value is NONE:
        return join_all([tensor, NONE]) if name in cls.assigned or switched(cls.module, name) else NONE
    return tensor


def _assigned(session: ProgramView, info: ClassInfo, method: FunctionInfo, expression: ast.expr) -> Value:
    """The value of an expression in a method, evaluated on demand."""
    if session.stack.depth > _DEEPEST:
        return UNKNOWN
    return session.reading.evaluate_for(method, Instance(info), expression)
