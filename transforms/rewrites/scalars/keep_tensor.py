"""Go on with the tensor instead of the Python number in it.

Before:
    scale = x.sum().item()
    return x * scale

After:
    scale = x.sum().detach()
    return x * scale

Legal when:
    every use of the number, through every name that it is given, takes a 0-d tensor too: arithmetic,
    comparisons that decide a branch (which is mended next), arguments of torch functions that accept tensors.

Differs in:
    arithmetic between numbers happens in the tensor's precision; a 0-d tensor may promote where a number does
    not. Gradients stay as they are: the tensor is detached where it could bring any.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor, dtype_kind
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.qualified_names import called, is_tensor, method, qualified
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.kept_scalars import Kept, conversion, tensor_text
from graphmend.transforms.legality.scalar_uses import NeedsPythonNumberError, ScalarUses
from graphmend.transforms.rewrites.answers import offer, refuse

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
    if (
        isinstance(parent, ast.Call)
        and called(facts, parent, "torch.tensor")
        and len(parent.args) == 1
        and not parent.keywords
    ):
        return _retensored(facts, node, parent)
    if isinstance(parent, ast.Call) and node in parent.args:
        folder, _, function = (qualified(facts, parent.func) or "").partition(".")
        if folder == "math":
            return _math(facts, parent, function)
    if _decides(facts, node):
        return None
    kept = Kept()
    text = tensor_text(facts, node, kept, detach=_detach(facts))
    if text is None:
        return refuse(NAME, f"what `{ast.unparse(node)}` takes its number out of is not known to be a tensor")
    operand = found[1]
    value = facts.value(operand)
    uses = ScalarUses(facts, value.dtype if isinstance(value, Tensor) else None)
    uses.follow(node)
    return offer(
        NAME,
        _TITLE,
        facts,
        lambda: [replace_expression(facts.source, node, text)],
        [*kept.differences, *uses.differences],
    )


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


def _retensored(facts: FunctionFacts, node: ast.Call, parent: ast.Call) -> Fix | Refusal:
    """`torch.tensor(t.item())` is a copy of `t`, in torch's default dtype where `t` is a float."""
    kept = Kept()
    text = tensor_text(facts, node, kept, detach=True)
    if text is None:
        return refuse(NAME, f"what `{ast.unparse(node)}` takes its number out of is not known to be a tensor")
    differences = [
        *kept.differences,
        Difference("dtype", "the new tensor has the dtype and device of the one it is copied from"),
    ]
    return offer(
        NAME,
        "copy the tensor itself",
        facts,
        lambda: [replace_expression(facts.source, parent, f"{text}.clone()")],
        differences,
    )


def _math(facts: FunctionFacts, node: ast.Call, function: str) -> Fix | Refusal | None:
    """`math.sqrt(t)`."""
    if function not in _MATH or len(node.args) != 1:
        return refuse(NAME, f"torch has no `{function}` for tensors")
    argument = node.args[0]
    kept = Kept()
    if is_tensor(facts, argument):
        text = Code(facts.source).argument(argument)
    else:
        found = tensor_text(facts, argument, kept, detach=False)
        if found is None:
            return refuse(NAME, f"`{ast.unparse(argument)}` is not known to be a tensor")
        text = found
    uses = ScalarUses(facts, "float32")
    uses.follow(node)
    detach = ".detach()" if _detach(facts) else ""

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        name = imports.name(f"torch.{_RENAMED.get(function, function)}")
        return [*imports.edits(), replace_expression(facts.source, node, f"{name}({text}){detach}")]

    differences = [
        *kept.differences,
        *uses.differences,
        Difference("rounding", "numbers are computed in the tensor's precision instead of Python's"),
    ]
    if function not in ("fabs", "isnan", "isinf", "isfinite", "atan", "tanh", "sin", "cos"):
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
    value = facts.value(node.func.value)
    uses = ScalarUses(facts, value.dtype if isinstance(value, Tensor) else None)
    uses.names(parent.targets[0].elts)
    differences = list(uses.differences)
    if not (isinstance(value, Tensor) and value.rank == 1):
        differences.append(Difference("shape", "the tensor is taken to have one dimension"))
    floating = not (isinstance(value, Tensor) and dtype_kind(value.dtype) in ("int", "bool"))
    detach = ".detach()" if floating and _detach(facts) else ""
    text = f"{Code(facts.source).operand(node.func.value)}{detach}.unbind()"
    return offer(NAME, _TITLE, facts, lambda: [replace_expression(facts.source, node, text)], differences)


def _detach(facts: FunctionFacts) -> bool:
    return facts.gradients(facts.statement) != "off"
