"""Look a key up with a default instead of handling its absence.

Before:
    try:
        weight = WEIGHTS[label.item()]
    except KeyError:
        weight = 1.0

After:
    weight = WEIGHTS.get(label.item(), 1.0)

Legal when:
    the `try` binds one name, or returns, and its only handler, for `KeyError`, gives the same name or the result a
    number that is written out; the table is a dict that is written in the file and only read, and the key is a number
    out of a tensor.

Differs in:
    nothing. It is written for the mends of tables, and stays where they remove the break.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Scalar
from graphmend.transforms.code.bindings import display_of
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.liveness import writes
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import constant, qualified
from graphmend.transforms.code.text_edits import replace_statements
from graphmend.transforms.fix import Fix, Refusal
from graphmend.transforms.if_conversion.value_tests import effects_of_test
from graphmend.transforms.legality.names.replaced import is_written_as_data
from graphmend.transforms.rewrites.answers import asks, prepare, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "with_default"


@asks("effects", ends_try=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    match [a for a in facts.ancestors(facts.node) if isinstance(a, ast.Try)]:
        case [
            ast.Try(
                body=[found],
                handlers=[ast.ExceptHandler(type=ast.Name() as of, name=None, body=[missing])],
                orelse=[],
                finalbody=[],
            ) as statement
        ]:
            pass
        case _:
            return None
    match found, missing:
        case ast.Return(value=ast.Subscript() as looked), ast.Return(value=ast.expr() as default):
            head = "return"
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript() as looked),
            ast.Assign(targets=[ast.Name(id=other)], value=default),
        ) if name == other:
            head = f"{name} ="
        case _:
            return None
    tree = facts.source.tree
    if qualified(facts, of) != "builtins.KeyError" or tree is None or of.id in writes(*tree.body):
        return None
    if isinstance(looked.value, ast.Name) and is_written_as_data(looked.value.id, tree):
        return refuse(NAME, f"`{looked.value.id}` may be another dict by now")
    if not isinstance(display_of(facts, looked.value), ast.Dict) or not isinstance(constant(default), (int, float)):
        return refuse(NAME, f"`{ast.unparse(looked.value)}` is no dict that is only read, or has no number by default")
    if not isinstance(facts.value(looked.slice), Scalar) or effects_of_test(facts, looked.slice):
        return refuse(NAME, f"`{ast.unparse(looked.slice)}` is no number out of a tensor")
    if not replaceable(facts, [statement]):
        return refuse(NAME, "the statement shares its line with another one")
    code = Code(facts.source)
    text = f"{head} {code.operand(looked.value)}.get({code.argument(looked.slice)}, {code.argument(default)})\n"
    edit = replace_statements(facts.source, [statement], text)
    return prepare(NAME, "look up with a default", facts, lambda: [edit])
