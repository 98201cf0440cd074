"""Go on with the tensor instead of the Python number in it.

Before:
    scale = x.sum().item()
    return x * scale

After:
    scale = x.sum().detach()
    return x * scale

Legal when:
    every use of the number, through every name that it is given, takes a 0-d tensor too: arithmetic,
    comparisons that decide a branch (which is mended next), arguments of torch functions that accept tensors. What
    is counted in has one name only. The tensor is copied unless it is new and has no name: a number does not follow
    what is written into the tensor later. It is widened where numbers are computed with, which Python does in 64 bits.

Differs in:
    a 0-d tensor may promote where a number does not; where its dtype is not known, numbers are computed in the
    tensor's precision, and whole numbers wrap around. A division by zero, a negative power of whole numbers and a
    number too large for a dtype raise no more. A quotient or a power may round in its last digit. `float` no longer
    warns of a tensor that asks for gradients. Gradients stay as they are: the tensor is detached where it could bring
    any.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor, dtype_kind
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.qualified_names import called, is_tensor, method, qualified
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.kept_scalars import Taken, conversion, taken
from graphmend.transforms.legality.context import observed
from graphmend.transforms.legality.gradients import recorded
from graphmend.transforms.legality.memory import shares
from graphmend.transforms.legality.numbers.as_tensors import PRECISION, PROMOTES
from graphmend.transforms.legality.scalar_uses import NeedsPythonNumberError, ScalarUses
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "keep_tensor"
_TITLE = "keep the tensor instead of taking the number out of it"

#: functions of `math` that torch has for tensors under the same name
_MATH = frozenset(
    [
        "sqrt",
        "exp",
        "log",
        "log2",
        "log10",
        "log1p",
        "expm1",
        "sin",
        "cos",
        "tan",
        "sinh",
        "cosh",
        "tanh",
        "asin",
        "acos",
        "atan",
        "asinh",
        "acosh",
        "atanh",
        "floor",
        "ceil",
        "trunc",
        "erf",
        "erfc",
        "lgamma",
        "fabs",
        "isnan",
        "isinf",
        "isfinite",
    ]
)
_RENAMED = {"fabs": "abs"}
#: they give the same in Python and in torch, for every double
_EXACT = frozenset(["sqrt", "fabs", "floor", "ceil", "trunc", "isnan", "isinf", "isfinite"])
#: they raise for no number in Python
_TOTAL = frozenset(["fabs", "isnan", "isinf", "isfinite", "atan", "tanh", "asinh", "erf", "erfc"])


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
        if called(facts, node, "builtins.pow") and len(node.args) == 2 and is_tensor(facts, node.args[0]):
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
    parent = facts.parent(node)
    if isinstance(parent, ast.Call) and node in parent.args:
        folder, _, function = (qualified(facts, parent.func) or "").partition(".")
        if folder == "math":
            return _math(facts, parent, function)
    if _decides(facts, node):
        return None
    kept = taken(facts, node, detach=_detach(facts))
    if kept is None:
        return refuse(NAME, f"what `{ast.unparse(node)}` takes its number out of is not known to be a tensor")
    if observed(facts, facts.statement) and ".reshape(())" in kept.text:
        return refuse(NAME, "a `try` sees the exception of a tensor of several elements")
    kept, uses = _asked(facts, kept, lambda uses: uses.follow(node))
    return offer(
        NAME,
        _TITLE,
        facts,
        lambda: [replace_expression(facts.source, node, kept.captured())],
        [*kept.differences, *uses.differences],
    )


def _asked(facts: FunctionFacts, kept: Taken, ask: Callable[[ScalarUses], None]) -> tuple[Taken, ScalarUses]:
    """Follows a number to its uses, as wide as it is, or as Python's numbers where those are computed with."""
    uses = ScalarUses(facts, kept.dtype)
    ask(uses)
    wide = kept.widened() if uses.computes else None
    if wide is None:
        return kept, uses
    wider = ScalarUses(facts, wide.dtype)
    ask(wider)
    if PROMOTES in wider.differences:  # a float64 without dimensions makes others of its kind
        return kept, uses
    return wide._replace(differences=kept.differences), wider


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
    """`math.sqrt(t)`: a float64, as Python computes it."""
    if function not in _MATH or len(node.args) != 1 or node.keywords:
        return refuse(NAME, f"torch has no `{function}` for tensors")
    argument, differences = node.args[0], []
    if is_tensor(facts, argument):
        value = facts.value(argument)
        shaped = "" if isinstance(value, Tensor) and value.rank == 0 else ".reshape(())"
        text, dtype = (
            f"{Code(facts.source).operand(argument)}{shaped}",
            value.dtype if isinstance(value, Tensor) else None,
        )
        if shaped:
            differences.append(
                Difference("exception", f"`math.{function}` of several elements raises another exception")
            )
        if _detach(facts) and dtype_kind(dtype) not in ("int", "bool"):
            text += ".detach()"
            differences.append(
                Difference("output", f"`math.{function}` of a tensor that asks for gradients no longer warns")
            )
    else:
        found = taken(facts, argument, detach=_detach(facts))
        if found is None:
            return refuse(NAME, f"`{ast.unparse(argument)}` is not known to be a tensor")
        text, dtype = found.text, found.dtype
        differences += found.differences
    whole = function in ("floor", "ceil", "trunc")
    flag = function.startswith("is")
    uses = ScalarUses(facts, "int64" if whole else "bool" if flag else "float64")
    uses.follow(node)
    if PROMOTES in uses.differences and not (whole or flag):  # a float64 without dimensions makes others of its kind
        uses = ScalarUses(facts, dtype if dtype_kind(dtype) == "float" else "float32" if dtype_kind(dtype) else None)
        uses.follow(node)
        differences.append(PRECISION)
    elif dtype != "float64":
        text += ".double()"

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        made = f"{imports.name(f'torch.{_RENAMED.get(function, function)}')}({text}){'.long()' if whole else ''}"
        return [*imports.edits(), replace_expression(facts.source, node, made)]

    differences += uses.differences
    if function not in _EXACT:
        differences.append(Difference("rounding", f"torch's `{function}` may round otherwise than Python's"))
    if whole:
        differences.append(Difference("rounding", "whole numbers beyond 64 bits wrap around"))
    if function not in _TOTAL:
        differences.append(
            Difference("exception", f"`math.{function}` raises outside its domain, torch gives NaN or infinity")
        )
    return offer(NAME, f"compute `{function}` with torch", facts, make, differences)


def _power(facts: FunctionFacts, node: ast.Call) -> Fix:
    """`pow(t, n)` is `t ** n`."""
    code = Code(facts.source)
    text = f"{code.operand(node.args[0])} ** {code.operand(node.args[1])}"
    return offer(
        NAME, "write the power as an operator", facts, lambda: [replace_expression(facts.source, node, f"({text})")]
    )


def _unpacked(facts: FunctionFacts, node: ast.Call) -> Fix | Refusal:
    """`a, b = t.tolist()` for a tensor of one dimension."""
    assert isinstance(node.func, ast.Attribute)
    parent = facts.parent(node)
    if not (isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Tuple)):
        return refuse(NAME, f"`{ast.unparse(parent or node)}` needs a Python list")
    operand, targets = node.func.value, parent.targets[0].elts
    value = facts.value(operand)
    floating = not (isinstance(value, Tensor) and dtype_kind(value.dtype) in ("int", "bool"))
    detach = ".detach()" if floating and _detach(facts) else ""
    text = f"{Code(facts.source).operand(operand)}{detach}"
    kept = Taken(text, value.dtype if isinstance(value, Tensor) else None, shares(facts, operand).fresh)
    kept, uses = _asked(facts, kept, lambda uses: uses.names(targets))
    differences = list(uses.differences)
    if not (isinstance(value, Tensor) and value.rank == 1):
        differences.append(Difference("shape", "the tensor is taken to have one dimension"))
        differences.append(Difference("exception", "a tensor without dimensions raises another exception"))
    made = f"{kept.captured()}.unbind()"
    return offer(NAME, _TITLE, facts, lambda: [replace_expression(facts.source, node, made)], differences)


def _detach(facts: FunctionFacts) -> bool:
    return recorded(facts, facts.statement)
