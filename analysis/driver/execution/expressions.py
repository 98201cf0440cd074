"""Expressions of driver code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from graphmend.analysis.driver.execution.comparisons import compared, truth_of
from graphmend.analysis.driver.execution.interface import Machine
from graphmend.analysis.driver.execution.objects import (
    NOTHING,
    UNKNOWN,
    Atom,
    Callable,
    ClassObject,
    Constant,
    Member,
    Named,
    Object,
    Package,
    Scope,
    Values,
    constant,
    mapping,
    plain,
    sequence,
    union,
)

#: rounds of a loop that are told apart
_ROUNDS = 12
#: items, or characters, that are told apart
_LONGEST = 200


def evaluate(m: Machine, node: ast.expr, scope: Scope) -> Values:
    """The value of an expression."""
    if not m.spend():
        return UNKNOWN
    handler = _HANDLERS.get(node.__class__)
    values: Values = handler(m, node, scope) if handler is not None else UNKNOWN
    return values


def _constant(m: Machine, node: ast.Constant, scope: Scope) -> Values:
    return (Constant(node.value),)


def _name(m: Machine, node: ast.Name, scope: Scope) -> Values:
    return m.name(node.id, scope)


def _attribute(m: Machine, node: ast.Attribute, scope: Scope) -> Values:
    found = [m.attribute(owner, node.attr, scope) for owner in m.evaluate(node.value, scope)]
    return union(*found) if any(found) else UNKNOWN


def _call(m: Machine, node: ast.Call, scope: Scope) -> Values:
    return m.call(*called(m, node, scope), node, scope)


def called(m: Machine, node: ast.Call, scope: Scope) -> tuple[Values, list[Values], dict[str, Values]]:
    """What a call calls, and what it passes."""
    function = m.evaluate(node.func, scope)
    arguments: list[Values] = []
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            arguments += _spread(m.evaluate(argument.value, scope))
        else:
            arguments.append(m.evaluate(argument, scope))
    keywords: dict[str, Values] = {}
    for keyword in node.keywords:
        values = m.evaluate(keyword.value, scope)
        if keyword.arg is not None:
            keywords[keyword.arg] = values
        else:
            for atom in values:
                if isinstance(atom, Object) and atom.fields is not None:
                    keywords.update({k: v for k, v in atom.fields.items() if isinstance(k, str)})
    return function, arguments, keywords


def _spread(values: Values) -> list[Values]:
    if len(values) == 1 and isinstance(values[0], Object) and values[0].items is not None:
        items = list(values[0].items)
        return [*items, values[0].rest] if values[0].rest else items
    return [union(*(atom.held if isinstance(atom, Object) else UNKNOWN for atom in values))]


def _sequence(m: Machine, node: ast.List | ast.Tuple | ast.Set, scope: Scope) -> Values:
    items: list[Values] = []
    rest: Values = ()
    for element in node.elts:
        if isinstance(element, ast.Starred):
            spread = m.evaluate(element.value, scope)
            items += _spread(spread)
        else:
            items.append(m.evaluate(element, scope))
    made = m.make(None, "builtins.list" if not isinstance(node, ast.Tuple) else "builtins.tuple")
    made.items, made.rest = items, rest
    return (bounded(made),)


def bounded(made: Object) -> Object:
    """A sequence, of which not too many items are told apart."""
    if made.items is not None and len(made.items) > _LONGEST:
        made.items, made.rest = [], made.held
    return made


def _mapping(m: Machine, node: ast.Dict, scope: Scope) -> Values:
    made = m.make(None, "builtins.dict")
    made.fields = {}
    for key, value in zip(node.keys, node.values, strict=True):
        values = m.evaluate(value, scope)
        if key is None:
            for atom in values:
                if isinstance(atom, Object):
                    made.fields.update(atom.fields or {})
                    made.rest = union(made.rest, atom.rest)
            continue
        known = constant(m.evaluate(key, scope))
        if known is ...:
            made.rest = union(made.rest, values)
        else:
            made.fields[known] = values
    return (made,)


def _comprehension(m: Machine, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, scope: Scope) -> Values:
    items: list[Values] = []
    rest: Values = ()
    for inner, certain in _inner_rounds(m, node.generators, scope):
        values = m.evaluate(node.elt, inner)
        if certain:
            items.append(values)
        else:
            rest = union(rest, values)
    made = m.make(None, "builtins.list")
    made.items, made.rest = items, rest
    return (made,)


def _dict_comprehension(m: Machine, node: ast.DictComp, scope: Scope) -> Values:
    made = m.make(None, "builtins.dict")
    made.fields = {}
    for inner, certain in _inner_rounds(m, node.generators, scope):
        key, values = constant(m.evaluate(node.key, inner)), m.evaluate(node.value, inner)
        if certain and key is not ...:
            made.fields[key] = values
        else:
            made.rest = union(made.rest, values)
    return (made,)


def _inner_rounds(m: Machine, generators: list[ast.comprehension], scope: Scope) -> Iterator[tuple[Scope, bool]]:
    """The rounds of a comprehension: its variables, and whether there is such a round for certain."""
    first, *more = generators
    for values, certain in rounds(m, m.evaluate(first.iter, scope)):
        inner = Scope(scope.module, scope.function, scope)
        m.assign(first.target, values, inner)
        tests = [truth(m, test, inner) for test in first.ifs]
        if False in tests:
            continue
        certain = certain and None not in tests
        if more:
            yield from ((s, c and certain) for s, c in _inner_rounds(m, more, inner))
        else:
            yield inner, certain


def rounds(m: Machine, values: Values) -> Iterator[tuple[Values, bool]]:
    """What a loop over something binds in its rounds, and whether there is such a round for certain."""
    if len(values) == 1 and isinstance(values[0], Object):
        it = values[0]
        items = it.items if it.items is not None else None
        if it.fields is not None:
            items = [(Constant(key),) for key in it.fields]
        if items is not None and len(items) <= _ROUNDS:
            yield from ((item, True) for item in list(items))
            if it.rest:
                yield (it.rest if it.items is not None else UNKNOWN), False
            return
    held = [atom.held if isinstance(atom, Object) else UNKNOWN for atom in values]
    yield (union(*held) if held else UNKNOWN) or UNKNOWN, False


def _subscript(m: Machine, node: ast.Subscript, scope: Scope) -> Values:
    owners = m.evaluate(node.value, scope)
    if isinstance(node.slice, ast.Slice):
        return owners
    key = constant(m.evaluate(node.slice, scope))
    return union(*(item(m, owner, key, scope) for owner in owners)) or UNKNOWN


def item(m: Machine, owner: Atom, key: object, scope: Scope) -> Values:
    """`owner[key]`; `...` is an unknown key."""
    owner = plain(owner)
    if isinstance(owner, Named) and owner.name == "sys.modules" and isinstance(key, str):
        return (Package(m.main),) if key == "__main__" else m.qualified(key)
    if isinstance(owner, ClassObject) and isinstance(key, str):  # an enumeration's member by its name
        return tuple(a for a in m.attribute(owner, key, scope) if isinstance(a, Member)) or UNKNOWN
    if not isinstance(owner, Object):
        return UNKNOWN
    if owner.items is not None and isinstance(key, int) and -len(owner.items) <= key < len(owner.items):
        return owner.items[key]
    if owner.fields is not None and key in owner.fields:
        return owner.fields[key]
    if owner.items is None and owner.fields is None:
        method = m.attribute(owner, "__getitem__", scope) if owner.info is not None else NOTHING
        if any(isinstance(atom, Callable) for atom in method):
            return m.call(method, [UNKNOWN if key is ... else (Constant(key),)], {}, ast.Constant(0), scope)
        return UNKNOWN
    if key is not ... and owner.fields is not None and not isinstance(key, int):
        return owner.rest or UNKNOWN
    return owner.held or UNKNOWN


def set_item(m: Machine, owner: Atom, key: object, values: Values) -> None:
    """`owner[key] = values`."""
    owner = plain(owner)
    if not isinstance(owner, Object):
        return
    if owner.items is not None and isinstance(key, int) and -len(owner.items) <= key < len(owner.items):
        owner.items[key] = values if m.is_certain else union(owner.items[key], values)
    elif owner.fields is not None and key is not ...:
        old = owner.fields.get(key, ())
        owner.fields[key] = values if m.is_certain or not old else union(old, values)
    else:
        owner.rest = union(owner.rest, values)


def _choice(m: Machine, node: ast.IfExp, scope: Scope) -> Values:
    test = truth(m, node.test, scope)
    if test is not None:
        return m.evaluate(node.body if test else node.orelse, scope)
    with m.perhaps():
        return union(m.evaluate(node.body, scope), m.evaluate(node.orelse, scope))


def _logic(m: Machine, node: ast.BoolOp, scope: Scope) -> Values:
    found: Values = ()
    stops = isinstance(node.op, ast.Or)
    for i, part in enumerate(node.values):
        values = m.evaluate(part, scope)
        known = truth_of(values)
        if i == len(node.values) - 1 or known is stops:
            return union(found, values)
        if known is None:
            found = union(found, values)
    return found


def _not(m: Machine, node: ast.UnaryOp, scope: Scope) -> Values:
    known = truth(m, node.operand, scope) if isinstance(node.op, ast.Not) else None
    if isinstance(node.op, ast.USub):
        value = constant(m.evaluate(node.operand, scope))
        if isinstance(value, (int, float)):
            return (Constant(-value),)
    return (Constant(not known),) if known is not None else UNKNOWN


def _compare(m: Machine, node: ast.Compare, scope: Scope) -> Values:
    left = m.evaluate(node.left, scope)
    right = m.evaluate(node.comparators[0], scope)
    return compared(node.ops[0], left, right) if len(node.ops) == 1 else UNKNOWN


def truth(m: Machine, node: ast.expr, scope: Scope) -> bool | None:
    """Whether a condition holds; None where that is not known."""
    if isinstance(node, ast.BoolOp):
        known = [truth(m, part, scope) for part in node.values]
        decides = isinstance(node.op, ast.Or)
        return decides if decides in known else None if None in known else not decides
    return truth_of(m.evaluate(node, scope))


def _operation(m: Machine, node: ast.BinOp, scope: Scope) -> Values:
    left, right = m.evaluate(node.left, scope), m.evaluate(node.right, scope)
    a, b = constant(left), constant(right)
    if isinstance(node.op, ast.Add):
        if isinstance(a, str) and isinstance(b, str):
            return (Constant(a + b),) if len(a) + len(b) <= _LONGEST else UNKNOWN
        lists = [x for x in (*left, *right) if isinstance(x, Object) and x.items is not None]
        if len(lists) == 2 == len(left) + len(right):
            made = m.make(None, lists[0].name)
            made.items = [*(lists[0].items or ()), *(lists[1].items or ())]
            made.rest = union(lists[0].rest, lists[1].rest)
            return (bounded(made),)
    if isinstance(node.op, ast.Mult) and len(left) == 1 and isinstance(left[0], Object) and left[0].items is not None:
        return (sequence([], left[0].held),)
    if isinstance(node.op, ast.BitOr) and all(isinstance(x, Object) and x.fields is not None for x in (*left, *right)):
        made = mapping({})
        for one in (*left, *right):
            assert isinstance(one, Object)
            made.fields = {**(made.fields or {}), **(one.fields or {})}
            made.rest = union(made.rest, one.rest)
        return (made,)
    return UNKNOWN


def _text(m: Machine, node: ast.JoinedStr, scope: Scope) -> Values:
    parts: list[str] = []
    for part in node.values:
        inner = part.value if isinstance(part, ast.FormattedValue) else part
        value = constant(m.evaluate(inner, scope))
        if not isinstance(value, (str, int)) or (isinstance(part, ast.FormattedValue) and part.format_spec):
            return UNKNOWN
        parts.append(str(value))
    return (Constant("".join(parts)),)


def _lambda(m: Machine, node: ast.Lambda, scope: Scope) -> Values:
    return (Callable(m.inner(node, scope), scope),)


def _walrus(m: Machine, node: ast.NamedExpr, scope: Scope) -> Values:
    values = m.evaluate(node.value, scope)
    m.assign(node.target, values, scope)
    return values


def _inner(m: Machine, node: ast.Await | ast.Starred, scope: Scope) -> Values:
    return m.evaluate(node.value, scope)


def _yield(m: Machine, node: ast.Yield, scope: Scope) -> Values:
    values = m.evaluate(node.value, scope) if node.value is not None else UNKNOWN
    given = scope.generator()
    given.rest = union(given.rest, values)
    scope.enter(values)
    return UNKNOWN


def _yield_from(m: Machine, node: ast.YieldFrom, scope: Scope) -> Values:
    values = m.evaluate(node.value, scope)
    given = scope.generator()
    given.rest = union(given.rest, *(a.held for a in values if isinstance(a, Object)))
    return UNKNOWN


_HANDLERS: dict[type, Any] = {
    ast.Constant: _constant, ast.Name: _name, ast.Attribute: _attribute, ast.Call: _call, ast.List: _sequence,
    ast.Tuple: _sequence, ast.Set: _sequence, ast.Dict: _mapping, ast.ListComp: _comprehension,
    ast.SetComp: _comprehension, ast.GeneratorExp: _comprehension, ast.DictComp: _dict_comprehension,
    ast.Subscript: _subscript, ast.IfExp: _choice, ast.BoolOp: _logic, ast.UnaryOp: _not, ast.Compare: _compare,
    ast.BinOp: _operation, ast.JoinedStr: _text, ast.Lambda: _lambda, ast.NamedExpr: _walrus, ast.Await: _inner,
    ast.Starred: _inner, ast.Yield: _yield, ast.YieldFrom: _yield_from,
}  # fmt: skip
