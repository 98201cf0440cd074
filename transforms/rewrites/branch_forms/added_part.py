"""Add what a branch adds, or zero, to what began as a number.

Before:
    total = 0
    for loss in losses:
        if torch.isfinite(loss):
            total = total + loss

After:
    total = 0
    for loss in losses:
        total = total + (loss if torch.isfinite(loss) else torch.zeros_like(loss))

Legal when:
    a branch on a tensor without `else` does nothing but add a tensor to a local name, or take one off it, which may be
    a Python number before. What is added only computes. With `+=` and `-=`, which change a tensor in place, the name is
    a number or a tensor that was made in the function: no parameter or attribute, which may be a leaf.

Differs in:
    what is added is always computed, and may raise; where it does not count, the name is a tensor of its shape and
    dtype, and no number. What was a tensor is broadcast and promoted with what does not count, and an addition of
    shapes that do not fit raises. It is written for the mends of conditional expressions, and stays where they remove
    the break.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Static, Tensor, options
from graphmend.transforms.code.bindings import bindings
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import fresh, locals_of, parameters
from graphmend.transforms.code.positions import is_elif, replaceable
from graphmend.transforms.code.qualified_names import NUMBER_TYPES, number_type
from graphmend.transforms.code.text_edits import replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.value_tests import depends, effects_of_test
from graphmend.transforms.legality.dtypes import kinds
from graphmend.transforms.legality.gradients.sides import gradient_differences
from graphmend.transforms.legality.memory import shares
from graphmend.transforms.legality.speculation import speculate
from graphmend.transforms.rewrites.answers import asks, prepare, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "added_part"


@asks("effects", "totality", "memory", "dtypes", "gradients", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    branch = facts.statement
    if not isinstance(branch, ast.If) or branch.orelse or len(branch.body) != 1 or not depends(facts, branch.test):
        return None
    code, statement = Code(facts.source), branch.body[0]
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if terms := _added(value, name):
            head = f"{name} = {name} {terms[0][0]}"
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add() | ast.Sub() as op, value=value):
            terms = [(_SIGNS[type(op)], value)]
            head = f"{name} {terms[0][0]}="
        case _:
            return None
    parts = [part for _, part in terms]
    before = facts.before(branch).get(name)
    numbers = [isinstance(o, Static) and o.type in NUMBER_TYPES for o in options(before)] if before is not None else []
    if not any(numbers) or not any(isinstance(facts.value(part), Tensor) for part in parts):
        return None
    if len(terms) > 1 and not all(number_type(facts, p) or kinds(facts, p) <= {"float", "complex"} for p in parts):
        return refuse(NAME, "whole numbers that are added up first may wrap around")
    in_place = isinstance(statement, ast.AugAssign)
    if in_place and not all(numbers) and not _made_here(facts, name):
        return refuse(NAME, f"`{name}` may be a tensor that was not made here, which would always be changed in place")
    if not replaceable(facts, [branch]) or is_elif(facts.source, branch):
        return refuse(NAME, "the statement shares its line with another one")
    if blockers := effects_of_test(facts, branch.test):  # the name is read before the test is asked
        return refuse(NAME, blockers[0])
    found = speculate(facts, *parts)
    if found.blockers:
        return refuse(NAME, found.blockers[0])
    differences = [
        *found.differences,
        *gradient_differences(facts, branch, [parts]),
        Difference("type", f"where nothing is added to it, `{name}` is a tensor of zeros and no number"),
        Difference("dtype", f"`{name}` is promoted with what is not added to it, too"),
        Difference("shape", f"`{name}` is broadcast with what is not added to it, too"),
        Difference("exception", f"zeros that do not fit `{name}` raise where nothing was added to it"),
    ]
    if not in_place and not all(numbers):
        differences.append(Difference("aliasing", f"where nothing is added to it, `{name}` is a copy of what it was"))
    if len(terms) > 1:
        says = "what is added is added up first"
        differences += [Difference("rounding", says), Difference("overflow", says), Difference("nan", says)]
    plain = len(terms) == 1 and isinstance(parts[0], ast.Name)
    given = code.text(parts[0]) if plain else fresh(facts, "part")
    opposite = {"+": "-", "-": "+"} if terms[0][0] == "-" else {"+": "+", "-": "-"}
    others = "".join(f" {opposite[sign]} {code.operand(part)}" for sign, part in terms[1:])

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        zeros = f"{imports.name('torch.zeros_like')}({given})"
        text = f"{head} ({given} if {code.line(branch.test)} else {zeros})\n"
        alone = code.line(parts[0]) if len(terms) == 1 else code.operand(parts[0])
        first = "" if plain else f"{given} = {alone}{others}\n"
        return [*imports.edits(), replace_statements(facts.source, [branch], first + text)]

    return prepare(NAME, "add the part that counts, or zeros", facts, make, differences)


_SIGNS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-"}


def _added(value: ast.expr, name: str) -> list[tuple[str, ast.expr]]:
    """What is added to a name and taken off it, with the signs: of `name + a - b`."""
    found: list[tuple[str, ast.expr]] = []
    while isinstance(value, ast.BinOp) and type(value.op) in _SIGNS:
        found.append((_SIGNS[type(value.op)], value.right))
        value = value.left
    return found[::-1] if isinstance(value, ast.Name) and value.id == name else []


def _made_here(facts: FunctionFacts, name: str) -> bool:
    """Is all that a local name is bound to new, or a number? What `+=` makes of a number is new as well."""
    local = name in locals_of(facts.function) - {*parameters(facts.function)}
    return local and all(
        bound.value is not None and not bound.part and shares(facts, bound.value).fresh
        for bound in bindings(facts).get(name, ())
    )
