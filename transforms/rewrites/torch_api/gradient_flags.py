"""Say in another way that a tensor wants gradients, or give it new data, so that Dynamo can capture it.

Before:
    y.requires_grad = True
    y.data = x + 1

After:
    y.requires_grad_(True)
    y.data.copy_(x + 1)

Legal when:
    the tensor is made inside the function; new data has the shape and the dtype of the old. `requires_grad_` on
    a detached tensor whose gradient nobody can ask for is left out. Where what is computed from the tensor is returned,
    the flag is set in plain Python only.

Differs in:
    what other names of the same storage see; a result computed from a detached tensor does not require gradients; a
    tensor whose flag is not set while compiled has no `grad` there.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import parameters, reads, writes
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import constant, method
from graphmend.transforms.code.text_edits import HOLE, replace_expression, replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.same_shape import alike
from graphmend.transforms.rewrites.answers import offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "gradient_flags"


def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    match facts.statement:
        case ast.Assign(targets=[ast.Attribute(value=tensor, attr="requires_grad")], value=value):
            return _flag(facts, facts.statement, tensor, value)
        case ast.Assign(targets=[ast.Attribute(value=tensor, attr="data")], value=value):
            return _data(facts, facts.statement, tensor, value)
    return _detached(facts)


def _flag(facts: FunctionFacts, statement: ast.stmt, tensor: ast.expr, value: ast.expr) -> Fix | Refusal:
    if not isinstance(tensor, ast.Name) or tensor.id in parameters(facts.function):
        return refuse(NAME, f"`{ast.unparse(tensor)}` is not made in the function")
    if not replaceable(facts, [statement]):
        return refuse(NAME, "the statement shares its line with another one")

    if _leaves(facts, tensor.id):
        return _not_compiled(facts, statement)

    def make() -> list[TextEdit]:
        code = Code(facts.source)
        return [
            replace_statements(
                facts.source, [statement], f"{code.text(tensor)}.requires_grad_({code.argument(value)})\n"
            )
        ]

    return offer(NAME, "call requires_grad_", facts, make)


def _leaves(facts: FunctionFacts, name: str) -> bool:
    """Is something returned that is computed from a tensor? Dynamo 2.13 refuses such a tensor a gradient of its own."""
    derived, count = {name}, 0
    while count != len(derived):
        count = len(derived)
        for node in ast.walk(facts.function):
            if isinstance(node, (ast.Assign, ast.AugAssign)) and reads(node.value) & derived:
                derived |= writes(node)
    returned = [n.value for n in ast.walk(facts.function) if isinstance(n, ast.Return) and n.value is not None]
    return any(reads(value) & derived for value in returned)


def _not_compiled(facts: FunctionFacts, statement: ast.stmt) -> Fix:
    """Only eager code can ask for the gradient of a tensor that the function makes and keeps."""

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        test = imports.name("torch.compiler.is_compiling")
        new = f"if not {test}():\n    {HOLE.format(0)}\n"
        return [*imports.edits(), replace_statements(facts.source, [statement], new, [statement])]

    difference = Difference(
        "gradients",
        "while compiled the tensor asks for no gradient: its `grad` stays None, and so may those of its inputs",
    )
    return offer(NAME, "ask for gradients in plain Python only", facts, make, [difference])


def _data(facts: FunctionFacts, statement: ast.stmt, tensor: ast.expr, value: ast.expr) -> Fix | Refusal:
    likeness = alike(facts, tensor, value)
    if likeness.blocker:
        return refuse(NAME, likeness.blocker)

    def make() -> list[TextEdit]:
        code = Code(facts.source)
        return [
            replace_statements(facts.source, [statement], f"{code.text(tensor)}.data.copy_({code.argument(value)})\n")
        ]

    differences = [
        Difference("aliasing", "other tensors that share the storage see the new data"),
        *likeness.differences,
    ]
    return offer(NAME, "copy into the data", facts, make, differences)


def _detached(facts: FunctionFacts) -> Fix | Refusal | None:
    node = facts.node.value if isinstance(facts.node, ast.Expr) else facts.node
    call = method(facts, node, "requires_grad_") if isinstance(node, ast.expr) else None
    if call is None or not isinstance(call.func, ast.Attribute):
        return None
    inner = call.func.value
    if not method(facts, inner, "detach") or isinstance(facts.parent(call), ast.Expr):
        return refuse(NAME, "the tensor's own gradient may be asked for")
    if any(constant(a) is False for a in call.args):
        return None
    if not isinstance(facts.value(inner), Tensor):
        return refuse(NAME, "what is detached is not known to be a tensor")
    text = Code(facts.source).text(inner)
    difference = Difference("gradients", "results computed from the detached tensor do not require gradients")
    return offer(
        NAME, "leave requires_grad_ out", facts, lambda: [replace_expression(facts.source, call, text)], [difference]
    )
