"""Compute every row under a mask instead of those at which it holds.

Before:
    at, rows = torch.where(mask[e])
    y = self.linear(x[rows]) * weights[rows, at, None]
    out.index_add_(0, rows, y)

After:
    hit = mask[e] != 0
    y = self.linear(x[None]) * weights.transpose(0, 1)[:, :, None]
    out.add_(torch.where(hit[:, :, None], y, 0).sum(0))

Legal when:
    the positions of a mask of one or two dimensions only pick rows, what is computed of these is computed row by row
    (by linear layers, by each element, along the last dimension, by modules whose code does no more), also on a side of
    what is known while tracing, and is added or stored at the same positions. A row that two places name is added
    twice, or the positions come from `topk`. A question whether there are any goes; their number may be added.

Differs in:
    all rows are computed, and those that the mask does not hold for thrown away; their NaN derivatives may reach
    gradients. What is picked from is taken to have as many rows as the mask.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bindings
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import fresh, reads, stored, writes
from graphmend.transforms.code.positions import begins_line, replaceable
from graphmend.transforms.code.qualified_names import called, constant, is_tensor, method, number_type
from graphmend.transforms.code.text_edits import HOLE, replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.legality.empty_effects import asks_if_any, asks_if_empty, counts, is_counter
from graphmend.transforms.legality.gradients.sides import gradient_differences
from graphmend.transforms.legality.memory import changed_in_place
from graphmend.transforms.legality.outside.unguarded import seen_without_rows
from graphmend.transforms.legality.rows.kinds import has_rows
from graphmend.transforms.legality.rows.masked_elements import indexed, is_mask
from graphmend.transforms.legality.rows.picked_rows import ALL_ROWS, PickedRows, Positions, positions_found
from graphmend.transforms.legality.same_shape import ShapeInference
from graphmend.transforms.questions import answers
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "every_row"
_ZEROS = Difference("zero-gradients", "what only rows that nothing picks use gets zeros for gradients instead of None")
_COUNTED = (
    Difference("exception", "what rows are counted in is taken to be on the device of the mask"),
    Difference("rounding", "the number of rows is cast to the dtype that it is counted in, before it is added"),
)
_CAST = Difference("exception", "what is stored is cast to the dtype that it is stored in, where a store may raise")


class NotByRowsError(Exception):
    """The rows are used otherwise; the message is the sentence to refuse with."""


@asks("effects", "memory", "domain", "shapes", "gradients", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    positions = positions_found(facts)
    if positions is None:
        return None
    try:
        region = _Region(facts, positions)
    except NotByRowsError as error:
        return refuse(NAME, str(error))
    imports = Imports(facts)

    def make() -> list[TextEdit]:
        text, kept = region.text(imports)
        return [*imports.edits(), replace_statements(facts.source, region.old, text, *kept)]

    fix = offer(NAME, "compute every row under the mask", facts, make, region.differences)
    return replace(fix, computes_more=region.computes_more)


class _Region:
    """The statements from the one that binds positions to the last one that uses them."""

    def __init__(self, facts: FunctionFacts, positions: Positions) -> None:
        self._facts, self._code, self._positions = facts, Code(facts.source), positions
        self._picks: dict[ast.expr, str] = {}
        self._kinds = PickedRows(facts, self._picks, flat=len(positions.names) == 1 and not positions.maybe_more)
        self._parts: list[ast.stmt | tuple[ast.stmt, str]] = []
        """Statements that stay as they are, and others with what is to be made of them."""
        self._mask = fresh(facts, "hit") if not isinstance(positions.mask, ast.Name) else positions.mask.id
        if isinstance(positions.mask, ast.Name) and not is_mask(facts, positions.mask):
            self._mask = fresh(facts, "hit")
        self.differences: list[Difference] = [*ALL_ROWS]
        if positions.maybe_more:
            self.differences.append(Difference("exception", "the mask is taken to have one dimension, and raises else"))
        self._values: list[ast.expr] = []
        self._asked = False
        """Does a question whether there are any positions go?"""
        self._under: list[ast.stmt] | None = None
        """Statements that stood under such a question, while further ones do."""
        self._kept_under: list[ast.stmt] = []
        """Those of them that stay as they are."""
        self._flattened: dict[ast.AST, ast.Call] = {}
        """`T[None, rows]`, and the call that takes the first dimension away again."""
        block = facts.body_of(facts.statement)
        behind = block[block.index(facts.statement) + 1 :]
        used = [s for s in behind if reads(s) & {*positions.names}]
        if not used:
            raise NotByRowsError("the positions are not used behind the statement that binds them")
        self.old = [facts.statement, *behind[: behind.index(used[-1]) + 1]]
        self._stores = 0
        if isinstance(positions.mask, ast.Name) and changed_in_place(facts, positions.mask, behind=facts.statement):
            raise NotByRowsError(f"`{positions.mask.id}` is changed in place later")
        self._take(self.old[1:])
        rest = behind[len(self.old) - 1 :]
        self._take_rest(rest)
        if self._under is not None:  # a `continue` skipped the end of the loop's body as well
            self._no_more_guarded(behind[len(self.old) - 1 :])
        if not self._stores:
            raise NotByRowsError("what is computed of the rows is not stored at their positions")
        self.computes_more = bool(self._flattened) and not self._asked
        """Are only some rows computed where sizes are captured?"""
        self._check()
        if blockers := effects(facts, *self._values):
            raise NotByRowsError(blockers[0])
        self.differences += gradient_differences(facts, facts.statement, [self._values])
        self.differences = list(dict.fromkeys(self.differences))

    def _check(self) -> None:
        facts, names = self._facts, {*self._positions.names, *self._kinds.rows}
        inside = [n for s in self.old for n in nodes_in(s)]
        for node in nodes_in(facts.function):
            if isinstance(node, ast.Name) and node.id in names and node not in inside:
                raise NotByRowsError(f"`{node.id}` is used elsewhere as well")
        stores = [n.id for n in nodes_in(facts.function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        if any(stores.count(name) > 1 for name in self._positions.names):
            raise NotByRowsError("a name of the positions is bound again")
        for statement in self.old:
            if not (replaceable(facts, [statement]) and begins_line(facts.source, statement)):
                raise NotByRowsError("a statement shares its line with another one")
        if stored(self.old[1:]) & reads(self._positions.mask) or writes(*self.old[1:]) & {self._mask}:
            raise NotByRowsError("the mask changes")

    # -- statements

    def _take(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self._one(statement)

    def _take_rest(self, rest: list[ast.stmt]) -> None:
        """Statements behind the last use of the positions may use what was computed of the rows."""
        while rest and any(reads(s) & self._kinds.rows for s in rest):
            self._one(rest[0])
            self.old.append(rest[0])
            rest = rest[1:]

    def _no_more_guarded(self, rest: Sequence[ast.stmt] = ()) -> None:
        """Refuses where something that stood under a question would be seen to run without rows."""
        if why := seen_without_rows(self._facts, [*self._kept_under, *rest], [*(self._under or ()), *rest]):
            raise NotByRowsError(why)
        self._under, self._kept_under = None, []

    def _one(self, statement: ast.stmt) -> None:
        facts, names = self._facts, {*self._positions.names}
        if self._under is not None:
            self._under.append(statement)
            self._kept_under += [] if reads(statement) & (names | self._kinds.rows) else [statement]
        if not reads(statement) & (names | self._kinds.rows):
            if stored([statement]) & self._kinds.rows:
                raise NotByRowsError(f"`{ast.unparse(statement).splitlines()[0]}` binds something else")
            self._parts.append(statement)
            return
        match statement:
            case ast.If(test=test, body=[ast.Continue()], orelse=[]) if asks_if_empty(test, names) and isinstance(
                facts.parent(statement), (ast.For, ast.While)
            ):
                self._asked, self._under = True, self._under or []
                self.differences.append(_ZEROS)
            case ast.If(test=test, body=body, orelse=[]) if asks_if_any(test, names):
                inner, self._under = self._under is None, self._under or []
                self._asked = True
                self.differences.append(_ZEROS)
                self._take(body)
                if inner:
                    self._no_more_guarded()
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=out, attr="index_add_"), args=[dim, ast.Name(id=at), value], keywords=[]
                )
            ) if at in names and constant(dim) == 0:
                self._added(statement, out, at, value)
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(
                    func=ast.Attribute(value=out, attr="index_add"), args=[dim, ast.Name(id=at), value], keywords=[]
                ),
            ) if at in names and constant(dim) == 0:
                self._added(statement, out, at, value, f"{name} = {{out}} + ")
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name not in names:
                self._row_by_row(value)
                self._kinds.binds(statement)
                self._parts.append((statement, f"{name} = {self._code.line(value, self._picks)}\n"))
            case ast.AugAssign(target=ast.Subscript(value=out, slice=ast.Name(id=at)), op=ast.Add(), value=value) if (
                at in names
            ):
                if len(names) > 1 and not self._is_once():
                    raise NotByRowsError("a row that two places name is not added twice")
                self._added(statement, out, at, value)
            case ast.AugAssign(target=target, op=ast.Add() | ast.Sub() as op, value=value) if counts(
                value, names
            ) and is_counter(facts, target):
                sign = "+" if isinstance(op, ast.Add) else "-"
                self._parts.append((statement, f"{self._code.text(target)} {sign}= {self._mask}.sum()\n"))
                self.differences += _COUNTED
            case ast.Assign(targets=[ast.Subscript(value=out, slice=ast.Name(id=at))], value=value) if (
                at in names and len(names) == 1
            ):
                self._stored(statement, out, value)
            case ast.If() | ast.AugAssign(target=ast.Name()) if not reads(statement) & names:
                self._as_it_stands(statement)
            case _:
                raise NotByRowsError(f"`{ast.unparse(statement).splitlines()[0]}` does more with the rows")

    def _as_it_stands(self, statement: ast.stmt) -> None:
        """Takes what goes on with rows. Under a question, what it does besides would be seen to happen without rows."""
        if self._under is not None or not self._kinds.goes_on(statement):
            raise NotByRowsError(f"`{ast.unparse(statement).splitlines()[0]}` does more with the rows")
        self._values += [n.value for n in nodes_in(statement) if isinstance(n, (ast.Assign, ast.AugAssign))]
        self._parts.append(statement)

    def _row_by_row(self, value: ast.expr) -> None:
        """Checks a value that is computed of rows, and lifts what it picks."""
        self._lift(value)
        kind = self._kinds.kind(value)
        if not (has_rows(kind) and self._kinds.pure):
            raise NotByRowsError(f"`{ast.unparse(value)}` is not known to be computed row by row")
        self._values.append(value)

    def _added(self, statement: ast.stmt, out: ast.expr, at: str, value: ast.expr, bound: str = "") -> None:
        self._row_by_row(value)
        names = self._positions.names
        total = f".sum({1 - names.index(at)})" if len(names) == 2 else ""
        added = f"{{where}}({{mask}}, {{value}}, 0){total}"
        self._store(statement, out, value, f"{bound}{added}" if bound else f"{{out}}.add_({added})")

    def _stored(self, statement: ast.stmt, out: ast.expr, value: ast.expr) -> None:
        self._row_by_row(value)
        self.differences.append(_CAST)
        self._store(statement, out, value, "{out}.copy_({where}({mask}, {value}, {out}))")

    def _store(self, statement: ast.stmt, out: ast.expr, value: ast.expr, form: str) -> None:
        if not isinstance(out, (ast.Name, ast.Attribute)) or not is_tensor(self._facts, out):
            raise NotByRowsError(f"`{ast.unparse(out)}` is not known to be a tensor")
        self._stores += 1
        known = self._facts.value(out)
        rank = known.rank if isinstance(known, Tensor) else None
        target = self._code.operand(out)
        one = len(self._positions.names) == 1 and not self._has_its_rows(out)
        if rank is None or one:
            # raises for fewer of them, and for another number of rows, where one row would be taken for each
            sizes = [f"{target if one else self._mask}.shape[{i}]" for i in range(len(self._positions.names))]
        if rank is not None and one:
            mask = f"{self._mask}.reshape({', '.join([*sizes, *['1'] * (rank - 1)])})"
        elif rank is None:
            mask = f"{self._mask}.reshape({', '.join(sizes)}, *(1,) * ({target}.dim() - 1))"
        else:
            full = [":"] * len(self._positions.names) + ["None"] * (rank - 1)
            mask = f"{self._mask}[{', '.join(full)}]" if rank > 1 else self._mask
        text = self._code.argument(value, self._picks)
        if isinstance(value, ast.BinOp) and "\n" in text:
            text = f"({text})"
        self._parts.append((statement, form.format(out=target, where="{where}", mask=mask, value=text) + "\n"))
        says = f"`{target}`, and what rows are picked from, are taken to have as many rows as the mask"
        self.differences.append(Difference("exception", says))

    def _has_its_rows(self, out: ast.expr) -> bool:
        """Is a tensor known to have as many rows as the mask has elements?"""
        inference = ShapeInference(self._facts)
        shapes = [meta.shape if meta is not None else None for meta in map(inference.of, (out, self._positions.mask))]
        one, other = (shape if isinstance(shape, tuple) and shape else None for shape in shapes)
        if one is None or other is None:
            return False
        # what begins with a text is the shape of something as a whole
        return one == other if isinstance(one[0], str) or isinstance(other[0], str) else one[0] == other[0]

    @answers("domain")
    def _is_once(self) -> bool:
        """Does the mask hold at most once for each row: is it about the indices that `topk` gives?"""
        match self._positions.mask:
            case ast.Compare(left=ast.Name(id=name), ops=[ast.Eq()]):
                bound = [one.value for one in bindings(self._facts).get(name, [])]
                return bool(bound) and all(
                    value is not None
                    and (called(self._facts, value, "torch.topk") or method(self._facts, value, "topk")) is not None
                    for value in bound
                )
        return False

    # -- picks

    def _lift(self, value: ast.expr) -> None:
        """Finds what a value picks by the positions."""
        names = {*self._positions.names}
        for node in nodes_in(value):
            if (call := _flattened(node)) is not None and not reads(call.args[1]) & (names | self._kinds.rows):
                self._flattened[call.func.value] = call  # type: ignore[attr-defined]
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and reads(node.slice) & names:
                if not is_tensor(self._facts, node.value):
                    raise NotByRowsError(f"`{ast.unparse(node.value)}` is not known to be a tensor")
                if reads(node.value) & (names | self._kinds.rows):
                    raise NotByRowsError(f"`{ast.unparse(node)}` picks from what was picked")
                self._picks[self._flattened.get(node, node)] = self._picked(node)
            elif (
                isinstance(node, ast.Call)
                and (found := indexed(self._facts, node)) is not None
                and isinstance(found.by, ast.Name)
                and len(names) == 1
                and found.by.id in names
                and not reads(found.tensor) & (names | self._kinds.rows)
            ):
                self._picks[node] = self._code.operand(found.tensor)
        inside = {n for pick in self._picks for n in nodes_in(pick)}
        for node in nodes_in(value):
            if isinstance(node, ast.Name) and node.id in names and node not in inside:
                raise NotByRowsError(f"`{ast.unparse(value)}` uses the positions otherwise")

    def _picked(self, node: ast.Subscript) -> str:
        """What stands for `T[rows]`, `T[rows, at]`, `T[rows, None]`: all of `T`, in the dimensions of the mask."""
        names = self._positions.names
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        text = self._code.operand(node.value)
        if (call := self._flattened.get(node)) is not None:
            indices = indices[1:]  # as many rows as before, or what they are stored at does not fit them
            text = self._code.text(call, {node: text})
        given = [i.id for i in indices if isinstance(i, ast.Name) and i.id in names]
        first, rest = indices[: len(given)], indices[len(given) :]
        if not all(isinstance(i, ast.Name) and i.id in names for i in first) or len(given) > len(names):
            raise NotByRowsError(f"`{ast.unparse(node)}` picks more than rows")
        whole = len(given) == len(names) == 1  # `T[rows, 0]` picks along with the rows
        if any(
            not (isinstance(i, ast.Slice) or constant(i) is ... or _is_none(i))
            and not (whole and number_type(self._facts, i) == "int")
            for i in rest
        ):
            raise NotByRowsError(f"`{ast.unparse(node)}` picks more than rows")
        if given == names[::-1] and len(names) == 2:
            text += ".transpose(0, 1)"
        elif given != names:
            if len(given) != 1:
                raise NotByRowsError(f"`{ast.unparse(node)}` picks by one name twice")
            lead = [":", "None"] if given[0] == names[0] else ["None", ":"]
            return f"{text}[{', '.join([*lead, *(self._code.text(i) for i in rest)])}]"
        if not rest:
            return text
        return f"{text}[{', '.join([':'] * len(names) + [self._code.text(i) for i in rest])}]"

    # -- text

    def text(self, imports: Imports) -> tuple[str, list[list[ast.stmt]]]:
        facts, mask = self._facts, self._positions.mask
        where = imports.name("torch.where")
        lines: list[str] = []
        kept: list[list[ast.stmt]] = []
        if not (isinstance(mask, ast.Name) and mask.id == self._mask):
            test = self._code.line(mask) if is_mask(facts, mask) else f"{self._code.operand(mask)} != 0"
            lines.append(f"{self._mask} = {test}\n")
        for part in self._parts:
            if isinstance(part, tuple):
                lines.append(part[1].replace("{where}", where))
            else:
                lines.append(HOLE.format(len(kept)) + "\n")
                kept.append([part])
        return "".join(lines), kept


def _flattened(node: ast.AST) -> ast.Call | None:
    """`T[None, rows].reshape(-1, n)`: with two dimensions, what `T.reshape(-1, n)[rows]` is."""
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Subscript(slice=ast.Tuple(elts=[front, ast.Name()])), attr="reshape" | "view"),
            args=[first, _],
            keywords=[],
        ) if _is_none(front) and constant(first) == -1:
            return node
    return None


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
