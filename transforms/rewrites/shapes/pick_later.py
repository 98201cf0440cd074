"""Compute with all elements, and pick where they are reduced, counted or stored, instead of in front.

Before:
    wide = x[m]
    error = (wide - y[m]).abs()
    return error.mean()

After:
    wide = x
    error = (wide - y).abs()
    return error[m].mean()

Legal when:
    what picks is a bool tensor that stays as it is, and each name is bound to elements picked by it, or to what is
    computed from these one element, or one row, at a time. Where such a name serves for anything else, the elements
    are picked there, which is mended next: a reduction, a count, a store under the same mask. A mask that is computed
    in the index gets a name.

Differs in:
    elements that are not picked are computed in vain; they count as 1 where their derivatives might not be finite, and
    as 0 where they say where something is. A mask of another shape raises later or no more, unless shapes are known. A
    product of matrices with more rows may round otherwise.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor, dtype_kind
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import alive, fresh, reads, stored
from graphmend.transforms.code.positions import begins_line
from graphmend.transforms.code.qualified_names import number_type
from graphmend.transforms.code.text_edits import insert_before, replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.dtypes import filled
from graphmend.transforms.legality.gradients.sides import leak, recorded
from graphmend.transforms.legality.memory import changed_in_place
from graphmend.transforms.legality.rows.kinds import Kind, has_rows
from graphmend.transforms.legality.rows.masked_elements import (
    Picked,
    aligned,
    is_line,
    one_by_one,
    other_ranks_meet,
    other_shape,
    picked,
    picks_in,
    singular_at_one,
    unlike,
)
from graphmend.transforms.legality.rows.picked_rows import ALL_ROWS, PickedRows, by_rows, raises_elsewhere, rows_alone
from graphmend.transforms.legality.rows.places import places
from graphmend.transforms.legality.speculation import repeatable, speculate
from graphmend.transforms.legality.writes.handed import handed_between
from graphmend.transforms.rewrites.answers import asks, offer, refuse
from graphmend.transforms.rewrites.shapes.forms.along import ALL, along

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "pick_later"
_TWICE = Difference("rounding", "gradients of elements that are picked more than once are added in another order")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


class _NotLaterError(Exception):
    """The elements must be picked where they are; the message says why."""


@asks("effects", "totality", "memory", "order", "domain", "dtypes", "shapes", "gradients", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    found = picked(facts, facts.node)
    if found is None or (isinstance(facts.node, ast.Subscript) and not isinstance(facts.node.ctx, ast.Load)):
        return None
    if (answer := along(facts, found, NAME) or _hoisted(facts, found)) is not None:
        return answer
    if not isinstance(facts.statement, ast.Assign) or _parts(facts.statement) is None:
        return None
    try:
        flow = _Flow(facts, found.mask)
        flow.run()
    except _NotLaterError as error:
        return refuse(NAME, str(error))
    return _offer(facts, flow) if flow.bound else None


def _asks_kind(above: ast.AST | None) -> bool:
    """Is a tensor asked for what all of it and what is picked of it have in common?"""
    return isinstance(above, ast.Attribute) and above.attr in ("dtype", "device")


def _parts(statement: ast.Assign) -> list[tuple[str, ast.expr]] | None:
    """The names that an assignment binds, each with its value; None where it binds otherwise."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return [(name, value)]
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(values):
            pairs = [(t.id, v) for t, v in zip(targets, values, strict=True) if isinstance(t, ast.Name)]
            starred = any(isinstance(v, ast.Starred) for v in values)
            return pairs if len(pairs) == len(targets) and not starred else None
    return None


@dataclass
class _Value:
    """A value that one name is bound to, computed of all elements now."""

    node: ast.expr
    picks: dict[ast.expr, Picked] = field(default_factory=dict)
    rows: bool = False


class _Flow:
    """The names of elements that one mask picks, from the statement of the finding on, through the block around it."""

    def __init__(self, facts: FunctionFacts, mask: ast.expr) -> None:
        self.facts, self.mask, self._text = facts, mask, ast.unparse(mask)
        self.bound: list[_Value] = []
        self.used: list[ast.expr] = []
        """Names that are read where the elements must be picked, and what is picked there already."""
        self._live: dict[str, Kind] = {}
        self._same = True
        """Does the mask's text still mean the mask?"""
        block = facts.body_of(facts.statement)
        self.statements = block[block.index(facts.statement) :]
        self.named = not isinstance(mask, ast.Name) or mask.id in stored(self.statements)

    def run(self) -> None:
        facts = self.facts
        if not repeatable(facts, self.mask):
            raise _NotLaterError(f"`{self._text}` does more than compute")
        if changed_in_place(facts, self.mask, behind=facts.statement):
            raise _NotLaterError("the mask changes behind the place where it picks")
        for statement in self.statements:
            parts = _parts(statement) if isinstance(statement, ast.Assign) else None
            if parts is not None:
                self._bind(parts)
            else:
                self._use(statement)
                if lost := self._live.keys() & stored([statement]):
                    raise _NotLaterError(f"`{min(lost)}` is bound again in a branch, or changed in place")
            self._same &= not reads(self.mask) & stored([statement])
        self._check_behind()

    def _bind(self, parts: list[tuple[str, ast.expr]]) -> None:
        kinds: dict[str, Kind | None] = {}
        for name, value in parts:
            made = self._computed(value)
            kinds[name] = made
            if made is None:
                self._use(value)
        for name, kind in kinds.items():
            self._live.pop(name, None)
            if kind is not None:
                self._live[name] = kind

    def _computed(self, value: ast.expr) -> Kind | None:
        """The kind of a value that is computed of picked elements one at a time; None for others."""
        facts = self.facts
        inner = self._reduced(value)
        inside = {n for i in inner for n in nodes_in(i)}
        nodes = [n for n in nodes_in(value) if isinstance(n, ast.expr) and n not in inside]
        picks = {n: p for n in nodes if (p := self._pick(n)) is not None}
        leaves: dict[ast.expr, Kind] = {n: self._kind(n) for n in picks}
        covered = {n for leaf in picks for n in nodes_in(leaf)}
        for node in nodes:
            if isinstance(node, ast.Name) and self._is_live(node) and node not in covered:
                leaves[node] = self._live[node.id]
        if not leaves:
            return None
        if other_ranks_meet(facts, value, leaves):
            return None
        each = one_by_one(facts, value, {*leaves, *inner})
        rows = PickedRows(facts, {*picks}, flat=is_line(facts, self.mask))
        rows.bound, rows.indexed, rows.filled = dict(self._live), True, True
        kind = self._kind(value) if each else rows.kind(value)
        if not each and (inner or not has_rows(kind) or not rows.pure):
            return None
        if blockers := speculate(facts, value).blockers:
            raise _NotLaterError(blockers[0])
        self.bound.append(_Value(value, picks, not each))
        for one in inner:
            self._use(one)
        return kind

    def _kind(self, node: ast.expr) -> Kind:
        value = self.facts.value(node)
        return "rows" if isinstance(value, Tensor) and (value.rank or 0) >= 2 else "line"

    def _reduced(self, value: ast.expr) -> list[ast.expr]:
        """The outermost numbers and 0-d tensors in an expression that are made of picked elements."""
        found: list[ast.expr] = []
        rest: list[ast.AST] = [value]
        while rest:
            node = rest.pop()
            if isinstance(node, ast.expr) and self._has_picked(node) and self._is_single(node):
                found.append(node)
            elif not (isinstance(node, ast.expr) and self._pick(node) is not None):
                rest += ast.iter_child_nodes(node)
        return found

    def _is_single(self, node: ast.expr) -> bool:
        value = self.facts.value(node)
        return number_type(self.facts, node) is not None or (isinstance(value, Tensor) and value.rank == 0)

    def _has_picked(self, node: ast.AST) -> bool:
        return any(self._is_live(n) or self._pick(n) is not None for n in nodes_in(node))

    def _is_live(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in self._live

    def _pick(self, node: ast.AST) -> Picked | None:
        read = isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        if not self._same or not read:
            return None
        found = picked(self.facts, node)
        return found if found is not None and ast.unparse(found.mask) == self._text else None

    def _use(self, node: ast.AST) -> None:
        """Code that is given picked elements: it picks them where it reads them."""
        for one in nodes_in(node):
            if isinstance(one, _SCOPES) and reads(one) & self._live.keys():
                raise _NotLaterError("a function that is defined behind it reads the picked elements")
            if isinstance(one, ast.expr) and self._is_live(one) and not _asks_kind(self.facts.parent(one)):
                self.used.append(one)

    def _check_behind(self) -> None:
        """Nothing outside of the block may read the names, nor may anything write into what they stand for."""
        facts = self.facts
        given = sorted({name for v in self.bound for name in self.names_of(v.node)})
        last = facts.body_of(facts.statement)[-1]
        if any(alive(facts, name, last) for name in given):
            raise _NotLaterError("the picked elements are read outside of the block that picks them")
        if name := next((n for n in given if changed_in_place(facts, n, behind=facts.statement)), None):
            raise _NotLaterError(f"`{name}` is changed in place")
        sources = [self.mask, *(pick.tensor for value in self.bound for pick in value.picks.values())]
        if self.used and (call := handed_between(facts, sources, self.used)) is not None:
            raise _NotLaterError(f"`{ast.unparse(call)}` may change what is picked from")

    def names_of(self, value: ast.expr) -> list[str]:
        statement = next(a for a in self.facts.ancestors(value) if isinstance(a, ast.stmt))
        assert isinstance(statement, ast.Assign)
        return [name for name, of in _parts(statement) or () if of is value]


def _offer(facts: FunctionFacts, flow: _Flow) -> Fix | Refusal:
    found = flow.bound
    tensors = [p for value in found for p in value.picks.values()]
    if (other := next((p.tensor for p in tensors if not repeatable(facts, p.tensor)), None)) is not None:
        return refuse(NAME, f"`{ast.unparse(other)}` does more than compute")
    indices = places(facts, [(v.node, v.picks, flow.names_of(v.node)) for v in found])
    if isinstance(indices, str):
        return refuse(NAME, indices)
    fills = any(leak(facts, v.node) != "never" for v in found) and recorded(facts, facts.statement)
    if fills and (singular := singular_at_one(facts, [v.node for v in found])):
        return refuse(NAME, f"`{singular}` has no derivative at 1")
    if flow.named and not begins_line(facts.source, facts.statement):
        return refuse(NAME, "the statement shares its line with another one")
    always = [v for v in found if v.rows and raises_elsewhere(facts, v.node, v.picks)]
    every = [(n, p, v in always) for v in found for n, p in v.picks.items()]
    numbers = [p for n, p, raises in every if n in indices or raises or _copied(facts, p, fills=fills)]
    differences = list(ALL_ROWS) if any(v.rows for v in found) else [ALL, *([_TWICE] if len(flow.used) > 1 else [])]
    differences += filled(facts, *(p.tensor for p in numbers))
    for pick in tensors:
        differences += [*other_shape(facts, pick), *unlike(facts, pick.tensor, tensors[0].tensor)]

    def make() -> list[TextEdit]:
        imports, code, edits = Imports(facts), Code(facts.source), []
        name = fresh(facts, "picked") if flow.named else flow.mask.id  # type: ignore[attr-defined]
        for value in found:
            for node, pick in value.picks.items():
                mask = aligned(facts, pick, name)
                text, fill = code.operand(pick.tensor), 0 if node in indices else 1
                if pick in numbers:
                    text = f"{imports.name('torch.where')}({mask}, {code.argument(pick.tensor)}, {fill})"
                edits.append(replace_expression(facts.source, node, text))
        edits += [replace_expression(facts.source, n, f"{n.id}[{name}]") for n in flow.used if isinstance(n, ast.Name)]
        if flow.named:
            edits.append(insert_before(facts.source, facts.statement, f"{name} = {code.argument(flow.mask)}\n"))
        return [*imports.edits(), *edits]

    return offer(NAME, "pick where the elements are reduced", facts, make, differences)


def _copied(facts: FunctionFacts, pick: Picked, *, fills: bool) -> bool:
    """Must what is picked from be copied: filled, or kept from what is written to it later?"""
    value = facts.value(pick.tensor)
    known = dtype_kind(value.dtype) if isinstance(value, Tensor) else None
    return (fills and known not in ("bool", "int")) or changed_in_place(facts, pick.tensor, behind=facts.statement)


def _hoisted(facts: FunctionFacts, found: Picked) -> Fix | Refusal | None:
    """`f(x[m], y[m]).mean()`, where `f` works on each row by itself: `f(x, y)[m].mean()`."""
    mask, body = found.mask, None
    for above in facts.ancestors(facts.node):
        if not isinstance(above, (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Attribute)):
            break
        picks = picks_in(facts, above, mask)
        if isinstance(above, ast.Attribute) or one_by_one(facts, above, picks):
            continue
        rows = by_rows(facts, above, picks, flat=is_line(facts, mask), filled=True)
        if not (rows and rows_alone(facts, above, picks)):
            break
        body = above
    if body is None:
        return None
    picks = picks_in(facts, body, mask)
    if not repeatable(facts, mask, *(p.tensor for p in picks.values())):
        return refuse(NAME, f"`{ast.unparse(mask)}` does more than compute")
    if blockers := speculate(facts, body).blockers:
        return refuse(NAME, blockers[0])
    raises, fills = (
        raises_elsewhere(facts, body, picks),
        leak(facts, body) != "never" and recorded(facts, facts.statement),
    )
    if fills and (singular := singular_at_one(facts, [body])):
        return refuse(NAME, f"`{singular}` has no derivative at 1")
    numbers = [p for p in picks.values() if raises or (fills and _copied(facts, p, fills=fills))]
    differences = [*ALL_ROWS, *filled(facts, *(p.tensor for p in numbers))]
    for pick in picks.values():
        differences += [*other_shape(facts, pick), *unlike(facts, pick.tensor, found.tensor)]

    def make() -> list[TextEdit]:
        imports, code, texts = Imports(facts), Code(facts.source), dict[ast.expr, str]()
        for node, pick in picks.items():
            where = f"{imports.name('torch.where')}({aligned(facts, pick)}, {code.argument(pick.tensor)}, 1)"
            texts[node] = where if pick in numbers else code.operand(pick.tensor)
        whole = f"{code.operand(body, texts)}[{code.argument(mask)}]"
        return [*imports.edits(), replace_expression(facts.source, body, whole)]

    return offer(NAME, "compute every row and pick then", facts, make, differences)
