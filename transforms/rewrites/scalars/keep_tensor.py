"""Go on with the tensor instead of the Python number in it.

Before:
    scale = x.sum().item()
    return x * scale

After:
    scale = x.sum().detach()
    return x * scale

Legal when:
    every use of the number, through every name that it is given, takes a 0-d tensor too: arithmetic, comparisons that
    decide a branch (which is mended next), arguments of torch functions that accept tensors. Where a use is written as
    one of torch (`math.sqrt`), nothing may stand there that stays a number. What is counted in while
    something else holds it is counted anew, `s = s + 1`. A power of whole numbers is not negative. Where the number is
    only said, by output or in the message of an exception, it is taken out there. The tensor is copied unless it is
    new and has no name: a number does not follow what is written into the tensor later. It is widened where numbers
    are computed with, which Python does in 64 bits. Among the numbers of which `torch.tensor` and its like make a
    tensor, 0-d tensors may stand as well. Numbers of NumPy become 0-d tensors, too. A function of torch that takes
    none (`leaky_relu`, `huber_loss`, `add` with an `alpha`, `roll`, `narrow`, the values of `topk`, ...) is written
    out with operations that do.

Differs in:
    a 0-d tensor may promote where a number does not; where its dtype is not known, or a double would promote, numbers
    are computed in the tensor's precision and range, beyond which they wrap around or become infinite. A division by
    zero, a negative power of whole numbers and a number too large for a dtype raise no more. A tensor made of numbers
    is of float32 whatever the default dtype. A quotient or a power may round in its last digit, and so may a function
    that is written out; what is out of its range raises no more, or otherwise, and what `narrow` takes at a place is a
    copy. `float` no longer warns of a tensor that asks for gradients.
    Gradients stay as they are: the tensor is detached where it could bring any.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor, dtype_kind
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.qualified_names import called, is_tensor, method, qualified
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.kept_scalars import Taken, conversion, taken, written
from graphmend.transforms.if_conversion.kept_together import asked, together
from graphmend.transforms.legality.context import observed
from graphmend.transforms.legality.gradients.sides import recorded
from graphmend.transforms.legality.memory import shares
from graphmend.transforms.legality.numbers import counterparts
from graphmend.transforms.legality.numbers.as_tensors import PRECISION, PROMOTES
from graphmend.transforms.legality.scalar_uses import NeedsPythonNumberError, ScalarUses
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "keep_tensor"
_TITLE = "keep the tensor instead of taking the number out of it"


@asks("memory", "numbers", "gradients", "context", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    node = facts.node
    if not isinstance(node, ast.Call):
        return None
    try:
        if method(facts, node, "tolist"):
            return _unpacked(facts, node)
        if (name := qualified(facts, node.func) or "").startswith("math."):
            return _math(facts, node, name.partition(".")[2])
        if called(facts, node, "builtins.pow") and len(node.args) == 2 and any(is_tensor(facts, a) for a in node.args):
            return _power(facts, node)
        return _number(facts, node)
    except NeedsPythonNumberError as error:
        return refuse(NAME, str(error))


def _number(facts: FunctionFacts, node: ast.Call) -> Fix | Refusal | None:
    """`t.item()`, `float(t)`, `int(t)`, `bool(t)`."""
    found = conversion(facts, node)
    if found is None:
        return None
    while isinstance(above := facts.parent(node), ast.Call) and conversion(facts, above) is not None:
        node = above
    if _decides(facts, node):
        return None
    kept = taken(facts, node, detach=_detach(facts))
    if kept is None:
        return refuse(NAME, f"what `{ast.unparse(node)}` takes its number out of is not known to be a tensor")
    if observed(facts, facts.statement) and ".reshape(())" in kept.text:
        return refuse(NAME, "a `try` sees the exception of a tensor of several elements")
    numbers = together(facts, {node: kept})

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        made = written(facts, imports, numbers.texts, numbers.counterparts)
        return [*imports.edits(), *(replace_expression(facts.source, n, text) for n, text in made.items())]

    return offer(NAME, _TITLE, facts, make, numbers.differences)


def _decides(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is a number part of the test of its own statement? The branch's own mends keep the tensor, or nothing does."""
    child: ast.AST = node
    for above in facts.ancestors(node):
        if isinstance(above, (ast.If, ast.While, ast.Assert, ast.IfExp)):
            return above.test is child
        if isinstance(above, ast.stmt):
            return False
        child = above
    return False


def _math(facts: FunctionFacts, node: ast.Call, function: str) -> Fix | Refusal | None:
    """`math.sqrt(t)` of a tensor: a float64, as Python computes it."""
    if function in _OF_TWO and len(node.args) == 2 and not node.keywords:
        return _math_of_two(facts, node, function)
    if function not in counterparts.MATH or len(node.args) != 1 or node.keywords:
        return refuse(NAME, f"torch has no `{function}` for tensors")
    argument, differences = node.args[0], []
    value = facts.value(argument)
    if not is_tensor(facts, argument) or not isinstance(value, Tensor):
        return refuse(NAME, f"`{ast.unparse(argument)}` is not known to be a tensor")
    text, dtype = Code(facts.source).operand(argument), value.dtype
    if value.rank != 0:
        text += ".reshape(())"
        differences.append(Difference("exception", f"`math.{function}` of several elements raises another exception"))
    if _detach(facts) and dtype_kind(dtype) not in ("int", "bool"):
        text += ".detach()"
        says = f"`math.{function}` of a tensor that asks for gradients no longer warns"
        differences.append(Difference("output", says))
    wide = counterparts.mathematical(node, function, "float64")
    assert wide is not None
    uses = _followed(facts, node, wide.dtype)
    if PROMOTES in uses.differences and wide.dtype == "float64":  # without dimensions it makes others of its kind
        uses = _followed(
            facts, node, dtype if dtype_kind(dtype) == "float" else "float32" if dtype_kind(dtype) else None
        )
        differences.append(PRECISION)
    elif dtype != "float64":
        text += ".double()"
    suffix = ".long()" if function in counterparts.WHOLE else ""

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        name = imports.name(f"torch.{counterparts.RENAMED.get(function, function)}")
        made = written(facts, imports, {node: f"{name}({text}){suffix}"}, uses.counterparts)
        return [*imports.edits(), *(replace_expression(facts.source, n, text) for n, text in made.items())]

    every = [*differences, *wide.differences, *uses.differences]
    return offer(NAME, f"compute `{function}` with torch", facts, make, every)


#: functions of two numbers that raise for none
_OF_TWO = ("hypot", "atan2", "copysign")


def _math_of_two(facts: FunctionFacts, node: ast.Call, function: str) -> Fix | Refusal:
    """`math.hypot(s, t)` of tensors."""
    code, texts = Code(facts.source), []
    differences = [Difference("rounding", f"the last digit of `{function}` may be another one in torch")]
    for argument in node.args:
        value = facts.value(argument)
        if not is_tensor(facts, argument) or not isinstance(value, Tensor) or dtype_kind(value.dtype) == "complex":
            return refuse(NAME, f"`{ast.unparse(argument)}` is not known to be a tensor")
        shaped = "" if value.rank == 0 else ".reshape(())"
        floating = _detach(facts) and dtype_kind(value.dtype) not in ("int", "bool")
        wide = "" if value.dtype == "float64" else ".double()"
        texts.append(f"{code.operand(argument)}{shaped}{'.detach()' if floating else ''}{wide}")
        if shaped:
            says = f"`math.{function}` of several elements raises another exception"
            differences.append(Difference("exception", says))
        if floating:
            says = f"`math.{function}` of a tensor that asks for gradients no longer warns"
            differences.append(Difference("output", says))
    uses = _followed(facts, node, "float64")

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        called_now = f"{imports.name(f'torch.{function}')}({', '.join(texts)})"
        made = written(facts, imports, {node: called_now}, uses.counterparts)
        return [*imports.edits(), *(replace_expression(facts.source, n, text) for n, text in made.items())]

    return offer(NAME, f"compute `{function}` with torch", facts, make, [*differences, *uses.differences])


def _followed(facts: FunctionFacts, node: ast.expr, dtype: Hashable) -> ScalarUses:
    uses = ScalarUses(facts, dtype, rewrites=True)
    uses.follow(node)
    if uses.also:
        raise NeedsPythonNumberError(f"`{ast.unparse(uses.also[0])}` stays a Python number")
    return uses


def _power(facts: FunctionFacts, node: ast.Call) -> Fix:
    """`pow(t, n)` is `t ** n`."""
    code = Code(facts.source)
    text = f"{code.operand(node.args[0])} ** {code.operand(node.args[1])}"
    return offer(
        NAME, "write the power as an operator", facts, lambda: [replace_expression(facts.source, node, f"({text})")]
    )


def _unpacked(facts: FunctionFacts, node: ast.Call) -> Fix:
    """The numbers of `t.tolist()`, for a tensor of one dimension: they are its parts."""
    assert isinstance(node.func, ast.Attribute)
    operand, value = node.func.value, facts.value(node.func.value)
    floating = not (isinstance(value, Tensor) and dtype_kind(value.dtype) in ("int", "bool"))
    detach = ".detach()" if floating and _detach(facts) else ""
    text = f"{Code(facts.source).operand(operand)}{detach}"
    if isinstance(value, Tensor) and value.ndarray:
        of_torch = Imports(facts)
        text = f"{of_torch.name('torch.as_tensor')}({Code(facts.source).argument(operand)})"
        if of_torch.edits():
            raise NeedsPythonNumberError(f"`{ast.unparse(operand)}` is a NumPy array, and torch is not imported")
    kept = Taken(text, value.dtype if isinstance(value, Tensor) else None, shares(facts, operand).fresh)
    kept, uses = asked(facts, kept, lambda uses: uses.parts(node))
    if uses.also:
        raise NeedsPythonNumberError(f"`{ast.unparse(uses.also[0])}` stays a Python number")
    differences = list(uses.differences)
    if not (isinstance(value, Tensor) and value.rank == (2 if uses.rows else 1)):
        says = f"the tensor is taken to have {'two dimensions' if uses.rows else 'one dimension'}"
        differences.append(Difference("shape", says))
        differences.append(Difference("exception", "a tensor without dimensions raises another exception"))

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        made = written(facts, imports, {node: f"{kept.captured()}.unbind()"}, uses.counterparts)
        return [*imports.edits(), *(replace_expression(facts.source, n, text) for n, text in made.items())]

    return offer(NAME, _TITLE, facts, make, differences)


def _detach(facts: FunctionFacts) -> bool:
    return recorded(facts, facts.statement)
