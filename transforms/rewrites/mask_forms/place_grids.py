"""Pick the places of a mask from tensors of all places instead of looking for them.

Before:
    ys, xs = torch.where(mask)
    return ys.min(), xs.max()

After:
    rows = torch.arange(mask.shape[0], device=mask.device)[:, None].expand_as(mask)
    columns = torch.arange(mask.shape[1], device=mask.device).expand_as(mask)
    ys = rows[mask]
    xs = columns[mask]
    return ys.min(), xs.max()

Legal when:
    the mask has several dimensions, as many as the code says, is no longer changed, and each line of places has a name
    or is taken out by its number: `where` and `nonzero` find the places in the same order.

Differs in:
    nothing. It is written for the mends of masks, and stays where they remove the break.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeGuard

from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import stores
from graphmend.transforms.code.expression_text import Code, shortened
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import fresh, reads
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import constant
from graphmend.transforms.code.text_edits import replace_expression, replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.legality.memory import changed_in_place
from graphmend.transforms.legality.rows.counts import asked_for
from graphmend.transforms.legality.rows.masked_elements import is_mask, nonzero_of
from graphmend.transforms.rewrites.answers import asks, prepare, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "place_grids"
_MOST = 4
"""A mask of more dimensions is rare, and the text of its places long."""


class _NoLinesError(Exception):
    """The places are used otherwise than line by line; the message says how."""


@asks("effects", "memory", "domain", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement, node = facts.statement, facts.node
    found = nonzero_of(facts, node)
    if found is None or not isinstance(statement, ast.Assign) or statement.value is not node:
        return None
    if len(statement.targets) != 1:
        return None
    mask, target = found.mask, statement.targets[0]
    value = facts.value(mask)
    rank = value.rank if isinstance(value, Tensor) else None
    texts: dict[ast.expr, int] = {}
    names: list[str | None]
    try:
        match target:
            case ast.Tuple(elts=targets) if found.as_tuple and all(isinstance(t, ast.Name) for t in targets):
                names = [t.id for t in targets if isinstance(t, ast.Name)]
                if rank not in (None, len(names)):
                    return None
                rank = len(names)
            case ast.Name(id=name):
                if rank is None:
                    return refuse(NAME, f"how many dimensions `{shortened(mask)}` has is not known")
                texts = _taken(facts, name, rank, lines=found.as_tuple)
                names = [None] * rank
            case _:
                return None
    except _NoLinesError as error:
        return refuse(NAME, str(error))
    if not 2 <= rank <= _MOST:
        return None
    if does := effects(facts, mask):
        return refuse(NAME, does[0])
    if changed := [n for n in sorted(reads(mask)) if changed_in_place(facts, n)]:
        return refuse(NAME, f"`{changed[0]}` is changed in place")
    if not replaceable(facts, [statement]):
        return refuse(NAME, "the statement shares its line with another one")
    used = [i for i, n in enumerate(names) if (_is_read(facts, n) if n is not None else i in texts.values())]
    if not used:
        used = [0]

    def make() -> list[TextEdit]:
        code, imports = Code(facts.source), Imports(facts)
        taken: list[str] = []
        lines: list[str] = []

        def new(wanted: str) -> str:
            taken.append(fresh(facts, wanted, taken))
            return taken[-1]

        test = code.text(mask)
        if not (isinstance(mask, ast.Name) and is_mask(facts, mask) and mask.id not in names):
            test = new("mask")
            lines.append(f"{test} = {code.line(mask) if is_mask(facts, mask) else f'{code.operand(mask)} != 0'}\n")
        every, given = imports.name("torch.arange"), dict[int, str]()
        grids = {i: new(_NAMES[rank][i]) for i in used}
        for i in used:
            behind = f"[:{', None' * (rank - 1 - i)}]" if i < rank - 1 else ""
            size = f"{every}({test}.shape[{i}], device={test}.device)"
            lines.append(f"{grids[i]} = {size}{behind}.expand_as({test})\n")
        for i in used:
            given[i] = names[i] or new("places")
            lines.append(f"{given[i]} = {grids[i]}[{test}]\n")
        edits = [replace_statements(facts.source, [statement], "".join(lines))]
        return [*imports.edits(), *edits, *(replace_expression(facts.source, n, given[i]) for n, i in texts.items())]

    differences = []
    if not isinstance(value, Tensor) or value.rank is None:
        says = f"`{shortened(mask)}` of another number of dimensions than is unpacked raises otherwise"
        differences.append(Difference("exception", says))
    return prepare(NAME, "pick the places from all places", facts, make, differences)


_NAMES = {2: ("rows", "columns"), 3: ("planes", "rows", "columns"), 4: ("blocks", "planes", "rows", "columns")}


def _is_read(facts: FunctionFacts, name: str) -> bool:
    """Is a name read, or deleted, for which it has to be bound?"""
    names = (n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Store))
    return any(n.id == name for n in names)


def _taken(facts: FunctionFacts, name: str, rank: int, *, lines: bool) -> dict[ast.expr, int]:
    """The expressions that take one line of the places, or ask how many there are, and which line that is."""
    found: dict[ast.expr, int] = {}
    if stores(facts, name) != 1:
        raise _NoLinesError(f"`{name}` is bound in several places")
    for node in nodes_in(facts.function):
        if not (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)):
            continue
        above = facts.parent(node)
        match above:
            case ast.Subscript(slice=index, ctx=ast.Load()) if lines and _is_line(place := constant(index), rank):
                found[above] = place % rank
            case ast.Subscript(slice=ast.Tuple(elts=[ast.Slice(lower=None, upper=None, step=None), index])) if (
                not lines and _is_line(place := constant(index), rank)
            ):
                found[above] = place % rank
            case _ if not lines and _count(facts, node):
                found[node] = 0
            case _:
                raise _NoLinesError(f"`{shortened(above or node)}` takes more than one line of the places")
    return found


def _is_line(place: object, rank: int) -> TypeGuard[int]:
    return type(place) is int and -rank <= place < rank


def _count(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is a table of places asked how many there are, or whether there are any?"""
    for above in list(facts.ancestors(node))[:3]:
        asked = asked_for(facts, above)
        if asked is not None and asked[0] is node:
            outer = facts.parent(above)
            zero = isinstance(outer, ast.Compare) and constant(outer.comparators[0]) == 0 and len(outer.ops) == 1
            return asked[1] == "rows" or zero
    return False
