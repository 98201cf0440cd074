"""Index with a tensor of one element instead of a Python number or a 0-d tensor.

Before:
    best = x[x.argmax()]

After:
    best = x[x.argmax().reshape(1)].squeeze(0)

Legal when:
    a tensor is indexed by one computed whole number, with nothing but slices beside it; or a list of tensors is.

Differs in:
    reading gives a copy instead of a view; an index out of range raises later on a GPU. A list of tensors is
    stacked, which needs equal shapes.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Container, Scalar, Static, Tensor, Value
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import fresh
from graphmend.transforms.code.qualified_names import constant, is_tensor
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.kept_scalars import Kept, conversion, tensor_text, tensors_in
from graphmend.transforms.legality.scalar_uses import NeedsPythonNumberError, ScalarUses
from graphmend.transforms.rewrites.answers import offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "computed_index"
_LATE = Difference("exception", "an index out of range raises later on a GPU")


def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    subscript = _subscript(facts)
    if subscript is None:
        return None
    indices = subscript.slice.elts if isinstance(subscript.slice, ast.Tuple) else [subscript.slice]
    computed = [i for i in indices if _index(facts, i) is not None]
    if len(computed) != 1 or not (facts.node is subscript or _within(facts.node, computed[0])):
        return None
    if isinstance(subscript.ctx, ast.Del):
        return refuse(NAME, "an element is deleted by a computed index")
    index = _index(facts, computed[0])
    assert index is not None
    if not is_tensor(facts, subscript.value):
        return _sequence(facts, subscript, index)
    if any(not isinstance(i, ast.Slice) for i in indices if i is not computed[0]):
        return refuse(NAME, "other indices stand beside the computed one")
    changed = replace_expression(facts.source, computed[0], index)
    if isinstance(subscript.ctx, ast.Store):
        return offer(NAME, "store through an index tensor", facts, lambda: [changed], [_LATE])
    dim = indices.index(computed[0])
    whole = Code(facts.source).text(subscript, {computed[0]: index})
    differences = [Difference("aliasing", "the result is a copy instead of a view"), _LATE]
    text = f"{whole}.squeeze({dim})"
    return offer(
        NAME,
        "read through an index tensor",
        facts,
        lambda: [replace_expression(facts.source, subscript, text)],
        differences,
    )


def _subscript(facts: FunctionFacts) -> ast.Subscript | None:
    for node in (facts.node, *facts.ancestors(facts.node)):
        if isinstance(node, ast.stmt):
            return None
        if isinstance(node, ast.Subscript) and (node is facts.node or facts.node in [*ast.walk(node.slice)]):
            return node
    return None


def _index(facts: FunctionFacts, node: ast.expr) -> str | None:
    """A computed whole number as a tensor of shape (1,)."""
    if conversion(facts, node) is not None:
        text = tensor_text(facts, node, Kept(), detach=False)
        return None if text is None else f"{text.removesuffix('.reshape(())')}.reshape(1)"
    value = facts.value(node)
    if isinstance(node, (ast.BinOp, ast.UnaryOp)) and isinstance(value, Scalar):
        kept = tensors_in(facts, node)
        return None if kept is None else f"({Code(facts.source).text(node, kept.replace)}).reshape(1)"
    if (
        isinstance(value, Tensor)
        and not value.ndarray
        and value.dtype != "bool"
        and (value.rank == 0 or not _shaped(facts, node))
    ):
        return f"{Code(facts.source).operand(node)}.reshape(1)"
    return None


def _within(node: ast.AST, outer: ast.expr) -> bool:
    return any(n is node for n in ast.walk(outer))


def _shaped(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is an index an array of indices, as far as is known, and what it indexes a tensor? Dynamo captures that."""
    parent = facts.parent(node)
    above = facts.parent(parent) if isinstance(parent, ast.Tuple) else parent
    return isinstance(above, ast.Subscript) and is_tensor(facts, above.value)


def _sequence(facts: FunctionFacts, node: ast.Subscript, index: str) -> Fix | Refusal | None:
    """An element of a list of tensors, of a shape, or of a table of numbers."""
    if isinstance(node.ctx, ast.Store):
        return refuse(NAME, f"`{ast.unparse(node.value)}` is not known to be a tensor")
    code, value = Code(facts.source), facts.value(node.value)
    text = code.argument(node.value)
    parent = facts.parent(node)
    if (
        isinstance(parent, ast.Call)
        and parent.func is node
        and isinstance(value, ExternalInstance)
        and value.cls == "torch.nn.ModuleList"
    ):
        return _module(facts, node, parent, index)
    parent = facts.parent(node)
    if isinstance(parent, ast.Call) and parent.func is node and _modules(value):
        return _module(facts, node, parent, index)
    if isinstance(value, Container) and value.kind in ("list", "tuple") and isinstance(value.element, Tensor):
        differences, function = (
            [Difference("exception", "the tensors must have equal shapes; the result is a copy"), _LATE],
            "torch.stack",
        )
        argument = text
    elif numbers := _table(facts, node.value):
        differences, function, argument = (
            [Difference("exception", "an index out of range raises later, or another exception"), _LATE],
            "torch.tensor",
            numbers,
        )
    else:
        return refuse(NAME, f"`{ast.unparse(node.value)}` is neither a tensor nor a list of tensors")
    if function == "torch.tensor":
        uses = ScalarUses(facts, "int64" if isinstance(node.value, ast.Attribute) else "float32")
        try:
            uses.follow(node)
        except NeedsPythonNumberError as error:
            return refuse(NAME, str(error))
        differences += uses.differences

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        made = f"{imports.name(function)}({argument})[{index}].squeeze(0)"
        return [*imports.edits(), replace_expression(facts.source, node, made)]

    return offer(NAME, "select from a stacked tensor", facts, make, differences)


def _modules(value: Value) -> bool:
    """Is a value a list of modules?"""
    if isinstance(value, Container):
        return value.kind == "modules"
    return isinstance(value, ExternalInstance) and value.cls == "torch.nn.ModuleList"


def _module(facts: FunctionFacts, node: ast.Subscript, call: ast.Call, index: str) -> Fix:
    """`layers[i](x)`: all layers are computed, and one result is selected."""
    code = Code(facts.source)
    layer = fresh(facts, "layer")

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        every = f"[{code.text(call, {node: layer})} for {layer} in {code.operand(node.value)}]"
        return [
            *imports.edits(),
            replace_expression(facts.source, call, f"{imports.name('torch.stack')}({every})[{index}].squeeze(0)"),
        ]

    differences = [
        Difference("evaluation", "all modules of the list are called; their results must have equal shapes"),
        Difference("zero-gradients", "parameters of the modules not chosen get zeros for gradients instead of None"),
        _LATE,
    ]
    return offer(NAME, "call all modules and select a result", facts, make, differences)


def _table(facts: FunctionFacts, node: ast.expr) -> str | None:
    """The text of a display of numbers that is indexed from 0, or of a shape."""
    if isinstance(node, ast.Dict):
        if [constant(k) for k in node.keys] != list(range(len(node.keys))):
            return None
        values = node.values
    elif isinstance(node, (ast.List, ast.Tuple)):
        values = node.elts
    elif isinstance(node, ast.Attribute) and node.attr == "shape" and is_tensor(facts, node.value):
        return Code(facts.source).text(node)
    else:
        return None
    kinds = {type(constant(v)) for v in values}
    if len(kinds) != 1 or not kinds <= {int, float} or not all(isinstance(facts.value(v), Static) for v in values):
        return None
    code = Code(facts.source)
    return f"[{', '.join(code.argument(v) for v in values)}]"
