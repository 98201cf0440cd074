"""Fill what a mask picks from the first rows of a tensor with `masked_scatter_`, which takes them in their order.

Before:
    n = int(dead.sum())
    if n == 0:
        return
    self.embed[dead] = batch[:n]
    self.usage[dead] = 1.0

After:
    self.embed.masked_scatter_(dead[..., None], batch.expand(-1, *self.embed.shape[1:]))
    self.usage[dead] = 1.0

Legal when:
    as many rows are taken as the mask has elements that are true, and what is stored is those rows, or those of other
    tensors at such places, converted or computed with one by one. The number is asked for nothing else. A question
    whether the mask picks anything goes with it where all that it guards stores under that mask, or copies what is
    stored to.

Differs in:
    all rows are computed. A single row that would serve for all that is picked raises, and so does expanded memory.
    Where the question is gone, what is stored to is written to, or copied, even if nothing is picked. What is computed
    of rows that are not taken may give NaN for their gradients.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code, shortened
from graphmend.transforms.code.positions import is_elif, replaceable
from graphmend.transforms.code.qualified_names import is_tensor, method, number_type
from graphmend.transforms.code.text_edits import HOLE, deletion, replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.legality.gradients.sides import leak, recorded
from graphmend.transforms.legality.in_place import dense, written_on_both_sides
from graphmend.transforms.legality.memory import changed_in_place, known_to_share
from graphmend.transforms.legality.neutral.binding import Binding, binding
from graphmend.transforms.legality.neutral.told import Told
from graphmend.transforms.legality.rows.masked_elements import Picked, aligned, picked
from graphmend.transforms.legality.totality import may_raise
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "filled_in_order"


class _NotFilledError(Exception):
    """The message says why what is picked is not filled so."""


@dataclass
class _Fill:
    """`A[m] = f(B[:n])`."""

    statement: ast.Assign
    target: Picked
    mask: ast.Name
    first: ast.Subscript
    """`B[:n]`."""
    count: ast.expr
    """`n`."""
    guards: list[ast.If] = field(default_factory=list)


@asks("effects", "totality", "memory", "domain", "gradients")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    fills = [f for n in nodes_in(facts.function) if (f := _fill(facts, n)) is not None]
    fill = next((f for f in fills if _concerns(facts, f)), None)
    if fill is None:
        return None
    of_mask = [f for f in fills if binding(facts, f.mask) == binding(facts, fill.mask)]
    try:
        counting = _counting(facts, of_mask)
        for one in of_mask:
            _check(facts, one)
            one.guards = _guards(facts, one, of_mask, counting)
    except _NotFilledError as error:
        return refuse(NAME, str(error))
    guards = list(dict.fromkeys(g for f in of_mask for g in f.guards))
    if len(guards) > 1:
        return refuse(NAME, "what is stored stands behind several questions")
    if not all(replaceable(facts, [s]) for s in (*guards, *(f.statement for f in of_mask))):
        return refuse(NAME, "the statement shares its line with another one")

    def make() -> list[TextEdit]:
        texts: dict[ast.stmt, str] = {f.statement: _text(facts, f) for f in of_mask}
        around = [g for g in guards if not _leaves(g)]
        edits = [deletion(facts, g) for g in guards if _leaves(g)]
        for guard in around:
            kept = [s for s in guard.body if s not in counting]
            lines = "".join(texts.pop(s, HOLE.format(i) + "\n") for i, s in enumerate(kept))
            edits.append(replace_statements(facts.source, [guard], lines, *([s] for s in kept)))
        inside = {n for g in around for n in nodes_in(g)}
        edits += [deletion(facts, s) for s in counting if s not in inside]
        return [*edits, *(replace_statements(facts.source, [s], text) for s, text in texts.items())]

    return offer(NAME, "fill what the mask picks in order", facts, make, _differences(facts, of_mask, guards))


# What is filled


def _fill(facts: FunctionFacts, node: ast.AST) -> _Fill | None:
    match node:
        case ast.Assign(targets=[ast.Subscript() as target], value=value):
            found = picked(facts, target)
        case _:
            return None
    if found is None or not isinstance(found.mask, ast.Name):
        return None
    told = Told(facts)
    for inner in nodes_in(value):
        match inner:
            case ast.Subscript(
                slice=ast.Slice(lower=None | ast.Constant(value=0), upper=ast.expr() as count, step=None)
            ):
                if is_tensor(facts, inner.value) and told.counts(count, found.mask):
                    return _Fill(node, found, found.mask, inner, count)
    return None


def _concerns(facts: FunctionFacts, fill: _Fill) -> bool:
    """Is the finding about a fill, its count, or a question that stands around it or in front?"""
    if facts.node in {*nodes_in(fill.statement)}:
        return True
    if isinstance(facts.statement, ast.If):
        return _question(facts, facts.statement, fill.mask) is not None
    bound = binding(facts, fill.count).by if isinstance(fill.count, ast.Name) else None
    return facts.statement is bound


def _counting(facts: FunctionFacts, fills: Sequence[_Fill]) -> list[ast.stmt]:
    """The statements that give the count a name. Whatever else reads it keeps it."""
    found: list[ast.stmt] = []
    for fill in fills:
        if not isinstance(fill.count, ast.Name):
            continue
        bound = binding(facts, fill.count)
        if bound.value is None or not isinstance(bound.by, ast.stmt):
            raise _NotFilledError(f"`{fill.count.id}` is bound in several ways")
        names = (n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
        if not all(_asked(facts, node, bound, fills) for node in names if node.id == bound.name):
            raise _NotFilledError(f"`{bound.name}` is read elsewhere as well")
        if bound.by not in found:
            found.append(bound.by)
    return found


def _asked(facts: FunctionFacts, node: ast.Name, bound: Binding, fills: Sequence[_Fill]) -> bool:
    """Is a count read by a fill, or by a question whether there is anything?"""
    if any(n is node for f in fills for n in nodes_in(f.first.slice)):
        return True
    tests = (a for a in facts.ancestors(node) if isinstance(a, ast.If))
    test = next((t for t in tests if any(n is node for n in nodes_in(t.test))), None)
    return binding(facts, node) == bound and test is not None and _question(facts, test, fills[0].mask) is not None


def _check(facts: FunctionFacts, fill: _Fill) -> None:
    """May all rows be computed, and are they stored as they come?"""
    if not _in_order(facts, fill.statement.value, fill.first):
        raise _NotFilledError(f"`{shortened(fill.statement.value)}` is not known to be computed one row at a time")
    if found := effects(facts, fill.statement.value, fill.target.tensor):
        raise _NotFilledError(found[0])
    if not Told(facts).steady(fill.mask):
        raise _NotFilledError(f"`{fill.mask.id}` is changed in place")


def _in_order(facts: FunctionFacts, node: ast.expr, first: ast.expr) -> bool:
    """Is each row of a value computed from the row at its place alone?"""
    if node is first:
        return True
    match node:
        case ast.Subscript(value=table, slice=index) if is_tensor(facts, table):
            return index is first or (not any(n is first for n in nodes_in(table)) and _in_order(facts, index, first))
        case ast.Call(func=ast.Attribute(value=inner), args=args) if method(facts, node, *_EACH):
            return _in_order(facts, inner, first) and not any(n is first for a in args for n in nodes_in(a))
        case ast.BinOp(left=left, right=right, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div()):
            sides = [s for s in (left, right) if not _is_number(facts, s)]
            return len(sides) == 1 and _in_order(facts, sides[0], first)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _in_order(facts, operand, first)
    return False


_EACH = ("to", "type", "type_as", "float", "half", "double", "detach", "clone", "contiguous", "abs", "tanh", "exp")


def _is_number(facts: FunctionFacts, node: ast.expr) -> bool:
    value = facts.value(node)
    return number_type(facts, node) is not None or (isinstance(value, Tensor) and value.rank == 0)


# Questions whether the mask picks anything


def _question(facts: FunctionFacts, guard: ast.If, mask: ast.Name) -> bool | None:
    """Does a test hold where a mask picks nothing (True), or fail there (False)?"""
    if binding(facts, mask).by is guard:
        return None
    for holds in (True, False):
        told = Told(facts)
        told.learn(guard.test, holds)
        if told.is_empty(mask):
            return holds
    return None


def _guards(facts: FunctionFacts, fill: _Fill, fills: Sequence[_Fill], counting: Sequence[ast.stmt]) -> list[ast.If]:
    """The questions in front of a fill, or around it, which guard nothing but stores under the mask."""
    found: list[ast.If] = []
    plain = {id(f.statement) for f in fills} | {id(s) for s in counting}
    for above in (fill.statement, *facts.ancestors(fill.statement)):
        if not isinstance(above, ast.stmt) or above is facts.function:
            break
        block = facts.body_of(above)
        if isinstance(above, ast.If) and _question(facts, above, fill.mask) is False:
            if above.orelse or not _does_nothing(facts, above.body, plain, fill.mask):
                raise _NotFilledError(f"`if {shortened(above.test)}` guards more than what is stored under the mask")
            found.append(above)
        for earlier in block[: block.index(above)]:
            if isinstance(earlier, ast.If) and _question(facts, earlier, fill.mask) is True:
                rest = block[block.index(earlier) + 1 :]
                if not _ends_alike(facts, earlier, block, rest, plain, fill.mask):
                    raise _NotFilledError(f"`if {shortened(earlier.test)}` leaves more than what is stored out")
                found.append(earlier)
    if any(is_elif(facts.source, g) for g in found):
        raise _NotFilledError("the question is one of several")
    return found


def _leaves(guard: ast.If) -> bool:
    return isinstance(guard.body[-1], (ast.Return, ast.Continue))


def _ends_alike(
    facts: FunctionFacts, guard: ast.If, block: list[ast.stmt], rest: list[ast.stmt], plain: set[int], mask: ast.Name
) -> bool:
    """Does the code behind a question that leaves do nothing where nothing is picked, and end in the same?"""
    match guard:
        case ast.If(body=[ast.Return(value=value)], orelse=[]) if block is facts.function.body:
            pass
        case _:
            return False
    if rest and isinstance(rest[-1], ast.Return):
        *rest, last = rest
        assert isinstance(last, ast.Return)
        same = [ast.unparse(v) if v is not None else "None" for v in (value, last.value)]
        if same[0] != same[1]:
            return False
    elif not (value is None or (isinstance(value, ast.Constant) and value.value is None)):
        return False
    return _does_nothing(facts, rest, plain, mask)


def _does_nothing(facts: FunctionFacts, region: Sequence[ast.stmt], plain: set[int], mask: ast.Name) -> bool:
    """Do statements only store under the mask, and compute for that what nothing else reads?"""
    within = {n for s in region for n in nodes_in(s)}
    outside = {n.id for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n not in within}
    return all(id(s) in plain or _stores_nothing(facts, s, mask, outside) for s in region)


def _stores_nothing(facts: FunctionFacts, statement: ast.stmt, mask: ast.Name, outside: set[str]) -> bool:
    """Does a statement store under the mask, copy what it stores to, or bind a name that is not read `outside`?"""
    match statement:
        case ast.Assign(targets=[ast.Subscript() as target], value=value):
            found = picked(facts, target)
            same = found is not None and isinstance(found.mask, ast.Name)
            return same and binding(facts, found.mask) == binding(facts, mask) and not effects(facts, value)  # type: ignore[union-attr, arg-type]
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Attribute(value=ast.Name(id=own)))):
            copies = name == own and method(facts, statement.value, "clone") is not None
            return copies or (name not in outside and not effects(facts, statement.value))
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name not in outside and not effects(facts, value)
        case ast.Pass():
            return True
    return False


# The new text, and what differs


def _text(facts: FunctionFacts, fill: _Fill) -> str:
    code = Code(facts.source)
    target, first = code.operand(fill.target.tensor), code.text(fill.first.value)
    value = code.operand(fill.statement.value, {fill.first: first})
    if not _is_line(facts, fill):
        value = f"{value}.expand(-1, *{target}.shape[1:])"
    if known_to_share(facts, fill.target.tensor, fill.statement.value):
        value += ".clone()"  # a store by an index copies what shares its memory; `masked_scatter_` raises
    return f"{target}.masked_scatter_({aligned(facts, fill.target)}, {value})\n"


def _is_line(facts: FunctionFacts, fill: _Fill) -> bool:
    """Have what is stored to, and what is stored, one dimension?"""
    values = [facts.value(fill.target.tensor), facts.value(fill.statement.value)]
    return all(isinstance(v, Tensor) and v.rank == 1 for v in values)


def _differences(facts: FunctionFacts, fills: Sequence[_Fill], guards: Sequence[ast.If]) -> list[Difference]:
    found: list[Difference] = []
    for fill in fills:
        rows, target = shortened(fill.first.value), shortened(fill.target.tensor)
        found.append(Difference("exception", f"a single row of `{rows}` that would serve for several raises"))
        found.append(
            Difference("exception", f"rows of `{rows}` that do not fit `{target}`, or are in it, raise otherwise")
        )
        if fill.statement.value is not fill.first:
            found += may_raise(facts, fill.statement.value)
        if leak(facts, fill.statement.value) != "never" and recorded(facts, fill.statement):
            says = f"a row of `{rows}` that is not taken has NaN for a gradient where the computation has none there"
            found.append(Difference("gradients", says))
        if not dense(facts, fill.statement, fill.target.tensor):
            found.append(Difference("exception", f"`{target}` that is expanded memory raises"))
        if changed_in_place(facts, fill.mask):
            says = f"`{fill.mask.id}` and `{target}` are taken to be different tensors"
            found.append(Difference("callers", says))
        if guards:
            found.append(written_on_both_sides(target))
    for guard in guards:
        says = f"what is stored without `if {shortened(guard.test)}` raises for another shape or dtype there too"
        found.append(Difference("exception", says))
        says = f"what `if {shortened(guard.test)}` guards is evaluated where nothing is picked"
        found.append(Difference("evaluation", says))
        for name in (s.targets[0].id for s in nodes_in(facts.function) if _is_clone(facts, s)):  # type: ignore[attr-defined]
            found.append(Difference("aliasing", f"`{name}` is a copy even where the mask picks nothing"))
        if recorded(facts, guard):
            says = "what is stored to asks for gradients even where the mask picks nothing"
            found += [Difference("gradients", says), Difference("zero-gradients", says)]
    return found


def _is_clone(facts: FunctionFacts, node: ast.AST) -> bool:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Attribute(value=ast.Name(id=own)))):
            return name == own and method(facts, node.value, "clone") is not None
    return False
