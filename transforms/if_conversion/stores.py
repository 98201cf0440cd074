"""Stores and in-place methods of a branch, as the value that the place has afterwards."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from graphmend.analysis.lattice.values import Container, Static, Tensor
from graphmend.transforms.code.qualified_names import constant, is_tensor
from graphmend.transforms.if_conversion.selection import NotSelectableError, SideValue
from graphmend.transforms.legality.in_place import intact, linear_method
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.same_shape import ShapeInference

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.transforms.if_conversion.tensor_predicates import Predicates

#: `copy`: the tensor itself is changed; `element`: a part of it is stored; `store`: an attribute or a key of a
#: dictionary is bound again; `mask`: elements are stored under a mask
How = Literal["copy", "element", "store", "mask"]


class Converting(Protocol):
    """The block that a store or an in-place method stands in, while it is converted."""

    facts: FunctionFacts
    predicates: Predicates
    whole: ast.stmt
    """The statement that is converted."""
    replace: dict[ast.expr, str]
    """Expressions, and the text that they have become."""
    evaluated: list[ast.expr]
    """What the block evaluates."""

    def text(self, node: ast.expr, /) -> str: ...


@dataclass(frozen=True)
class Change:
    """A change that outlives the branch."""

    target: str
    """The text of the place."""
    root: str
    """The name that leads there."""
    choice: SideValue
    """The value that it gets."""
    how: How
    mask: str = ""
    before: SideValue | None = None
    """The value that the place has before, where it is bound again."""

    @property
    def apart(self) -> bool:
        """Is the place a whole attribute or key, which no other place is a part of?"""
        return self.how == "store" or (self.how == "copy" and self.target != self.root)


def change_of(block: Converting, call: ast.Call) -> Change:
    """`t.method_(...)`, written as the value that `t` has afterwards."""
    assert isinstance(call.func, ast.Attribute)
    receiver, attr = call.func.value, call.func.attr
    plain = attr[:-1]
    root = _root(receiver)
    if not attr.endswith("_") or attr.endswith("__") or not is_tensor(block.facts, receiver) or root is None:
        raise NotSelectableError(f"`{_short(call)}` may have side effects")
    code, imports = block.predicates.code, block.predicates.imports
    target = code.text(receiver, block.replace)
    arguments = [block.text(a) for a in call.args]
    arguments += [f"{k.arg}={block.text(k.value)}" for k in call.keywords if k.arg]
    block.evaluated += [*call.args, *(k.value for k in call.keywords)]
    if plain == "copy" and len(call.args) == 1 and not call.keywords:
        text = arguments[0]
    elif plain == "zero" and not call.args:
        text = f"{imports.name('torch.zeros_like')}({target})"
    elif plain == "fill" and len(call.args) == 1 and isinstance(constant(call.args[0]), (int, float)):
        text = f"{imports.name('torch.full_like')}({target}, {arguments[0]})"
    elif plain in known.ELEMENTWISE | known.ARITHMETIC | {"masked_fill", "lerp", "addcmul", "addcdiv"}:
        safe = not call.keywords and linear_method(block.facts, plain, call.args)
        text = f"{intact(block.facts, block.whole, target, linear=safe)}.{plain}({', '.join(arguments)})"
    else:
        raise NotSelectableError(f"`{_short(call)}` has no form that leaves its tensor alone")
    return Change(target, root, SideValue(text, call, None), "copy")


def store_of(block: Converting, target: ast.Subscript | ast.Attribute, choice: SideValue) -> Change:
    """`y[0] = v`, `y[mask] = 0`, `d["key"] = v`, `self.name = v`."""
    root = _root(target)
    if root is None:
        raise NotSelectableError(f"`{_short(target)}` is no place with a name")
    text = block.predicates.code.text(target, block.replace)
    if isinstance(target, ast.Attribute):
        return Change(text, root, choice, "store", before=_loaded(block, target))
    owner = block.facts.value(target.value)
    if isinstance(owner, Container) and owner.kind == "dict" and constant(target.slice) is not None:
        return Change(text, root, choice, "store", before=_loaded(block, target))
    if not (isinstance(owner, Tensor) and not owner.ndarray):
        raise NotSelectableError(f"`{_short(target)}` is no place of a tensor")
    if _is_mask(block, target.slice):
        if not isinstance(constant(choice.node), (int, float)):
            raise NotSelectableError(f"what is stored at `{_short(target)}` is no number")
        mask = block.predicates.code.operand(target.slice, block.replace)
        return Change(block.predicates.code.text(target.value), root, choice, "mask", mask)
    indices = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    if not all(_fixed(block, i) for i in indices):
        raise NotSelectableError(f"`{_short(target)}` is a computed place")
    return Change(text, root, choice, "element", before=SideValue(text, target, None))


def _loaded(block: Converting, target: ast.Attribute | ast.Subscript) -> SideValue | None:
    """The value that a place has before the branch, where the function reads it as a tensor."""
    wanted = ast.unparse(target)
    for node in ast.walk(block.facts.function):
        place = isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Load)
        if place and ast.unparse(node) == wanted and isinstance(node, ast.expr) and is_tensor(block.facts, node):
            return SideValue(wanted, node, ShapeInference(block.facts).of(node))
    return None


def _is_mask(block: Converting, node: ast.expr) -> bool:
    value = block.facts.value(node)
    return isinstance(value, Tensor) and value.dtype == "bool"


def _fixed(block: Converting, index: ast.expr) -> bool:
    """A whole number or a slice that is known while tracing."""
    if isinstance(index, ast.Slice):
        return all(_fixed(block, part) for part in (index.lower, index.upper, index.step) if part is not None)
    if index is None or isinstance(index, ast.Constant) or isinstance(constant(index), int):
        return True
    value = block.facts.value(index)
    return isinstance(value, Static) and value.type in ("int", "slice")


def _root(node: ast.expr) -> str | None:
    """The name that a path of attributes and subscripts begins with."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 50 else f"{text[:47]}..."
