"""Loop over every index instead of over the values that a tensor has, where the others do nothing.

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
    the loop runs over the different values of a tensor, and its body compares the tensor with each. It takes each as an
    index of one list of modules, and all that lives on from the body is stored or added where they are equal. Or it
    takes each as an index of a dimension of a tensor, each time that it runs, and as nothing else: then the body runs
    below the question whether there is such a value, for the mends of branches, where they remove the break.

Differs in:
    the body runs for every index, for one that no element has on nothing, or not; parameters that it uses get zeros for
    gradients instead of None. A value that is no index raises no more. One below zero, which counts from the end,
    raises where it is not known that there is none.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Container, Tensor, dtype_kind
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import alive, reads, writes
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import called, constant, is_tensor, number_type
from graphmend.transforms.code.text_edits import HOLE, merged_edit, replace_expression, replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.value_tests import effects_of_test
from graphmend.transforms.legality.empty_effects import EmptyEffect, HasEffectError, index_source
from graphmend.transforms.legality.memory import changed_in_place
from graphmend.transforms.legality.rows.places import different_values, not_negative
from graphmend.transforms.rewrites.answers import asks, offer, prepare, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "every_value"
#: parts of which are not always evaluated, or not once
_SOMETIMES = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
_DIFFERENCES = (
    Difference("evaluation", "the body runs for every index of the list, where no element has it on nothing"),
    Difference("zero-gradients", "parameters of an index that no element has get zeros for gradients instead of None"),
    Difference("exception", "a value that is no index of the list raises no more"),
)
#: an index that counts from the end: the loop would pass over its rows
_BELOW = Difference("exception", "a value below zero, an index that counts from the end of the list, raises")


@asks("effects", "memory", "order", "domain", "names")
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
        try:
            return _present(facts, loop, loop.target.id, values)
        except HasEffectError:
            return refuse(NAME, str(error))

    counted = not_negative(facts, ast.Name(values, ast.Load()))
    if not (counted or replaceable(facts, [loop])):
        return refuse(NAME, "the loop shares its line with another statement")

    def make() -> list[TextEdit]:
        source = facts.source
        every = f"range(len({Code(source).text(body.modules)}))"
        edits = [replace_expression(source, loop.iter, every)]
        edits += [replace_expression(source, call, body.index) for call in body.numbers]
        merged = merged_edit(source, loop, edits)
        if counted:
            return [merged]
        imports = Imports(facts)
        indent = source.text.splitlines()[loop.lineno - 1][: loop.col_offset]
        newline = "\r\n" if "\r\n" in source.text else "\n"
        return [*imports.edits(), TextEdit(merged.span, f"{_held(imports, values)}{newline}{indent}{merged.text}")]

    differences = [*_DIFFERENCES, *(() if counted else (_BELOW,)), *body.differences]
    return offer(NAME, "loop over every module of the list", facts, make, differences)


def _held(imports: Imports, values: str) -> str:
    """The assertion that no value is below zero."""
    return f'{imports.name("torch._assert_async")}(({values} >= 0).all(), "`{values}` holds indices")'


def _values(facts: FunctionFacts, node: ast.expr) -> str | None:
    """The name of the tensor whose different values a loop runs over."""
    found = different_values(facts, node)
    return found.id if isinstance(found, ast.Name) else None


def _present(facts: FunctionFacts, loop: ast.For, index: str, values: str) -> Fix:
    """The loop over all indices of a dimension, whose body asks whether there is such a value."""
    changes = values in writes(*loop.body) or changed_in_place(facts, values, behind=loop)
    if changes or alive(facts, index, loop) or not replaceable(facts, [loop]):
        raise HasEffectError(f"`{values}` changes in the loop, or `{index}` is read behind it")
    if any(isinstance(n, (ast.Break, ast.Return, ast.Yield, ast.Await)) for s in loop.body for n in nodes_in(s)):
        raise HasEffectError("the loop is left early")
    known, compared = facts.before(loop).get(values), False
    size: tuple[ast.expr, int] | None = None
    for node in (n for s in loop.body for n in nodes_in(s)):
        if not (isinstance(node, ast.Name) and node.id == index):
            continue
        place: ast.expr = node
        if isinstance(above := facts.parent(node), ast.Call) and called(facts, above, "builtins.int"):
            place, above = above, facts.parent(above)
        match above:
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]):
                other = right if left is place else left
                compared |= isinstance(other, ast.Name) and other.id == values
                if not (is_tensor(facts, other) or (isinstance(known_one := constant(other), int) and known_one >= 0)):
                    raise HasEffectError(f"`{ast.unparse(other)}` may stand for a value that is no index")
            case ast.Subscript() | ast.Tuple() if (found := _indexed(facts, place, loop)) is not None:
                size = size or found
            case _:
                raise HasEffectError(f"`{index}` is used otherwise")
    # one number of uint8 is a mask where it stands as an index
    whole = isinstance(known, Tensor) and dtype_kind(known.dtype) in ("int", None) and known.dtype != "uint8"
    if size is None or not compared or not whole:
        raise HasEffectError(f"`{values}` is not known to hold indices of a tensor")
    of, dim = size
    guards = _guards(facts, loop, index)

    def make() -> list[TextEdit]:
        imports, code = Imports(facts), Code(facts.source)
        lines = f"{_held(imports, values)}\n"
        lines += f"for {index} in range({code.operand(of)}.shape[{dim}]):\n"
        lines += f"    {HOLE.format(1)}\n" if guards else ""
        lines += f"    if ({values} == {index}).any():\n        {HOLE.format(0)}\n"
        held = [loop.body[len(guards) :], *([guards] if guards else [])]
        return [*imports.edits(), replace_statements(facts.source, [loop], lines, *held)]

    differences = [
        Difference("evaluation", "the loop asks for every index whether there is such a value"),
        Difference("exception", "a value below zero raises, and one that is too large for an index no more"),
    ]
    if not (isinstance(known, Tensor) and dtype_kind(known.dtype)):
        differences.append(Difference("exception", "values that are no whole numbers raise no more"))
    return prepare(NAME, "loop over every index, and ask whether there is such a value", facts, make, differences)


def _guards(facts: FunctionFacts, loop: ast.For, index: str) -> list[ast.stmt]:
    """The first statements of a loop that pass over some indices, by what is known while tracing."""
    found: list[ast.stmt] = []
    for statement in loop.body[:-1]:
        match statement:
            case ast.If(test=test, body=[ast.Continue()], orelse=[]) if not effects_of_test(facts, test):
                parts = [n for n in nodes_in(test) if isinstance(n, ast.expr)]
                compared = {n for n in parts if isinstance(n, ast.Compare)}
                if any(is_tensor(facts, n) and not _is_about(n, index, compared) for n in parts):
                    break
                found.append(statement)
            case _:
                break
    return found


def _is_about(node: ast.expr, index: str, compared: set[ast.Compare]) -> bool:
    """Is this the index, or a comparison of it with a number?"""
    if isinstance(node, ast.Compare) and node in compared:
        sides = [node.left, *node.comparators]
        return all(isinstance(constant(s), int) or (isinstance(s, ast.Name) and s.id == index) for s in sides)
    return isinstance(node, ast.BoolOp) or (isinstance(node, ast.Name) and node.id == index)


def _indexed(facts: FunctionFacts, place: ast.expr, loop: ast.For) -> tuple[ast.expr, int] | None:
    """The tensor, and its dimension, that a value is an index of whenever the loop's body runs."""
    above = facts.parent(place)
    subscript = facts.parent(above) if isinstance(above, ast.Tuple) else above
    if not isinstance(subscript, ast.Subscript) or not isinstance(subscript.value, ast.Name):
        return None
    indices = subscript.slice.elts if isinstance(subscript.slice, ast.Tuple) else [subscript.slice]
    dim = next((number for number, one in enumerate(indices) if one is place), None)
    of = subscript.value
    if dim is None or of.id in writes(*loop.body) or not is_tensor(facts, of):
        return None
    if not all(isinstance(one, ast.Slice) or number_type(facts, one) == "int" for one in indices[:dim]):
        return None
    above_it = list(facts.ancestors(place))
    statement = next(number for number, a in enumerate(above_it) if isinstance(a, ast.stmt))
    always = above_it[statement] in loop.body and not any(isinstance(a, _SOMETIMES) for a in above_it[:statement])
    return (of, dim) if always else None


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
        for node in (n for s in loop.body for n in nodes_in(s)):
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
