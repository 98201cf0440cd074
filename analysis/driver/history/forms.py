"""Expressions of numbers, tensors and sequences in a history."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from graphmend.analysis.driver.execution import comparisons, expressions
from graphmend.analysis.driver.execution.objects import (
    NONE,
    UNKNOWN,
    Atom,
    Constant,
    Object,
    Scope,
    Values,
    sequence,
    union,
)
from graphmend.analysis.driver.guards.atoms import Input, Numbers, Tensor, only, raw_of, tensor
from graphmend.analysis.driver.guards.facts import SPECIALISED_SIZES
from graphmend.analysis.driver.history import tensors
from graphmend.analysis.driver.history.numbers import arithmetic

if TYPE_CHECKING:
    from graphmend.analysis.driver.guards.trace import Trace
    from graphmend.analysis.driver.history.interface import Recorder

#: rounds of a loop that are executed
ROUNDS = 6
#: and where it is not known how many there are
UNKNOWN_ROUNDS = 3
#: items of a comprehension that are told apart
_LONGEST = 64


def items_of(m: Recorder, values: Values, most: int = ROUNDS) -> list[Values]:
    """What a loop over something binds in its first rounds, and in the last one where it is known."""
    atom = values[0] if len(values) == 1 else None
    if isinstance(atom, Tensor):
        _touch(m, atom)
        rows = tensors.rows(atom, most)
        if rows is not None:
            return rows
    if isinstance(atom, Numbers) and not atom.scalar:
        return [(Numbers((one,), scalar=True),) for one in atom.numbers[:most]]
    if isinstance(atom, Object) and (atom.items is not None or atom.fields is not None):
        _touch(m, atom)
        if atom.fields is not None:
            keys: list[Values] = [(Constant(key),) for key in atom.fields]
            return keys[:most]
        items = list(atom.items or ())
        if items or not atom.rest:
            path = m.trace.path(atom) if m.trace is not None else None
            if m.trace is not None and path is not None:
                items = [m.trace.given(one, (*path, ("item", i))) for i, one in enumerate(items)]
            return items if len(items) <= most or atom.rest else [*items[: most - 1], items[-1]]
    held = [one.held if isinstance(one, Object) else UNKNOWN for one in values]
    return [(union(*held) if held else UNKNOWN) or UNKNOWN] * UNKNOWN_ROUNDS


def _touch(m: Recorder, atom: Atom) -> None:
    if m.trace is not None:
        m.trace.touch(atom)
        path = m.trace.path(atom)
        if path is not None and isinstance(atom, Object) and atom.fields is not None:
            m.trace.guard((*path, ("keys",)))


def sizes(m: Recorder, owner: Tensor) -> Values:
    """`owner.shape`."""
    if owner.shape is None:
        return UNKNOWN
    trace = m.trace
    path = trace.path(owner) if trace is not None else None
    items: list[Values] = []
    for index, size in enumerate(owner.shape):
        if size is None:
            items.append(UNKNOWN)
        elif trace is None or path is None:
            items.append((Constant(size),))
        else:
            where = (*path, ("size", index))
            items.append((Input(size, (where,), lambda moment, where=where: moment.peek(where), trace),))  # type: ignore[misc]
    return (sequence(items, name="builtins.tuple"),)


def operation(m: Recorder, op: ast.operator, left: Values, right: Values) -> Values:
    """`left op right`."""
    if m.trace is not None:
        for atom in (*left, *right):
            m.trace.touch(atom)
    if tensor(left) is not None or tensor(right) is not None:
        return tensors.binary(op, left, right)
    found = arithmetic.binary(op, left, right)
    if found is not None:
        return found
    return _of_sequences(m, op, left, right)


def _of_sequences(m: Recorder, op: ast.operator, left: Values, right: Values) -> Values:
    first, second = (v[0] if len(v) == 1 else None for v in (left, right))
    if isinstance(op, ast.Mult) and isinstance(first, Object) and first.items is not None:
        number = second.value if isinstance(second, Constant) else ...
        if isinstance(number, int) and 0 <= number * len(first.items) <= 24:
            return (sequence(list(first.items) * number, first.rest, first.name),)
        return (sequence([], first.held, first.name),)
    lists = [one for one in (first, second) if isinstance(one, Object) and one.items is not None]
    if isinstance(op, ast.Add) and len(lists) == 2:
        a, b = lists
        joined = sequence([*(a.items or ()), *(b.items or ())], union(a.rest, b.rest), a.name)
        return (expressions.bounded(joined),)
    return UNKNOWN


def _operation(m: Recorder, node: ast.BinOp, scope: Scope) -> Values:
    return operation(m, node.op, m.evaluate(node.left, scope), m.evaluate(node.right, scope))


def _unary(m: Recorder, node: ast.UnaryOp, scope: Scope) -> Values:
    operand = m.evaluate(node.operand, scope)
    if tensor(operand) is not None:
        if m.trace is not None:
            m.trace.touch(operand[0])
        return operand if not isinstance(node.op, ast.Not) else UNKNOWN
    found = arithmetic.unary(node.op, operand)
    if found is not None:
        return found
    known = comparisons.truth_of(operand) if isinstance(node.op, ast.Not) else None
    return (Constant(not known),) if known is not None else UNKNOWN


#: comparisons that go over elements
_ELEMENTWISE = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


def _compare(m: Recorder, node: ast.Compare, scope: Scope) -> Values:
    if len(node.ops) != 1:
        return expressions.evaluate(m, node, scope)
    left, right = m.evaluate(node.left, scope), m.evaluate(node.comparators[0], scope)
    op = node.ops[0]
    if isinstance(op, _ELEMENTWISE) and (tensor(left) is not None or tensor(right) is not None):
        return tensors.compared(operation(m, ast.Add(), left, right))
    found = arithmetic.comparison(op, left, right)
    if found is not None:
        return found
    if isinstance(op, (ast.In, ast.NotIn)) and len(right) == 1 and isinstance(right[0], Object):
        path = m.trace.path(right[0]) if m.trace is not None else None
        if path is not None and m.trace is not None:
            if right[0].fields is not None and only(left) is not ...:
                m.trace.guard((*path, ("contains", only(left))))
            else:
                m.trace.touch(right[0])
    if isinstance(op, (ast.Is, ast.IsNot)):
        for values in (left, right):
            if m.trace is not None and values and not isinstance(values[0], Constant):
                m.trace.touch(values[0])
        if any(isinstance(v, (Tensor, Object)) for v in left) and only(right) is None:
            return (Constant(isinstance(op, ast.IsNot)),) if len(left) == 1 else UNKNOWN
    elif m.trace is not None:
        for atom in (*left, *right):
            m.trace.touch(atom)
    return comparisons.compared(op, left, right)


def _subscript(m: Recorder, node: ast.Subscript, scope: Scope) -> Values:
    owners = m.evaluate(node.value, scope)
    owner = owners[0] if len(owners) == 1 else None
    if isinstance(owner, Tensor):
        return tensors.subscript(owner, node.slice, _indices(m, owner, node.slice, scope))
    if isinstance(owner, Object) and isinstance(node.slice, ast.Slice):
        return _slice(m, owner, node.slice, scope)
    if not isinstance(owner, Object) or isinstance(node.slice, ast.Slice):
        return expressions.evaluate(m, node, scope)
    index = m.evaluate(node.slice, scope)
    key = index[0].value if len(index) == 1 and isinstance(index[0], Constant) else ...
    values = expressions.item(m, owner, key, scope) or UNKNOWN
    trace = m.trace
    path = trace.path(owner) if trace is not None else None
    if trace is None or path is None or (id(owner), repr(key)) in trace.written:
        return values
    if owner.items is not None:
        trace.touch(owner)
    return trace.given(values, (*path, ("item", key))) if key is not ... else values


def stored_in_tensor(m: Recorder, target: ast.expr, scope: Scope) -> bool:
    """Whether what is assigned to is a part of a tensor, whose indices no trace depends on."""
    owner = tensor(m.evaluate(target.value, scope)) if isinstance(target, ast.Subscript) else None
    if owner is None or not isinstance(target, ast.Subscript):
        return False
    owner.numbers = None
    _indices(m, owner, target.slice, scope)
    return True


def _indices(m: Recorder, owner: Tensor, index: ast.expr, scope: Scope) -> list[list[Values]]:
    """What an index into a tensor is: of each of its parts the value, or the bounds and the step of a slice."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    given = [_of_part(m, part, scope) for part in parts]
    if m.trace is not None:
        m.trace.touch(owner)
        _needed(m.trace, owner, index, given)
        for atom in (atom for part in given for values in part for atom in values):
            m.trace.touch(atom)
    return [
        [tuple(Constant(raw_of(a)) if isinstance(a, Constant) else a for a in one) for one in part] for part in given
    ]


def _of_part(m: Recorder, part: ast.expr, scope: Scope) -> list[Values]:
    if not isinstance(part, ast.Slice):
        return [m.evaluate(part, scope)]
    return [m.evaluate(e, scope) if e is not None else NONE for e in (part.lower, part.upper, part.step)]


def _needed(trace: Trace, owner: Tensor, index: ast.expr, parts: list[list[Values]]) -> None:
    """Numbers in an index that a trace needs (torch 2.8 to 2.13): one among several indices, and the bound of a slice
    that is as long as 0 or 1."""
    for given, size in zip(parts, owner.shape or (None,) * len(parts), strict=False):
        if len(given) == 1:
            if isinstance(index, ast.Tuple):
                trace.decide_all(given[0])
            continue
        inputs = [values for values in given if any(isinstance(atom, Input) for atom in values)]
        picked = arithmetic.part(given)
        if len(inputs) == 1 and size is not None and picked and len(range(size)[picked]) in SPECIALISED_SIZES:
            trace.decide_all(inputs[0])


def _slice(m: Recorder, owner: Object, part: ast.Slice, scope: Scope) -> Values:
    given = (part.lower, part.upper, part.step)
    picked = arithmetic.part([m.evaluate(e, scope) if e is not None else NONE for e in given])
    if m.trace is not None:
        m.trace.touch(owner)
    if owner.items is None or owner.rest or picked is None:
        return (sequence([], owner.held or UNKNOWN, owner.name),) if owner.items is not None else UNKNOWN
    return (sequence(owner.items[picked], (), owner.name),)


def _comprehension(m: Recorder, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, scope: Scope) -> Values:
    return (sequence([m.evaluate(node.elt, inner) for inner in _rounds(m, node.generators, scope)]),)


def _dict_comprehension(m: Recorder, node: ast.DictComp, scope: Scope) -> Values:
    made = m.make(None, "builtins.dict")
    made.fields = {}
    for inner in _rounds(m, node.generators, scope):
        key = only(m.evaluate(node.key, inner))
        values = m.evaluate(node.value, inner)
        if key is not ...:
            made.fields[key] = values
        else:
            made.rest = union(made.rest, values)
    return (made,)


def _rounds(m: Recorder, generators: list[ast.comprehension], scope: Scope) -> list[Scope]:
    first, *more = generators
    found: list[Scope] = []
    for values in items_of(m, m.evaluate(first.iter, scope), _LONGEST):
        inner = Scope(scope.module, scope.function, scope)
        if m.trace is not None:
            m.trace.opened(inner)
        m.assign(first.target, values, inner)
        if False in [expressions.truth(m, test, inner) for test in first.ifs]:
            continue
        found += _rounds(m, more, inner) if more else [inner]
    return found


def _yield(m: Recorder, node: ast.Yield, scope: Scope) -> Values:
    values = m.evaluate(node.value, scope) if node.value is not None else NONE
    made = _gives(m, scope.generator(), [values])
    scope.enter(values)
    return made


def _yield_from(m: Recorder, node: ast.YieldFrom, scope: Scope) -> Values:
    return _gives(m, scope.generator(), items_of(m, m.evaluate(node.value, scope)))


def _gives(m: Recorder, generator: Object, items: list[Values]) -> Values:
    """A generator gives these, one after the other."""
    if m.is_certain and generator.items is not None:
        generator.items += items
        expressions.bounded(generator)
    else:
        generator.rest = union(generator.rest, *items)
    return UNKNOWN


HANDLERS: dict[type, Any] = {
    ast.BinOp: _operation, ast.UnaryOp: _unary, ast.Compare: _compare, ast.Subscript: _subscript,
    ast.ListComp: _comprehension, ast.SetComp: _comprehension, ast.GeneratorExp: _comprehension,
    ast.DictComp: _dict_comprehension, ast.Yield: _yield, ast.YieldFrom: _yield_from,
}  # fmt: skip
