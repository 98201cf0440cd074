"""Say how large a result is, where the code around it knows: TorchDynamo then keeps it in the graph.

Before:
    first = mask.nonzero()[0]
    y = F.one_hot(labels).float() @ table
    z = torch.repeat_interleave(x, torch.tensor([1, 2, 1]))
    others = similarity[~torch.eye(n, dtype=torch.bool)].view(n, -1)

After:
    first = torch.nonzero_static(mask, size=1)[0]
    y = F.one_hot(labels, num_classes=table.shape[0]).float() @ table
    z = torch.repeat_interleave(x, torch.tensor([1, 2, 1]), output_size=4)
    others = similarity.flatten()[
        torch.nonzero_static((~torch.eye(n, dtype=torch.bool)).flatten(), size=n * (n - 1)).squeeze(1)
    ].view(n, -1)

Legal when:
    the size follows from the code: of what is not zero only the first is used; the classes are multiplied with a
    matrix, which must have as many rows; the repeats are two or more literals, or a tensor is added, or stored, at
    the places in the result, of which it must have as many; `bincount` is told a `minlength`; a mask is a diagonal, or
    all but one, or what it picks is viewed in sizes that are known; of what is unique only an end is read.

Differs in:
    where the size does not fit, which raised before: nothing that is not zero gives -1, fewer classes than rows go
    well. A `bincount` raises for what would have made its result longer, and cuts what is not whole, unless its dtype
    is known; of no numbers at all it has the dtype of its weights. A mask that picks another number than is viewed
    gives other elements, or the last one again, where it raised. How many different numbers there are is a 0-d
    tensor, whose whole numbers wrap around.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor, dtype_kind
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bindings, reaching
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import locals_of, parameters
from graphmend.transforms.code.qualified_names import called, constant, is_tensor, method, number_type, qualified
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.gradients.sides import recorded
from graphmend.transforms.legality.memory import changed_in_place
from graphmend.transforms.legality.operations.formulas import DISTINCT, RUNS
from graphmend.transforms.legality.rows.counts import asked_for
from graphmend.transforms.legality.rows.masked_elements import (
    missing_dimensions,
    nonzero_of,
    other_shape,
    picked,
)
from graphmend.transforms.legality.rows.sizes import met_size
from graphmend.transforms.legality.scalar_uses import NeedsPythonNumberError, ScalarUses
from graphmend.transforms.legality.speculation import repeatable
from graphmend.transforms.rewrites.answers import asks, offer, refuse, show
from graphmend.transforms.rewrites.named_parts import named
from graphmend.transforms.rewrites.shapes.forms.bins import bins

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "known_size"
_TITLE = "say how large the result is"

#: methods of a tensor that keep its shape
_CONVERSIONS = ("float", "double", "half", "bfloat16", "to", "type", "type_as")

#: node to replace, new text, what differs
_Form = tuple[ast.expr, str, list[Difference]]
#: the texts of further nodes
_Also = dict[ast.expr, str]


@asks("effects", "memory", "domain", "numbers", "shapes", "gradients", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    also: _Also = {}
    for form in (_counted, _first, _classes, _repeats, bins, partial(_distinct, also=also), _end):
        imports = Imports(facts)
        try:
            found = form(facts, Code(facts.source), imports)
        except NeedsPythonNumberError as error:
            return refuse(NAME, str(error))
        if found is not None:
            node, text, differences = found

            def make(node: ast.expr = node, text: str = text, imports: Imports = imports) -> list[TextEdit]:
                asked = nonzero_of(facts, facts.node)
                parts = {Code(facts.source).operand(asked.mask): "hit"} if asked is not None else {}
                first, texts = named(facts, {node: text}, parts)
                others = [replace_expression(facts.source, other, name) for other, name in also.items()]
                return [*imports.edits(), *first, replace_expression(facts.source, node, texts[node]), *others]

            return offer(NAME, _TITLE, facts, make, differences)
    return _pattern(facts)


def _counted(facts: FunctionFacts, code: Code, imports: Imports) -> _Form | None:
    """`s[~torch.eye(n, dtype=torch.bool)]`, `s[m].view(n, n - 1)`: the mask, or the view, says how many are picked."""
    found = picked(facts, facts.node)
    if found is None or not isinstance(getattr(facts.node, "ctx", ast.Load()), ast.Load):
        return None
    differences = other_shape(facts, found)
    size = _off_diagonal(facts, code, found.mask)
    missing, mask = missing_dimensions(facts, found), facts.value(found.mask)
    if size is None and missing == 0 and (size := _viewed(facts, code)) is not None:
        says = "a mask that picks another number than is viewed no longer raises"
        differences = [*differences, Difference("exception", says)]
    rank = mask.rank if isinstance(mask, Tensor) else None
    if size is None or missing is None or rank is None or not repeatable(facts, found.mask):
        return None
    picks, tensor = code.operand(found.mask), code.operand(found.tensor)
    if rank > 1:
        picks, tensor = f"{picks}.flatten()", f"{tensor}.flatten({f'0, {rank - 1}' if missing else ''})"
    index = f"{imports.name('torch.nonzero_static')}({picks}, size={size}).squeeze(1)"
    assert isinstance(facts.node, ast.expr)
    return facts.node, f"{tensor}[{index}]", differences


def _off_diagonal(facts: FunctionFacts, code: Code, mask: ast.expr) -> str | None:
    """How many elements a mask picks that is true on the diagonal alone, or everywhere else."""
    others, name, node = False, "", mask
    while True:
        match node:
            case (
                ast.UnaryOp(op=ast.Invert(), operand=inner)
                | ast.Call(func=ast.Attribute(value=inner, attr="logical_not"), args=[], keywords=[])
            ):
                others = not others
            case ast.Call(func=ast.Attribute(value=inner, attr="bool" | "to" | "clone")) if is_tensor(facts, inner):
                pass
            case ast.Compare(left=inner, ops=[ast.Eq() | ast.NotEq() as op], comparators=[ast.Constant(value=0)]):
                others ^= isinstance(op, ast.Eq)
            case ast.Name():
                bound = reaching(facts, node)
                if bound is None or changed_in_place(facts, node):
                    return None
                name, inner = name or node.id, bound
            case _:
                break
        node = inner
    eye = called(facts, node, "torch.eye")
    if eye is None or len(eye.args) != 1 or any(k.arg in ("n", "m", "out", None) for k in eye.keywords):
        return None
    n = f"{name}.shape[0]" if name else code.operand(eye.args[0])
    return f"{n} * ({n} - 1)" if others else n


def _viewed(facts: FunctionFacts, code: Code) -> str | None:
    """How many elements there must be for the view around them."""
    attribute = facts.parent(facts.node)
    call = facts.parent(attribute) if isinstance(attribute, ast.Attribute) else None
    if not isinstance(call, ast.Call) or attribute is not call.func or method(facts, call, "view", "reshape") is None:
        return None
    sizes = call.args[0].elts if len(call.args) == 1 and isinstance(call.args[0], ast.Tuple) else call.args
    literal = [constant(s) for s in sizes]
    if not sizes or call.keywords or any(isinstance(n, int) and n < 0 for n in literal):
        return None
    if any(number_type(facts, s) != "int" for s in sizes) or not repeatable(facts, *sizes):
        return None
    return " * ".join(code.operand(s) for s in sizes)


def _first(facts: FunctionFacts, code: Code, imports: Imports) -> _Form | None:
    """`m.nonzero()[0]`, `torch.where(m)[0][0]`: only the first is used."""
    found = nonzero_of(facts, facts.node)
    whole = facts.parent(facts.node)
    if found is None or not isinstance(whole, ast.Subscript) or whole.value is not facts.node:
        return None
    index: object = constant(whole.slice)
    column: object = None
    if found.as_tuple:
        above = facts.parent(whole)
        if not isinstance(above, ast.Subscript) or above.value is not whole or not isinstance(index, int):
            return None
        column, index, whole = index, constant(above.slice), above
    elif isinstance(whole.slice, ast.Tuple) and len(whole.slice.elts) == 2:
        index, column = constant(whole.slice.elts[0]), constant(whole.slice.elts[1])
    if index != 0 or not (column is None or isinstance(column, int)):
        return None
    rest = "" if column is None else f", {column}"
    value, mask = facts.value(found.mask), code.operand(found.mask)
    static = f"{imports.name('torch.nonzero_static')}({code.argument(found.mask)}, size=1)[0"
    if isinstance(value, Tensor) and value.rank == 1 and repeatable(facts, found.mask):
        # where everything is zero the place is -1, which `index_select` has not
        places = f"{imports.name('torch.arange')}(len({mask}), device={mask}.device)"
        return whole, f"{places}.index_select(0, {static}]){'' if column is None else '[0]'}", []
    text = f"{static}{rest}]"
    differences = [Difference("exception", "where everything is zero the index is -1 instead of an exception")]
    if column is None and not (isinstance(value, Tensor) and value.rank == 1):
        differences.append(Difference("strides", "the places of one element lie next to each other"))
    return whole, text, differences


def _classes(facts: FunctionFacts, code: Code, imports: Imports) -> _Form | None:
    """`F.one_hot(t).float() @ w`: the matrix has a row for each class."""
    call = called(facts, _call(facts), "torch.nn.functional.one_hot")
    if call is None or len(call.args) != 1 or call.keywords:
        return None
    node: ast.expr = call
    while isinstance(above := facts.parent(node), ast.Attribute) and isinstance(outer := facts.parent(above), ast.Call):
        if outer.func is not above or above.attr not in _CONVERSIONS:
            return None
        node = outer
    match facts.parent(node):
        case ast.BinOp(left=left, op=ast.MatMult(), right=matrix) if left is node:
            pass
        case ast.Call(args=[left, matrix]) as product if left is node and (qualified(facts, product.func) in _PRODUCTS):
            pass
        case _:
            return None
    value = facts.value(matrix)
    if not isinstance(value, Tensor) or value.rank not in (1, 2) or not repeatable(facts, matrix):
        return None
    text = f"{code.text(call)[:-1].rstrip().rstrip(',')}, num_classes={code.operand(matrix)}.shape[0])"
    return call, text, [Difference("exception", "fewer classes than the matrix has rows, or no labels, raise no more")]


_PRODUCTS = ("torch.matmul", "torch.mm")


def _repeats(facts: FunctionFacts, code: Code, imports: Imports) -> _Form | None:
    """`torch.repeat_interleave(x, n)` with repeats that are literals, or that tell where rows are added."""
    call = called(facts, _call(facts), "torch.repeat_interleave") or method(facts, _call(facts), "repeat_interleave")
    if call is None or any(k.arg not in ("dim", "repeats") for k in call.keywords):
        return None
    bound = qualified(facts, call.func) != "torch.repeat_interleave"
    arguments = [*call.args, *(k.value for k in call.keywords if k.arg == "repeats")]
    if not arguments:
        return None
    text = code.text(call)[:-1].rstrip().rstrip(",")
    total = _total(facts, arguments[0 if bound or len(arguments) == 1 else 1])
    if total is not None:
        return call, f"{text}, output_size={total})", []
    source = met_size(facts, call)
    if source is None:
        return None
    says = f"the repeats are taken to add up to the size of `{source.id}`: others raise earlier, or raise"
    return call, f"{text}, output_size={source.id}.shape[0])", [Difference("exception", says)]


def _total(facts: FunctionFacts, node: ast.expr) -> int | None:
    """The sum of a tensor that is written out, or of a name that is only bound to one."""
    if isinstance(node, ast.Name):
        uses = [n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n.id == node.id]
        bindings = [n for n in uses if isinstance(n.ctx, ast.Store)]
        statement = facts.parent(bindings[0]) if len(bindings) == 1 else None
        if not isinstance(statement, ast.Assign) or statement.targets != bindings:
            return None
        others = [n for n in uses if n is not node and n not in bindings]
        if others or node.id in parameters(facts.function):  # whoever else has the tensor may change it
            return None
        node = statement.value
    call = called(facts, node, "torch.tensor", "torch.as_tensor")
    if call is None or not call.args or not isinstance(call.args[0], (ast.List, ast.Tuple)):
        return None
    numbers = [constant(e) for e in call.args[0].elts]
    counts = [n for n in numbers if isinstance(n, int) and n >= 0]
    # a single number of repeats counts for every element
    return sum(counts) if len(counts) > 1 and len(counts) == len(numbers) else None


def _distinct(facts: FunctionFacts, code: Code, imports: Imports, also: _Also) -> _Form | None:
    """`torch.unique(n).numel()`: how many different ones there are; `torch.unique_consecutive`: in a line. A name of
    them that is asked for nothing else is the name of the number then.
    """
    runs = called(facts, _call(facts), "torch.unique_consecutive") or method(facts, _call(facts), "unique_consecutive")
    call = runs or called(facts, _call(facts), "torch.unique") or method(facts, _call(facts), "unique")
    if call is None or call.keywords or len(call.args) > 1:
        return None
    tensor = call.args[0] if call.args else call.func.value if isinstance(call.func, ast.Attribute) else None
    named_by = facts.parent(call)
    reads = _reads_of(facts, named_by) if isinstance(named_by, ast.Assign) else [call]
    wholes = [_length_asked(facts, read) for read in reads]
    if tensor is None or not is_tensor(facts, tensor) or not wholes:
        return None
    if not repeatable(facts, tensor):
        raise NeedsPythonNumberError(f"`{ast.unparse(tensor)}` would be evaluated more than once")
    uses = ScalarUses(facts, "int64")
    for read, whole in zip(reads, wholes, strict=True):
        if whole is None:
            return None
        uses.follow(whole)
        if read is not call:
            also[whole] = ast.unparse(read)
    text = (RUNS if runs is not None else DISTINCT).format(input=code.operand(tensor))
    whole = wholes[0]
    assert whole is not None
    return call if also else whole, text, uses.differences


def _reads_of(facts: FunctionFacts, statement: ast.Assign) -> list[ast.expr]:
    """Where a name is read that a statement alone binds."""
    match statement.targets:
        case [ast.Name(id=name)] if (
            name in locals_of(facts.function) - {*parameters(facts.function)}
            and len(bindings(facts).get(name, ())) == 1
        ):
            if any(isinstance(n, (ast.Global, ast.Nonlocal)) for n in nodes_in(facts.function)):
                return []
            loads = [n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n.id == name]
            return [n for n in loads if isinstance(n.ctx, ast.Load)]
    return []


def _length_asked(facts: FunctionFacts, of: ast.expr) -> ast.expr | None:
    """The expression that asks for the number of elements of a tensor of one dimension."""
    above = facts.parent(of)
    whole = facts.parent(above) if isinstance(above, ast.Attribute) else above
    if isinstance(whole, ast.Call) and isinstance(whole.func, ast.Attribute) and whole.func.attr == "numel":
        return whole if whole.func.value is of and not whole.args else None
    asked = asked_for(facts, whole)
    return whole if asked is not None and asked[0] is of and isinstance(whole, ast.expr) else None


def _end(facts: FunctionFacts, code: Code, imports: Imports) -> _Form | None:
    """`torch.unique(n)[0]` and `[-1]`: the least and the greatest."""
    call = called(facts, _call(facts), "torch.unique") or method(facts, _call(facts), "unique")
    if call is None or call.keywords or len(call.args) > 1:
        return None
    tensor = call.args[0] if call.args else call.func.value if isinstance(call.func, ast.Attribute) else None
    whole = facts.parent(call)
    if not isinstance(whole, ast.Subscript) or whole.value is not call or not isinstance(whole.ctx, ast.Load):
        return None
    place = constant(whole.slice)
    end = {0: "min", -1: "max"}.get(place) if isinstance(place, int) else None
    value = facts.value(tensor) if tensor is not None else None
    if end is None or tensor is None or not isinstance(value, Tensor) or value.ndarray:
        return None
    differences = [Difference("exception", "of no elements another exception is raised")]
    if dtype_kind(value.dtype) not in ("int", "bool"):
        differences.append(Difference("nan", f"`{end}` of elements with NaN among them is NaN"))
        if recorded(facts, facts.statement):
            differences.append(Difference("gradients", f"`{end}` has gradients, which `unique` raises for"))
    return whole, f"{code.operand(tensor)}.{end}()", differences


#: what the size is called, by the function whose result it is
_SIZES: dict[str, tuple[tuple[str, ...], str]] = {
    "output_size": (("torch.repeat_interleave", "torch.Tensor.repeat_interleave"), "the repeats add up to it"),
    "num_classes": (("torch.nn.functional.one_hot",), "the number of classes is not in the labels"),
}


def _pattern(facts: FunctionFacts) -> Fix | None:
    """Where the size is not in the code, the place for it."""
    call = _call(facts)
    name = qualified(facts, call.func) if isinstance(call, ast.Call) else None
    for keyword, (functions, why) in _SIZES.items():
        if name in functions and isinstance(call, ast.Call) and all(k.arg != keyword for k in call.keywords):
            text = f"{Code(facts.source).text(call)[:-1].rstrip().rstrip(',')}, {keyword}=...)"
            changed = replace_expression(facts.source, call, text)
            reason = f"write the size in place of `...`; {why}"
            return show(NAME, f"say how large the result is with `{keyword}`", facts, lambda c=changed: [c], reason)  # type: ignore[misc]
    return None


def _call(facts: FunctionFacts) -> ast.expr:
    return facts.node if isinstance(facts.node, ast.expr) else ast.Constant(None)
