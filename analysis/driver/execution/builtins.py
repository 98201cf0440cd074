"""Builtin functions, methods of containers and of modules, as driver code calls them."""

from __future__ import annotations

import ast
from collections.abc import Callable as Function

from graphmend.analysis.driver.execution.expressions import item, rounds, set_item
from graphmend.analysis.driver.execution.interface import Machine
from graphmend.analysis.driver.execution.members import attribute, children, descendants, is_module
from graphmend.analysis.driver.execution.objects import (
    NONE,
    NOTHING,
    UNKNOWN,
    Atom,
    Callable,
    ClassObject,
    Compiled,
    Constant,
    Method,
    Named,
    Object,
    Scope,
    Super,
    Values,
    constant,
    mapping,
    plain,
    sequence,
    union,
)
from graphmend.analysis.driver.frameworks import MAPPINGS
from graphmend.analysis.resolution.classes import is_module_class, mro, outside_bases

Arguments = list[Values]
Keywords = dict[str, Values]
Builtin = Function[[Machine, Arguments, Keywords, ast.expr, Scope], Values]

#: numbers up to which a range is taken round by round
_RANGE = 4


def _getattr(m: Machine, args: Arguments, keywords: Keywords, node: ast.expr, scope: Scope) -> Values:
    name = constant(args[1]) if len(args) > 1 else ...
    if not isinstance(name, str):
        return union(*(v for a in args[0] for v in _values_of(plain(a)))) or UNKNOWN if args else UNKNOWN
    found = union(*(attribute(m, owner, name, scope) for owner in args[0]))
    return found or (args[2] if len(args) > 2 else UNKNOWN)


def _values_of(owner: Atom) -> list[Values]:
    return [*owner.attributes.values(), owner.held] if isinstance(owner, Object) else [UNKNOWN]


def _setattr(m: Machine, args: Arguments, keywords: Keywords, node: ast.expr, scope: Scope) -> Values:
    if len(args) == 3:
        name = constant(args[1])
        for owner in args[0]:
            if isinstance(name, str):
                m.set_attribute(owner, name, args[2])
    return NONE


def _hasattr(m: Machine, args: Arguments, keywords: Keywords, node: ast.expr, scope: Scope) -> Values:
    name = constant(args[1]) if len(args) > 1 else ...
    if isinstance(name, str) and len(args[0]) == 1:
        owner = plain(args[0][0])
        if isinstance(owner, Named) and owner.name.partition(".")[0] == "torch":
            return (Constant(True),)
        if isinstance(owner, Object) and owner.info is not None:
            found = attribute(m, owner, name, scope)
            if not found or not isinstance(found[0], Method):
                return (Constant(bool(found)),)
    return UNKNOWN


def _isinstance(m: Machine, args: Arguments, keywords: Keywords, node: ast.expr, scope: Scope) -> Values:
    if len(args) != 2:
        return UNKNOWN
    classes = [c for a in args[1] for c in _flat(a)]
    said = {_is_a(m, atom, cls) for atom in args[0] for cls in classes}
    per = {any(_is_a(m, atom, cls) is True for cls in classes) for atom in args[0]}
    if None in said or len(per) != 1:
        return UNKNOWN if per != {True} else (Constant(True),)
    return (Constant(per.pop()),)


def _flat(atom: Atom) -> list[Atom]:
    if isinstance(atom, Object) and atom.items is not None:
        return [c for values in atom.items for a in values for c in _flat(a)] + list(atom.rest)
    return [atom]


def _is_a(m: Machine, atom: Atom, cls: Atom) -> bool | None:
    atom = plain(atom)
    if isinstance(atom, Constant) and isinstance(cls, Named):
        return type(atom.value).__name__ == cls.name.rpartition(".")[2]
    if not isinstance(atom, Object):
        return None
    if isinstance(cls, ClassObject):
        return atom.info is not None and cls.info in mro(atom.info, m.program)
    if isinstance(cls, Named):
        if cls.name.startswith("torch.nn.") and cls.name.endswith(".Module"):
            return is_module(m, atom)
        if atom.info is None:
            return atom.name.rpartition(".")[2] == cls.name.rpartition(".")[2]
        return cls.name in outside_bases(m.program, atom.info) or (
            None if not is_module_class(m.program, atom.info) else False
        )
    return None


def _list(m: Machine, args: Arguments, keywords: Keywords, node: ast.expr, scope: Scope) -> Values:
    made = m.make(None, "builtins.list")
    made.items = []
    for values, certain in rounds(m, args[0]) if args else ():
        if certain and not made.rest:
            made.items.append(values)
        else:
            made.rest = union(made.rest, values)
    return (made,)


def _dict(m: Machine, args: Arguments, keywords: Keywords, node: ast.expr, scope: Scope) -> Values:
    made = m.make(None, "builtins.dict")
    made.fields = {}
    fill(made, args, keywords)
    return (made,)


def fill(made: Object, args: Arguments, keywords: Keywords) -> None:
    """Put into a mapping what its constructor or `update` is given."""
    fields = made.fields if made.fields is not None else {}
    for atom in args[0] if args else ():
        if not isinstance(atom, Object):
            continue
        if atom.fields is not None:
            fields.update(atom.fields)
            made.rest = union(made.rest, atom.rest)
        for pair in atom.items or ():
            one = pair[0] if len(pair) == 1 else None
            if isinstance(one, Object) and one.items is not None and len(one.items) == 2:
                key = constant(one.items[0])
                if key is not ...:
                    fields[key] = one.items[1]
                else:
                    made.rest = union(made.rest, one.items[1])
        for pair_atom in atom.rest if atom.fields is None else ():
            if isinstance(pair_atom, Object) and pair_atom.items is not None and len(pair_atom.items) == 2:
                made.rest = union(made.rest, pair_atom.items[1])
    fields.update(keywords)
    made.fields = fields


def pairs(m: Machine, several: list[Values]) -> Values:
    """`zip(...)`."""
    columns = [list(rounds(m, values)) for values in several]
    made = m.make(None, "builtins.list")
    made.items = []
    if columns and all(certain for column in columns for _, certain in column):
        for row in zip(*columns, strict=False):
            made.items.append((sequence([values for values, _ in row], name="builtins.tuple"),))
    else:
        made.rest = (sequence([union(*(v for v, _ in c)) or UNKNOWN for c in columns], name="builtins.tuple"),)
    return (made,)


def _zip(m: Machine, args: Arguments, keywords: Keywords, node: ast.expr, scope: Scope) -> Values:
    return pairs(m, args)


def _enumerate(m: Machine, args: Arguments, keywords: Keywords, node: ast.expr, scope: Scope) -> Values:
    made = m.make(None, "builtins.list")
    made.items = []
    for i, (values, certain) in enumerate(rounds(m, args[0]) if args else ()):
        if certain:
            made.items.append((sequence([(Constant(i),), values], name="builtins.tuple"),))
        else:
            made.rest = union(made.rest, (sequence([UNKNOWN, values], name="builtins.tuple"),))
    return (made,)


def _map(m: Machine, args: Arguments, keywords: Keywords, node: ast.expr, scope: Scope) -> Values:
    made = m.make(None, "builtins.list")
    made.items = []
    for values, certain in rounds(m, args[1]) if len(args) > 1 else ():
        result = m.call(args[0], [values, *(UNKNOWN for _ in args[2:])], {}, node, scope)
        if certain:
            made.items.append(result)
        else:
            made.rest = union(made.rest, result)
    return (made,)


def reduced(m: Machine, args: Arguments, node: ast.expr, scope: Scope) -> Values:
    """`functools.reduce(...)`."""
    items = list(rounds(m, args[1])) if len(args) > 1 else []
    made = args[2] if len(args) > 2 else items.pop(0)[0] if items else UNKNOWN
    for values, certain in items:
        result = m.call(args[0], [made, values], {}, node, scope)
        made = result if certain else union(made, result)
    return made


def _filter(m: Machine, args: Arguments, keywords: Keywords, node: ast.expr, scope: Scope) -> Values:
    return args[1] if len(args) > 1 else UNKNOWN


def _next(m: Machine, args: Arguments, keywords: Keywords, node: ast.expr, scope: Scope) -> Values:
    found = union(*(values for values, _ in rounds(m, args[0]))) if args else NOTHING
    return found or UNKNOWN


def _range(m: Machine, args: Arguments, keywords: Keywords, node: ast.expr, scope: Scope) -> Values:
    numbers = [n for n in map(constant, args) if isinstance(n, int)]
    if numbers and len(numbers) == len(args):
        try:
            row = range(*numbers)
        except (TypeError, ValueError):
            return UNKNOWN
        if len(row) <= _RANGE:
            return (sequence([(Constant(n),) for n in row]),)
    return (sequence([], UNKNOWN),)


def _len(m: Machine, args: Arguments, keywords: Keywords, node: ast.expr, scope: Scope) -> Values:
    if args and len(args[0]) == 1 and isinstance(args[0][0], Object) and not args[0][0].rest:
        held = args[0][0].items if args[0][0].items is not None else args[0][0].fields
        return (Constant(len(held)),) if held is not None else UNKNOWN
    return UNKNOWN


def _str(m: Machine, args: Arguments, keywords: Keywords, node: ast.expr, scope: Scope) -> Values:
    value = constant(args[0]) if args else ""
    return (Constant(str(value)),) if isinstance(value, (str, int)) else UNKNOWN


def _bool(m: Machine, args: Arguments, keywords: Keywords, node: ast.expr, scope: Scope) -> Values:
    value = constant(args[0]) if args else False
    return (Constant(bool(value)),) if value is not ... else UNKNOWN


def _super(m: Machine, args: Arguments, keywords: Keywords, node: ast.expr, scope: Scope) -> Values:
    info = scope.function
    while info is not None and info.owner is None:
        info = info.outer
    if info is None or info.owner is None or not info.parameters:
        return UNKNOWN
    receivers = m.name(info.parameters[0].arg, scope)
    return tuple(Super(a, info.owner) for a in receivers if isinstance(a, Object) and a.info is not None) or UNKNOWN


def _type(m: Machine, args: Arguments, keywords: Keywords, node: ast.expr, scope: Scope) -> Values:
    found = [
        m.class_object(a.info, a.scope) for a in (args[0] if len(args) == 1 else ()) if isinstance(a, Object) and a.info
    ]
    return tuple(found) or UNKNOWN


def _vars(m: Machine, args: Arguments, keywords: Keywords, node: ast.expr, scope: Scope) -> Values:
    if args:
        return tuple(mapping(dict(a.attributes)) for a in args[0] if isinstance(a, Object)) or UNKNOWN
    around = m.top_level(scope.module)
    return (mapping(dict(around.variables)),)


def _callable(m: Machine, args: Arguments, keywords: Keywords, node: ast.expr, scope: Scope) -> Values:
    known = all(isinstance(a, (Callable, Named, Compiled, ClassObject)) for a in args[0]) if args else False
    return (Constant(True),) if known else UNKNOWN


BUILTINS: dict[str, Builtin] = {
    "getattr": _getattr, "setattr": _setattr, "hasattr": _hasattr, "isinstance": _isinstance, "list": _list,
    "tuple": _list, "dict": _dict, "zip": _zip, "enumerate": _enumerate, "map": _map, "filter": _filter,
    "next": _next, "range": _range, "len": _len, "str": _str, "bool": _bool, "super": _super, "type": _type,
    "globals": _vars, "vars": _vars, "locals": _vars, "callable": _callable,
}  # fmt: skip


def _pair(first: Values, second: Values) -> Values:
    return (sequence([first, second], name="builtins.tuple"),)


def container_method(
    m: Machine, owner: Object, name: str, args: Arguments, keywords: Keywords, scope: Scope
) -> Values | None:
    """A method of a list or dict, or of a module that holds others; None for any other."""
    first = args[0] if args else UNKNOWN
    if owner.fields is not None:
        if name in ("items", "keys", "values"):
            listed: list[Values]
            if name == "items":
                listed = [_pair((Constant(k),), v) for k, v in owner.fields.items()]
            elif name == "keys":
                listed = [(Constant(k),) for k in owner.fields]
            else:
                listed = list(owner.fields.values())
            rest: Values = owner.rest
            if rest:
                rest = (sequence([UNKNOWN, rest], name="builtins.tuple"),) if name == "items" else rest
                rest = rest if name != "keys" else UNKNOWN
            return (sequence(listed, rest),)
        if name in ("get", "pop", "setdefault"):
            key = constant(first)
            known = key is not ... and key in owner.fields
            default = args[1] if len(args) > 1 else NONE if name == "get" else NOTHING
            if name == "setdefault" and not known:
                set_item(m, owner, key, default)
            found = item(m, owner, key, scope) if known or key is ... else NOTHING
            return found if known else union(found, default, owner.rest) or UNKNOWN
        if name == "update":
            fill(owner, args, keywords)
            return NONE
    if owner.items is not None:
        if name in ("append", "add", "insert", "appendleft"):
            values = args[-1] if args else UNKNOWN
            if m.is_certain and name == "append" and not owner.rest:
                owner.items.append(values)
            else:
                owner.rest = union(owner.rest, values)
            return NONE
        if name == "extend":
            for values, certain in rounds(m, first):
                if certain and m.is_certain and not owner.rest:
                    owner.items.append(values)
                else:
                    owner.rest = union(owner.rest, values)
            return NONE
        if name in ("pop", "popleft"):
            return owner.held or UNKNOWN
    if name == "copy" and (owner.items is not None or owner.fields is not None):
        return (owner.copied(),)
    if name == "__getitem__":
        return item(m, owner, constant(first), scope)
    if name == "__setitem__" and len(args) == 2:
        set_item(m, owner, constant(first), args[1])
        return NONE
    return None


def module_method(m: Machine, owner: Object, name: str, args: Arguments, scope: Scope) -> Values | None:
    """A method by which a module gives away the modules that it holds, or takes one; None for any other."""
    if name in ("children", "named_children"):
        held = children(m, owner)
        items = [v if name == "children" else (sequence([_key(k), v], name="builtins.tuple"),) for k, v in held.items()]
        return (sequence(items),)
    if name in ("modules", "named_modules"):
        all_of = [(a,) for a in descendants(m, owner)]
        if name == "modules":
            return (sequence([], union(*all_of)),) if len(all_of) > 12 else (sequence(list(all_of)),)
        return (sequence([(sequence([UNKNOWN, v], name="builtins.tuple"),) for v in all_of]),)
    if name == "get_submodule" and args:
        path = constant(args[0])
        found: Values = (owner,)
        for part in path.split(".") if isinstance(path, str) else ():
            found = union(*(children(m, a).get(part, NOTHING) for a in found))
        return found or UNKNOWN
    if name in ("add_module", "register_module", "set_submodule") and len(args) == 2:
        key = constant(args[0])
        if isinstance(key, str):
            m.set_attribute(owner, key, args[1])
        elif owner.name in MAPPINGS or owner.items is not None:
            owner.rest = union(owner.rest, args[1])
        return NONE
    return None


def _key(name: str) -> Values:
    return (Constant(name),) if name != "*" else UNKNOWN


_TEXT = frozenset(
    "lower upper strip removeprefix removesuffix startswith endswith split rsplit partition rpartition".split()
)


def text_method(owner: Constant, name: str, args: Arguments) -> Values:
    """A method of a constant string."""
    values = [constant(a) for a in args]
    if name in _TEXT and ... not in values:
        try:
            made = getattr(owner.value, name)(*values)
        except (TypeError, ValueError):
            return UNKNOWN
        return (sequence([(Constant(x),) for x in made]),) if isinstance(made, (list, tuple)) else (Constant(made),)
    return UNKNOWN
