"""Store by positions where several slices have tensors for bounds, or other indices stand beside one.

Before:
    y[:, top:bottom, left:right] = x[:, top:bottom, left:right]

After:
    inside = (rows >= top) & (rows < bottom) & (columns >= left) & (columns < right)
    y.copy_(torch.where(inside, x, y))

Legal when:
    the tensor has a known number of dimensions; beside the slices stand whole dimensions and whole numbers that are
    known while tracing. What is stored is one number, or is computed, element by element, from the same part of tensors
    of the same shape, and from `torch.arange` of as many elements as the slice has.

Differs in:
    all elements are computed, and memory that is expanded raises otherwise. A slice that is not as long as what is
    stored raises no more. A bound that is no whole number raises no more.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import fresh
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import called, constant, is_tensor, number_type
from graphmend.transforms.code.text_edits import replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.gradients.sides import gradient_differences
from graphmend.transforms.legality.in_place import dense
from graphmend.transforms.legality.rows.masked_elements import one_by_one, same_dtype, same_shape
from graphmend.transforms.legality.rows.slices import by_tensor, is_known, is_whole, is_whole_number
from graphmend.transforms.legality.speculation import repeatable, speculate
from graphmend.transforms.rewrites.answers import asks, offer, refuse
from graphmend.transforms.rewrites.inside_slice import bound_text, inside_slice, positions_of

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "tensor_box"


class _Box(NamedTuple):
    """A place of a tensor, some of whose slices have tensors for bounds."""

    node: ast.Subscript
    indices: list[ast.expr]
    slices: dict[int, ast.Slice]
    """Those slices, by how many dimensions of what the numbers leave stand behind each."""
    rank: int
    """How many dimensions the numbers leave."""


@asks("effects", "totality", "memory", "domain", "dtypes", "shapes", "gradients", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = facts.statement
    match statement:
        case ast.Assign(targets=[ast.Subscript() as target], value=value) if is_tensor(facts, target.value):
            box = _box(facts, target)
        case _:
            return None
    if box is None or _is_plain(box, value):
        return None
    bounds = [b for part in box.slices.values() for b in (part.lower, part.upper) if b is not None]
    if any(part.step is not None for part in box.slices.values()) or not repeatable(facts, target.value, *bounds):
        return refuse(NAME, "a slice has a step, or more than computes its bounds")
    parts = _parts(facts, box, value)
    if number_type(facts, value) is None and not _computed_alike(facts, value, parts):
        return refuse(NAME, f"`{ast.unparse(value)}` is neither a number nor computed from the same part of tensors")
    if not replaceable(facts, [statement]):
        return refuse(NAME, "the statement shares its line with another one")

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        text = _text(facts, imports, box, value, parts)
        return [*imports.edits(), replace_statements(facts.source, [statement], text)]

    differences = _differences(facts, box, value, parts, bounds)
    return offer(NAME, "select by positions instead of by slices", facts, make, differences)


def _is_plain(box: _Box, value: ast.expr) -> bool:
    """Is it one slice beside whole dimensions, and what is stored no positions? That needs no selection."""
    counted = any(isinstance(n, ast.Attribute) and n.attr == "arange" for n in nodes_in(value))
    return (
        len(box.slices) == 1
        and not counted
        and all(isinstance(i, ast.Slice) or constant(i) is ... for i in box.indices)
    )


def _box(facts: FunctionFacts, node: ast.Subscript) -> _Box | None:
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    value = facts.value(node.value)
    numbers = [i for i in indices if not isinstance(i, ast.Slice) and constant(i) is not ...]
    if not isinstance(value, Tensor) or value.rank is None or not all(_is_number(facts, n) for n in numbers):
        return None
    if any(isinstance(i, ast.Slice) and not is_whole(i) and not by_tensor(facts, i) for i in indices):
        return None
    rank = value.rank - len(numbers)
    behind = next((at for at, index in enumerate(indices) if constant(index) is ...), None)
    found: dict[int, ast.Slice] = {}
    for at, index in enumerate(indices):
        if isinstance(index, ast.Slice) and by_tensor(facts, index):
            others = [
                i for i in (indices[:at], indices[at + 1 :])[behind is not None and at > behind] if i not in numbers
            ]
            found[len(others) if behind is not None and at > behind else rank - 1 - len(others)] = index
    return _Box(node, indices, found, rank) if found and min(found) >= 0 else None


def _is_number(facts: FunctionFacts, index: ast.expr) -> bool:
    if isinstance(index, ast.Slice) or (isinstance(index, ast.Constant) and type(index.value) is not int):
        return False
    return is_known(facts, index)


class _Part(NamedTuple):
    """What stands for a part of what is stored: the whole that it is a part of."""

    text: str
    alike: bool
    """Is it known to have the shape of the tensor that is stored into?"""


def _parts(facts: FunctionFacts, box: _Box, value: ast.expr) -> dict[ast.expr, _Part]:
    """The parts in what is stored that lie where the box lies."""
    found: dict[ast.expr, _Part] = {}
    for node in (n for n in nodes_in(value) if isinstance(n, ast.expr)):
        if isinstance(node, ast.Subscript) and is_tensor(facts, node.value):
            same = ast.unparse(node.slice) == ast.unparse(box.node.slice)
            if same and same_shape(facts, box.node.value, node.value) and repeatable(facts, node.value):
                found[node] = _Part(_whole(facts, box, node), True)
        elif called(facts, node, "torch.arange") is not None and (first := _counts(facts, box, node)) is not None:
            found[node] = _Part(first, False)
    return found


def _counts(facts: FunctionFacts, box: _Box, call: ast.expr) -> str | None:
    """The bound from which `torch.arange(n)` counts the positions of the one slice, as a key of `_text`; None where it
    is not as long as that.
    """
    if not isinstance(call, ast.Call) or set(box.slices) != {0} or len(call.args) != 1:
        return None
    if not {k.arg for k in call.keywords} <= {"device", "dtype"} or any(k.arg == "dtype" for k in call.keywords):
        return None
    (part,), count = box.slices.values(), ast.unparse(call.args[0])
    lower, upper = part.lower, part.upper
    if upper is not None and (lower is None or constant(lower) == 0) and ast.unparse(upper) == count:
        return ""
    if upper is None and isinstance(lower, ast.UnaryOp) and isinstance(lower.op, ast.USub):
        return "lower" if ast.unparse(lower.operand) == count else None
    if lower is not None and upper is not None and ast.unparse(ast.BinOp(upper, ast.Sub(), lower)) == count:
        return "lower"
    return None


def _computed_alike(facts: FunctionFacts, value: ast.expr, parts: dict[ast.expr, _Part]) -> bool:
    return bool(parts) and one_by_one(facts, value, set(parts)) and not speculate(facts, value).blockers


def _whole(facts: FunctionFacts, box: _Box, node: ast.Subscript) -> str:
    """The tensor without its slices by tensors: what the numbers leave of it."""
    code = Code(facts.source)
    if not any(_is_number(facts, i) for i in box.indices):
        return code.operand(node.value)
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    whole: dict[ast.expr, str] = {i: ":" for i in indices if isinstance(i, ast.Slice)}
    return f"{code.operand(node.value)}[{code.text(node.slice, whole)}]"


def _text(facts: FunctionFacts, imports: Imports, box: _Box, value: ast.expr, parts: dict[ast.expr, _Part]) -> str:
    code = Code(facts.source)
    tensor, place = code.operand(box.node.value), _whole(facts, box, box.node)
    taken: list[str] = []
    lines, tests = [], []
    if place != tensor:
        taken.append(fresh(facts, "part", taken))
        lines.append(f"{taken[-1]} = {place}")
        place = taken[-1]
    for behind, part in box.slices.items():
        size = f"{place}.shape[{-1 - behind}]"
        test = inside_slice(facts, imports, part, tensor, size)
        if behind:
            test = f"({test}).reshape({', '.join(['-1', *['1'] * behind])})"
        tests.append(f"({test})" if len(box.slices) > 1 and not behind else test)
    name = fresh(facts, "inside", taken)
    lines.append(f"{name} = {' & '.join(tests)}")
    changes: dict[ast.expr, str] = {}
    for node, found in parts.items():
        changes[node] = found.text
        if not found.alike:
            size = f"{place}.shape[-1]"
            changes[node] = positions_of(imports, tensor, size)
            (part,) = box.slices.values()
            if found.text and part.lower is not None:
                changes[node] = f"({changes[node]} - ({bound_text(facts, imports, part.lower, size)}))"
    new = changes.get(value) or code.argument(value, changes)
    lines.append(f"{place}.copy_({imports.name('torch.where')}({name}, {new}, {place}))")
    return "\n".join(lines) + "\n"


def _differences(
    facts: FunctionFacts, box: _Box, value: ast.expr, parts: dict[ast.expr, _Part], bounds: list[ast.expr]
) -> list[Difference]:
    tensor = box.node.value
    found = [Difference("evaluation", "all elements are computed, those outside of the slices in vain")]
    if not all(is_whole_number(facts, b) for b in bounds):
        found.append(Difference("exception", "a bound that is no whole number raises no more"))
    if not all(part.alike for part in parts.values()):
        found.append(Difference("exception", "a slice that is not as long as what is stored raises no more"))
    if not dense(facts, facts.statement, tensor):
        found.append(Difference("exception", "expanded memory raises otherwise"))
    alike = [n.value for n in parts if isinstance(n, ast.Subscript)]
    if not all(same_dtype(facts, tensor, n) for n in (value, *alike)):
        found.append(Difference("rounding", "where the dtypes differ, the tensor may go through the other one"))
    return [*found, *gradient_differences(facts, facts.statement, [[value]])]
