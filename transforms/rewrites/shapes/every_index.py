"""Loop over every index instead of over those that a mask has something for, where the others do nothing.

Before:
    hit = (mask.sum(dim=(-1, -2)) > 0).nonzero(as_tuple=True)[0].tolist()
    for e in hit:
        at, rows = torch.where(mask[e])
        out.index_add_(0, rows, self.run(e, x[rows]) * weights[rows, at, None])

After:
    hit = range(mask.shape[0])
    for e in hit:
        ...

Legal when:
    the indices are those under which the mask has an element that is not zero, over all its other dimensions, and only
    the loop reads them; all that lives on from the loop's body is added or stored at positions that `torch.where` or
    `nonzero` find in the mask under the loop's index. Where there is none, nothing is. A `continue` for that case goes.

Differs in:
    the body runs for every index: what it calls is called on nothing, parameters that it uses get zeros for gradients
    instead of None, and a mask is taken to have no negative elements. Code that is not known may change something, or
    raise, where it is called on nothing.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.liveness import writes
from graphmend.transforms.code.qualified_names import called, constant, method
from graphmend.transforms.code.text_edits import delete, merged_edit, replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.empty_effects import EmptyEffect, HasEffectError, index_source
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "every_index"
_DIFFERENCES = (
    Difference("evaluation", "the body runs for every index, where the mask has nothing on nothing"),
    Difference(
        "zero-gradients", "parameters of an index that the mask has nothing for get zeros for gradients instead of None"
    ),
    Difference("exception", "the mask is taken to have no negative elements"),
)


@asks("effects", "order")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    node = facts.node
    match facts.statement:
        case ast.Assign(targets=[ast.Name(id=hits)], value=value) if isinstance(node, ast.expr):
            found = method(facts, node, "nonzero")
        case _:
            return None
    if found is None:
        return None
    assert isinstance(found.func, ast.Attribute)
    loop = next((n for n in nodes_in(facts.function) if isinstance(n, ast.For) and _is(n.iter, hits)), None)
    mask = _mask(facts, found.func.value)
    if loop is None or mask is None:
        return None
    try:
        numbers = _numbers(facts, found, value)
        body = _Body(facts, loop, mask)
        _only_there(facts, hits, loop)
        uses = [] if numbers else body.numbers()
    except HasEffectError as error:
        return refuse(NAME, str(error))
    every = f"range({mask}.shape[0])"
    indices = every if numbers else f"[[index] for index in {every}]"

    def make() -> list[TextEdit]:
        source = facts.source
        inside = [
            *(replace_expression(source, call, f"{body.index}[0]") for call in uses),
            *(delete(source, s) for s in body.skips),
        ]
        return [replace_expression(source, value, indices), merged_edit(source, loop, inside)]

    return offer(NAME, "loop over every index", facts, make, [*_DIFFERENCES, *body.differences])


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _mask(facts: FunctionFacts, flags: ast.expr) -> str | None:
    """The name of the mask that `mask.sum(dims) > 0` and its like are about."""
    match flags:
        case ast.Compare(left=sums, ops=[ast.Gt() | ast.NotEq()], comparators=[zero]) if constant(zero) == 0:
            pass
        case ast.Call(args=[sums, zero]) if called(facts, flags, "torch.greater", "torch.gt") and constant(zero) == 0:
            pass
        case _:
            sums = flags
    match sums:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name) as mask), args=given) if method(
            facts, sums, "sum", "any"
        ):
            pass
        case ast.Call(args=[ast.Name(id=name) as mask, *given]) if called(facts, sums, "torch.sum", "torch.any"):
            pass
        case _:
            return None
    dims = [*given, *(k.value for k in sums.keywords if k.arg == "dim")]
    value = facts.value(mask)
    rank = value.rank if isinstance(value, Tensor) else None
    found = {constant(d) for d in (dims[0].elts if isinstance(dims[0], ast.Tuple) else dims)} if len(dims) == 1 else {0}
    last = set(range(-len(found), 0))
    whole = found == last and rank in (None, len(found) + 1)
    return name if whole else None


def _numbers(facts: FunctionFacts, found: ast.Call, value: ast.expr) -> bool:
    """Are the indices Python numbers? Otherwise each is a tensor of one."""
    node: ast.AST = found
    as_tuple = any(k.arg == "as_tuple" and constant(k.value) is True for k in found.keywords)
    flat = not as_tuple
    while node is not value:
        node = facts.parent(node) or value
        match node:
            case ast.Subscript(slice=ast.Constant(value=0)) if as_tuple:
                flat = True
            case ast.Attribute() | ast.Call(func=ast.Attribute(attr="to" | "cpu" | "flatten")):
                continue
            case ast.Call(func=ast.Attribute(attr="tolist"), args=[]) if as_tuple and flat and node is value:
                return True
            case _:
                raise HasEffectError("how the indices are kept is not known")
    if as_tuple or node is not found:
        raise HasEffectError("how the indices are kept is not known")
    return False


def _only_there(facts: FunctionFacts, hits: str, loop: ast.For) -> None:
    """Only the loop may read the indices."""
    found = [n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n.id == hits]
    if len(found) != 2 or loop.orelse:
        raise HasEffectError(f"`{hits}` is read outside the loop as well")


class _Body:
    """The body of a loop, which has to do nothing under an index that the mask has nothing for."""

    def __init__(self, facts: FunctionFacts, loop: ast.For, mask: str) -> None:
        if not isinstance(loop.target, ast.Name):
            raise HasEffectError("the loop unpacks its indices")
        self._facts, self._loop, self._mask = facts, loop, mask
        self.index = loop.target.id
        self._names = {self.index}
        self._found = False
        effect = EmptyEffect(facts, bind=self._bind)
        effect.take(loop.body)
        if not self._found:
            raise HasEffectError(f"the body does not look for positions in `{mask}`")
        if any(mask in writes(s) for s in loop.body):
            raise HasEffectError(f"`{mask}` changes in the loop")
        effect.check_ends(loop, loop.body, [self.index])
        self.skips = effect.skips
        self.differences = effect.differences()

    def numbers(self) -> list[ast.expr]:
        """Where a tensor of one index is made a number, each as a whole."""
        found: list[ast.expr] = []
        for node in nodes_in(self._loop):
            if not (isinstance(node, ast.Name) and node.id == self.index and isinstance(node.ctx, ast.Load)):
                continue
            above = self._facts.parent(node)
            if isinstance(above, ast.Subscript) and (node is above.slice or constant(above.slice) == 0):
                continue
            call = self._facts.parent(above) if above is not None else None
            if not (isinstance(above, ast.Attribute) and above.attr == "item" and isinstance(call, ast.Call)):
                raise HasEffectError(f"`{self.index}` is used as a tensor")
            found.append(call)
        return found

    def _bind(self, target: ast.expr, value: ast.expr) -> bool:
        """Does an assignment take positions that the mask has under the index? Follows other names of the index."""
        if self._looks(value):
            self._found = True
            return True
        if isinstance(target, ast.Name) and _selects(value, self._names):
            self._names.add(target.id)
        return False

    def _looks(self, value: ast.expr) -> bool:
        """`torch.where(mask[index])` and its like."""
        place = index_source(self._facts, value)
        if isinstance(place, ast.Call) and isinstance(place.func, ast.Attribute) and place.func.attr == "squeeze":
            place = place.func.value
        match place:
            case ast.Subscript(value=ast.Name(id=mask), slice=ast.Name(id=index)):
                return mask == self._mask and index in self._names
        return False


def _selects(value: ast.expr, names: set[str]) -> bool:
    """Is a value the index in another form: `index[0]`, `index.item()`, `int(index)`?"""
    match value:
        case ast.Call(func=ast.Name(id="int"), args=[inner], keywords=[]):
            return _selects(inner, names) or (isinstance(inner, ast.Name) and inner.id in names)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="item"), args=[]):
            return name in names
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=0)):
            return name in names
    return False
