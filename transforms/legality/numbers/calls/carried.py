"""Records, tuples and dictionaries that hold a 0-d tensor instead of a Python number, followed as wholes through names
and from function to function, to whoever takes the number out of them.
"""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Hashable
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import stores
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.liveness import parameters
from graphmend.transforms.code.qualified_names import asks_for_none, constant
from graphmend.transforms.legality.numbers.arithmetic import NeedsPythonNumberError
from graphmend.transforms.legality.numbers.calls.handed_on import HandedOn, parameter_of

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


class Key(NamedTuple):
    """Where a container keeps what is followed."""

    names: frozenset[Hashable]
    """Its places, fields and keys there."""
    others: frozenset[Hashable] | None
    """Those of what else is in it; None where whatever is written out and is not among `names` is something else."""


#: the way from a container to a number in containers in it
Path = tuple[Key, ...]


class Carried(HandedOn):
    """Follows containers of numbers."""

    def __init__(self, facts: FunctionFacts, *, rewrites: bool = False) -> None:
        super().__init__(facts, rewrites=rewrites)
        self._carrying: set[tuple[ast.expr, Path]] = set()

    @abstractmethod
    def _target(self, target: ast.expr, dtype: Hashable, bound: ast.expr | None = None) -> None: ...

    def _is_in_record(self, call: ast.Call, node: ast.expr, dtype: Hashable) -> bool:
        """Does a call make a record that holds the number? Whoever has the record is followed."""
        found = self._place_in_record(call, node)
        if found is None:
            return False
        field, fields = found
        every = frozenset[Hashable]({*fields, *range(len(fields))})
        names = frozenset[Hashable]({field, fields.index(field)})
        self._carry(call, (Key(names, every - names),), dtype)
        return True

    def _carry_in_tuple(self, node: ast.expr, whole: ast.Tuple, dtype: Hashable, path: Path = ()) -> None:
        """A tuple of which an element is the number, or holds it."""
        places = range(len(whole.elts))
        if any(isinstance(one, ast.Starred) for one in whole.elts):
            raise NeedsPythonNumberError(f"`{shortened(whole)}` is to hold a Python number")
        place = next(i for i in places if whole.elts[i] is node)
        key = Key(frozenset({place, place - len(whole.elts)}), frozenset({*places, *(i - len(places) for i in places)}))
        self._carry(whole, (key._replace(others=(key.others or frozenset()) - key.names), *path), dtype)

    def _carry_in_dictionary(self, node: ast.expr, whole: ast.Dict, dtype: Hashable, path: Path = ()) -> None:
        """A dictionary that is written out, of which a value is the number, or holds it."""
        key = whole.keys[next(i for i, value in enumerate(whole.values) if value is node)]
        known = constant(key) if key is not None else None
        if known is None:
            raise NeedsPythonNumberError(f"`{shortened(whole)}` is to hold a Python number")
        self._carry(whole, (Key(frozenset({known}), None), *path), dtype)

    def _carry_under(self, node: ast.expr, key: ast.expr, dtype: Hashable) -> None:
        known = constant(key)
        if known is None:
            raise NeedsPythonNumberError(f"`{shortened(self.facts.parent(node) or node)}` needs Python numbers")
        self._carry(node, (Key(frozenset({known}), None),), dtype)

    def _carry(self, node: ast.expr, path: Path, dtype: Hashable) -> None:
        """What becomes of an expression whose value is such a container."""
        if (node, path) in self._carrying or asks_for_none(self.facts.parent(node)):
            return
        self._carrying.add((node, path))
        self.hands_over = True
        (key, *rest) = path
        match parent := self.facts.parent(node):
            case ast.Attribute(attr=attr, ctx=ast.Load()) if self._is_key(key, attr, field=True):
                if attr in key.names:
                    self._taken_out(parent, tuple(rest), dtype)
            case ast.Subscript(value=value, slice=index, ctx=ast.Load()) if value is node and self._is_key(
                key, constant(index)
            ):
                if constant(index) in key.names:
                    self._taken_out(parent, tuple(rest), dtype)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                self._carry_name(name, path, dtype)
            case ast.Assign(targets=[ast.Tuple(elts=targets)]) if not any(isinstance(t, ast.Starred) for t in targets):
                self._unpack(targets, key, tuple(rest), dtype)
            case ast.Return():
                self._carried_back(parent, path, dtype)
            case ast.Tuple(ctx=ast.Load()):
                self._carry_in_tuple(node, parent, dtype, path)
            case ast.Dict():
                self._carry_in_dictionary(node, parent, dtype, path)
            case ast.Call() if node in parent.args:
                self._carried_on(parent, node, path, dtype)
            case ast.keyword() if isinstance(call := self.facts.parent(parent), ast.Call):
                self._carried_on(call, node, path, dtype)
            case ast.Expr():
                pass
            case _:
                raise NeedsPythonNumberError(f"`{shortened(parent or node)}` takes all of `{shortened(node)}`")

    @staticmethod
    def _is_key(key: Key, asked: object, *, field: bool = False) -> bool:
        """Is it known what an attribute, or a key that is written out, asks for?"""
        if not isinstance(asked, Hashable) or asked is None:
            return False
        return asked in key.names or (not field if key.others is None else asked in key.others)

    def _taken_out(self, node: ast.expr, rest: Path, dtype: Hashable) -> None:
        if rest:
            self._carry(node, rest, dtype)
        elif not isinstance(self.facts.value(node), Tensor):
            self._follow(node, dtype)

    def _unpack(self, targets: list[ast.expr], key: Key, rest: Path, dtype: Hashable) -> None:
        place = next((n for n in key.names if isinstance(n, int) and 0 <= n < len(targets)), None)
        if place is None:
            raise NeedsPythonNumberError(f"`{shortened(targets[0])}` and others are taken apart otherwise")
        if not rest:
            self._target(targets[place], dtype)
        elif isinstance(target := targets[place], ast.Name):
            self._carry_name(target.id, rest, dtype)
        else:
            raise NeedsPythonNumberError(f"`{shortened(target)}` is to hold a Python number")

    def _carry_name(self, name: str, path: Path, dtype: Hashable) -> None:
        """A name that stands for such a container, and for nothing else."""
        given = name in parameters(self.facts.function)
        if stores(self.facts, name) != (0 if given else 1):
            raise NeedsPythonNumberError(f"`{name}` stands for several values, of which one holds a Python number")
        for node in nodes_in(self.facts.function):
            if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
                raise NeedsPythonNumberError(f"`{name}` is no local name")
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                self._carry(node, path, dtype)

    def _carried_back(self, statement: ast.Return, path: Path, dtype: Hashable) -> None:
        """A function returns such a container."""
        self._check_own(statement)
        if self.returns_holder is not None:
            self.returns_holder(dtype, path)
            return
        self._to_calls(dtype, lambda uses, call: uses._carry(call, path, dtype))  # type: ignore[attr-defined]

    def _carried_on(self, call: ast.Call, node: ast.expr, path: Path, dtype: Hashable) -> None:
        """Such a container is put into a record, or given to a function of the file."""
        if (found := self._place_in_record(call, node)) is not None:
            field, fields = found
            names = frozenset[Hashable]({field, fields.index(field)})
            others = frozenset[Hashable]({*fields, *range(len(fields))}) - names
            self._carry(call, (Key(names, others), *path), dtype)
            return
        parameter = parameter_of(self.facts, call, node)
        if parameter is None:
            raise NeedsPythonNumberError(f"`{shortened(call)}` takes all of `{shortened(node)}`")
        self._ask_within(parameter, call, dtype, lambda uses: uses._carry_name(parameter.name, path, dtype))  # type: ignore[attr-defined]
