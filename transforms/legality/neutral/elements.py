"""Elements of tensors in code: what a call works on, what it is called, and what a comparison of elements gives."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from graphmend.transforms.code.qualified_names import called, constant, qualified
from graphmend.transforms.legality.dtypes import kinds
from graphmend.transforms.legality.neutral.binding import key

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

#: the one number that all elements are, a bool only where the tensor is of bools; of a tensor of numbers or of bools
#: that all of them are zero, or false, or that none of them is
Element = bool | int | float | Literal["zero", "nonzero"]

#: methods and functions that only arrange the elements
ARRANGE = frozenset(
    """
    view reshape unsqueeze squeeze expand expand_as view_as reshape_as transpose permute t contiguous clone detach
    flatten unflatten repeat repeat_interleave tile movedim swapaxes swapdims broadcast_to cpu cuda narrow ravel
""".split()
)
#: those of them that may leave elements out, all of them where a size is made to be zero
_LEAVE_OUT = frozenset("expand expand_as broadcast_to repeat repeat_interleave tile narrow".split())
#: methods that convert; those to bool ask whether an element is zero
CONVERT = frozenset("to type type_as float half bfloat16 double long int".split())
COMPARE: dict[str, Callable[[float, float], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "gt": operator.gt, "ge": operator.ge, "lt": operator.lt, "le": operator.le,
}  # fmt: skip
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Gt: "gt", ast.GtE: "ge", ast.Lt: "lt", ast.LtE: "le",
}  # fmt: skip
NAMED = {"not_equal": "ne", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le"}
OPPOSITE = {"eq": "ne", "ne": "eq", "gt": "le", "ge": "lt", "lt": "ge", "le": "gt"}


def parts(facts: FunctionFacts, node: ast.Call) -> tuple[ast.expr | None, list[ast.expr], str]:
    """The tensor that a method, or a function of torch, works on, the other arguments, and the name; of `where` the
    condition, as of the function, although the method is one of another tensor.
    """
    name = qualified(facts, node.func) or ""
    folder, _, last = name.rpartition(".")
    if folder in ("torch", "torch.nn.functional", "torch.special"):
        return (node.args[0] if node.args else None), node.args[1:], last
    match node:
        case ast.Call(func=ast.Attribute(value=own, attr="where"), args=[condition, other]):
            return condition, [own, other], "where"
        case ast.Call(func=ast.Attribute(value=own, attr=attr)):
            return own, node.args, attr
    return None, node.args, last


def arranges(facts: FunctionFacts, node: ast.Call) -> bool:
    """Does a call give the elements of a tensor as they are, not their bytes as those of another dtype?"""
    _, arguments, name = parts(facts, node)
    given = [*arguments, *(k.value for k in node.keywords)]
    reads_bytes = name == "view" and any(_is_dtype(facts, one) for one in given)
    return name in ARRANGE and not reads_bytes


def _is_dtype(facts: FunctionFacts, node: ast.expr) -> bool:
    own = isinstance(node, ast.Attribute) and node.attr == "dtype"
    return own or (qualified(facts, node) or "").startswith("torch.")


def keeps_all(facts: FunctionFacts, node: ast.Call) -> bool:
    """Is each element of a tensor among those that a call gives?"""
    return arranges(facts, node) and parts(facts, node)[2] not in _LEAVE_OUT


def reduced(facts: FunctionFacts, node: ast.expr, how: str) -> ast.expr | None:
    """What is reduced over all its elements."""
    node = unpacked(node)
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    receiver, arguments, name = parts(facts, node)
    if name != how or receiver is None or arguments or called(facts, node, f"builtins.{how}"):
        return None
    return receiver


def unpacked(node: ast.expr) -> ast.expr:
    """A number without `.item()` and `int(...)`."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[], keywords=[]):
            return unpacked(inner)
        case ast.Call(func=ast.Name(id="int" | "float" | "bool"), args=[inner], keywords=[]):
            return unpacked(inner)
    return node


def size_of(facts: FunctionFacts, node: ast.expr) -> str | None:
    """Of which tensor is it the number of elements?"""
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    receiver, arguments, name = parts(facts, node)
    counts = name in ("numel", "nelement") and receiver is not None and not arguments
    return key(facts, receiver) if counts and receiver is not None else None


def is_bool(facts: FunctionFacts, node: ast.expr) -> bool:
    return kinds(facts, node) == {"bool"}


def to_bool(facts: FunctionFacts, node: ast.expr) -> bool:
    """Does a call convert to bools?"""
    match node:
        case ast.Call(func=ast.Attribute(attr="bool"), args=[]):
            return True
        case ast.Call(func=ast.Attribute(attr="to" | "type"), args=[dtype]):
            return qualified(facts, dtype) == "torch.bool"
        case ast.Call(func=ast.Attribute(attr="to"), args=[], keywords=[ast.keyword(arg="dtype", value=dtype)]):
            return qualified(facts, dtype) == "torch.bool"
    return False


def indices(index: ast.expr) -> list[ast.expr]:
    return index.elts if isinstance(index, ast.Tuple) else [index]


def is_place(index: ast.expr) -> bool:
    """Does an index take some of the elements, whatever they are?"""
    literal = isinstance(index, ast.Constant) and (index.value is None or index.value is Ellipsis)
    return literal or isinstance(index, ast.Slice) or isinstance(constant(index), int)


def is_zero(element: Element | None) -> bool:
    """Are all elements zero, or false?"""
    return element == "zero" or (not isinstance(element, str) and element == 0)


def number(element: Element | None) -> Element | None:
    """What all elements are where they are computed with as numbers: of bools that are false, 0."""
    return 0 if element == "zero" else element


def compared(one: Element | None, sign: str, other: Element | None) -> bool | None:
    one, other = number(one), number(other)
    if one == "nonzero" and other == 0 and not isinstance(other, str):
        return {"eq": False, "ne": True}.get(sign)
    if isinstance(one, str) or isinstance(other, str) or one is None or other is None:
        return None
    return COMPARE[sign](one, other)
