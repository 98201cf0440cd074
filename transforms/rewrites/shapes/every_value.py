"""Loop over every entry of a list of modules instead of over the values that a tensor has, where the others do nothing.

Before:
    for e in chosen.unique():
        rows = torch.where(chosen == e)[0]
        expert = self.experts[e]
        out[rows] = expert(x[rows])

After:
    for e in range(len(self.experts)):
        rows = torch.where(chosen == e)[0]
        expert = self.experts[e]
        out[rows] = expert(x[rows])

Legal when:
    the loop runs over the different values of a tensor, its body takes each as an index of one list of modules and
    compares the tensor with it, and all that lives on from the body is stored or added where they are equal.

Differs in:
    the body runs for every index, for one that no element has on nothing; parameters that it uses get zeros for
    gradients instead of None. A value that is no index of the list raises no more.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Container
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.liveness import reads, writes
from graphmend.transforms.code.qualified_names import called, constant, method
from graphmend.transforms.code.text_edits import merged_edit, replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.empty_effects import EmptyEffect, HasEffectError, index_source
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "every_value"
_DIFFERENCES = (
    Difference("evaluation", "the body runs for every index of the list, where no element has it on nothing"),
    Difference("zero-gradients", "parameters of an index that no element has get zeros for gradients instead of None"),
    Difference("exception", "a value that is no index of the list raises no more"),
)


@asks("effects", "order")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    loop = facts.statement
    if not (isinstance(loop, ast.For) and isinstance(loop.target, ast.Name) and not loop.orelse):
        return None
    values = _values(facts, loop.iter)
    if values is None:
        return None
    try:
        body = _Body(facts, loop, loop.target.id, values)
    except HasEffectError as error:
        return refuse(NAME, str(error))

    def make() -> list[TextEdit]:
        source = facts.source
        every = f"range(len({Code(source).text(body.modules)}))"
        edits = [replace_expression(source, loop.iter, every)]
        edits += [replace_expression(source, call, body.index) for call in body.numbers]
        return [merged_edit(source, loop, edits)]

    return offer(NAME, "loop over every module of the list", facts, make, [*_DIFFERENCES, *body.differences])


def _values(facts: FunctionFacts, node: ast.expr) -> str | None:
    """The name of the tensor whose different values a loop runs over."""
    if (listed := method(facts, node, "tolist")) is not None and isinstance(listed.func, ast.Attribute):
        node = listed.func.value
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name)), args=[], keywords=[]) if method(
            facts, node, "unique"
        ):
            return name
        case ast.Call(args=[ast.Name(id=name)], keywords=[]) if called(facts, node, "torch.unique"):
            return name
    return None


class _Body:
    """The body of a loop, which has to do nothing for a value that the tensor does not have."""

    def __init__(self, facts: FunctionFacts, loop: ast.For, index: str, values: str) -> None:
        self._facts, self._values, self.index = facts, values, index
        self._indices = {index}
        self._masks: set[str] = set()
        effect = EmptyEffect(facts, bind=self._bind)
        effect.take(loop.body)
        if not effect.empty:
            raise HasEffectError(f"the body does not look for positions in `{values}`")
        if values in writes(*loop.body):
            raise HasEffectError(f"`{values}` changes in the loop")
        effect.check_ends(loop, loop.body, [index])
        self.differences = effect.differences()
        self.numbers: list[ast.expr] = []
        lists: dict[str, ast.expr] = {}
        for node in (n for s in loop.body for n in ast.walk(s)):
            if isinstance(node, ast.Name) and node.id in self._indices and isinstance(node.ctx, ast.Load):
                self._use(node, lists)
        if len(lists) != 1:
            raise HasEffectError("the values are not the indices of one list of modules")
        (self.modules,) = lists.values()

    def _use(self, node: ast.Name, lists: dict[str, ast.expr]) -> None:
        """One read of the value: compared, an index, or made a number."""
        place: ast.expr = node
        above = self._facts.parent(node)
        call = self._facts.parent(above) if isinstance(above, ast.Attribute) and above.attr == "item" else above
        number = isinstance(call, ast.Call) and (call is not above or called(self._facts, call, "builtins.int"))
        if number and isinstance(call, ast.Call):
            self.numbers.append(call)
            place, above = call, self._facts.parent(call)
        match above:
            case ast.Compare() | ast.Assign() if _is_plain(place) or number:
                return
            case ast.Subscript(value=of, slice=index) if index is place and self._are_modules(of):
                lists[ast.unparse(of)] = of
            case _:
                raise HasEffectError(f"`{node.id}` is used otherwise")

    def _are_modules(self, node: ast.expr) -> bool:
        value = self._facts.value(node)
        if isinstance(value, Container):
            return value.kind == "modules"
        return isinstance(value, ExternalInstance) and value.cls == "torch.nn.ModuleList"

    def _bind(self, target: ast.expr, value: ast.expr) -> bool:
        """Does an assignment take the places of the value? Follows masks of them, and other names of the value."""
        place = index_source(self._facts, value)
        if isinstance(place, ast.Call) and isinstance(place.func, ast.Attribute) and place.func.attr == "squeeze":
            place = place.func.value
        if place is None and isinstance(value, (ast.Call, ast.Subscript)):
            inner = value.func.value if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) else None
            inner = value.value if isinstance(value, ast.Subscript) and constant(value.slice) == 0 else inner
            place = index_source(self._facts, inner) if inner is not None else None
        if isinstance(target, ast.Name) and isinstance(value, ast.Call) and _makes_number(value, self._indices):
            self._indices.add(target.id)
            return False
        if self._is_mask(value):
            return True
        return place is not None and (self._is_mask(place) or (isinstance(place, ast.Name) and place.id in self._masks))

    def _is_mask(self, node: ast.expr) -> bool:
        match node:
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                names = reads(left), reads(right)
                found = any(a == {self._values} and b and b <= self._indices for a, b in (names, names[::-1]))
                if found and isinstance(above := self._facts.parent(node), ast.Assign):
                    self._masks |= writes(*above.targets)
                return found
        return False


def _is_plain(node: ast.expr) -> bool:
    return isinstance(node, ast.Name)


def _makes_number(call: ast.Call, names: set[str]) -> bool:
    """`int(e)`, `e.item()`."""
    match call:
        case ast.Call(func=ast.Name(id="int"), args=[ast.Name(id=name)], keywords=[]):
            return name in names
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="item"), args=[]):
            return name in names
    return False
