"""Attributes of objects, classes and modules, as driver code reads and sets them."""

from __future__ import annotations

import ast

from graphmend.analysis.driver.execution.interface import Machine
from graphmend.analysis.driver.execution.objects import (
    NOTHING,
    UNKNOWN,
    Atom,
    Callable,
    ClassObject,
    Compiled,
    Constant,
    Disabled,
    Member,
    Method,
    Named,
    Object,
    Package,
    Partial,
    Scope,
    Super,
    Values,
    constant,
    union,
)
from graphmend.analysis.driver.frameworks import HELD_AS, MAPPINGS, PLAIN_VALUES, SEQUENCES, WRAPPERS
from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo
from graphmend.analysis.resolution.classes import is_module_class, mro, outside_bases


def attribute(m: Machine, owner: Atom, name: str, scope: Scope) -> Values:
    """The value of an attribute; NOTHING where there is none for certain."""
    if isinstance(owner, Object):
        return _of_object(m, owner, name, scope)
    if isinstance(owner, Compiled):
        if name == "_orig_mod":
            return (owner.target,)
        return attribute(m, owner.target, name, scope)
    if isinstance(owner, Disabled):
        return attribute(m, owner.target, name, scope)
    if isinstance(owner, ClassObject):
        return _of_class(m, owner, name, scope)
    if isinstance(owner, Package):
        return m.qualified(f"{owner.module.name}.{name}")
    if isinstance(owner, Named):
        return m.qualified(f"{owner.name}.{name}")
    if isinstance(owner, Super):
        return _of_super(m, owner, name, scope)
    if isinstance(owner, Constant):
        return (Method(owner, name),) if isinstance(owner.value, str) else NOTHING
    if isinstance(owner, Member):
        return _of_member(m, owner, name, scope)
    if isinstance(owner, Partial) and name == "func":
        return owner.function
    return UNKNOWN


def _of_object(m: Machine, owner: Object, name: str, scope: Scope) -> Values:
    if name in owner.attributes:
        return owner.attributes[name]
    if name == "__dict__":
        return UNKNOWN
    if owner.info is None:
        return _of_external(owner, name)
    cls = m.class_object(owner.info, owner.scope)
    if name == "__class__":
        return (cls,)
    found = _defined(m, cls, owner, name, scope)
    if found:
        return found
    if is_module(m, owner):
        return (Method(owner, name),) if name not in HELD_AS or not owner.rest else owner.rest
    if any("__getattr__" in c.methods for c in near_chain(m, owner.info)):
        return UNKNOWN
    return (Method(owner, name),) if external_base(m, owner.info) is not None else NOTHING


def _of_external(owner: Object, name: str) -> Values:
    if owner.rest and name in HELD_AS and owner.items is None and owner.fields is None:
        return owner.rest
    if owner.fields is not None and name in owner.fields and owner.name in MAPPINGS:
        return owner.fields[name]
    return (Method(owner, name),) if owner.name != "types.SimpleNamespace" else NOTHING


def _defined(m: Machine, cls: ClassObject, receiver: Object | None, name: str, scope: Scope) -> Values:
    """What a class or its bases define by that name, as read on `receiver`, or on the class itself."""
    for info in near_chain(m, cls.info):
        one = m.class_object(info, cls.scope if info is cls.info else None)
        if name in one.attributes:
            return _bound(_member(m, info, name, one.attributes[name]), receiver)
        method = info.methods.get(name)
        if method is not None:
            return _method(m, method, one, cls, receiver, scope)
        if name in info.names:
            return _member(m, info, name, m.evaluate(info.names[name], one.scope or m.top_level(info.module)))
        if name in info.classes:
            return (m.class_object(info.classes[name], one.scope),)
    return NOTHING


def _method(
    m: Machine, method: FunctionInfo, owner: ClassObject, cls: ClassObject, receiver: Object | None, scope: Scope
) -> Values:
    around = owner.scope or m.top_level(method.module)
    if method.is_static:
        return (Callable(method, around),)
    if method.is_classmethod:
        return (Callable(method, around, cls),)
    if receiver is None:
        return (Callable(method, around),)
    bound = Callable(method, around, receiver)
    if method.is_property:
        made = m.run(bound, [], {})
        if method.decorated_with("functools.cached_property"):
            receiver.attributes[method.name] = made
        return made
    return (bound,)


def _bound(values: Values, receiver: Object | None) -> Values:
    """A function that is set on a class, as read on an instance."""
    if receiver is None:
        return values
    return tuple(
        Callable(a.info, a.scope, receiver)
        if isinstance(a, Callable) and a.info.owner is not None and not a.info.is_static and not a.info.is_classmethod
        else a
        for a in values
    )


def _of_class(m: Machine, owner: ClassObject, name: str, scope: Scope) -> Values:
    if name in ("__name__", "__qualname__"):
        return (Constant(owner.info.name),)
    return _defined(m, owner, None, name, scope) or (Method(owner, name),)


def is_enumeration(m: Machine, info: ClassInfo) -> bool:
    """Whether a class derives from one of the enum module."""
    return any(base.startswith("enum.") for base in outside_bases(m.program, info))


def _member(m: Machine, info: ClassInfo, name: str, values: Values) -> Values:
    """What is bound in a class, as it is read: of an enumeration, the member."""
    if name.startswith("_") or name not in info.names or name in info.methods or not is_enumeration(m, info):
        return values
    return (Member(info, name, values, not PLAIN_VALUES.isdisjoint(outside_bases(m.program, info))),)


def member(m: Machine, info: ClassInfo, value: object, scope: Scope) -> Values:
    """The member of an enumeration that has a value; any of them where that is not known (`...`)."""
    cls = m.class_object(info)
    names = [one for one in info.names if not one.startswith("_")]
    members = [a for one in names for a in _of_class(m, cls, one, scope) if isinstance(a, Member)]
    return tuple(a for a in members if value is ... or constant(a.value) == value) or UNKNOWN


def _of_member(m: Machine, owner: Member, name: str, scope: Scope) -> Values:
    if name in ("value", "_value_"):
        return owner.value
    if name in ("name", "_name_"):
        return (Constant(owner.name),)
    return _defined(m, m.class_object(owner.info), None, name, scope) or UNKNOWN


def _of_super(m: Machine, owner: Super, name: str, scope: Scope) -> Values:
    assert owner.receiver.info is not None
    chain = near_chain(m, owner.receiver.info)
    behind = chain[chain.index(owner.after) + 1 :] if owner.after in chain else []
    for info in behind:
        if (method := info.methods.get(name)) is not None:
            around = m.class_object(info).scope or m.top_level(method.module)
            return (Callable(method, around, owner.receiver),)
    return (Method(owner.receiver, name, external_base(m, owner.receiver.info) or "builtins.object"),)


def set_attribute(m: Machine, owner: Atom, name: str, values: Values) -> None:
    """`owner.name = values`."""
    if isinstance(owner, (Compiled, Disabled)):
        return set_attribute(m, owner.target, name, values)
    if isinstance(owner, Package):
        m.top_level(owner.module).variables[name] = values
    elif isinstance(owner, Named):
        before = m.qualified(f"{owner.name}.{name}")
        m.patched[f"{owner.name}.{name}"] = values if m.is_certain else union(before, values)
    elif isinstance(owner, Object) and (setter := _setter(m, owner, name)) is not None:
        m.run(setter, [values], {})
    elif isinstance(owner, (Object, ClassObject)):
        table = owner.attributes
        if isinstance(owner, Object) and owner.fields is not None and (owner.name in MAPPINGS or name in owner.fields):
            table = owner.fields  # type: ignore[assignment]
        elif (
            isinstance(owner, Object) and owner.items is not None and name.isdecimal() and int(name) < len(owner.items)
        ):
            owner.items[int(name)] = values
            return None
        old = table.get(name)
        table[name] = values if m.is_certain or old is None else union(old, values)
    return None


def _setter(m: Machine, owner: Object, name: str) -> Callable | None:
    """What a property calls where it is assigned to."""
    for info in near_chain(m, owner.info) if owner.info is not None else ():
        if name in info.setters:
            return Callable(info.setters[name], m.class_object(info).scope or m.top_level(info.module), owner)
    return None


def is_module(m: Machine, atom: Atom) -> bool:
    """Whether something is a torch.nn.Module, or stands for one."""
    todo, met = [atom], set[int]()
    while todo:
        one = todo.pop()
        while isinstance(one, Compiled):
            one = one.target
        if not isinstance(one, Object) or id(one) in met:
            continue
        if one.info is None:
            met.add(id(one))
            todo += one.rest
        if is_module_class(m.program, one.info) if one.info is not None else _is_of_torch(one):
            return True
    return False


def _is_of_torch(atom: Object) -> bool:
    return atom.name.startswith("torch.nn.") or atom.name in WRAPPERS


def children(m: Machine, module: Atom) -> dict[str, Values]:
    """The modules that a module holds, by name."""
    if isinstance(module, Compiled):
        module = module.target
    if not isinstance(module, Object):
        return {}
    found: dict[str, Values] = {}
    held: dict[str, Values] = {
        **{str(i): v for i, v in enumerate(module.items or ())},
        **{str(k): v for k, v in (module.fields or {}).items()},
        **({"*": module.rest} if module.rest else {}),
        **module.attributes,
    }
    for name, values in held.items():
        modules = tuple(a for a in values if is_module(m, a))
        if modules:
            found[name] = modules
    return found


def descendants(m: Machine, module: Atom) -> list[Atom]:
    """A module and all that it holds, each once."""
    found: list[Atom] = []
    todo = [module]
    while todo and len(found) < 200:
        one = todo.pop()
        if not any(one is other for other in found):
            found.append(one)
            todo += [a for values in children(m, one).values() for a in values]
    return found


def near_chain(m: Machine, info: ClassInfo) -> list[ClassInfo]:
    """A class and its bases, as far as their source is followed."""
    return [cls for cls in mro(info, m.program) if m.follows(cls.module)]


def external_base(m: Machine, info: ClassInfo) -> str | None:
    """The nearest class whose source is not followed that a class derives from, where there is one."""
    far = [f"{c.module.name}.{c.qualname}" for c in mro(info, m.program) if not m.follows(c.module)]
    outside = [b for b in outside_bases(m.program, info) if b not in ("builtins.object", "typing.Generic", "abc.ABC")]
    return next(iter((*far, *outside)), None)


def holds_modules(name: str) -> bool:
    return name in SEQUENCES or name in MAPPINGS


def annotated_object(m: Machine, info: FunctionInfo, annotation: ast.expr | None) -> Values:
    """An instance of the module class that a parameter is annotated with."""
    if annotation is None:
        return UNKNOWN
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except (SyntaxError, ValueError):
            return UNKNOWN
    if not isinstance(annotation, (ast.Name, ast.Attribute)):
        return UNKNOWN
    cls = m.evaluate(annotation, m.top_level(info.module))
    return tuple(m.generic(a.info) for a in cls if isinstance(a, ClassObject)) or UNKNOWN
