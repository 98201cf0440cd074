"""Attributes that a branch may not store to whatever it decides."""

from __future__ import annotations

import ast

from graphmend.analysis.lattice.values import options
from graphmend.analysis.program.definitions import ClassInfo
from graphmend.analysis.program.entities import class_of
from graphmend.analysis.resolution.classes import PLAIN_BASES, mro
from graphmend.transforms.if_conversion.places.held import Converting
from graphmend.transforms.legality.objects.classes import plain_base
from graphmend.transforms.legality.objects.plain_fields import is_plain_field


def is_guarded(block: Converting, target: ast.Attribute) -> bool:
    """Does code of the class run where an attribute is bound, or may none or no plain tensor be there?"""
    value, name = block.facts.value(target.value), target.attr
    cls = class_of(value)
    if cls is None:
        return False
    chain = mro(cls)
    if not any(map(_may_be_module, chain)):
        return not is_plain_field(name, block.facts.function, *options(value))
    if any({name, "__setattr__"} & (base.methods.keys() | base.setters.keys()) for base in chain):
        return True
    made = [(method.name, given) for base in chain for method, _, given in base.assigned.get(name, ())]
    declared = any(name in base.names or name in base.registered for base in chain)
    descriptor = any(isinstance(base.names.get(name), ast.Call) for base in chain)
    parameter = any(_makes_parameter(base, given) for base in chain for _, given in made)  # it takes such alone
    return parameter or descriptor or not (declared or any(method == "__init__" for method, _ in made))


def _may_be_module(cls: ClassInfo) -> bool:
    """Has a class a base of which the file does not say what it is: one of torch's modules, or something else?"""
    return any(
        not (isinstance(base, ast.Name) and base.id in cls.module.classes)
        and cls.module.qualified(plain_base(base)) not in PLAIN_BASES
        for base in cls.node.bases
    )


def _makes_parameter(cls: ClassInfo, value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and cls.module.qualified(value.func) == "torch.nn.Parameter"
