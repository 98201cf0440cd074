"""How often each number occurs, where the code says how many there are.

    torch.bincount(n, minlength=k)
    torch.bincount(n, minlength=k)[:k]
    torch.bincount(n[mask], weights=w[mask], minlength=k)

are, one after the other,

    torch.zeros(k, ...).scatter_add(0, n, torch.ones_like(n))
    torch.zeros(k + 1, ...).scatter_add(0, n.clamp(max=k), torch.ones_like(n))[:k]
    torch.zeros(k, ...).scatter_add(0, torch.where(mask, n, 0).flatten(), torch.where(mask, w, 0).flatten())
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor, dtype_kind
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.qualified_names import called, constant, method
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.gradients.sides import recorded
from graphmend.transforms.legality.rows.masked_elements import missing_dimensions, one_by_one, picked
from graphmend.transforms.legality.scalar_uses import NeedsPythonNumberError
from graphmend.transforms.legality.speculation import repeatable

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.transforms.code.imports import Imports


def bins(facts: FunctionFacts, code: Code, imports: Imports) -> tuple[ast.expr, str, list[Difference]] | None:
    """`torch.bincount(n, minlength=k)`, `torch.bincount(n[mask], weights=w[mask], minlength=k)`."""
    if not isinstance(facts.node, ast.expr):
        return None
    call = called(facts, facts.node, "torch.bincount") or method(facts, facts.node, "bincount")
    if call is None or any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return None
    bound = isinstance(call.func, ast.Attribute) and method(facts, call, "bincount") is not None
    places = [*([call.func.value] if bound and isinstance(call.func, ast.Attribute) else []), *call.args]
    given = dict(zip(("input", "weights", "minlength"), places, strict=False))
    given |= {k.arg: k.value for k in call.keywords if k.arg}
    numbers, least, weights = given.get("input"), given.get("minlength"), given.get("weights")
    if numbers is None or least is None or set(given) - {"input", "weights", "minlength"}:
        return None
    weights = None if isinstance(weights, ast.Constant) and weights.value is None else weights
    parts = [numbers, least, *([weights] if weights is not None else [])]
    if not repeatable(facts, *parts):
        return None
    value = facts.value(numbers)
    known = value.dtype if isinstance(value, Tensor) else None
    size = code.argument(least)
    differences = [Difference("exception", f"a number of {size} or more raises instead of making the result longer")]
    last = ""
    if _cut_at(facts, call, least):  # what is larger goes into one more bin, which is cut off
        number = constant(least)
        size = str(number + 1) if isinstance(number, int) else f"{code.operand(least)} + 1"
        last, differences = f".clamp(max={code.argument(least)})", []
    if dtype_kind(known) != "int":
        if dtype_kind(known) is not None:
            raise NeedsPythonNumberError(f"`{ast.unparse(numbers)}` is not known to have whole numbers")
        differences.append(Difference("exception", "numbers that are not whole are cut instead of raising"))
    long = "" if known == "int64" else ".long()"
    mask, whole = _under_one_mask(facts, [numbers, *([weights] if weights is not None else [])])
    index, int64 = code.operand(numbers, whole), imports.name("torch.int64")
    if mask is not None:
        differences.append(Difference("exception", "what is picked from is taken to have the shape of the mask"))
        picks = code.argument(mask)
        index = f"{imports.name('torch.where')}({picks}, {code.argument(numbers, whole)}, 0).flatten()"
    if weights is None:
        counted = (
            f"{imports.name('torch.ones_like')}({index}, dtype={int64})"
            if mask is None
            else f"{code.operand(mask)}.flatten().to({int64})"
        )
        dtype = int64
    else:
        of = facts.value(weights)
        if not (isinstance(of, Tensor) and of.dtype in ("float32", "float64")):
            raise NeedsPythonNumberError(f"`{ast.unparse(weights)}` is not known to be of dtype float32 or float64")
        differences.append(Difference("exception", "more weights than numbers do not raise"))
        differences.append(Difference("rounding", "weights may be added in another order"))
        dtype = imports.name(f"torch.{of.dtype}")
        counted = code.operand(weights, whole)
        if mask is not None:
            counted = (
                f"{imports.name('torch.where')}({code.argument(mask)}, {code.argument(weights, whole)}, 0).flatten()"
            )
        differences.append(Difference("dtype", f"of no numbers at all the result is of {of.dtype} instead of int64"))
        if recorded(facts, facts.statement):
            counted += ".detach()"
            says = "where weights ask for gradients, the result asks for none"
            differences.append(Difference("gradients", says))
    device = next(iter(code.operand(n, whole) for n in [numbers]))
    zeros = f"{imports.name('torch.zeros')}({size}, dtype={dtype}, device={device}.device)"
    return call, f"{zeros}.scatter_add(0, {index}{long}{last}, {counted})", differences


def _cut_at(facts: FunctionFacts, call: ast.Call, least: ast.expr) -> bool:
    """Are only the first of the bins used, `torch.bincount(n, minlength=k)[:k]`?"""
    whole = facts.parent(call)
    part = whole.slice if isinstance(whole, ast.Subscript) and whole.value is call else None
    if not isinstance(part, ast.Slice) or part.upper is None or part.step is not None:
        return False
    cut, known = constant(part.upper), constant(least)
    if isinstance(cut, int) and isinstance(known, int):
        return 0 <= cut <= known
    return ast.unparse(part.upper) == ast.unparse(least)


def _under_one_mask(facts: FunctionFacts, parts: list[ast.expr]) -> tuple[ast.expr | None, dict[ast.expr, str]]:
    """The mask by which all parts pick elements of its own shape, one by one, and the text of what each picks from;
    no mask where nothing is picked. Raises where they pick otherwise.
    """
    code = Code(facts.source)
    found = {n: p for part in parts for n in nodes_in(part) if isinstance(n, ast.expr) and (p := picked(facts, n))}
    if not found:
        return None, {}
    mask = next(iter(found.values())).mask
    for node, pick in found.items():
        if ast.unparse(pick.mask) != ast.unparse(mask) or missing_dimensions(facts, pick) not in (0, None):
            raise NeedsPythonNumberError(f"`{ast.unparse(node)}` picks otherwise than `{ast.unparse(mask)}` does")
    if not all(one_by_one(facts, part, found) for part in parts):
        raise NeedsPythonNumberError("what is counted is not computed from the elements picked, one at a time")
    return mask, {node: code.operand(pick.tensor) for node, pick in found.items()}
