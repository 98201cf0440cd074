"""Select between two tensors that a module registers as its buffer, one on each side of a branch.

Before:
    if length > self.limit:
        if not hasattr(self, "long"):
            self.long, _ = self.make(self.limit + 1)
        self.register_buffer("scale", self.long, persistent=False)
    else:
        self.short = self.short.to(device)
        self.register_buffer("scale", self.short, persistent=False)

After:
    if torch.compiler.is_compiling():
        if not hasattr(self, "long"):
            self.long, _ = self.make(self.limit + 1)
        self.short = self.short.to(device)
        self.register_buffer("scale", torch.where(length > self.limit, self.long, self.short), persistent=False)
    elif length > self.limit:
        ...

Legal when:
    both sides end with the same registration, of an attribute; what stands in front of it only prepares
    attributes so that doing it always, and twice, gives the same: an attribute that is missing is filled, one is
    moved to a device. The test is one element of a tensor.

Differs in:
    while compiled, both sides are prepared, the buffer is a tensor of its own and no longer the attribute, and both
    tensors are taken to have one shape.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import reads
from graphmend.transforms.code.positions import is_elif, replaceable
from graphmend.transforms.code.text_edits import HOLE, replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.tensor_predicates import NotATensorError, Predicates
from graphmend.transforms.if_conversion.value_tests import split
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "select_buffer"


class Side(NamedTuple):
    """What one side of the branch does."""

    prepared: list[ast.stmt]
    value: ast.expr
    registration: ast.Call


@asks("effects", "totality", "memory", "numbers", "gradients", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = facts.statement
    if not isinstance(statement, ast.If):
        return None
    sides = [_side(block) for block in (statement.body, statement.orelse)]
    if sides[0] is None or sides[1] is None:
        return None
    taken, other = sides[0], sides[1]
    if not _same_buffer(taken, other):
        return refuse(NAME, "the two sides register different buffers")
    for side in (taken, other):
        if not all(_fills(facts, s) or _moves(s) for s in side.prepared):
            return refuse(NAME, "a side does more than prepare the attribute that it registers")
    static, tests = split(facts, statement.test)
    if static or not tests:
        return refuse(NAME, "the test is not known to look at a tensor only")
    if is_elif(facts.source, statement) or not replaceable(facts, [statement]):
        return refuse(NAME, "the statement shares its line with another one, or is an `elif`")
    imports = Imports(facts)
    predicates = Predicates(facts, imports)
    try:
        test = predicates.all_of(tests)
    except NotATensorError as error:
        return refuse(NAME, str(error))
    code = Code(facts.source)
    selected = f"{imports.name('torch.where')}({test}, {code.argument(taken.value)}, {code.argument(other.value)})"
    last = code.line(taken.registration, {taken.value: selected})
    kept: list[list[ast.stmt]] = [statement.body, statement.orelse]
    kept += [side.prepared for side in (taken, other) if side.prepared]
    holes = "".join(f"    {HOLE.format(i)}\n" for i in range(2, len(kept)))
    new = (
        f"if {imports.name('torch.compiler.is_compiling')}():\n{holes}    {last}\n"
        f"elif {code.line(statement.test)}:\n    {HOLE.format(0)}\nelse:\n    {HOLE.format(1)}\n"
    )

    def make() -> list[TextEdit]:
        return [*imports.edits(), replace_statements(facts.source, [statement], new, *kept)]

    differences = [
        *([Difference("state", "while compiled both sides are prepared")] if kept[2:] else []),
        Difference("aliasing", "while compiled the buffer is a tensor of its own"),
        Difference("exception", "the two tensors are taken to have one shape"),
        *predicates.differences,
    ]
    return offer(NAME, "select the buffer with torch.where while compiled", facts, make, differences)


def _side(block: list[ast.stmt]) -> Side | None:
    """A block that ends with `x.register_buffer("name", x.attribute, ...)`."""
    match block:
        case [
            *before,
            ast.Expr(ast.Call(ast.Attribute(attr="register_buffer"), [_, ast.Attribute() as value]) as call),
        ]:
            return Side(before, value, call)
    return None


def _same_buffer(one: Side, other: Side) -> bool:
    def parts(side: Side) -> list[str]:
        call = side.registration
        return [ast.dump(part) for part in (call.func, call.args[0], *call.keywords)]

    return parts(one) == parts(other)


def _fills(facts: FunctionFacts, statement: ast.stmt) -> bool:
    """`if not hasattr(x, "a"): x.a = f(...)`; further results go to names that nobody reads."""
    match statement:
        case ast.If(
            test=ast.UnaryOp(ast.Not(), ast.Call(ast.Name("hasattr"), [owner, ast.Constant(name)])),
            body=[ast.Assign(targets=[target])],
            orelse=[],
        ):
            targets = target.elts if isinstance(target, ast.Tuple) else [target]
            names = {t.id for t in targets if isinstance(t, ast.Name)}
            attributes = [t for t in targets if isinstance(t, ast.Attribute)]
            return (
                len(names) + len(attributes) == len(targets)
                and [(ast.dump(a.value), a.attr) for a in attributes] == [(ast.dump(owner), name)]
                and not any(n in names for s in facts.function.body for n in reads(s))
            )
    return False


def _moves(statement: ast.stmt) -> bool:
    """`x.a = x.a.to(...)`."""
    match statement:
        case ast.Assign([ast.Attribute() as target], ast.Call(ast.Attribute(ast.Attribute() as source, "to"))):
            return (ast.dump(target.value), target.attr) == (ast.dump(source.value), source.attr)
    return False
