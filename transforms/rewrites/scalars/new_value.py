"""Bind a number that an object holds anew instead of adding to it with `+=`.

Before:
    self.total += loss.item() * count

After:
    self.total = self.total + loss.item() * count

Legal when:
    what is added to is an attribute of a name, or an entry of a dict with a name under a written key, that holds a
    number. (`+=` evaluates a longer path once, in front of the value, which may bind another object there.)

Differs in:
    nothing: a number is never changed in place. It is written for the mends that keep a tensor in its place, which
    would be, and stays where they remove the break.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Const, Scalar, Static, Value, options
from graphmend.transforms.code.expression_text import Code, shortened
from graphmend.transforms.code.liveness import locals_of, writes
from graphmend.transforms.code.qualified_names import NUMBER_TYPES, constant
from graphmend.transforms.fix import Fix, Refusal
from graphmend.transforms.if_conversion.value_tests import effects_of_test
from graphmend.transforms.rewrites.answers import asks, refuse
from graphmend.transforms.rewrites.respelled import spell

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "new_value"


@asks("effects", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    match facts.statement:
        case ast.AugAssign(target=ast.Attribute() | ast.Subscript() as target, value=value) as statement:
            pass
        case _:
            return None
    if not _is_path(target) or not all(map(_is_number, options(facts.value(target)))):
        return None
    name, does = ast.unparse(target.value), effects_of_test(facts, value)
    if name in writes(value) or (does and name not in locals_of(facts.function)):
        return refuse(NAME, f"`{name}` may be another object once `{shortened(value)}` is computed")
    code = Code(facts.source)
    place = code.text(target)
    sign = code.text(statement)[len(place) :].strip().partition("=")[0]
    text = f"{place} = {place} {sign} {code.operand(value)}\n"
    return spell(NAME, "bind the number anew", facts, statement, text)


def _is_path(node: ast.expr) -> bool:
    """Is a place one that is read twice as it is read once: an attribute or a written key of a name?"""
    keyed = isinstance(node, ast.Subscript) and constant(node.slice) is not None
    return (isinstance(node, ast.Attribute) or keyed) and isinstance(node.value, ast.Name)  # type: ignore[attr-defined]


def _is_number(value: Value) -> bool:
    if isinstance(value, Const):
        return type(value.value) in (int, float)
    return isinstance(value, Scalar) or (isinstance(value, Static) and value.type in NUMBER_TYPES)
