"""Call another torch function that gives the same and has a shape that is known while tracing.

Before:
    pairs = torch.combinations(x)

After:
    pairs = x[torch.triu_indices(x.shape[0], x.shape[0], 1, device=x.device).T.contiguous()]

A number that the generators of Python and NumPy draw (`random.gauss(0, 1)`, `np.random.beta(a, b)`), which breaks the
graph, is drawn by the graph, as a tensor (`graphmend.runtime.number_on_host`).

Legal when:
    the call has one of the forms below, with no further arguments. Each use of a number that is drawn takes a tensor.

Differs in:
    what the table says: another order of rounding. What is drawn stays what it was, but what TorchDynamo draws itself
    (`random.uniform`, `random.randint`) comes before it, and activation checkpointing draws it again for backward.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Container, Tensor, dtype_kind
from graphmend.transforms.code.bindings import display_of
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import fresh, locals_of
from graphmend.transforms.code.qualified_names import called, constant, is_tensor, number_type
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.kept_scalars import conversion
from graphmend.transforms.legality.dtypes import kinds
from graphmend.transforms.legality.gradients.sides import recorded
from graphmend.transforms.legality.memory import changed_in_place
from graphmend.transforms.legality.names.replaced import is_free
from graphmend.transforms.legality.numbers.as_tensors import UNORDERED
from graphmend.transforms.legality.rows.stacked import NotRowsError, as_rows
from graphmend.transforms.legality.scalar_uses import NeedsPythonNumberError, ScalarUses
from graphmend.transforms.legality.speculation import repeatable
from graphmend.transforms.rewrites.answers import asks, offer, refuse
from graphmend.transforms.rewrites.torch_api.forms import asked_of_tensors, derivatives, drawn_numbers, filled_elements
from graphmend.transforms.rewrites.torch_api.forms.form import Form, asked, taken_for_tensor

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "torch_form"


@asks("effects", "memory", "order", "dtypes", "numbers", "gradients", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    for form in _FORMS:
        imports = Imports(facts)
        try:
            found = form(facts, Code(facts.source), imports)
        except NeedsPythonNumberError as error:
            return refuse(NAME, str(error))
        if isinstance(found, str):
            return refuse(NAME, found)
        if found is None:
            continue
        node, text, differences = found

        def make(node: ast.expr = node, text: str = text, imports: Imports = imports) -> list[TextEdit]:
            return [*imports.edits(), replace_expression(facts.source, node, text)]

        return offer(NAME, "call a torch function that Dynamo captures", facts, make, differences)
    return None


def _combinations(facts: FunctionFacts, code: Code, imports: Imports) -> Form | str | None:
    call = called(facts, asked(facts), "torch.combinations")
    if call is None:
        return None
    options = {k.arg: constant(k.value) for k in call.keywords}
    length = constant(call.args[1]) if len(call.args) == 2 else options.pop("r", 2)
    repeated = options.pop("with_replacement", False)
    if not call.args or len(call.args) > 2 or options or length != 2 or not isinstance(repeated, bool):
        return "only pairs have another form"
    if not repeatable(facts, call.args[0]):
        return f"`{code.text(call.args[0])}` would be evaluated more than once"
    x = code.operand(call.args[0])
    diagonal, triu = 0 if repeated else 1, imports.name("torch.triu_indices")
    places = called(facts, call.args[0], "torch.arange")
    if (
        places is not None
        and len(places.args) == 1
        and not places.keywords
        and number_type(facts, places.args[0]) == "int"
    ):
        count = code.argument(places.args[0])
        return call, f"{triu}({count}, {count}, {diagonal}).T.contiguous()", []
    size = f"{x}.shape[0]"
    differences = []
    value = facts.value(call.args[0])
    if not isinstance(value, Tensor) or value.rank != 1:
        differences.append(Difference("exception", f"`{x}` of no or several dimensions raised, and gives pairs now"))
    if recorded(facts, facts.statement) and kinds(facts, call.args[0]) & {"float", "complex"}:
        differences.append(Difference("rounding", "gradients of pairs are added up in another order"))
    indices = f"{triu}({size}, {size}, {diagonal}, device={x}.device)"
    return call, f"{x}[{indices}.T.contiguous()]", differences


def _least_squares(facts: FunctionFacts, code: Code, imports: Imports) -> Form | str | None:
    call = called(facts, asked(facts), "torch.linalg.lstsq")
    if call is None:
        return None
    parent = facts.parent(call)
    if not (isinstance(parent, ast.Attribute) and parent.attr == "solution") or len(call.args) != 2 or call.keywords:
        return "only the solution of a least-squares problem has another form"
    a, b = (code.argument(x) for x in call.args)
    text = f"{imports.name('torch.linalg.pinv')}({a}) @ {code.operand(call.args[1])}"
    differences = [
        Difference("rounding", f"the solution for `{b}` comes from the pseudo-inverse, which costs more"),
        Difference("strides", "the solution lies in memory row by row"),
    ]
    return parent, f"({text})", differences


def _sorted(facts: FunctionFacts, code: Code, imports: Imports) -> Form | str | None:
    """`sorted(ts)` and `sorted(ts, key=...)` of tensors, where what is used of the result are its elements."""
    around = [n for n in (facts.node, *facts.ancestors(facts.node)) if isinstance(n, ast.expr)]
    call = next((c for n in around if (c := called(facts, n, "builtins.sorted"))), None)
    if call is None or len(call.args) != 1 or called(facts, call.args[0], "builtins.range"):
        return None
    try:
        apart = ".unbind()" if as_rows(facts, call) else ""
    except NotRowsError as error:
        return str(error)
    if changed_in_place(facts, call.args[0], behind=facts.statement):
        return "what is sorted is changed in place, and would be a copy"
    keywords = {k.arg: k.value for k in call.keywords}
    key, falls = keywords.pop("key", None), constant(keywords.pop("reverse", ast.Constant(False)))
    if keywords or not isinstance(falls, bool):
        return "only a plain sort has another form"
    options = "descending=True, stable=True" if falls else "stable=True"
    rows, among = is_tensor(facts, call.args[0]), facts.value(call.args[0])
    listed = isinstance(among, Container) and among.kind != "dict" and isinstance(among.element, Tensor)
    if not rows and not listed:
        return f"`{code.text(call.args[0])}` is not known to hold tensors alone"
    stack = "" if rows else imports.name("torch.stack")
    stacked = code.operand(call.args[0]) if rows else f"{stack}({code.argument(call.args[0])})"
    differences = [
        Difference("exception", "the tensors must have equal shapes"),
        Difference("nan", "NaN sorts as the greatest"),
        Difference("aliasing", "what is taken out of the list is a copy"),
        Difference("strides", "what is taken out of the list is dense memory"),
        Difference("dtype", "if the dtypes of the tensors differ, the result has the promoted one"),
        Difference("overflow", "what a narrower dtype of them would wrap around does not in the promoted one"),
        Difference("zero-gradients", "tensors that are not taken out get zeros for gradients instead of None"),
    ]
    lost = "under no_grad what is taken out loses its gradient history"
    leaked = "gradients may become NaN where the derivative of a tensor that is not taken out is not finite"
    differences.append(Difference("gradients", leaked if recorded(facts, facts.statement) else lost))
    if key is None:
        return call, f"{stacked}.sort(dim=0, {options}).values{apart}", differences
    if not repeatable(facts, call.args[0]):
        return f"`{code.text(call.args[0])}` would be evaluated more than once"
    if not isinstance(key, ast.Lambda) or len(key.args.args) != 1:
        return "the key is no lambda"
    body = key.body
    if isinstance(body, ast.Call) and isinstance(body.func, ast.Attribute) and body.func.attr == "item":
        body = body.func.value
    if not is_tensor(facts, body):
        return "the key is not known to be a tensor"
    clause = f"for {key.args.args[0].arg} in {code.text(call.args[0])}"
    keys = f"{imports.name('torch.stack')}([{code.argument(body)} {clause}])"
    return call, f"{stacked}[{keys}.argsort({options})]{apart}", differences


def _position(facts: FunctionFacts, code: Code, imports: Imports) -> Form | str | None:
    """`[a, b].index(t)` of 0-d tensors."""
    call = asked(facts)
    match call:
        case ast.Call(func=ast.Attribute(value=container, attr="index"), args=[item], keywords=[]) if is_tensor(
            facts, item
        ):
            if not isinstance(facts.value(container), Container):
                return None
        case _:
            return None
    uses = ScalarUses(facts, "int64")
    uses.follow(call)
    stacked = f"{imports.name('torch.stack')}({code.argument(container)})"
    differences = [
        Difference("exception", "an element that is not there gives 0 instead of an exception"),
        *uses.differences,
    ]
    return call, f"({stacked} == {code.operand(item)}).int().argmax()", differences


def _copied(facts: FunctionFacts, code: Code, imports: Imports) -> Form | str | None:
    """`copy.copy(t)` and `copy.deepcopy(t)`."""
    call = called(facts, asked(facts), "copy.copy", "copy.deepcopy")
    if call is None or len(call.args) != 1:
        return None
    if not is_tensor(facts, call.args[0]):
        return "what is copied is not known to be a tensor"
    deep = called(facts, call, "copy.deepcopy") is not None
    text = f"{code.operand(call.args[0])}.detach()" + (".clone()" if deep else "")
    says = "the copy does not ask for gradients itself, and a copy of a computed tensor raises no more"
    differences = [Difference("gradients", says), Difference("exception", says)]
    differences.append(Difference("type", "a parameter, or a tensor with attributes of its own, gives a plain tensor"))
    if deep:
        differences.append(Difference("strides", "a tensor with gaps in its memory, or in no order, gives one without"))
    return call, text, differences


def _variable(facts: FunctionFacts, code: Code, imports: Imports) -> Form | str | None:
    """`Variable(t)`, of before torch 0.4, is `t.detach()`."""
    call = called(facts, asked(facts), "torch.autograd.Variable", "torch.autograd.variable.Variable")
    if call is None:
        return None
    if len(call.args) != 1 or call.keywords or not is_tensor(facts, call.args[0]):
        return "only a plain `Variable` of a tensor has another form"
    return call, f"{code.operand(call.args[0])}.detach()", []


def _shared(facts: FunctionFacts, code: Code, imports: Imports) -> Form | str | None:
    """`torch.from_dlpack(t)` of a tensor shares its memory, as `t.detach()` does."""
    around = [n for n in (asked(facts), *facts.ancestors(facts.node)) if isinstance(n, ast.expr)]
    takers = ("torch.from_dlpack", "torch.utils.dlpack.from_dlpack")
    call = next((c for n in around if (c := called(facts, n, *takers))), None)
    if call is None or len(call.args) != 1 or call.keywords:
        return None
    given = call.args[0]
    if (handed := called(facts, given, "torch.utils.dlpack.to_dlpack", "torch.to_dlpack")) and len(handed.args) == 1:
        given = handed.args[0]
    if (taken := taken_for_tensor(facts, given)) is None:
        return f"`{code.text(given)}` is not known to be a tensor"
    says = "a tensor that asks for gradients, or is conjugated, raises no more"
    return call, f"{code.operand(given)}.detach()", [*taken, Difference("exception", says)]


def _differences(facts: FunctionFacts, code: Code, imports: Imports) -> Form | str | None:
    """`np.ediff1d(a)`."""
    call = called(facts, asked(facts), "numpy.ediff1d")
    if call is None or not isinstance(call.func, ast.Attribute) or len(call.args) != 1 or call.keywords:
        return None
    numpy = code.text(call.func.value)
    bools = Difference("exception", "an array of bools, of which NumPy has no differences, raises no more")
    differences = [bools] if "bool" in kinds(facts, call.args[0]) else []
    return call, f"{numpy}.diff({numpy}.ravel({code.argument(call.args[0])}))", differences


def _bisected(facts: FunctionFacts, code: Code, imports: Imports) -> Form | str | None:
    """`bisect.bisect(edges, t)` of numbers that are written in order: how many of them are not above `t`."""
    around = [n for n in (facts.node, *facts.ancestors(facts.node)) if isinstance(n, ast.expr)]
    names = [f"bisect.bisect{side}" for side in ("", "_left", "_right")]
    call = next((c for n in around if (c := called(facts, n, *names))), None)
    if call is None or len(call.args) != 2 or call.keywords:
        return None
    display, sought = display_of(facts, call.args[0]), call.args[1]
    edges = [constant(e) for e in display.elts] if isinstance(display, (ast.List, ast.Tuple)) else []
    numbers = [e for e in edges if isinstance(e, (int, float)) and abs(e) < 2**53]
    if not numbers or len(numbers) != len(edges) or numbers != sorted(numbers):
        return "only numbers that are written in order have another form"
    left = ast.unparse(call.func).endswith("_left")
    if number_type(facts, sought) is not None and repeatable(facts, sought):  # Python's own search is not traced
        if "len" in facts.names or "len" in locals_of(facts.function) or not is_free("len", facts.source.tree):
            return "`len` is another function here"
        edge, number = fresh(facts, "edge"), code.operand(sought)
        test = f"{edge} < {number}" if left else f"not {number} < {edge}"
        return call, f"len([{edge} for {edge} in {code.text(call.args[0])} if {test}])", []
    taken_out = conversion(facts, sought)
    if taken_out is not None and taken_out[0] in ("item", "float"):
        sought = taken_out[1]
    of = facts.value(sought)
    wide = isinstance(of, Tensor) and (of.dtype == "int64" or dtype_kind(of.dtype) == "float")
    if not wide and not all(0 <= number < 128 for number in numbers):
        return "the numbers may wrap around where they are compared with narrow ones, and be in no order"
    if not is_tensor(facts, sought) or not repeatable(facts, sought):
        return f"`{code.text(sought)}` is not known to be a tensor that may be asked again"
    uses = ScalarUses(facts, "int64", rewrites=True)
    uses.follow(call)
    if uses.also or uses.counterparts:
        return "the place stays a Python number"
    # as Python asks, one number at a time: in the tensor's dtype, and of NaN nothing is true
    edge = fresh(facts, "edge")
    number = f"{code.operand(sought)}.double()" if taken_out is not None else code.operand(sought)
    test = f"{edge} < {number}" if left else f"~({number} < {edge})"
    says = f"`{code.text(sought)}` of several elements raises no more, or otherwise"
    several = [] if isinstance(of, Tensor) and of.rank == 0 else [Difference("exception", says)]
    if taken_out is not None and "complex" in kinds(facts, sought):
        several.append(UNORDERED)
    stacked = f"{imports.name('torch.stack')}([{test} for {edge} in {code.text(call.args[0])}])"
    return call, f"{stacked}.sum()", [*uses.differences, *several]


def _along_axis(facts: FunctionFacts, code: Code, imports: Imports) -> Form | str | None:
    """`np.apply_along_axis(lambda row: row.sum(), 0, a)` is `a.sum(axis=0)`."""
    call = called(facts, asked(facts), "numpy.apply_along_axis")
    if call is None:
        return None
    match call.args:
        case [
            ast.Lambda(
                args=ast.arguments(args=[ast.arg(arg=name)]),
                body=ast.Call(func=ast.Attribute(value=ast.Name(id=row), attr=attr), args=[], keywords=[]),
            ),
            axis,
            array,
        ] if name == row and attr in ("sum", "mean", "max", "min", "prod", "std", "var", "any", "all"):
            text = f"{code.operand(array)}.{attr}(axis={code.argument(axis)})"
            differences = [Difference("rounding", "sums may round differently, as they are made in another order")]
            return call, text, differences
    return "only a reduction by a method of the array has another form"


_FORMS: tuple[Callable[[FunctionFacts, Code, Imports], Form | str | None], ...] = (
    _combinations,
    _least_squares,
    filled_elements.drawn,
    filled_elements.applied,
    _sorted,
    _position,
    asked_of_tensors.is_nonzero,
    asked_of_tensors.is_same_size,
    asked_of_tensors.swapped,
    _copied,
    drawn_numbers.uniform,
    drawn_numbers.number,
    drawn_numbers.permutation,
    _bisected,
    _variable,
    _shared,
    derivatives.derivative,
    _differences,
    _along_axis,
)
