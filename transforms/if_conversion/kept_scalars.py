"""A Python number taken out of a tensor, kept as the 0-d tensor that it came from. Used inside tests and arithmetic.

A number is what the tensor held at that moment, and a float is a double: who keeps the tensor for later must copy it
(`captured`), and who computes with it widens it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Scalar, Static, Tensor, dtype_kind, options
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.analysis.tensors.numpy_calls import REDUCTIONS
from graphmend.transforms.code.expression_text import Code, bracketed
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.qualified_names import NUMBER_TYPES, constant, qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.gradients.sides import carries, recorded
from graphmend.transforms.legality.memory import shares
from graphmend.transforms.legality.numbers import said
from graphmend.transforms.legality.numbers.as_tensors import (
    BEYOND_DOUBLE,
    PRECISION,
    UNORDERED,
    exact_in,
    wider,
)
from graphmend.transforms.legality.numbers.counterparts import Counterpart, joined
from graphmend.transforms.legality.randomness.draws import is_draw
from graphmend.transforms.legality.scalar_uses import NeedsPythonNumberError, ScalarUses

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


@dataclass
class Kept:
    """Replacements that keep tensors in an expression."""

    replace: dict[ast.expr, str] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)
    boolean: bool = False
    """Is the whole expression a bool tensor then?"""


class Taken(NamedTuple):
    """The 0-d tensor that a conversion takes its number out of."""

    text: str
    dtype: Hashable
    fresh: bool
    """Is it new memory, which nothing else has a name for?"""
    differences: tuple[Difference, ...] = ()
    narrow: str = ""
    """Where a double stands for it: the text in which it has the default dtype, or the floating dtype of its tensor."""

    def captured(self) -> str:
        """The text of a tensor that stays what the number was, whatever is written into its source later."""
        return self.text if self.fresh else f"{self.text}.clone()"

    def widened(self) -> Taken | None:
        """The same in the dtype in which it counts as a Python number does; None where that is not known."""
        cast = wider(self.dtype)
        return None if cast is None else Taken(self.text + cast[0], cast[1], self.fresh or _casts(self, cast[1]))

    def compared(self, number: object) -> tuple[str, tuple[Difference, ...]]:
        """The text in which it compares with a number as Python's does, and what differs then; None is a number that is
        not known.
        """
        if isinstance(number, (int, float)) and exact_in(number, self.dtype):
            return self.text, ()
        exact = isinstance(number, (int, float)) and exact_in(number, "float64")
        whole = dtype_kind(self.dtype) in (None, "int") and not exact
        return f"{self.text}.double()", (BEYOND_DOUBLE,) if whole else ()

    def narrowed(self) -> Taken | None:
        """Whole numbers in the default dtype, and a floating tensor in its own, if a double stands for them."""
        return Taken(self.narrow, "float", True, (*self.differences, PRECISION)) if self.narrow else None


def _casts(taken: Taken, dtype: str) -> bool:
    """Does a cast make a new tensor for certain?"""
    return taken.dtype not in (None, "int", "float", dtype)


def kept(facts: FunctionFacts, node: ast.expr, imports: Imports | None = None) -> Kept | None:
    """How to write an expression without taking numbers out of tensors; None where nothing is taken, or no way
    is known. With `imports`, functions of numbers inside are written as torch's.
    """
    result = Kept()
    counterparts: dict[ast.expr, Counterpart] = {}
    for inner in outermost(facts, node):
        found = taken(facts, inner, detach=False)
        if found is None:
            return None
        try:
            text, uses = _compared(facts, inner, found, node, rewrites=imports is not None)
        except NeedsPythonNumberError:
            return None
        if uses.also or uses.hands_over:  # what keeps the number must get a tensor of its own, without gradients
            return None
        result.replace[inner] = text
        result.differences += [*found.differences, *uses.differences]
        joined(counterparts, uses.counterparts)
    if not result.replace:
        return None
    if imports is not None:
        result.replace = written(facts, imports, result.replace, counterparts)
    result.boolean = isinstance(node, ast.Compare) or _is_bool(facts, node)
    return result


def _compared(
    facts: FunctionFacts, node: ast.expr, found: Taken, whole: ast.expr, *, rewrites: bool
) -> tuple[str, ScalarUses]:
    """The text of a number inside a test, as wide as Python's where that counts, and its uses."""
    uses = ScalarUses(facts, found.dtype, whole, rewrites=rewrites)
    uses.follow(node)
    wide = found.widened() if uses.computes else None
    if uses.computes and wide is None and _is_compared_with_a_literal(facts, node):
        wide = Taken(f"{found.text}.double()", "float64", found.fresh)
    if wide is None:
        uses.exactly()
        return found.text, uses
    wider_uses = ScalarUses(facts, wide.dtype, whole, rewrites=rewrites)
    wider_uses.follow(node)
    wider_uses.exactly()
    wider_uses.differences += [d for d in uses.differences if d == UNORDERED]  # a cast drops what has no order
    return wide.text, wider_uses


def written(
    facts: FunctionFacts, imports: Imports, texts: Mapping[ast.expr, str], counterparts: Mapping[ast.expr, Counterpart]
) -> dict[ast.expr, str]:
    """The texts of the outermost expressions that change where numbers become tensors: `texts` for those that are taken
    out of tensors, and the calls around them that are written as torch's.
    """
    code = Code(facts.source)

    def inside(node: ast.AST) -> dict[ast.expr, str]:
        found: dict[ast.expr, str] = {}
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr) and (child in texts or child in counterparts):
                found[child] = of(child)
            else:
                found |= inside(child)
        return found

    def filled(form: Counterpart, changed: dict[ast.expr, str]) -> str:
        text = re.sub(r"\btorch\.\w+", lambda name: imports.name(name[0]), form.formula)
        return text.format_map({n: bracketed(changed.get(p) or code.operand(p, changed)) for n, p in form.parts})

    def of(node: ast.expr) -> str:
        if node in texts and node not in counterparts:
            return texts[node]
        form = counterparts[node]
        if form.said:
            return said.text(facts, imports, form)
        changed = inside(node)
        if form.formula:
            return filled(form, changed)
        argument = form.argument
        if form.function:
            name = imports.name(f"torch.{form.function}")
            text = f"{name}({changed.get(argument) or code.argument(argument, changed)}{form.options})"
        else:
            own = texts.get(argument) if argument is node else None
            text = bracketed(own or changed.get(argument) or code.operand(argument, changed))
        for keyword, bound in form.bounds:
            text += f".clamp({keyword}={changed.get(bound) or code.argument(bound, changed)})"
        if form.filled is not None:
            text += f".fill_({changed.get(form.filled) or code.argument(form.filled, changed)})"
        if form.cast is not None:
            text += f".to({code.argument(form.cast)})"
        text = bracketed(text + form.suffix)
        if form.like is None:
            return text
        tensor = code.operand(form.like)
        asked = f"{tensor}.is_floating_point()" + ("" if form.real else f" or {tensor}.is_complex()")
        default = f" if {asked} else {imports.name('torch.get_default_dtype')}()"
        return f"{text}.to({tensor}.dtype{'' if form.floating else default})"

    changing = {n for root in (*texts, *counterparts) for n in nodes_in(root) if n is not root}
    return {node: of(node) for node in (*texts, *counterparts) if node not in changing}


def _is_compared_with_a_literal(facts: FunctionFacts, node: ast.expr) -> bool:
    """A number of any dtype compares with a literal as a float64 does, as numbers keep their order in it."""
    match facts.parent(node):
        case ast.Compare(left=left, comparators=[right]):
            number = constant(right if left is node else left)
            return isinstance(number, (int, float)) and exact_in(number, "float64")
    return False


def tensors_in(facts: FunctionFacts, node: ast.expr, *, detach: bool = False) -> Kept | None:
    """A tensor for every number that an expression takes out of one; None where it takes none, or none is known."""
    result = Kept()
    for inner in outermost(facts, node):
        text = tensor_text(facts, inner, result, detach=detach)
        if text is None:
            return None
        result.replace[inner] = text
    return result if result.replace else None


def outermost(facts: FunctionFacts, node: ast.expr) -> list[ast.expr]:
    """The conversions in an expression that are not inside another one."""
    if conversion(facts, node) is not None:
        return [node]
    found: list[ast.expr] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            found += outermost(facts, child)
    return found


def conversion(facts: FunctionFacts, node: ast.expr) -> tuple[str, ast.expr] | None:
    """("item" | "int" | "float" | "bool", operand) where `node` takes a Python number out of its operand."""
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not node.args:
        return ("item", node.func.value) if _with_item(facts, node.func.value) is not None else None
    name = qualified(facts, node.func) or ""
    if name in ("builtins.int", "builtins.float", "builtins.bool") and len(node.args) == 1:
        inner = node.args[0]
        if isinstance(facts.value(inner), (Tensor, Scalar)):
            return name.rpartition(".")[2], inner
    return None


def _with_item(facts: FunctionFacts, node: ast.expr) -> Tensor | None:
    """The tensor whose `item` is called: a Python number, which it may be as well for all that is known, has none."""
    found = [o for o in options(facts.value(node)) if not (isinstance(o, Static) and o.type in NUMBER_TYPES)]
    only = found[0] if len(found) == 1 else None
    return only if isinstance(only, Tensor) else None


def tensor_text(facts: FunctionFacts, node: ast.expr, result: Kept, *, detach: bool) -> str | None:
    """A 0-d tensor with the value of a conversion, as text for a place next to an operator."""
    found = taken(facts, node, detach=detach)
    if found is None:
        return None
    result.differences += found.differences
    return found.text


def taken(facts: FunctionFacts, node: ast.expr, *, detach: bool) -> Taken | None:
    """The 0-d tensor of a conversion; None where what it converts is not known to be a tensor."""
    found = conversion(facts, node)
    if found is None:
        return None
    how, operand = found
    value = facts.value(operand) if how != "item" else _with_item(facts, operand)
    if isinstance(value, Scalar):
        inner = taken(facts, operand, detach=detach)
        return None if inner is None else _converted(inner, how)
    if not isinstance(value, Tensor):
        return None
    if value.ndarray:
        return _of_array(facts, operand, value, how)
    text = Code(facts.source).operand(operand)
    differences: list[Difference] = []
    if value.rank != 0:
        text = f"{text}.reshape(())"
        if how in ("int", "float"):
            differences.append(Difference("exception", f"`{how}` of several elements raises another exception"))
    exact = dtype_kind(value.dtype) in ("int", "bool")
    if detach and not exact:
        text = f"{text}.detach()"
    fresh = shares(facts, operand).fresh
    unrecorded = fresh and not recorded(facts, facts.statement)
    if how in ("int", "float") and not (exact or unrecorded) and carries(facts, operand):
        differences.append(Difference("output", f"`{how}` of a tensor that asks for gradients no longer warns"))
    return _converted(Taken(text, value.dtype, fresh, tuple(differences)), how)


def _of_array(facts: FunctionFacts, operand: ast.expr, value: Tensor, how: str) -> Taken | None:
    """A NumPy number, or an array of one element, which has no gradients: TorchDynamo traces it as a tensor. None where
    an import of torch would be needed.
    """
    if any(isinstance(n, ast.Call) and is_draw(facts, n) for n in nodes_in(operand)):  # of a generator not torch's own
        return None
    imports = Imports(facts)
    text = f"{imports.name('torch.as_tensor')}({Code(facts.source).argument(operand)})"
    if imports.edits():
        return None
    differences: list[Difference] = []
    if value.rank != 0:
        text += ".reshape(())"
        differences.append(Difference("exception", f"`{how}` of several elements raises another exception"))
        differences.append(Difference("output", f"`{how}` of an array with dimensions no longer warns"))
    # what eager NumPy promotes to is not asked: a double holds any number of its, and an int64 any whole one
    name = operand.func.attr if isinstance(operand, ast.Call) and isinstance(operand.func, ast.Attribute) else None
    fresh = value.rank == 0 and name in REDUCTIONS
    found = _converted(Taken(text, dtype_kind(value.dtype), fresh, tuple(differences)), how)
    floating = dtype_kind(found.dtype) in (None, "float")
    return found._replace(narrow=f"{text}.float()") if floating else found  # most arrays hold doubles


def _converted(inner: Taken, how: str) -> Taken:
    """What `int`, `float` or `bool` make of a number, as a tensor."""
    text, dtype, fresh, differences, _ = inner
    kind = dtype_kind(dtype)
    if how == "int" and kind != "int":
        if kind != "bool":
            differences += (
                Difference("exception", "`int` of NaN or infinity no longer raises"),
                Difference("overflow", "`int` of a number beyond 64 bits wraps around"),
            )
        return Taken(f"{text}.long()", "int64", fresh or kind is not None, differences)
    if how == "bool" and kind != "bool":
        return Taken(f"({text} != 0)", "bool", True, differences)
    if how == "float" and kind in (None, "complex"):
        differences += (Difference("exception", "`float` of a complex number no longer raises"),)
    if how == "float" and kind != "float":
        return Taken(f"{text}.double()", "float64", fresh or kind is not None, differences, narrow=f"({text} * 1.0)")
    return inner


def _is_bool(facts: FunctionFacts, node: ast.expr) -> bool:
    found = conversion(facts, node)
    if found is None:
        return False
    value = facts.value(found[1])
    return found[0] == "bool" or (found[0] == "item" and isinstance(value, Tensor) and value.dtype == "bool")
