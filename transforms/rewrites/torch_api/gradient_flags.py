"""Say in another way that a tensor wants gradients, or give it new data, so that Dynamo can capture it.

Before:
    y.requires_grad = True
    y.data = x + 1

After:
    y.requires_grad_(True)
    y.data.copy_(x + 1)

Legal when:
    the tensor is made inside the function and the flag is `True` or `False`; new data has the shape and the dtype of
    the old, or at least its kind. `requires_grad_` on a detached tensor whose gradient nobody can ask for is left out.
    Where what is computed from the tensor is returned, the flag is set in plain Python only. The function asks for no
    gradients itself (`backward`, `autograd.grad`, `.grad`, hooks), and hands the tensor to no function that may.

Differs in:
    what other names of the same storage see; a result computed from a detached tensor does not require gradients; a
    tensor whose flag is not set while compiled has no `grad` there; a tensor that is not known to be a new one of
    floats raises another exception while compiled, if it is none; new data is cast to the dtype of the old, to bools
    also where it is computed with whole numbers.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor, dtype_kind
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bindings, bound_before
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import locals_of, parameters, reads, writes
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import called, constant, method, qualified
from graphmend.transforms.code.text_edits import HOLE, replace_expression, replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.dtypes import kind
from graphmend.transforms.legality.memory import changed_in_place, shares
from graphmend.transforms.legality.same_shape import ShapeInference, alike, promote
from graphmend.transforms.questions import answers
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "gradient_flags"


#: what gives, or asks for, the gradient of a tensor
_ATTRIBUTES = frozenset("backward grad retain_grad register_hook register_post_accumulate_grad_hook".split())
_FLAGS = ("requires_grad", "is_leaf", "grad_fn")
_FUNCTIONS = _ATTRIBUTES | frozenset("jacobian hessian vjp jvp hvp vhp vmap gradcheck checkpoint".split())
_MADE = (
    "zeros ones full empty rand randn tensor arange linspace logspace eye zeros_like ones_like full_like empty_like "
    "rand_like randn_like"
).split()
#: the dtype that floats have where nobody says another
_DEFAULT = "float32"
_MADE_METHODS = ("detach", "new_zeros", "new_ones", "new_full", "new_empty", "new_tensor")
_RAISES = Difference(
    "exception",
    "a tensor that is no new one of floats raises another exception while compiled, or none, as it can't be flagged",
)


@asks("memory", "dtypes", "shapes", "gradients", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    answer = _answer(facts)
    if isinstance(answer, Fix) and (asked := _asked(facts)):
        return refuse(NAME, f"`{asked}` asks for gradients in the same function, which breaks the graph all the same")
    return answer


def _asked(facts: FunctionFacts) -> str | None:
    """What asks for gradients in the function."""
    for node in nodes_in(facts.function):
        if isinstance(node, ast.Attribute) and node.attr in _ATTRIBUTES:
            return ast.unparse(node)
        name = (qualified(facts, node.func) or "") if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and name.startswith("torch.") and name.rpartition(".")[2] in _FUNCTIONS:
            return ast.unparse(node.func)
    return None


def _answer(facts: FunctionFacts) -> Fix | Refusal | None:
    match facts.statement:
        case ast.Assign(targets=[ast.Attribute(value=tensor, attr="requires_grad")], value=value):
            return _flag(facts, facts.statement, tensor, value)
        case ast.Assign(targets=[ast.Attribute(value=tensor, attr="data")], value=value):
            return _data(facts, facts.statement, tensor, value)
    return _detached(facts)


def _flag(facts: FunctionFacts, statement: ast.stmt, tensor: ast.expr, value: ast.expr) -> Fix | Refusal:
    given = isinstance(tensor, ast.Name) and tensor.id in parameters(facts.function)
    if not isinstance(tensor, ast.Name) or (given and bound_before(facts, statement, tensor.id) is None):
        return refuse(NAME, f"`{ast.unparse(tensor)}` is not made in the function")
    if not isinstance(value, ast.Constant) or not isinstance(value.value, bool):
        return refuse(NAME, f"`{ast.unparse(value)}` is not `True` or `False`")
    if not replaceable(facts, [statement]):
        return refuse(NAME, "the statement shares its line with another one")

    known = _is_leaf(facts, statement, tensor.id) and (not value.value or _is_float(facts, statement, tensor.id))
    if _leaves(facts, tensor.id):
        return _not_compiled(facts, statement, [] if known else [_RAISES])

    def make() -> list[TextEdit]:
        code = Code(facts.source)
        return [
            replace_statements(
                facts.source, [statement], f"{code.text(tensor)}.requires_grad_({code.argument(value)})\n"
            )
        ]

    return offer(NAME, "call requires_grad_", facts, make, [] if known else [_RAISES])


@answers("gradients")
def _is_leaf(facts: FunctionFacts, statement: ast.stmt, name: str) -> bool:
    """Is a name bound to new tensors alone, which nothing is recorded of?"""
    bound = bindings(facts).get(name, [])
    made = all(b.value is not None and not b.part and _is_made(facts, b.value) for b in bound)
    return bool(bound) and made and not changed_in_place(facts, name)


def _is_made(facts: FunctionFacts, node: ast.expr) -> bool:
    made = called(facts, node, *(f"torch.{name}" for name in _MADE)) or method(facts, node, *_MADE_METHODS)
    return made is not None and all(k.arg not in ("requires_grad", None) for k in made.keywords)


@answers("dtypes")
def _is_float(facts: FunctionFacts, statement: ast.stmt, name: str) -> bool:
    value = facts.before(statement).get(name)
    return isinstance(value, Tensor) and dtype_kind(value.dtype) in ("float", "complex")


@answers("memory")
def _leaves(facts: FunctionFacts, name: str) -> bool:
    """Is something returned that is computed from a tensor? Dynamo 2.13 refuses such a tensor a gradient of its own."""
    derived, count = {name}, 0
    while count != len(derived):
        count = len(derived)
        for node in nodes_in(facts.function):
            if isinstance(node, (ast.Assign, ast.AugAssign)) and reads(node.value) & derived:
                derived |= writes(node)
    returned = [n.value for n in nodes_in(facts.function) if isinstance(n, ast.Return) and n.value is not None]
    return any(reads(value) & derived for value in returned)


def _not_compiled(facts: FunctionFacts, statement: ast.stmt, raises: list[Difference]) -> Fix:
    """Only eager code can ask for the gradient of a tensor that the function makes and keeps."""

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        test = imports.name("torch.compiler.is_compiling")
        new = f"if not {test}():\n    {HOLE.format(0)}\n"
        return [*imports.edits(), replace_statements(facts.source, [statement], new, [statement])]

    difference = Difference(
        "gradients",
        "while compiled the tensor asks for no gradient: its `grad` stays None, and so may those of its inputs",
    )
    return offer(NAME, "ask for gradients in plain Python only", facts, make, [difference, *raises])


def _data(facts: FunctionFacts, statement: ast.stmt, tensor: ast.expr, value: ast.expr) -> Fix | Refusal:
    likeness = alike(facts, tensor, value)
    if likeness.blocker:
        return refuse(NAME, likeness.blocker)
    if other := _viewing(facts, tensor):
        return refuse(NAME, f"`{other}` keeps the old data, which would be overwritten")
    if isinstance(value, (ast.Name, ast.Attribute)) and changed_in_place(facts, tensor, value, behind=statement):
        return refuse(
            NAME, f"`{ast.unparse(value)}` and `{ast.unparse(tensor)}` are one memory then, and one is changed"
        )

    known = [difference for difference in likeness.differences if difference.kind != "dtype"]
    if len(known) < len(likeness.differences):
        if (cast := _cast(facts, tensor, value)) is None:
            return refuse(NAME, f"`{ast.unparse(value)}` may have another dtype, which `copy_` casts to the old one")
        known.append(cast)

    def make() -> list[TextEdit]:
        code = Code(facts.source)
        return [
            replace_statements(facts.source, [statement], f"{code.text(tensor)}.data.copy_({code.argument(value)})\n")
        ]

    differences = [
        Difference(
            "aliasing", "other tensors that share the storage see the new data, whose own memory is not shared any more"
        ),
        *known,
    ]
    return offer(NAME, "copy into the data", facts, make, differences)


@answers("dtypes")
def _cast(facts: FunctionFacts, tensor: ast.expr, value: ast.expr) -> Difference | None:
    """What differs where new data is cast to a dtype that may be another one; None where it is not of the same kind."""
    old, new = (ShapeInference(facts).of(node) for node in (tensor, value))
    named = {each.dtype for each in (old, new) if each is not None and isinstance(each.dtype, str)}
    if named - {_DEFAULT}:  # data of that dtype is what the program asks for
        return None
    if kind(facts, tensor) is not None and kind(facts, tensor) == kind(facts, value):
        return Difference("dtype", f"`{ast.unparse(tensor)}` keeps its dtype, also where the new data has another")
    if old is not None and new is not None and new.dtype == promote(old.dtype, "int"):
        return Difference("dtype", f"`{ast.unparse(tensor)}` is taken to hold no bools, which numbers would be cast to")
    return None


@answers("memory")
def _viewing(facts: FunctionFacts, tensor: ast.expr) -> str | None:
    """A name of the function whose tensor shares the memory of another one, and is not that tensor itself."""
    own = shares(facts, tensor).paths
    names = sorted(locals_of(facts.function) & bindings(facts).keys())
    return next((n for n in names if shares(facts, ast.Name(n, ast.Load())).views & own), None)


def _detached(facts: FunctionFacts) -> Fix | Refusal | None:
    node = facts.node.value if isinstance(facts.node, ast.Expr) else facts.node
    call = method(facts, node, "requires_grad_") if isinstance(node, ast.expr) else None
    if call is None or not isinstance(call.func, ast.Attribute):
        return None
    inner = call.func.value
    if not method(facts, inner, "detach") or isinstance(facts.parent(call), ast.Expr):
        return refuse(NAME, "the tensor's own gradient may be asked for")
    given = [*call.args, *(k.value for k in call.keywords)]
    if any(constant(a) is False for a in given):
        return None
    if any(constant(a) is not True for a in given):
        return refuse(NAME, f"`{ast.unparse(call)}` may be told not to ask for gradients")
    if not isinstance(facts.value(inner), Tensor):
        return refuse(NAME, "what is detached is not known to be a tensor")
    if taken := _handed_on(facts, call):
        return refuse(NAME, f"`{taken}` may ask for the tensor's gradient")
    if any(isinstance(n, ast.Attribute) and n.attr in _FLAGS for n in nodes_in(facts.function)):
        return refuse(NAME, "the function asks whether a tensor asks for gradients")
    bound = facts.parent(call)
    if isinstance(bound, ast.Assign) and any(_is_changed(facts, name) for name in writes(bound)):
        return refuse(NAME, "the tensor is changed in place, which raises for one that asks for gradients")
    text = Code(facts.source).text(inner)
    differences = [Difference("gradients", "results computed from the detached tensor do not require gradients")]
    if kind(facts, inner) not in ("float", "complex"):
        differences.append(Difference("exception", "a tensor of integers raises no more"))
    return offer(
        NAME, "leave requires_grad_ out", facts, lambda: [replace_expression(facts.source, call, text)], differences
    )


@answers("memory")
def _is_changed(facts: FunctionFacts, name: str) -> bool:
    """Is the tensor of a name changed in place under that name?"""
    for node in nodes_in(facts.function):
        match node:
            case ast.AugAssign(target=ast.Name(id=changed)):
                found = changed
            case ast.Subscript(value=ast.Name(id=changed), ctx=ast.Store() | ast.Del()):
                found = changed
            case ast.Call(func=ast.Attribute(value=ast.Name(id=changed), attr=attr)) if attr.endswith("_"):
                found = changed
            case _:
                continue
        if found == name:
            return True
    return False


@answers("memory")
def _handed_on(facts: FunctionFacts, made: ast.Call) -> str | None:
    """What is not known to only compute, and gets a tensor or what is computed from it."""
    above = facts.parent(made)
    derived = writes(above) if isinstance(above, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) else set()
    count = -1
    while count != len(derived):
        count = len(derived)
        for node in nodes_in(facts.function):
            if isinstance(node, (ast.Assign, ast.AugAssign)) and reads(node.value) & derived:
                derived |= writes(node)
    for node in nodes_in(facts.function):
        if isinstance(node, ast.Call):
            given = [*node.args, *(k.value for k in node.keywords)]
            takes = any(made in nodes_in(a) or reads(a) & derived for a in given)
            name = qualified(facts, node.func) or ""
            if takes and not name.startswith(("torch.", "math.", "builtins.")):
                return ast.unparse(node.func)
    return None
