"""Store under a mask with `torch.where` instead of only where the mask picks.

Before:
    y[m] = x[m] * 2

After:
    y.copy_(torch.where(m, x * 2, y))

Legal when:
    the mask is a bool tensor over the leading dimensions of what it picks from, and what is stored is computed one
    element at a time, from numbers, 0-d tensors and elements picked by the same mask.

Differs in:
    what is computed on elements outside the mask is thrown away, and may reach gradients as NaN.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import called, constant, is_tensor, method, number_type, qualified
from graphmend.transforms.code.text_edits import replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.gradients import gradient_differences
from graphmend.transforms.legality.in_place import apart, intact, linear, linear_operator
from graphmend.transforms.legality.masked_elements import aligned, picked
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.speculation import repeatable, speculate
from graphmend.transforms.rewrites.answers import offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "masked_store"


def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    answer = _stored(facts)
    return answer if answer is not None else _stored_one_by_one(facts)


def _stored(facts: FunctionFacts) -> Fix | Refusal | None:
    """`y[m] = f(x[m])` and `y[m] += v`."""
    statement = facts.statement
    match statement:
        case ast.Assign(targets=[ast.Subscript() as target], value=value):
            operator = None
        case ast.AugAssign(target=ast.Subscript() as target, op=op, value=value):
            operator = op
        case _:
            return None
    found = picked(facts, target)
    if found is None:
        return None
    tensor, mask = found
    differences: list[Difference] = []
    replaced: dict[ast.expr, str] = {}
    code = Code(facts.source)
    if not repeatable(facts, tensor, mask):
        return refuse(NAME, f"`{ast.unparse(target)}` would be evaluated more than once")
    plain = operator is None or linear_operator(facts, operator, value)
    for node in ast.walk(value):
        inner = picked(facts, node)
        if inner is not None and isinstance(node, ast.expr):
            if ast.unparse(inner.mask) != ast.unparse(mask):
                return refuse(NAME, "elements are picked by another mask than they are stored by")
            harmless = (plain and linear(facts, value)) or apart(facts, inner.tensor, tensor)
            replaced[node] = intact(facts, statement, code.operand(inner.tensor), linear=harmless)
    if not one_by_one(facts, value, replaced):
        return refuse(NAME, f"`{ast.unparse(value)}` is not known to compute one element at a time")
    speculation = speculate(facts, value)
    if speculation.blockers:
        return refuse(NAME, speculation.blockers[0])
    if not replaceable(facts, [statement]):
        return refuse(NAME, "the statement shares its line with another one")

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        target_text, mask_text = code.operand(tensor), aligned(facts, found)
        text = code.argument(value, replaced)
        if operator is not None:
            read = intact(facts, statement, target_text, linear=plain)
            text = f"{read} {_SIGNS[type(operator)]} {code.operand(value, replaced)}"
        where = f"{imports.name('torch.where')}({mask_text}, {text}, {target_text})"
        return [*imports.edits(), replace_statements(facts.source, [statement], f"{target_text}.copy_({where})\n")]

    differences += [d for d in speculation.differences if "[" not in d]
    differences += gradient_differences(facts, statement, [[value]])
    return offer(NAME, "store under the mask with torch.where", facts, make, differences)


_SIGNS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}


def one_by_one(facts: FunctionFacts, node: ast.expr, replaced: dict[ast.expr, str]) -> bool:
    """Arithmetic on picked elements and numbers."""
    if node in replaced or number_type(facts, node) is not None:
        return True
    if isinstance(node, ast.BinOp):
        return (
            type(node.op) in _SIGNS
            and one_by_one(facts, node.left, replaced)
            and one_by_one(facts, node.right, replaced)
        )
    if isinstance(node, ast.UnaryOp):
        return one_by_one(facts, node.operand, replaced)
    if isinstance(node, ast.Call) and not node.keywords:
        folder, _, last = (qualified(facts, node.func) or "").rpartition(".")
        receiver = [node.func.value] if folder == "torch.Tensor" and isinstance(node.func, ast.Attribute) else []
        if folder in known.FUNCTIONAL and last in known.ELEMENTWISE | known.ARITHMETIC:
            return all(one_by_one(facts, a, replaced) for a in [*receiver, *node.args])
    value = facts.value(node)
    return isinstance(value, Tensor) and value.rank == 0


def _stored_one_by_one(facts: FunctionFacts) -> Fix | Refusal | None:
    """`for i in m.nonzero(): y[i] = 1`."""
    statement = facts.statement
    if not isinstance(statement, ast.For) or statement.orelse or not isinstance(statement.target, ast.Name):
        return None
    call = method(facts, statement.iter, "nonzero") or called(facts, statement.iter, "torch.nonzero")
    if call is None or call.keywords:
        return None
    mask = call.args[0] if call.args else call.func.value if isinstance(call.func, ast.Attribute) else None
    match statement.body:
        case [ast.Assign(targets=[ast.Subscript(value=tensor, slice=ast.Name(id=name))], value=value)] if (
            name == statement.target.id
        ):
            pass
        case _:
            return refuse(NAME, "the loop does more than store one number at each place")
    known = facts.value(mask) if mask is not None else None
    if not isinstance(known, Tensor) or known.rank != 1 or not is_tensor(facts, tensor) or constant(value) is None:
        return refuse(NAME, "the places are not known to be those of a mask of one dimension")
    assert mask is not None

    def make() -> list[TextEdit]:
        code = Code(facts.source)
        test = code.argument(mask) if known.dtype == "bool" else f"{code.operand(mask)} != 0"
        return [replace_statements(facts.source, [statement], f"{code.operand(tensor)}[{test}] = {code.text(value)}\n")]

    return offer(
        NAME, "store under the mask", facts, make, [Difference("state", "the loop's variable is not bound any more")]
    )
