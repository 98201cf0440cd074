"""Is a value computed from picked rows one row at a time, so that it may be computed for all rows instead?"""

from __future__ import annotations

import ast
from collections.abc import Container as Collected
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Container, Tensor
from graphmend.analysis.program.entities import Instance
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.liveness import locals_of, parameters, reads, stored
from graphmend.transforms.code.qualified_names import constant, is_tensor, number_type, qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.raising.tensors import for_some_values
from graphmend.transforms.legality.rows.kinds import Does, Kind, Kinds, has_rows
from graphmend.transforms.legality.rows.masked_elements import Picked, is_line, is_mask, nonzero_of, other_ranks_meet
from graphmend.transforms.legality.rows.modules import does
from graphmend.transforms.legality.rows.through import own_function
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

ALL_ROWS = (
    Difference("evaluation", "all rows are computed, those that are not picked in vain"),
    Difference("rounding", "a product of matrices with more rows may round otherwise in its last digits"),
)


class PickedRows(Kinds):
    """The expressions of a function in which some `picks` stand for picked rows. Names in `bound` are such, too."""

    def __init__(self, facts: FunctionFacts, picks: Collected[ast.expr], *, flat: bool) -> None:
        """`flat`: the rows are picked along one dimension, the first of what they are picked from."""
        super().__init__(flat=flat)
        self._facts, self._picks = facts, picks
        self.filled = False
        """Are the rows that are not picked ones?"""

    @property
    def rows(self) -> set[str]:
        """The names of what has a row for each that is picked."""
        return {name for name, kind in self.bound.items() if has_rows(kind)}

    def goes_on(self, statement: ast.stmt) -> bool:
        """Does a statement bind names of rows to rows alone, on one side of what is known while tracing perhaps? What
        is changed in place has the shape of before, and what changes it no rows of its own.
        """
        changes = [n.value for n in nodes_in(statement) if isinstance(n, ast.AugAssign)]
        names = stored([statement])
        if not names <= self.rows or not self.binds(statement) or not self.pure:
            return False
        return names <= self.rows and not any(reads(value) & self.rows for value in changes)

    def leaf(self, node: ast.expr) -> Kind | None:
        facts, value = self._facts, self._facts.value(node)
        if node in self._picks:
            return "rows" if isinstance(value, Tensor) and (value.rank or 0) >= 2 else "line"
        if isinstance(node, ast.Name) and node.id in self.bound:
            return self.bound[node.id]
        if number_type(facts, node) is not None or (isinstance(value, Tensor) and value.rank == 0):
            return "number" if not self._has_picks(node) else None
        if isinstance(node, ast.Name):
            outer = node.id not in locals_of(facts.function) or node.id in parameters(facts.function)
            return "const" if outer or not isinstance(value, Tensor) else "other"
        return None

    def factor(self, node: ast.expr) -> Kind:
        """A matrix is the same for every row, whoever computed it."""
        value = self._facts.value(node)
        plain = isinstance(node, ast.Name) and isinstance(value, Tensor) and value.rank == 2
        return "const" if plain and not self._has_picks(node) else self.kind(node)

    def _has_picks(self, node: ast.expr) -> bool:
        return any(
            isinstance(n, ast.expr) and (n in self._picks or (isinstance(n, ast.Name) and n.id in self.rows))
            for n in nodes_in(node)
        )

    def module(self, function: ast.expr, given: Kind) -> Does | None:
        value = self._facts.value(function)
        torch_module = isinstance(value, ExternalInstance) and value.cls.startswith("torch.nn.")
        if not (torch_module or isinstance(value, (Instance, Container))):
            return None
        return does(value, self._facts.source.tree, given)

    def raises(self, op: ast.operator, left: ast.expr, right: ast.expr) -> bool:
        return not (self.filled and right in self._picks) and for_some_values(self._facts, op, left, right)

    def own(self, call: ast.Call) -> Kind | None:
        if (found := own_function(self._facts, call)) is None:
            return None
        function, given = found
        inside = PickedRows(self._facts.within(function), frozenset(), flat=self._flat)
        parameters = {a.arg for a in nodes_in(function.args) if isinstance(a, ast.arg)}
        inside.bound = {name: self.kind(given[name]) if name in given else "const" for name in parameters}
        *steps, last = function.body
        if not isinstance(last, ast.Return) or last.value is None:
            return None
        values = [s.value for s in (*steps, last) if isinstance(s, (ast.Assign, ast.Return)) and s.value is not None]
        if not all(inside.binds(s) for s in steps) or not all(inside.meets_no_other(v) for v in values):
            return None
        kind = inside.kind(last.value)
        return kind if inside.pure else None

    def meets_no_other(self, node: ast.expr) -> bool:
        """Do rows that names stand for meet no tensor that has as many dimensions, or rows of other ranks?"""
        names = {n for n in nodes_in(node) if isinstance(n, ast.Name) and n.id in self.rows}
        return rows_alone(self._facts, node, names) and not other_ranks_meet(self._facts, node, names)

    def qualified(self, function: ast.expr) -> str | None:
        name = qualified(self._facts, function)
        return None if name is None or name.startswith("torch.Tensor.") else name


@answers("domain")
def by_rows(
    facts: FunctionFacts, node: ast.expr, picks: Collected[ast.expr], *, flat: bool, filled: bool = False
) -> bool:
    """Is each row of a value computed from that at its own place in each of `picks`? `filled`: the others are ones."""
    if other_ranks_meet(facts, node, picks) or any(_picks_otherwise(facts, n, picks) for n in nodes_in(node)):
        return False
    kinds = PickedRows(facts, picks, flat=flat)
    kinds.filled = filled
    return has_rows(kinds.kind(node)) and kinds.pure


def _picks_otherwise(facts: FunctionFacts, node: ast.AST, picks: Collected[ast.expr]) -> bool:
    """Is a mask one of several indices, as in `x[m, 0]`?"""
    match node:
        case ast.Subscript(slice=ast.Tuple(elts=indices)) if node not in picks:
            return any(is_mask(facts, index) for index in indices)
    return False


@answers("shapes")
def rows_alone(facts: FunctionFacts, node: ast.expr, picks: Collected[ast.expr]) -> bool:
    """Do picked rows meet only tensors of fewer dimensions, which have no rows of their own: as many as are picked?"""
    inside = [n for n in nodes_in(node) if isinstance(n, ast.expr) and n in picks]
    ranks = [value.rank if isinstance(value := facts.value(n), Tensor) else None for n in inside]
    least = min((rank or 0 for rank in ranks), default=0)
    rest: list[ast.AST] = [node]
    while rest:
        one = rest.pop()
        if one in inside:
            continue
        of = facts.value(one) if isinstance(one, ast.expr) else None
        if isinstance(of, Tensor) and not any(n in inside for n in nodes_in(one)):
            if of.rank is None or of.rank >= least:
                return False
        else:
            rest += ast.iter_child_nodes(one)
    return True


#: they make a line of a column; `squeeze()` makes something else of a single place
_FLAT: tuple[tuple[str, list[object]], ...] = (
    ("squeeze", [-1]),
    ("squeeze", [1]),
    ("flatten", []),
    ("view", [-1]),
    ("reshape", [-1]),
)


class Positions(NamedTuple):
    """The positions of a mask, a name for each of its dimensions."""

    names: list[str]
    mask: ast.expr
    maybe_more: bool = False
    """May the mask have more dimensions?"""


@answers("domain")
def positions_found(facts: FunctionFacts) -> Positions | None:
    """The statement that binds positions, and nothing else."""
    statement, node = facts.statement, facts.node
    if not (isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(node, ast.expr)):
        return None
    found = nonzero_of(facts, node)
    if found is None or not is_tensor(facts, found.mask):
        return None
    target, value = statement.targets[0], statement.value
    mask = facts.value(found.mask)
    rank = mask.rank if isinstance(mask, Tensor) else None
    if isinstance(target, ast.Tuple) and value is node and found.as_tuple and 1 <= len(target.elts) <= 2:
        names = [e.id for e in target.elts if isinstance(e, ast.Name)]
        return Positions(names, found.mask) if len(names) == len(target.elts) else None
    if not (isinstance(target, ast.Name) and rank in (None, 1)):
        return None
    match value:
        case ast.Subscript(value=inner, slice=index) if inner is node and found.as_tuple and constant(index) == 0:
            pass
        case ast.Call(func=ast.Attribute(value=inner, attr=attr), args=args) if (
            inner is node and not found.as_tuple and (attr, [constant(a) for a in args]) in _FLAT
        ):
            pass
        case ast.Subscript(value=inner, slice=ast.Tuple(elts=[ast.Slice(lower=None, upper=None), column])) if (
            inner is node and not found.as_tuple and constant(column) == 0
        ):
            pass
        case _:
            return None
    return Positions([target.id], found.mask, rank is None)


@answers("domain")
def raises_elsewhere(facts: FunctionFacts, node: ast.expr, picks: Mapping[ast.expr, Picked]) -> bool:
    """May an operation raise for what is not picked, and must not see that?"""
    return not by_rows(facts, node, picks, flat=all(is_line(facts, pick.mask) for pick in picks.values()))
