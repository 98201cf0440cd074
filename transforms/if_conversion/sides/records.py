"""Records that the sides of a branch make, which a graph selects field by field."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Static, Value
from graphmend.analysis.program.entities import Record
from graphmend.analysis.resolution.classes import mro
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.fix import Difference
from graphmend.transforms.if_conversion.side_functions import NotAFunctionError
from graphmend.transforms.legality.memory import may_share, shares
from graphmend.transforms.legality.own_functions import makes_object, makes_record
from graphmend.transforms.legality.writes.changes import changes

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

#: what stands for a tensor that is there
_READS = (ast.Name, ast.Attribute, ast.Subscript)
#: a value that a side gives: its expression where there is one, what it is, and its text
Given = tuple[ast.expr | None, Value, str]


def is_object(value: Value) -> bool:
    """Is a value an object of a dataclass, which is what it is by its identity, unlike a named tuple?"""
    return isinstance(value, Record) and value.items is None


def told_of_records(pairs: Iterable[tuple[str | None, Given, Given]]) -> str:
    """What `select` is told where both sides make an object of a dataclass."""
    made = [is_object(given[1]) for _, *both in pairs for given in both]
    if any(made) and not all(made):
        raise NotAFunctionError("one graph selects either objects or tensors")
    return ", records=True" if any(made) else ""


def record_differences(facts: FunctionFacts, name: str | None, given: Given) -> Iterator[Difference]:
    """What differs as a record that a side gives is made again while compiled, of tensors that are selected. Raises
    where something else has the object, or where its fields share memory.
    """
    node, value, text = given
    if is_object(value) and not makes_object(facts, node):
        raise NotAFunctionError(f"`{text}` may be an object that something else has, too")
    if not isinstance(value, Record) or node is None:
        return
    tensors: list[ast.expr] = []
    for call in (n for n in nodes_in(node) if isinstance(n, ast.Call) and makes_record(facts, n)):
        fields = [*call.args, *(k.value for k in call.keywords)]
        there = [e for e in fields if isinstance(e, _READS) and not isinstance(facts.value(e), (Static, Record))]
        for one, other in combinations(there, 2):
            if ast.dump(one) == ast.dump(other) or may_share(facts, one, other):
                raise NotAFunctionError(f"`{shortened(one)}` and `{shortened(other)}` of a record may share memory")
        tensors += [e for e in fields if not isinstance(facts.value(e), Static)]
    there = [e for e in tensors if isinstance(e, _READS)]
    if there and (_has_methods(value) or _is_changed(facts, name)):
        raise NotAFunctionError(
            f"`{shortened(there[0])}` is changed in place later, and would be a copy while compiled"
        )
    if not all(shares(facts, e).fresh for e in tensors):
        yield Difference("aliasing", "while compiled the result is a copy where a side gives an existing tensor")


def _has_methods(record: Record) -> bool:
    return any(not name.startswith("__") for cls in mro(record.info) for name in cls.methods)


def _is_changed(facts: FunctionFacts, name: str | None) -> bool:
    """May a field of a record be changed in place: one that a name has, or one that is returned to who calls?"""
    if name is not None:
        return any(_begins_with(target, name) for _, target in changes(facts))
    return any(changes(caller) for caller in facts.calls())


def _begins_with(target: ast.expr, name: str) -> bool:
    """Is a target a field of what a name stands for?"""
    while isinstance(target, (ast.Attribute, ast.Subscript)):
        target = target.value
    return isinstance(target, ast.Name) and target.id == name
