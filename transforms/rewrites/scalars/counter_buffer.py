"""Count in a buffer of the module instead of in a Python number.

Before:
    def __init__(self):
        self.seen = 0

    def forward(self, x):
        self.seen += x.sum().item()

After:
    def __init__(self):
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64), persistent=False)

    def forward(self, x):
        self.seen += x.sum()

Legal when:
    the class is a `torch.nn.Module`, whose own `__init__` gives the attribute its number; nothing else in the file
    stores to it, goes through all buffers or attributes, or copies modules; the class hands it on to no other name.

Differs in:
    the attribute is a 0-d tensor, which moves with the module; who reads it as a number has to ask for it, and
    sees it go on counting. A cast of the module casts it, and whole numbers wrap around.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.facts.function_facts import parents_in
from graphmend.analysis.lattice.values import Tensor, dtype_kind
from graphmend.analysis.resolution.classes import MODULE_ROOTS
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.qualified_names import constant
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.kept_scalars import Kept, conversion, tensor_text
from graphmend.transforms.legality.gradients.sides import recorded
from graphmend.transforms.legality.outside.buffers import meets_buffer
from graphmend.transforms.legality.scalar_uses import NeedsPythonNumberError, ScalarUses
from graphmend.transforms.questions import answers
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "counter_buffer"


@asks("memory", "numbers", "gradients", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    match facts.statement:
        case ast.AugAssign(
            target=ast.Attribute(value=ast.Name(id="self"), attr=name),
            op=ast.Add() | ast.Sub(),
            value=ast.expr() as value,
        ) if value is facts.node or conversion(facts, value) is not None:
            pass
        case _:
            return None
    owner = facts.owner
    first = _first_value(owner, name) if owner is not None else None
    if owner is None or first is None:
        return refuse(NAME, f"`self.{name}` is not known to get its first value in the module's own `__init__`")
    if not _is_module(facts, owner):
        return refuse(NAME, f"`{owner.name}` is not known to be a `torch.nn.Module`")
    if _handed_on(owner, name):
        return refuse(NAME, f"`self.{name}` is handed on, and what has it would go on counting")
    if _stores(facts, name) != 2:
        return refuse(NAME, f"`{name}` is stored to elsewhere too")
    if (meets := meets_buffer(facts, name)) is not None:
        return refuse(NAME, meets)
    number = constant(first.value)
    kept = Kept()
    text = tensor_text(facts, value, kept, detach=recorded(facts, facts.statement))
    found = conversion(facts, value)
    if text is None or found is None or not isinstance(number, (int, float)):
        return refuse(NAME, f"`{ast.unparse(value)}` is not known to come from a tensor")
    of = facts.value(found[1])
    kind = dtype_kind(of.dtype) if isinstance(of, Tensor) else None
    whole = isinstance(number, int) and (found[0] == "int" or kind in ("int", "bool"))
    try:
        uses = _uses(facts, name, "int64" if whole else "float64")
    except NeedsPythonNumberError as error:
        return refuse(NAME, str(error))
    imports = Imports(facts)
    dtype = imports.name("torch.int64" if whole else "torch.float64")
    zero = imports.name("torch.zeros") + f"((), dtype={dtype})"
    if number != 0:
        zero = f"{imports.name('torch.tensor')}({Code(facts.source).text(first.value)}, dtype={dtype})"
    span = facts.source.span(first)

    def make() -> list[TextEdit]:
        registered = f'self.register_buffer("{name}", {zero}, persistent=False)'
        return [*imports.edits(), TextEdit(span, registered), replace_expression(facts.source, value, text)]

    differences = [
        Difference(
            "type", f"`self.{name}` is a 0-d tensor instead of a Python number, which goes on counting where it is kept"
        ),
        Difference("rounding", "whole numbers wrap around at 64 bits")
        if whole
        else Difference("rounding", "the module's `half()` and its like convert the number too"),
        Difference("state", f"`self.{name}` is a buffer, which `buffers()` lists and which moves with the module"),
        Difference("aliasing", f"who was handed `self.{name}` sees it count on"),
        *kept.differences,
        *uses.differences,
    ]
    return offer(NAME, "count in a buffer of the module", facts, make, differences)


def _uses(facts: FunctionFacts, name: str, dtype: str) -> ScalarUses:
    """What a 0-d tensor does otherwise where the file reads the number."""
    uses = ScalarUses(facts, dtype, converts=facts.statement)
    uses.place(f"self.{name}")
    return uses


def _is_module(facts: FunctionFacts, owner: ast.ClassDef, seen: frozenset[str] = frozenset()) -> bool:
    """Does a class derive from `torch.nn.Module`, by itself or by a class of the same file?"""
    tree = facts.source.tree
    classes = {n.name: n for n in tree.body if isinstance(n, ast.ClassDef)} if tree is not None else {}
    for base in owner.bases:
        if _dotted(facts, base) in MODULE_ROOTS:
            return True
        inner = classes.get(base.id) if isinstance(base, ast.Name) else None
        if inner is not None and inner.name not in seen and _is_module(facts, inner, seen | {inner.name}):
            return True
    return False


def _dotted(facts: FunctionFacts, node: ast.expr) -> str | None:
    if isinstance(node, ast.Attribute):
        above = _dotted(facts, node.value)
        return f"{above}.{node.attr}" if above else None
    return facts.names.get(node.id) if isinstance(node, ast.Name) else None


#: an attribute that stands in one of these gives its value to it, not itself to another name
_READERS = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.FormattedValue)


@answers("memory")
def _handed_on(owner: ast.ClassDef, name: str) -> bool:
    """Does the class give the attribute another name? `+=` of a tensor then changes what that name stands for."""
    parents = parents_in(owner)
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == name
        and isinstance(node.ctx, ast.Load)
        and not isinstance(parents.get(node), _READERS)
        for node in nodes_in(owner)
    )


def _first_value(owner: ast.ClassDef, name: str) -> ast.Assign | None:
    """`self.name = <number>` behind the call of the parent's `__init__`."""
    init = next((s for s in owner.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"), None)
    called = False
    for statement in init.body if init is not None else ():
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="__init__"))):
                called = True
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=attr)], value=value) if attr == name:
                return statement if called and isinstance(constant(value), (int, float)) else None
    return None


def _stores(facts: FunctionFacts, name: str) -> int:
    tree = facts.source.tree
    nodes = nodes_in(tree) if tree is not None else ()
    return sum(isinstance(n, ast.Attribute) and n.attr == name and not isinstance(n.ctx, ast.Load) for n in nodes)
