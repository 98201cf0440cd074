"""Forms of calls that ask a tensor for a Python value which its shape, or a comparison, gives as well."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import locals_of, parameters
from graphmend.transforms.code.qualified_names import called, is_tensor
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.scalar_uses import ScalarUses
from graphmend.transforms.rewrites.torch_api.forms.form import Form, asked

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


def is_nonzero(facts: FunctionFacts, code: Code, imports: Imports) -> Form | str | None:
    """`t.is_nonzero()` where what becomes of the bool takes a tensor."""
    node = asked(facts)
    match node:
        case ast.Call(func=ast.Attribute(value=of, attr="is_nonzero"), args=[], keywords=[]) if is_tensor(facts, of):
            uses = ScalarUses(facts, "bool")
            uses.follow(node)
            value = facts.value(of)
            several = Difference("exception", f"`{code.text(of)}` of several elements raises no more, or otherwise")
            known = isinstance(value, Tensor) and value.rank == 0
            return node, f"({code.operand(of)} != 0)", [*uses.differences, *([] if known else [several])]
    return None


def is_same_size(facts: FunctionFacts, code: Code, imports: Imports) -> Form | str | None:
    """`t.is_same_size(u)`."""
    node = asked(facts)
    match node:
        case ast.Call(func=ast.Attribute(value=of, attr="is_same_size"), args=[other], keywords=[]) if is_tensor(
            facts, of
        ):
            says = f"`{code.text(other)}` that is no tensor raises otherwise, or no more"
            differences = [] if is_tensor(facts, other) else [Difference("exception", says)]
            return node, f"({code.operand(of)}.shape == {code.operand(other)}.shape)", differences
    return None


def swapped(facts: FunctionFacts, code: Code, imports: Imports) -> Form | str | None:
    """`torch.utils.swap_tensors(t, u)` of local names."""
    call = called(facts, asked(facts), "torch.utils.swap_tensors")
    if call is None or len(call.args) != 2 or call.keywords or not isinstance(facts.statement, ast.Expr):
        return None
    names = [a.id for a in call.args if isinstance(a, ast.Name)]
    if len(set(names)) != 2 or set(names) & {*parameters(facts.function)} or not {*names} <= locals_of(facts.function):
        return "what is swapped are no two names of the function's own tensors"
    differences = [
        Difference("aliasing", "who else has the tensors sees them as they were"),
        Difference("exception", "tensors that something refers to weakly raise no more"),
    ]
    one, other = names
    return call, f"{one}, {other} = {other}, {one}", differences
