"""Call another form of a torch function, which takes a tensor where the one that is called needs a Python number.

Before:
    y = torch.roll(x, n.item(), 0)

After:
    y = x[(torch.arange(x.shape[0], device=x.device) - n) % x.shape[0]]

Legal when:
    the number is what `full_like` and `new_full` fill with, the `alpha` of `add` and `sub`, the weight of `lerp`, how
    far `roll` moves along one dimension that is written out, which part `select` takes, or where the part of known
    length begins that `narrow` takes.

Differs in:
    what is filled in may be too large for the dtype, which raises no more; a sum with `alpha` may round in its last
    digit, and raises no more for whole numbers; `lerp` computes with a weight of the tensor's own precision. What
    `narrow` gives is a copy.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import UNKNOWN, Static, Tensor, dtype_kind
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.qualified_names import constant, is_tensor, number_type, qualified
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.kept_scalars import Taken, conversion, taken
from graphmend.transforms.legality.gradients import recorded
from graphmend.transforms.legality.memory import written_to
from graphmend.transforms.legality.numbers.as_tensors import OVERFLOW, PRECISION, holds, unlike
from graphmend.transforms.legality.speculation import repeatable
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "tensor_argument"
_WHOLE = Difference("exception", "a number that is no whole one raises no more")


class _Call(NamedTuple):
    """A call with a number that is taken out of a tensor."""

    facts: FunctionFacts
    node: ast.Call
    receiver: ast.expr
    arguments: list[ast.expr]
    """Those given by position, without the receiver."""
    number: ast.expr
    kept: Taken

    def named(self, name: str) -> bool:
        return any(k.arg == name and k.value is self.number for k in self.node.keywords)

    def given(self, *parameters: str) -> dict[str, ast.expr] | None:
        """The arguments by the name of their parameter; None where there are others."""
        found = dict(zip(parameters, self.arguments, strict=False))
        found |= {k.arg or "": k.value for k in self.node.keywords}
        many = len(self.arguments) + len(self.node.keywords)
        return found if len(found) == many and found.keys() <= {*parameters} else None

    @property
    def code(self) -> Code:
        return Code(self.facts.source)


#: text, differences
_Form = tuple[Callable[[Imports], str], list[Difference]]


@asks("effects", "memory", "numbers", "gradients", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    number = facts.node
    if not isinstance(number, ast.Call) or conversion(facts, number) is None:
        return None
    while isinstance(above := facts.parent(number), ast.Call) and conversion(facts, above) is not None:
        number = above
    around = facts.parent(number)
    call = facts.parent(around) if isinstance(around, ast.keyword) else around
    if not isinstance(call, ast.Call) or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    folder, _, last = (qualified(facts, call.func) or "").rpartition(".")
    form = _FORMS.get(last) if folder in ("torch", "torch.Tensor") else None
    if form is None:
        return None
    method = folder == "torch.Tensor"
    if (method and not isinstance(call.func, ast.Attribute)) or (not method and not call.args):
        return None
    receiver = call.func.value if method and isinstance(call.func, ast.Attribute) else call.args[0]
    known = is_tensor(facts, receiver) or (not method and facts.value(receiver) == UNKNOWN)  # which torch requires
    if receiver is number or not known:
        return None
    kept = taken(facts, number, detach=recorded(facts, facts.statement))
    if kept is None:
        return refuse(NAME, f"what `{ast.unparse(number)}` takes its number out of is not known to be a tensor")
    found = form(_Call(facts, call, receiver, call.args if method else call.args[1:], number, kept))
    if found is None:
        return refuse(NAME, f"`{last}` has no other form for this argument")
    text, differences = found

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        made = text(imports)
        return [*imports.edits(), replace_expression(facts.source, call, made)]

    title = "call a form that takes a tensor for a number"
    return offer(NAME, title, facts, make, [*kept.differences, *differences])


def _full(call: _Call) -> _Form | None:
    """`torch.full_like(x, v)`, `x.new_full(size, v)`."""
    like = isinstance(call.node.func, ast.Attribute) and call.node.func.attr == "full_like"
    if call.number is not (call.arguments[-1] if call.arguments else None) or len(call.arguments) != (1 if like else 2):
        return None
    code = call.code
    options = "".join(f", {k.arg}={code.argument(k.value)}" for k in call.node.keywords if k.arg)
    value = call.facts.value(call.receiver)
    other = any(k.arg in ("dtype", None) for k in call.node.keywords)
    fits = not other and isinstance(value, Tensor) and holds(value, call.kept.dtype)
    differences = [] if fits else [OVERFLOW, PRECISION]

    def text(imports: Imports) -> str:
        tensor = code.operand(call.receiver)
        if like:
            return f"{imports.name('torch.empty_like')}({tensor}{options}).fill_({call.kept.text})"
        return f"{tensor}.new_empty({code.argument(call.arguments[0])}{options}).fill_({call.kept.text})"

    return text, differences


def _alpha(call: _Call) -> _Form | None:
    """`torch.add(x, y, alpha=v)`."""
    if len(call.arguments) != 1 or len(call.node.keywords) != 1 or not call.named("alpha"):
        return None
    other = call.arguments[0]
    if not is_tensor(call.facts, other):
        return None
    value, code = call.facts.value(other), call.code
    assert isinstance(value, Tensor)
    sign = "-" if isinstance(call.node.func, ast.Attribute) and call.node.func.attr in ("sub", "subtract") else "+"
    differences = [Difference("rounding", "a sum with `alpha` may round in its last digit")]
    if dtype_kind(value.dtype) != "float":
        differences.append(Difference("exception", "whole numbers with an `alpha` that is none raise no more"))
    scaled = f"{code.operand(other)} * {call.kept.text}"
    if not value.rank or unlike(value, call.kept.dtype) is not None:  # an `alpha` promotes nothing, a bool least of all
        scaled = f"({scaled}).to({code.operand(other)}.dtype)"
    text = f"({code.operand(call.receiver)} {sign} {scaled})"
    return lambda imports: text, differences


def _lerp(call: _Call) -> _Form | None:
    """`x.lerp(y, v)`."""
    if len(call.arguments) != 2 or call.arguments[1] is not call.number or call.node.keywords:
        return None
    value = call.facts.value(call.receiver)
    same = isinstance(value, Tensor) and value.dtype is not None and value.dtype == call.kept.dtype
    code = call.code
    weight = call.kept.text if same else f"{call.kept.text}.to({code.operand(call.receiver)}.dtype)"
    text = f"{code.operand(call.receiver)}.lerp({code.argument(call.arguments[0])}, {weight})"
    return lambda imports: text, [] if same else [PRECISION]


def _roll(call: _Call) -> _Form | None:
    """`torch.roll(x, n, 0)`."""
    given = call.given("shifts", "dims")
    if given is None or given.get("shifts") is not call.number or not repeatable(call.facts, call.receiver):
        return None
    value = call.facts.value(call.receiver)
    line = isinstance(value, Tensor) and value.rank == 1
    dim = _dimension(given["dims"]) if "dims" in given else 0 if line else None
    if dim is None:
        return None
    tensor = call.code.operand(call.receiver)

    def text(imports: Imports) -> str:
        size = f"{tensor}.shape[{dim}]"
        positions = f"{imports.name('torch.arange')}({size}, device={tensor}.device)"
        return f"{tensor}{_at(dim, f'({positions} - {call.kept.text}) % {size}')}"

    layout = Difference("strides", "the result may have other strides")
    return text, [layout] if dtype_kind(call.kept.dtype) == "int" else [layout, _WHOLE]


def _select(call: _Call) -> _Form | None:
    """`x.select(0, n)` is `x[n]`, which is mended next."""
    given = call.given("dim", "index")
    if given is None or given.get("index") is not call.number:
        return None
    dim = _dimension(given.get("dim"))
    if dim is None or dim < 0:
        return None
    text = f"{call.code.operand(call.receiver)}{_at(dim, call.code.argument(call.number))}"
    return lambda imports: text, []


def _narrow(call: _Call) -> _Form | None:
    """`x.narrow(0, n, 3)`: a part of known length."""
    given = call.given("dim", "start", "length")
    if given is None or len(given) < 3 or given["start"] is not call.number:
        return None
    dim, length = _dimension(given["dim"]), given["length"]
    known = number_type(call.facts, length) is not None or isinstance(call.facts.value(length), Static)
    if dim is None or not known or not repeatable(call.facts, call.receiver) or written_to(call.facts, call.node):
        return None
    tensor, code = call.code.operand(call.receiver), call.code

    def text(imports: Imports) -> str:
        positions = f"{imports.name('torch.arange')}({code.argument(length)}, device={tensor}.device)"
        return f"{tensor}{_at(dim, f'{call.kept.text} + {positions}')}"

    differences = [
        Difference("aliasing", "the result is a copy instead of a view"),
        Difference("strides", "the result may have other strides"),
        Difference("exception", "a part that reaches over an end raises otherwise, or is taken from the other end"),
    ]
    return text, differences if dtype_kind(call.kept.dtype) == "int" else [*differences, _WHOLE]


def _dimension(node: ast.expr | None) -> int | None:
    """A dimension that is written out, alone or as the only one of a tuple."""
    if isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) == 1:
        node = node.elts[0]
    dim = constant(node)
    return dim if isinstance(dim, int) and not isinstance(dim, bool) else None


def _at(dim: int, index: str) -> str:
    """An index in a dimension, which may be counted from the end."""
    return f"[{':, ' * dim}{index}]" if dim >= 0 else f"[..., {index}{', :' * (-dim - 1)}]"


_FORMS: dict[str, Callable[[_Call], _Form | None]] = {
    "full_like": _full,
    "new_full": _full,
    "add": _alpha,
    "sub": _alpha,
    "subtract": _alpha,
    "lerp": _lerp,
    "roll": _roll,
    "narrow": _narrow,
    "select": _select,
}
