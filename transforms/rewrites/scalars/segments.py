"""Reduce the parts of a split by adding each row to its part, instead of splitting by computed lengths.

Before:
    sums = [part.sum(0) for part in x.split(lengths.tolist())]

After:
    sums = list(
        x.new_zeros((lengths.shape[0], *x.shape[1:]))
        .index_add(0, torch.repeat_interleave(lengths.to(x.device), output_size=x.shape[0]), x)
        .unbind()
    )

Legal when:
    the parts of a split by a tensor of lengths are only summed or averaged over the dimension that is split, the
    first, of a floating dtype. The lengths add up to that dimension, as `split` itself asks.

Differs in:
    sums may round differently; lengths that do not add up raise another exception. The results are parts of one
    tensor.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor, dtype_kind
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.qualified_names import called, constant, is_tensor, method
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.speculation import repeatable
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "segments"


@asks("effects", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    listed = facts.node
    split = facts.parent(listed)
    if not isinstance(listed, ast.expr) or not isinstance(split, ast.Call) or not method(facts, listed, "tolist"):
        return None
    tensor = _split(facts, split, listed)
    if tensor is None:
        return None
    comprehension = _comprehension(facts, split)
    if comprehension is None:
        return refuse(NAME, "the parts of the split are used as they are")
    how = _reduction(facts, comprehension, tensor)
    if how is None:
        return refuse(NAME, f"`{ast.unparse(comprehension.elt)}` is no sum or mean over the dimension that is split")
    if not isinstance(tensor, ast.Name):
        return refuse(NAME, "what is split has no name")
    value = facts.value(tensor)
    if not isinstance(value, Tensor) or dtype_kind(value.dtype) != "float":
        # a sum of bools or integers is an int64, which `index_add` does not make of them
        return refuse(NAME, f"`{tensor.id}` is not known to have a floating dtype")
    code = Code(facts.source)
    assert isinstance(listed, ast.Call)
    assert isinstance(listed.func, ast.Attribute)
    if not repeatable(facts, listed.func.value):
        return refuse(NAME, f"`{ast.unparse(listed.func.value)}` would be evaluated more than once")
    lengths, x = code.operand(listed.func.value), tensor.id
    full = value.dtype in ("float32", "float64")
    there = f"{lengths}.to({x}.device)"  # `tolist` reads lengths on any device

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        part = f"{imports.name('torch.repeat_interleave')}({there}, output_size={x}.shape[0])"
        text = f"{x}.new_zeros(({lengths}.shape[0], *{x}.shape[1:])).index_add(0, {part}, {x})"
        if not full:  # a sum of halves, row by row, loses digits, and may be too large where its mean is not
            high = f"{imports.name('torch.promote_types')}({x}.dtype, {imports.name('torch.float32')})"
            zeros = f"{x}.new_zeros(({lengths}.shape[0], *{x}.shape[1:]), dtype={high})"
            text = f"{zeros}.index_add(0, {part}, {x}.to({high}))"
        if how == "mean":
            text = f"({text} / {there}.reshape(-1, *[1] * ({x}.dim() - 1)))"
        if not full:
            text += f".to({x}.dtype)"
        return [*imports.edits(), replace_expression(facts.source, comprehension, f"list({text}.unbind())")]

    differences = [
        Difference("rounding", "sums may round differently, as they are made in another order"),
        Difference("exception", "lengths that do not add up, or have no dimension, raise another exception"),
        Difference("aliasing", "the results are parts of one tensor"),
    ]
    return offer(NAME, "add each row to its part", facts, make, differences)


def _split(facts: FunctionFacts, call: ast.Call, listed: ast.expr) -> ast.expr | None:
    """What a call splits by a list of lengths, in its first dimension."""
    bound = method(facts, call, "split", "split_with_sizes") is not None
    if not bound and not called(facts, call, "torch.split", "torch.split_with_sizes"):
        return None
    given = [*call.args, *(k.value for k in call.keywords if k.arg == "dim")]
    if len(given) != len(call.args) + len(call.keywords):
        return None
    assert bound is False or isinstance(call.func, ast.Attribute)
    tensor = call.func.value if bound and isinstance(call.func, ast.Attribute) else given.pop(0)
    if not given or given[0] is not listed or any(constant(d) != 0 for d in given[1:]):
        return None
    return tensor if is_tensor(facts, tensor) else None


def _comprehension(facts: FunctionFacts, split: ast.Call) -> ast.ListComp | None:
    """The comprehension that runs over the parts of a split."""
    generator = facts.parent(split)
    whole = facts.parent(generator) if generator is not None else None
    if not isinstance(generator, ast.comprehension) or generator.iter is not split or generator.ifs:
        return None
    return whole if isinstance(whole, ast.ListComp) and len(whole.generators) == 1 else None


def _reduction(facts: FunctionFacts, comprehension: ast.ListComp, tensor: ast.expr) -> str | None:
    """`sum` or `mean`, where the part is reduced over its first dimension."""
    target, value = comprehension.generators[0].target, facts.value(tensor)
    match comprehension.elt:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=part), attr="sum" | "mean" as how), args=args, keywords=[]):
            pass
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id=part), attr="sum" | "mean" as how),
            args=[],
            keywords=[ast.keyword(arg="dim", value=only)],
        ):
            args = [only]
        case _:
            return None
    if not isinstance(target, ast.Name) or part != target.id:
        return None
    if not args:
        return how if isinstance(value, Tensor) and value.rank == 1 else None
    return how if len(args) == 1 and constant(args[0]) == 0 else None
