"""When torch's operations raise: shapes that do not fit, dtypes that an operation does not have, no elements."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Const, Scalar, Static, Tensor
from graphmend.analysis.lattice.values import Container as Items
from graphmend.transforms.code.qualified_names import constant
from graphmend.transforms.legality.dtypes import kinds, raises_for
from graphmend.transforms.legality.gradients.sides import carries
from graphmend.transforms.legality.operations import domains
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.operations.numeric import BOUNDS
from graphmend.transforms.legality.raising.python import MAY, number, of_tensor

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_WHOLE = frozenset({"bool", "uint8", "int"})
#: they take sizes, and fill what they make
_FACTORIES = frozenset("zeros ones empty full rand randn".split())
#: they say something about a tensor, or give it as it is, whatever it is
_ALWAYS = frozenset(
    """
    dim numel nelement ndimension is_floating_point is_complex is_contiguous element_size get_device tolist is_tensor
    type_as ravel numel_ squeeze eye is_signed
""".split()
)
_DIMENSION = frozenset("dim axis".split())
#: elementwise with one tensor and any number of numbers
_NUMBERS_ALLOWED = known.ELEMENTWISE | {"masked_fill", "fill", "softmax", "log_softmax", "cumsum", "mean", "sum"}


def fits(facts: FunctionFacts, operands: Iterable[ast.expr]) -> bool:
    """Do the shapes of operands broadcast for certain: numbers, 0-d tensors, or one shape?"""
    shaped: list[tuple[str, Tensor]] = []
    for operand in operands:
        value = facts.value(operand)
        if isinstance(value, (Static, Scalar)) or isinstance(constant(operand), complex) or number(facts, operand):
            continue
        if not isinstance(value, Tensor):
            return False
        if value.rank != 0:
            shaped.append((ast.unparse(operand), value))
    if len({text for text, _ in shaped}) <= 1:
        return True
    return shaped[0][1].shape is not None and len({value.shape for _, value in shaped}) == 1


def operator(facts: FunctionFacts, node: ast.BinOp, protected: Container[ast.expr] = frozenset()) -> str | None:
    """An operator of which an operand is a tensor."""
    if (why := wrong_kind(facts, node)) is not None:
        return why
    left = kinds(facts, node.left)
    if isinstance(node.op, ast.MatMult) or not fits(facts, [node.left, node.right]):
        return MAY
    if isinstance(node.op, (ast.FloorDiv, ast.Mod)) and node not in protected:
        if "bool" in left and isinstance(number := constant(node.right), bool) and number:
            return "raises for bool"
        if for_some_values(facts, node.op, node.left, node.right):
            return "divides by zero where its side was not taken, if that is what the branch avoids"
    if isinstance(node.op, ast.Pow) and for_some_values(facts, node.op, node.left, node.right):
        return "raises for a negative power of integers"
    return None


def for_some_values(facts: FunctionFacts, op: ast.operator, left: ast.expr, right: ast.expr) -> bool:
    """Does an operator of tensors raise for some of their values: for a zero, or a negative power, of whole numbers?
    Among floating numbers these give infinity or NaN.
    """
    number = constant(right)
    known = isinstance(number, (int, float))
    if isinstance(op, (ast.FloorDiv, ast.Mod)) and not (known and number != 0):
        return bool(kinds(facts, left) & _WHOLE and kinds(facts, right) & _WHOLE)
    if isinstance(op, ast.Pow) and not (known and not isinstance(number, bool) and number >= 0):  # type: ignore[operator]
        return bool(kinds(facts, left) & _WHOLE and kinds(facts, right) & _WHOLE)
    return False


def wrong_kind(facts: FunctionFacts, node: ast.expr) -> str | None:
    """The kinds of dtype that may come and that the operation does not have."""
    operands, refused = raises_for(facts, node)
    subtracts = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)
    for operand in operands if refused else ():
        if not isinstance(facts.value(operand), Tensor) and not (subtracts and isinstance(constant(operand), bool)):
            continue
        if wrong := sorted(kinds(facts, operand) & refused):
            return f"raises for {' and '.join(wrong)}"
    return None


def unary(facts: FunctionFacts, node: ast.UnaryOp) -> str | None:
    """An operator of one tensor."""
    if isinstance(node.op, ast.Not):
        return truth(facts, node.operand)
    return wrong_kind(facts, node)


def truth(facts: FunctionFacts, node: ast.expr) -> str | None:
    """`bool(node)` where that is a tensor."""
    value = facts.value(node)
    return "raises for more or fewer elements than one" if isinstance(value, Tensor) and value.rank != 0 else None


def compared(facts: FunctionFacts, node: ast.Compare) -> str | None:
    """A comparison of which a side is a tensor."""
    if all(isinstance(o, (ast.Is, ast.IsNot)) for o in node.ops):
        return None
    if len(node.ops) > 1 or isinstance(node.ops[0], (ast.In, ast.NotIn)):
        return MAY
    if not fits(facts, [node.left, *node.comparators]):
        return MAY
    return wrong_kind(facts, node)


def indexed(facts: FunctionFacts, node: ast.Subscript) -> str | None:
    """`x[...]` of a tensor."""
    value = facts.value(node.value)
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    slices = [p for p in parts if isinstance(p, ast.Slice)]
    if not all(p in slices or (isinstance(p, ast.Constant) and p.value in (None, ...)) for p in parts):
        return MAY
    steps = [constant(s.step) for s in slices if s.step is not None]
    if not all(isinstance(s, int) and s > 0 for s in steps):
        return MAY
    bounds = [b for s in slices for b in (s.lower, s.upper) if b is not None]
    if not all(isinstance(facts.value(b), Static) or isinstance(constant(b), int) for b in bounds):
        return MAY
    rank = value.rank if isinstance(value, Tensor) else None
    enough = not slices or (rank is not None and len(slices) <= rank)
    return None if enough else "raises for fewer dimensions than it asks for"


def call(facts: FunctionFacts, node: ast.Call, folder: str, last: str) -> str | None:
    """A call of a function of torch that only computes."""
    method = folder == "torch.Tensor" and isinstance(node.func, ast.Attribute)
    own = [node.func.value] if method and isinstance(node.func, ast.Attribute) else []
    if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
        return MAY
    keywords: dict[str | None, ast.expr] = {k.arg: k.value for k in node.keywords}
    operands = [*own, *node.args]
    if last == "item":
        return of_tensor(facts, node, "item")
    if last in ("finfo", "iinfo", "tensor", "device", "zeros", "ones", "empty", "full", "size"):
        return _special(facts, node, last, own)
    if last in known.CASTS or last in _ALWAYS:
        return None
    if last == "reshape":
        wanted = node.args[0] if len(node.args) == 1 else None
        return None if wanted is not None and constant(wanted) == -1 else MAY
    if not operands:
        return MAY
    if (why := wrong_kind(facts, node)) is not None:
        empty = _reduced(facts, operands, keywords, last) if last in domains.EMPTY else None
        return why if empty is None else f"{why}, and {empty}"
    tensors = [
        *operands,
        *(v for k, v in keywords.items() if k in ("other", "min", "max", "value", "input", "mask", "fill_value")),
    ]
    if last in known.REDUCTIONS or last in domains.EMPTY:
        return _reduced(facts, operands, keywords, last)
    if last in known.ARITHMETIC | known.TESTS | known.ELEMENTWISE or last in ("where", "masked_fill"):
        return _elementwise(facts, tensors, keywords, last)
    if last in ("softmax", "log_softmax", "cumsum", "cumprod", "flatten", "unsqueeze"):
        return _along(facts, operands, keywords, last)
    return MAY


def _no_number(facts: FunctionFacts, tensors: list[ast.expr], last: str) -> str | None:
    """A tensor is given where torch takes a Python number: that must have one element, and ask for no gradients."""
    others = [t for t in tensors[1:] if isinstance(facts.value(t), Tensor)]
    if last not in known.ELEMENTWISE or last == "pow" or (last in BOUNDS and len(others) == len(tensors) - 1):
        return None
    for other in others:
        value = facts.value(other)
        if not isinstance(value, Tensor) or value.rank != 0:
            return "raises for more or fewer elements than one"
        if carries(facts, other):
            return f"raises where `{ast.unparse(other)}` requires gradients"
    return None


def _elementwise(
    facts: FunctionFacts, tensors: list[ast.expr], keywords: dict[str | None, ast.expr], last: str
) -> str | None:
    if last in domains.TENSORS_ONLY and not all(isinstance(facts.value(t), Tensor) for t in tensors[:2]):
        return "raises for a number"
    if "alpha" in keywords or "rounding_mode" in keywords or "memory_format" in keywords:
        return MAY
    if last == "pow" and len(tensors) > 1:
        power = constant(tensors[1])
        whole = kinds(facts, tensors[0]) & _WHOLE and kinds(facts, tensors[1]) & _WHOLE
        if whole and not (isinstance(power, int) and power >= 0):
            return "raises for a negative power of integers"
    if last in ("sub", "subtract", "rsub") and any(isinstance(constant(t), bool) for t in tensors):
        return "raises for bool"
    if (why := _no_number(facts, tensors, last)) is not None:
        return why
    return None if fits(facts, tensors) else MAY


def _reduced(
    facts: FunctionFacts, operands: list[ast.expr], keywords: dict[str | None, ast.expr], last: str
) -> str | None:
    value = facts.value(operands[0])
    if len(operands) > 1 and isinstance(facts.value(operands[1]), Tensor):
        whole = last in ("max", "min") and fits(facts, operands)
        return None if whole else MAY
    over = [*operands[1:2], *(keywords[k] for k in _DIMENSION if k in keywords)]
    if not over and last == "norm":
        return None if not operands[1:] and not keywords else MAY
    if over and not _in_range(facts, operands[0], over[0]):
        return "raises for a dimension that is not there"
    if last in domains.EMPTY and not (isinstance(value, Tensor) and value.rank == 0):
        return "raises for a tensor without elements"
    return None


def _along(
    facts: FunctionFacts, operands: list[ast.expr], keywords: dict[str | None, ast.expr], last: str
) -> str | None:
    over = [*operands[1:2], *(keywords[k] for k in _DIMENSION if k in keywords)]
    if last == "unsqueeze" and over and constant(over[0]) in (0, -1):
        return None
    if last == "flatten":
        return None if len(operands) == 1 and not keywords else MAY
    if over and len(operands) <= 2 and (constant(over[0]) in (0, -1) or _in_range(facts, operands[0], over[0])):
        return None  # a tensor without dimensions has the dimensions 0 and -1 here
    return MAY


def _in_range(facts: FunctionFacts, node: ast.expr, dimension: ast.expr) -> bool:
    """Does a tensor have a dimension for certain? One without dimensions takes 0 and -1."""
    number, value = constant(dimension), facts.value(node)
    if number in (0, -1) and isinstance(number, int):
        return True
    rank = value.rank if isinstance(value, Tensor) else None
    return isinstance(number, int) and rank is not None and -rank <= number < rank


def _special(facts: FunctionFacts, node: ast.Call, last: str, own: list[ast.expr]) -> str | None:
    if last == "size":
        if not node.args:
            return None
        value, number = facts.value(own[0]) if own else None, constant(node.args[0])
        rank = value.rank if isinstance(value, Tensor) else None
        known_rank = isinstance(number, int) and rank is not None and -rank <= number < rank
        return None if known_rank else "raises for fewer dimensions than it asks for"
    if last in ("finfo", "iinfo"):
        return _limits(facts, node, last)
    if last == "tensor":
        made = node.args[0] if node.args else None
        number = made is not None and isinstance(facts.value(made), (Static, Scalar))
        items = facts.value(made) if made is not None else None
        flat = isinstance(items, Items) and items.items is not None
        numbers = flat and isinstance(items, Items) and all(isinstance(i, (Static, Scalar)) for i in items.items or ())
        return None if number or numbers else MAY
    if last == "device":
        return MAY
    sizes = list(node.args[: 1 if last == "full" else None])
    sizes += [k.value for k in node.keywords if k.arg == "size"]
    parts = [p for s in sizes for p in (s.elts if isinstance(s, (ast.Tuple, ast.List)) else [s])]
    return None if all(_is_size(facts, p) for p in parts) else "raises for a negative size"


def _is_size(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is a size not negative for certain: a literal, or one of a tensor's?"""
    number = constant(node)
    if isinstance(number, int):
        return number >= 0
    match node:
        case ast.Subscript(value=ast.Attribute(attr="shape")) | ast.Attribute(attr="shape"):
            return True
        case ast.Call(func=ast.Attribute(attr="size" | "numel" | "dim")) | ast.Call(func=ast.Name(id="len")):
            return True
    value = facts.value(node)
    return isinstance(value, Const) and isinstance(value.value, int) and value.value >= 0


def _limits(facts: FunctionFacts, node: ast.Call, last: str) -> str | None:
    if len(node.args) != 1:
        return MAY
    match node.args[0]:
        case ast.Attribute(value=owner, attr="dtype"):
            possible = kinds(facts, owner)
            right = frozenset({"float", "complex"}) if last == "finfo" else frozenset({"int", "uint8"})
            return None if possible <= right else f"raises for {' and '.join(sorted(possible - right))}"
        case ast.Attribute(attr=name):
            floating = name.startswith(("float", "bfloat", "half", "double"))
            return None if floating == (last == "finfo") and name != "bool" else MAY
    return MAY
