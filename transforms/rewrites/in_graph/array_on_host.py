"""Call from inside the graph what NumPy draws or computes as an array whose size is known.

Before:
    pick = np.random.choice(len(bank), size=k, replace=False)

After:
    pick = on_host(k, torch.int64, np.random.choice, len(bank), size=k, replace=False)

Legal when:
    `numpy.random` draws as many numbers as a size says, or `permutation` and `choice` draw from whole numbers below
    one; or the function (`numpy.interp`, `numpy.unwrap`) gives one number for each of an array. Sizes are evaluated
    twice as well as once, and what the function is given only computes.

Differs in:
    nothing in plain Python. A graph calls the function each time it runs; of an array without dimensions it gives one,
    too, and no number.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Container, Static, Tensor, Value, dtype_kind
from graphmend.analysis.torch_facts import draws
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.qualified_names import called, number_type, qualified
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.legality.gradients.sides import recorded
from graphmend.transforms.legality.speculation import repeatable
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "array_on_host"
_BELOW = ("numpy.random.permutation", "numpy.random.choice")
_ALONE = Difference("type", "of an array without dimensions the result is such an array instead of a number")

_AGAIN = Difference(
    "gradients", "under activation checkpointing backward takes the numbers that are drawn when it computes again"
)
_COMPLEX = Difference("exception", "while compiled it raises for complex numbers")
_WHOLE = Difference("exception", "while compiled it raises for numbers that are no floats")


class _Made(NamedTuple):
    """What a call gives."""

    size: str
    dtype: str
    """A name below `torch`, or the text of a tensor's dtype."""
    twice: tuple[ast.expr, ...]
    """What is evaluated for the size as well."""
    differences: tuple[Difference, ...] = ()


@asks("effects", "gradients", "names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    call = facts.node if isinstance(facts.node, ast.Call) else None
    if call is None or not (qualified(facts, call.func) or "").startswith("numpy."):
        return None
    made = _drawn(facts, call) or _of_each(facts, call)
    if made is None:
        return None
    given = [*call.args, *(k.value for k in call.keywords)]
    if any(k.arg is None for k in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args):
        return refuse(NAME, "what the function is given is not written out")
    if found := effects(facts, *(_tensor(facts, a) for a in given)):
        return refuse(NAME, found[0])
    if unsure := next((n for n in made.twice if not repeatable(facts, n)), None):
        return refuse(NAME, f"`{ast.unparse(unsure)}` would be evaluated more than once")
    imports, code = Imports(facts), Code(facts.source)
    host = imports.name("graphmend.runtime.on_host", "graphmend.runtime")
    dtype = made.dtype if "." in made.dtype else imports.name(f"torch.{made.dtype}")
    arguments = [code.argument(a) for a in call.args] + [f"{k.arg}={code.argument(k.value)}" for k in call.keywords]
    text = f"{host}({', '.join([made.size, dtype, code.text(call.func), *arguments])})"

    def make() -> list[TextEdit]:
        return [*imports.edits(), replace_expression(facts.source, call, text)]

    drawn = ".random." in (qualified(facts, call.func) or "")
    again = (_AGAIN,) if drawn and recorded(facts, facts.statement) else ()
    title = "call the function from the graph (graphmend.runtime)"
    return offer(NAME, title, facts, make, [*made.differences, *again])


def _drawn(facts: FunctionFacts, call: ast.Call) -> _Made | None:
    """An array of random numbers."""
    name, code = qualified(facts, call.func) or "", Code(facts.source)
    options = {k.arg or "": k.value for k in call.keywords}
    size = options.get("size")
    if name in _BELOW and len(call.args) == 1 and number_type(facts, call.args[0]) == "int":
        if name == "numpy.random.permutation" and not options:
            return _Made(code.argument(call.args[0]), "int64", (call.args[0],))
        if size is not None and options.keys() <= {"size", "replace"} and _is_size(facts, size):
            return _Made(code.argument(size), "int64", (size,))
    if size is None or options.keys() != {"size"} or not _is_size(facts, size):
        return None
    kind = draws.kind_drawn(name, len(call.args), ())
    return _Made(code.argument(size), f"{kind}64", (size,)) if kind is not None else None


def _is_size(facts: FunctionFacts, size: ast.expr) -> bool:
    parts = size.elts if isinstance(size, ast.Tuple) else [size]
    return all(number_type(facts, part) == "int" for part in parts)


def _of_each(facts: FunctionFacts, call: ast.Call) -> _Made | None:
    """A number for each one of an array."""
    if not call.args:
        return None
    array, code = call.args[0], Code(facts.source)
    value = facts.value(array)
    if not isinstance(value, Tensor) or not value.ndarray:
        return None
    tensor = _tensor(facts, array)
    of = facts.value(tensor)
    differences: tuple[Difference, ...] = () if value.rank else (_ALONE,)
    if called(facts, call, "numpy.interp"):
        given = [facts.value(a) for a in (*call.args[1:], *(k.value for k in call.keywords))]
        differences += () if all(map(_is_real, given)) else (_COMPLEX,)
        dtype = "float64"
    elif called(facts, call, "numpy.unwrap") and len(call.args) == 1 and not call.keywords:
        dtype = f"{code.operand(tensor)}.dtype"
        if not isinstance(of, Tensor) or of.ndarray:
            return None
        differences += () if dtype_kind(of.dtype) == "float" else (_WHOLE,)
    else:
        return None
    return _Made(f"{code.operand(tensor)}.shape", dtype, (tensor,), differences)


def _is_real(value: Value) -> bool:
    """Is a value a number, a list of numbers or an array, of which none is complex?"""
    if isinstance(value, Container):
        return isinstance(value.element, Static) and value.element.type in ("int", "float")
    if isinstance(value, Tensor):
        return dtype_kind(value.dtype) in ("int", "float", "bool")
    return isinstance(value, Static) and value.type in ("int", "float")


def _tensor(facts: FunctionFacts, array: ast.expr) -> ast.expr:
    """The tensor that an array is made of, as it stands."""
    while isinstance(array, ast.Call) and isinstance(array.func, ast.Attribute) and not array.args:
        if array.func.attr not in ("numpy", "detach", "cpu") or not isinstance(facts.value(array.func.value), Tensor):
            break
        array = array.func.value
    return array
