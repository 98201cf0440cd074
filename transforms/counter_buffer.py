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
    the module's own `__init__` gives the attribute its number, and nothing else in the file stores to it.

Differs in:
    the attribute is a 0-d tensor, which moves with the module; who reads it as a number has to ask for it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.values import Tensor, dtype_kind
from graphmend.transforms.code import Code
from graphmend.transforms.edits import swap
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.imports import Imports
from graphmend.transforms.names import constant
from graphmend.transforms.offer import offer, refuse
from graphmend.transforms.scalars import Kept, conversion, tensor_text

if TYPE_CHECKING:
    from graphmend.analysis.facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "counter_buffer"


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
    owner = _class(facts)
    first = _first_value(owner, name) if owner is not None else None
    if owner is None or first is None:
        return refuse(NAME, f"`self.{name}` is not known to get its first value in the module's own `__init__`")
    if _stores(facts, name) != 2:
        return refuse(NAME, f"`{name}` is stored to elsewhere too")
    number = constant(first.value)
    kept = Kept()
    text = tensor_text(facts, value, kept, detach=facts.gradients(facts.statement) != "off")
    found = conversion(facts, value)
    if text is None or found is None or not isinstance(number, (int, float)):
        return refuse(NAME, f"`{ast.unparse(value)}` is not known to come from a tensor")
    of = facts.value(found[1])
    kind = dtype_kind(of.dtype) if isinstance(of, Tensor) else None
    whole = isinstance(number, int) and (found[0] == "int" or kind in ("int", "bool"))
    imports = Imports(facts)
    dtype = imports.name("torch.int64" if whole else "torch.float64")
    zero = imports.name("torch.zeros") + f"((), dtype={dtype})"
    if number != 0:
        zero = f"{imports.name('torch.tensor')}({Code(facts.source).text(first.value)}, dtype={dtype})"
    span = facts.source.span(first)

    def make() -> list[TextEdit]:
        registered = f'self.register_buffer("{name}", {zero}, persistent=False)'
        return [*imports.edits(), TextEdit(span, registered), swap(facts.source, value, text)]

    differences = [f"`self.{name}` is a 0-d tensor instead of a Python number", *kept.differences]
    return offer(NAME, "count in a buffer of the module", facts, make, differences)


def _class(facts: FunctionFacts) -> ast.ClassDef | None:
    """The class that the function is a method of."""
    tree = facts.source.tree
    classes = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)] if tree is not None else []
    return next((c for c in classes if facts.function in c.body), None)


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
    nodes = ast.walk(tree) if tree is not None else ()
    return sum(isinstance(n, ast.Attribute) and n.attr == name and not isinstance(n.ctx, ast.Load) for n in nodes)
