"""Call torch where Dynamo has no counterpart of a NumPy function of arrays.

Before:
    at = np.digitize(a, [0.5, 1])

After:
    at = torch.bucketize(torch.as_tensor(a).double(), torch.tensor([0.5, 1], dtype=torch.float64), right=True).numpy()

Legal when:
    the array is compared with numbers that are written out: limits that increase (`digitize`), or numbers to be found
    among (`isin`), which are the same in every precision; or with limits in another array. They are compared as
    doubles, as NumPy does with a list.

Differs in:
    of an array without dimensions the result is one, too, and no number; whole numbers beyond 2**53 are compared as
    doubles also with whole ones. Limits in an array are taken to increase.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Hashable
from itertools import pairwise
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.qualified_names import called, constant
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.dtypes import kinds
from graphmend.transforms.legality.numbers.as_tensors import exact_in
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "numpy_form"
_ALONE = Difference("type", "of an array without dimensions the result is such an array instead of a number")
_WIDE = Difference("rounding", "whole numbers beyond 2**53 are compared as doubles")


_NARROW = ("int8", "int16", "int32", "uint8")


@asks("dtypes", "numbers", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    around = (n for n in (facts.node, *facts.ancestors(facts.node)) if isinstance(n, ast.expr))
    call = next((c for n in around if (c := called(facts, n, "numpy.digitize", "numpy.isin"))), None)
    if call is None:
        return None
    placed = called(facts, call, "numpy.digitize") is not None
    options = {k.arg: constant(k.value) for k in call.keywords}
    behind = options.pop("right", False) if placed else False
    if len(call.args) != 2 or options or not isinstance(behind, bool):
        return refuse(NAME, "only an array and numbers that are written out have another form")
    array, listed = call.args
    value = facts.value(array)
    if not isinstance(value, Tensor) or not kinds(facts, array) <= {"bool", "float", "int", "uint8"}:
        return refuse(NAME, f"`{ast.unparse(array)}` is not known to be an array of numbers")
    numbers = [constant(e) for e in listed.elts] if isinstance(listed, (ast.List, ast.Tuple)) else []
    known = [float(n) for n in numbers if isinstance(n, (int, float)) and not isinstance(n, bool) and abs(n) < 2**53]
    limits = facts.value(listed)
    computed = placed and isinstance(limits, Tensor) and limits.ndarray
    if not computed and (not known or len(known) < len(numbers) or any(math.isnan(n) for n in known)):
        return refuse(NAME, f"`{ast.unparse(listed)}` is no list of numbers that are written out")
    if placed and any(a > b for a, b in pairwise(known)):
        return refuse(NAME, "the limits do not increase")
    if not placed and not all(exact_in(n, "float16") for n in known):
        return refuse(NAME, "it depends on NumPy's version in which precision such numbers are equal")
    differences = [] if value.rank else [_ALONE]
    arrays = [array, listed] if computed else [array]
    if any("int" in kinds(facts, one) and _width(facts, one) not in _NARROW for one in arrays):
        differences.append(_WIDE)
    if computed:
        differences.append(Difference("callers", f"`{ast.unparse(listed)}` is taken to increase"))

    def make() -> list[TextEdit]:
        imports, code = Imports(facts), Code(facts.source)
        tensor = imports.name("torch.tensor")
        wide = imports.name("torch.float64")
        given = f"{imports.name('torch.as_tensor')}({code.argument(array)})"
        given += "" if value.dtype == "float64" else ".double()"
        limits = f"{tensor}({code.argument(listed)}, dtype={wide})"
        if computed:
            limits = f"{imports.name('torch.as_tensor')}({code.argument(listed)}).double()"
        if placed:
            function = imports.name("torch.bucketize")
            text = f"{function}({given}, {limits}, right={not behind}).numpy()"
        else:
            text = f"{imports.name('torch.isin')}({given}, {limits}).numpy()"
        return [*imports.edits(), replace_expression(facts.source, call, text)]

    return offer(NAME, "call torch's function", facts, make, differences)


def _width(facts: FunctionFacts, array: ast.expr) -> Hashable:
    value = facts.value(array)
    return value.dtype if isinstance(value, Tensor) else None
