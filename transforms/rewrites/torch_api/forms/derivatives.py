"""Derivatives of functions: those of `torch.autograd.functional` by the transforms of `torch.func`, which are traced.

    torch.autograd.functional.jacobian(f, x)            torch.func.jacrev(f)(x)
    torch.autograd.functional.hessian(f, x)             torch.func.jacrev(torch.func.jacrev(f))(x)
    torch.autograd.functional.jvp(f, x, v)              torch.func.jvp(f, (x,), (v,))
    torch.autograd.functional.vjp(f, x, v)[1]           torch.func.vjp(f, x)[1](v)[0]
    torch.autograd.functional.hvp(f, x, v)[1]           torch.func.vjp(torch.func.grad(f), x)[1](v)[0]
    torch.autograd.functional.vhp(f, x, v)[1]           torch.func.vjp(torch.func.grad(f), x)[1](v)[0]

The matrix of second derivatives is symmetric. Measured with torch 2.13.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.transforms.code.qualified_names import constant, qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.gradients.sides import recorded
from graphmend.transforms.rewrites.torch_api.forms.form import Form, asked, taken_for_tensor

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.transforms.code.expression_text import Code
    from graphmend.transforms.code.imports import Imports

_MODULE = "torch.autograd.functional."
#: name of a function to its form, and whether it is the second of its two results
_FORMS = {
    "jacobian": ("{jacrev}({f})({x})", False),
    "hessian": ("{jacrev}({jacrev}({f}))({x})", False),
    "jvp": ("{jvp}({f}, ({x},), ({v},))", False),
    "vjp": ("{vjp}({f}, {x})[1]({v})[0]", True),
    "hvp": ("{vjp}({grad}({f}), {x})[1]({v})[0]", True),
    "vhp": ("{vjp}({grad}({f}), {x})[1]({v})[0]", True),
}
_DIFFERENCES = (
    Difference("rounding", "rows of a derivative are computed together, and may round otherwise"),
    Difference(
        "exception", "a function that `torch.func` does not transform, as it reads numbers out of tensors, raises"
    ),
)


def derivative(facts: FunctionFacts, code: Code, imports: Imports) -> Form | str | None:
    """`torch.autograd.functional.jacobian(f, x)` and its like, of one tensor."""
    call = asked(facts)
    name = (qualified(facts, call.func) or "") if isinstance(call, ast.Call) else ""
    if not isinstance(call, ast.Call) or not name.startswith(_MODULE):
        return None
    text, is_second = _FORMS.get(name.removeprefix(_MODULE), ("", False))
    options = {k.arg: constant(k.value) for k in call.keywords}
    creates = options.pop("create_graph", False)
    count = 3 if "{v}" in text else 2
    if not text or len(call.args) != count or options or not isinstance(creates, bool):
        return "only a derivative of one tensor, with no other options, has another form"
    differences = list(_DIFFERENCES)
    for argument in call.args[1:]:
        if (taken := taken_for_tensor(facts, argument)) is None:
            return f"`{code.text(argument)}` is not known to be a tensor"
        differences += taken
    whole: ast.expr = call
    if is_second:
        above = facts.parent(call)
        if not isinstance(above, ast.Subscript) or above.value is not call or constant(above.slice) != 1:
            return "only the derivative has another form, not the value that comes with it"
        whole = above
    names = {
        each: imports.name(f"torch.func.{each}") for each in ("jacrev", "jvp", "vjp", "grad") if f"{{{each}}}" in text
    }
    given = dict(zip("fxv", map(code.argument, call.args), strict=False))
    if "{jvp}" in text:
        says = "forward derivatives warn, once for each operation, that `torch.jit.script` is deprecated"
        differences.append(Difference("output", says))
    if not creates and recorded(facts, facts.statement):
        says = "the derivative is a part of what is differentiated, where it was not"
        differences.append(Difference("gradients", says))
    return whole, text.format(**names, **given), differences
