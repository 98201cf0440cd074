"""Look for the first or the last place that a mask picks, instead of listing all of them.

Before:
    hits = (tokens == eos).nonzero(as_tuple=True)[0]
    end = hits[0] if len(hits) else torch.tensor(-1)

After:
    found = tokens == eos
    end = found.int().argmax() if found.sum() else torch.tensor(-1)

Legal when:
    the places are those of a mask of one dimension, and of their list nothing is used but its first or last element,
    and its length where a tensor may stand for that.

Differs in:
    a place where the mask picks none raises no more, and of a mask without elements it raises. A mask of which it is
    not known is taken to have one dimension. Two places are no parts of one tensor.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bindings, stores
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import fresh, locals_of, parameters
from graphmend.transforms.code.qualified_names import called, constant, is_tensor
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.kept_scalars import written
from graphmend.transforms.legality.dtypes import kinds
from graphmend.transforms.legality.memory import changed_in_place, shares
from graphmend.transforms.legality.numbers.counterparts import Counterpart
from graphmend.transforms.legality.scalar_uses import NeedsPythonNumberError, ScalarUses
from graphmend.transforms.legality.speculation import repeatable
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "first_place"
_NONE = Difference("exception", "a place where the mask picks none raises no more, and of no elements at all it raises")
#: what makes one dimension of the lines of places
_FLATTENS = {"flatten": (None,), "ravel": (None,), "view": (-1,), "reshape": (-1,), "squeeze": (-1, 1)}
_COUNTS = ("numel", "nelement")


class _Places(NamedTuple):
    """A list of the places that a mask picks."""

    node: ast.expr
    mask: ast.expr
    lines: bool
    """Is each place a line of one number?"""


class _UsedOtherwiseError(Exception):
    """More is used of the list than its ends and its length; the message says what."""


@asks("effects", "memory", "dtypes", "numbers", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    places = _places(facts)
    if places is None or not is_tensor(facts, places.mask):
        return None
    value = facts.value(places.mask)
    if not isinstance(value, Tensor) or value.ndarray or value.rank not in (None, 1):
        return None
    differences = [_NONE]
    if value.rank is None:
        says = f"`{ast.unparse(places.mask)}` is taken to have one dimension"
        differences += [Difference("shape", says), Difference("exception", says)]
    code, is_bool = Code(facts.source), kinds(facts, places.mask) == {"bool"}
    texts: dict[ast.expr, str] = {}
    match facts.statement:
        case ast.Assign(targets=[ast.Name(id=name) as target], value=given) if given is places.node:
            found, loads = fresh(facts, "found"), _loads(facts, name)
            texts[target] = found
            texts[given] = code.text(places.mask) if is_bool else f"{code.operand(places.mask)} != 0"
        case _ if repeatable(facts, places.mask):
            loads = [places.node]
            found = code.operand(places.mask) if is_bool else f"({code.operand(places.mask)} != 0)"
        case _:
            return refuse(NAME, f"`{ast.unparse(places.mask)}` would be evaluated more than once")
    if loads is None:
        return None
    kept = is_bool and not shares(facts, places.mask).fresh
    if kept and changed_in_place(facts, places.mask, behind=facts.statement):
        return refuse(NAME, f"`{ast.unparse(places.mask)}` is changed in place later")
    if len(loads) > 1:
        differences.append(Difference("aliasing", "two places that are taken are no parts of one tensor"))
    numbers: dict[ast.expr, Counterpart] = {}
    try:
        for load in loads:
            node, text, counts = _use(facts, load, found, lines=places.lines)
            texts[node] = text
            if counts:
                uses = ScalarUses(facts, "int64")
                uses.follow(node)
                differences += uses.differences
                numbers |= uses.counterparts
    except (_UsedOtherwiseError, NeedsPythonNumberError) as error:
        return refuse(NAME, str(error))

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        made = written(facts, imports, texts, numbers)
        return [*imports.edits(), *(replace_expression(facts.source, node, text) for node, text in made.items())]

    return offer(NAME, "look for the place that is taken", facts, make, differences)


def _loads(facts: FunctionFacts, name: str) -> list[ast.expr] | None:
    """Where the list's name is read; None where the name may stand for something else."""
    own = name in locals_of(facts.function) and name not in parameters(facts.function)
    if not own or stores(facts, name) != 1 or len(bindings(facts).get(name, [])) != 1:
        return None
    if any(isinstance(n, (ast.Global, ast.Nonlocal)) and name in n.names for n in nodes_in(facts.function)):
        return None
    reads = (n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n.id == name)
    return [n for n in reads if isinstance(n.ctx, ast.Load)]


def _use(facts: FunctionFacts, places: ast.expr, found: str, *, lines: bool) -> tuple[ast.expr, str, bool]:
    """What is used of the list, how it is written with the mask, and whether that is the length."""
    parents = _above(facts, places)
    first, second = next(parents, None), next(parents, None)
    count = f"{found}.sum()"
    match first, second:
        case ast.Call(args=[_], keywords=[]) as call, _ if called(facts, call, "builtins.len"):
            return call, count, True
        case ast.Attribute(attr=attr), ast.Call(args=[], keywords=[]) as call if attr in _COUNTS:
            return call, count, True
        case ast.Attribute(attr="size"), ast.Call(args=[ast.Constant(value=0)], keywords=[]) as call:
            return call, count, True
        case ast.Attribute(attr="shape"), ast.Subscript(slice=ast.Constant(value=0)) as size:
            return size, count, True
        case ast.Subscript(value=of, slice=ast.Tuple(elts=[place, ast.Constant(value=0)])) as taken, _ if (
            of is places and lines and constant(place) in (0, -1)
        ):
            return taken, _end(found, constant(place)), False
        case ast.Subscript(value=of, slice=place) as taken, _ if of is places and _is_end(place):
            if not lines:
                return taken, _end(found, constant(place)), False
            match second:
                case ast.Subscript(value=line, slice=ast.Constant(value=0)) if line is taken:
                    return second, _end(found, constant(place)), False
                case ast.Attribute(attr="item"):
                    return taken, _end(found, constant(place)), False
        case ast.Attribute(attr="min" | "max" as which), ast.Call(args=[], keywords=[]) as call if not lines:
            return call, _end(found, 0 if which == "min" else -1), False
    if first is None:
        raise _UsedOtherwiseError("the places are used as they are")
    raise _UsedOtherwiseError(f"`{ast.unparse(first)}` uses more of the places")


def _above(facts: FunctionFacts, node: ast.expr) -> Iterator[ast.AST]:
    while (above := facts.parent(node)) is not None and isinstance(above, ast.expr):
        yield above
        node = above


def _is_end(place: ast.expr) -> bool:
    number = constant(place)
    return number in (0, -1) and not isinstance(number, bool)


def _end(found: str, place: object) -> str:
    if place == 0:
        return f"{found}.int().argmax()"
    return f"({found}.shape[0] - 1 - {found}.flip(0).int().argmax())"


def _places(facts: FunctionFacts) -> _Places | None:
    """The list around what the finding is about."""
    listed = _listed(facts)
    if listed is None:
        return None
    node, mask, tupled = listed
    above = facts.parent(node)
    call = facts.parent(above) if above is not None else None
    match above, call:
        case ast.Subscript(value=of, slice=ast.Constant(value=0)), _ if tupled and of is node:
            return _Places(above, mask, False)
        case ast.Subscript(slice=ast.Tuple(elts=[ast.Slice(lower=None, upper=None, step=None), column])), _ if (
            not tupled and above.value is node and constant(column) == 0
        ):
            return _Places(above, mask, False)
        case ast.Attribute(attr=attr), ast.Call(args=args, keywords=[]) if not tupled and attr in _FLATTENS:
            given = [constant(a) for a in args] or [None]
            return _Places(call, mask, False) if len(given) == 1 and given[0] in _FLATTENS[attr] else None
    return None if tupled else _Places(node, mask, True)


def _listed(facts: FunctionFacts) -> tuple[ast.expr, ast.expr, bool] | None:
    """The call that lists places, its mask, and whether it gives a tuple with one list for each dimension."""
    node = facts.node
    if not isinstance(node, ast.Call):
        return None
    options = {k.arg: constant(k.value) for k in node.keywords}
    tupled = options.pop("as_tuple", False)
    if options or not isinstance(tupled, bool):
        return None
    if called(facts, node, "torch.where") and len(node.args) == 1:
        return node, node.args[0], True
    if called(facts, node, "torch.nonzero", "torch.argwhere") and len(node.args) == 1:
        return node, node.args[0], tupled
    match node:
        case ast.Call(func=ast.Attribute(value=mask, attr="nonzero" | "argwhere"), args=[]):
            return node, mask, tupled
    return None
