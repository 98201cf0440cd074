"""Reduce the parts of a split by adding each row to its part, instead of splitting by computed lengths.

Before:
    sums = [part.sum(0) for part in x.split(lengths.tolist())]

After:
    sums = [
        part.clone()
        for part in x.new_zeros((lengths.shape[0], *x.shape[1:]))
        .index_add(0, torch.repeat_interleave(lengths.to(x.device), output_size=x.shape[0]), x)
        .unbind()
    ]

Legal when:
    the parts of a split by a tensor of lengths, which a loop or a comprehension runs over, are only summed, or only
    averaged, over the dimension that is split, the first, of a floating dtype. The lengths add up to that dimension,
    as `split` itself asks. Nothing that is not known is given what is split before it is reduced.

Differs in:
    sums may round differently; lengths that do not add up raise another exception.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Tensor, dtype_kind
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import name_given
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.qualified_names import called, constant, is_tensor, method, qualified
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.memory import changed_in_place
from graphmend.transforms.legality.speculation import repeatable
from graphmend.transforms.legality.writes.handed import handed_between
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "segments"


@asks("effects", "memory", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    listed = facts.node
    split = facts.parent(listed)
    if not isinstance(listed, ast.expr) or not isinstance(split, ast.Call) or not method(facts, listed, "tolist"):
        return None
    tensor = _split(facts, split, listed)
    if tensor is None:
        return None
    runs = _runs(facts, split)
    if not runs:
        return refuse(NAME, "the parts of the split are used as they are")
    found = [_reductions(facts, run, tensor) for run in runs]
    ways = {reduction.how if reduction is not None else None for reduction in found}
    if len(ways) != 1 or (how := ways.pop()) is None:
        return refuse(NAME, "the parts are not only summed, or averaged, over the dimension that is split")
    if not isinstance(tensor, ast.Name):
        return refuse(NAME, "what is split has no name")
    value = facts.value(tensor)
    if not isinstance(value, Tensor) or dtype_kind(value.dtype) != "float":
        # a sum of bools or integers is an int64, which `index_add` does not make of them
        return refuse(NAME, f"`{tensor.id}` is not known to have a floating dtype")
    if changed_in_place(facts, tensor, behind=facts.statement):
        return refuse(NAME, f"`{tensor.id}` is changed in place, which its parts show")
    nodes = [node for reduction in found if reduction is not None for node in reduction.nodes]
    if any(_contexts(facts, node) != _contexts(facts, split) for node in nodes):
        return refuse(NAME, "the parts are reduced in another context than they are made in")
    if (call := handed_between(facts, [tensor], nodes)) is not None:
        return refuse(NAME, f"`{ast.unparse(call)}` may change `{tensor.id}` before its parts are reduced")
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
        edits = [replace_expression(facts.source, split, f"{text}.unbind()")]
        for run, reduction in zip(runs, found, strict=True):
            for node in reduction.nodes if reduction is not None else []:
                # each its own memory, which may be changed in place, unless it is only computed with
                computed = isinstance(facts.parent(node), (ast.BinOp, ast.UnaryOp, ast.Compare))
                name = run.target.id if computed else f"{run.target.id}.clone()"
                edits.append(replace_expression(facts.source, node, name))
        return [*imports.edits(), *edits]

    differences = [
        Difference("rounding", "sums may round differently, as they are made in another order"),
        Difference("exception", "lengths that do not add up, or have no dimension, raise another exception"),
    ]
    if value.rank not in (1, 2):
        differences.append(Difference("strides", "the results are contiguous"))
    return offer(NAME, "add each row to its part", facts, make, differences)


_CONTEXTS = (ast.With, ast.AsyncWith, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def _contexts(facts: FunctionFacts, node: ast.expr) -> list[ast.AST]:
    """What decides whether gradients are recorded, and in which dtype: contexts and functions around a node, and, as
    statements of their own, calls that set it for what follows them.
    """
    around: list[ast.AST] = [a for a in facts.ancestors(node) if isinstance(a, _CONTEXTS)]
    place = node.lineno, node.col_offset
    sets = (n for n in nodes_in(facts.function) if isinstance(n, ast.Call) and (n.lineno, n.col_offset) < place)
    return [*around, *(n for n in sets if (qualified(facts, n.func) or "").rpartition(".")[2] in _SETS)]


_SETS = frozenset(["set_grad_enabled", "_set_grad_enabled", "set_autocast_enabled", "inference_mode"])


class _Run(NamedTuple):
    """A loop, or a comprehension, that runs over the parts."""

    whole: ast.For | ast.ListComp | ast.GeneratorExp
    target: ast.Name
    """The name of each part."""
    parts: ast.expr


class _Reduced(NamedTuple):
    how: str
    nodes: list[ast.expr]
    """The expressions that reduce a part."""


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


def _runs(facts: FunctionFacts, split: ast.expr) -> list[_Run]:
    """The loops that run over the parts of a split, by themselves or along with others; none where the parts serve
    for anything else.
    """
    given = name_given(facts, split)
    if given is None:
        run = _run(facts, split)
        return [run] if run is not None else []
    every = [n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n.id == given]
    loads = [n for n in every if isinstance(n.ctx, ast.Load)]
    runs = [run for n in loads if (run := _run(facts, n)) is not None]
    return runs if len(every) == len(loads) + 1 and len(runs) == len(loads) else []


def _run(facts: FunctionFacts, parts: ast.expr) -> _Run | None:
    node: ast.AST | None = facts.parent(parts)
    iterated, place = parts, None
    if isinstance(node, ast.Call) and called(facts, node, "builtins.zip", "builtins.enumerate") and not node.keywords:
        if parts not in node.args or any(isinstance(a, ast.Starred) for a in node.args):
            return None
        place = node.args.index(parts) if called(facts, node, "builtins.zip") else 1
        iterated, node = node, facts.parent(node)
    if not isinstance(node, (ast.For, ast.comprehension)) or node.iter is not iterated:
        return None
    target: ast.expr | None = node.target
    if place is not None:
        target = target.elts[place] if isinstance(target, ast.Tuple) and place < len(target.elts) else None
    whole = facts.parent(node) if isinstance(node, ast.comprehension) else node
    if not isinstance(target, ast.Name) or not isinstance(whole, (ast.For, ast.ListComp, ast.GeneratorExp)):
        return None
    if not isinstance(whole, ast.For) and len(whole.generators) != 1:
        return None
    return _Run(whole, target, parts)


def _reductions(facts: FunctionFacts, run: _Run, tensor: ast.expr) -> _Reduced | None:
    """`sum` or `mean`, where the parts are only reduced over their first dimension, and all in one way."""
    inside = [n for n in nodes_in(run.whole) if isinstance(n, ast.Name) and n.id == run.target.id]
    loads = [n for n in inside if isinstance(n.ctx, ast.Load)]
    scope = facts.function if isinstance(run.whole, ast.For) else run.whole
    every = [n for n in nodes_in(scope) if isinstance(n, ast.Name) and n.id == run.target.id]
    if len(inside) != len(loads) + 1 or (isinstance(run.whole, ast.For) and len(every) != len(inside)):
        return None
    found: list[tuple[str, ast.expr]] = []
    for load in loads:
        above = facts.parent(load)
        call = facts.parent(above) if isinstance(above, ast.Attribute) else None
        how = _reduction(facts, call, tensor) if isinstance(call, ast.Call) and call.func is above else None
        if how is None or call is None:
            return None
        found.append((how, call))  # type: ignore[arg-type]
    ways = {how for how, _ in found}
    return _Reduced(ways.pop(), [node for _, node in found]) if len(ways) == 1 else None


def _reduction(facts: FunctionFacts, call: ast.expr, tensor: ast.expr) -> str | None:
    """`sum` or `mean`, where a part is reduced over its first dimension."""
    value = facts.value(tensor)
    match call:
        case ast.Call(func=ast.Attribute(attr="sum" | "mean" as how), args=args, keywords=[]):
            pass
        case ast.Call(
            func=ast.Attribute(attr="sum" | "mean" as how),
            args=[],
            keywords=[ast.keyword(arg="dim" | "axis", value=only)],
        ):
            args = [only]
        case _:
            return None
    if not args:
        return how if isinstance(value, Tensor) and value.rank == 1 else None
    return how if len(args) == 1 and constant(args[0]) == 0 else None
