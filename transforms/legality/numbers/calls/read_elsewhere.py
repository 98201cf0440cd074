"""Numbers that are kept in an attribute: what other functions of the file that read it do with a 0-d tensor instead."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Hashable, Iterable
from copy import copy
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.qualified_names import constant, qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.numbers.arithmetic import NeedsPythonNumberError
from graphmend.transforms.legality.numbers.calls.carried import Carried, Path
from graphmend.transforms.legality.numbers.calls.handed_out import (
    hands_out,
    is_added_to,
    is_filled,
    writes_number,
)
from graphmend.transforms.legality.numbers.calls.readers import asked_elsewhere, is_called_otherwise, reads_elsewhere
from graphmend.transforms.legality.rows.counts import asks_length

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_CONVERSIONS = frozenset("builtins.float builtins.int builtins.bool".split()) | {
    f"math.{name}"
    for name in "ceil cos exp fabs floor isfinite isinf isnan log log10 log1p log2 pow sin sqrt tanh".split()
}


class ReadElsewhere(Carried):
    """Follows what outlives the function to its readers in sight. Who reads it in another file is not known, which is a
    difference that is named.
    """

    _is_elsewhere = False
    """Is this asked of a reader in another function?"""

    @abstractmethod
    def _check_names(self) -> None: ...

    @abstractmethod
    def _in(self, facts: FunctionFacts, dtype: Hashable, *, rewrites: bool) -> ReadElsewhere: ...

    def _read_elsewhere(self, target: ast.expr, dtype: Hashable) -> None:
        attribute = target.value if isinstance(target, ast.Subscript) else target
        if not isinstance(attribute, ast.Attribute):
            return
        for facts, read in reads_elsewhere(self.facts, attribute):
            node = read if attribute is target else facts.parent(read)
            if attribute is not target and isinstance(read.ctx, ast.Load) and _takes_all(node):
                raise NeedsPythonNumberError(f"`{shortened(node or read)}` needs Python numbers")
            if not isinstance(node, ast.expr) or node in self._elsewhere:
                continue
            if not (node is read or _may_be_entry(node, target)) or isinstance(facts.value(node), Tensor):
                continue
            if isinstance(adds := facts.parent(node), ast.AugAssign) and adds.target is node:
                raise NeedsPythonNumberError(f"`{shortened(adds)}` would change the tensor in place")
            if not isinstance(getattr(node, "ctx", None), ast.Load):
                continue
            self._elsewhere.add(node)
            self._asked_in(facts, node, dtype, is_number=True)

    def _is_alike_elsewhere(self, node: ast.expr, dtype: Hashable) -> bool:
        """Does another function do the same with a 0-d tensor, or only hand it out? What takes a number out of a tensor
        may break the graph there, and gives the same.
        """
        call = self.facts.parent(node)
        if isinstance(call, ast.Call) and qualified(self.facts, call.func) in _CONVERSIONS:
            return True
        if isinstance(call, (ast.Tuple, ast.Dict)) and isinstance(self.facts.parent(call), ast.Return):
            return False  # who gets that is followed
        return writes_number(self.facts, node, dtype) or self._is_handed_out(
            node, dtype, itself=isinstance(call, ast.Call)
        )

    def _is_handed_out(self, node: ast.expr, dtype: Hashable, *, itself: bool = False) -> bool:
        """Does another function only keep what it reads, or hand it out? Who reads it there is followed. `itself`: is
        that the number, which a call stores as it is?
        """
        places = hands_out(self.facts, node) if self._is_elsewhere else None
        if places is None:
            return False
        if isinstance(self.facts.parent(node), ast.Return):
            self._hands_back(dtype)
        says = f"`{shortened(self.facts.parent(node) or node)}` gets a 0-d tensor instead of a Python number"
        self.differences.append(Difference("type", says))
        for place in places:
            self._container_kept(place, dtype, itself=itself)
        return True

    def _grown_elsewhere(self, of: ast.Attribute, dtype: Hashable) -> None:
        self._container_read(reads_elsewhere(self.facts, of), of, dtype, itself=True)

    def _container_kept(self, place: ast.expr, dtype: Hashable, *, itself: bool) -> None:
        """What becomes of a container in an attribute, or of what holds that, of which an element is a tensor now, or
        holds one.
        """
        attribute = place
        while isinstance(attribute, ast.Subscript):
            attribute = attribute.value
        if not isinstance(attribute, ast.Attribute):
            return
        own = ((self.facts, node) for node in self._reads(attribute) if isinstance(node, ast.Attribute))
        self._container_read((*reads_elsewhere(self.facts, attribute), *own), place, dtype, itself=itself)

    def _container_read(
        self, reads: Iterable[tuple[FunctionFacts, ast.Attribute]], place: ast.expr, dtype: Hashable, *, itself: bool
    ) -> None:
        for facts, read in reads:
            node: ast.expr = read
            while isinstance(entry := facts.parent(node), ast.Subscript) and entry.value is node:
                node = entry
            if node in self._elsewhere or not isinstance(getattr(node, "ctx", None), ast.Load):
                continue
            self._elsewhere.add(node)
            if is_filled(facts, node) or asks_length(facts, facts.parent(node)):
                continue
            inner = _depth(node) > _depth(place) and not any(isinstance(n, ast.Slice) for n in nodes_in(node))
            if not itself and hands_out(facts, node) is None:
                raise NeedsPythonNumberError(f"`{shortened(facts.parent(node) or node)}` needs Python numbers")
            self._asked_in(facts, node, dtype, is_number=inner and itself)

    def _hands_back(self, dtype: Hashable, path: Path = ()) -> None:
        """A reader gives the number, or what holds it, to its own calls."""
        function = self.facts.function
        if is_called_otherwise(function):
            raise NeedsPythonNumberError(f"`{function.name}` returns a Python number to who is not known")
        if is_added_to(self.facts, function.name):
            raise NeedsPythonNumberError(f"what `{function.name}` gives is changed in place")
        for facts, node in asked_elsewhere(self.facts):
            if node not in self._elsewhere and not isinstance(facts.value(node), Tensor):
                self._elsewhere.add(node)
                self._asked_in(facts, node, dtype, is_number=not path, path=path)

    def _stored_in(self, node: ast.expr, dtype: Hashable) -> None:
        whole = self.facts.parent(node)
        back = whole is not None and isinstance(self.facts.parent(whole), ast.Return)  # who gets that is followed
        if back or not self._is_handed_out(node, dtype):
            super()._stored_in(node, dtype)

    def _looked_up(self, node: ast.Name, key: ast.expr, dtype: Hashable) -> None:
        if not self._is_handed_out(node, dtype):
            super()._looked_up(node, key, dtype)

    def _listed(self, node: ast.expr, dtype: Hashable) -> None:
        if not self._is_handed_out(node, dtype):
            super()._listed(node, dtype)

    def _is_in_record(self, call: ast.Call, node: ast.expr, dtype: Hashable) -> bool:
        made = self._is_elsewhere and self._fields(call.func) is not None
        return (made and self._is_handed_out(call, dtype)) or super()._is_in_record(call, node, dtype)

    def _asked_in(
        self, facts: FunctionFacts, node: ast.expr, dtype: Hashable, *, is_number: bool, path: Path = ()
    ) -> None:
        """Follows a number, or a container of it, in another function."""
        known = {name: copy(seen) for name, seen in vars(self).items() if isinstance(seen, (list, set, dict))}
        attempts = (False, True) if self.rewrites else (False,)
        for rewrites in attempts:  # some take a tensor as they are, beside others that are written otherwise
            uses = self._in(facts, dtype, rewrites=rewrites)
            uses.callers = self.callers | {self.facts.function}
            uses.returns_holder = uses._hands_back
            uses.returns_to = uses._hands_back  # to whom is named, as for those that read the attribute itself
            uses._elsewhere, uses._is_elsewhere = self._elsewhere, True
            try:
                if is_number:
                    uses.follow(node)
                elif path:
                    uses._carry(node, path, dtype)
                else:
                    uses._listed(node, dtype)
                    uses._check_names()
                if left := [*uses.also, *uses.counterparts]:
                    place = f"`{shortened(left[0])}` in `{facts.function.name}`"
                    raise NeedsPythonNumberError(f"{place} needs a Python number")
            except NeedsPythonNumberError:
                if rewrites is attempts[-1]:
                    raise
                vars(self).update(known)
                continue
            self.differences += uses.differences
            return


def _depth(place: ast.expr) -> int:
    return 1 + _depth(place.value) if isinstance(place, ast.Subscript) else 0


def _takes_all(node: ast.AST | None) -> bool:
    """May what a dictionary is given to, or a method of it, read all that it holds?"""
    match node:
        case (
            ast.Subscript()
            | ast.Compare(ops=[ast.In() | ast.NotIn()])
            | ast.Attribute(attr="clear" | "keys" | "update")
        ):
            return False
        case ast.Call(func=ast.Name(id="len")):
            return False
    return True


def _may_be_entry(node: ast.expr, target: ast.expr) -> bool:
    """Does a subscript ask for the same key, or for one that may be?"""
    assert isinstance(target, ast.Subscript)
    if not isinstance(node, ast.Subscript) or isinstance(node.ctx, ast.Del):
        return False
    one, other = constant(node.slice), constant(target.slice)
    return one is None or other is None or one == other
