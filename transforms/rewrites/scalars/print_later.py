"""Take a number out of its tensor where it is printed, logged or warned of, instead of where it gets a name.

Before:
    loss = x.mean().item()
    print("loss", loss)

After:
    loss = x.mean().detach()
    print("loss", loss.item())

Legal when:
    the number gets a name in a plain assignment, and every use of the name is part of an output call. The tensor is
    copied unless it is new: a number does not follow what is written into its tensor later.

Differs in:
    nothing: the same number is written. It is written for the mends of output, and stays where they remove the break.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.transforms.code.bindings import bindings
from graphmend.transforms.code.liveness import parameters
from graphmend.transforms.code.qualified_names import qualified
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.kept_scalars import conversion, taken
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "print_later"


class _Said(NamedTuple):
    """A number that gets a name, and the reads of that name."""

    number: ast.expr
    uses: list[ast.expr]


@asks("memory", "gradients")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    match facts.statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if facts.node in [*ast.walk(value)]:
            pass
        case _:
            return None
    found: dict[str, _Said] = {}
    waiting = [name]
    while waiting:  # what is written along with it, so that one mend serves the whole line
        if (next_one := waiting.pop()) in found or (said := _said(facts, next_one)) is None:
            continue
        found[next_one] = said
        waiting += [n.id for use in said.uses for n in ast.walk(_output(facts, use) or use) if isinstance(n, ast.Name)]
    if name not in found:
        return None
    edits: list[TextEdit] = []
    differences: list[Difference] = []
    for each, said in found.items():
        kept = taken(facts, said.number, detach=True)
        if kept is None:
            return refuse(NAME, f"what `{each}` is taken out of is not known to be a tensor")
        edits += [replace_expression(facts.source, use, f"{each}.item()") for use in said.uses]
        edits.append(replace_expression(facts.source, said.number, kept.captured()))
        differences += kept.differences
    edits.sort(key=lambda edit: edit.span)
    return offer(NAME, "take the number out where it is written", facts, lambda: edits, differences)


def _said(facts: FunctionFacts, name: str) -> _Said | None:
    """A name that is bound once, to a number out of a tensor, and only read by output calls."""
    nodes = [n for n in ast.walk(facts.function) if isinstance(n, ast.Name) and n.id == name]
    uses: list[ast.expr] = [n for n in nodes if isinstance(n.ctx, ast.Load)]
    bound = bindings(facts).get(name, [])
    if len(bound) != 1 or len(nodes) != len(uses) + 1 or name in parameters(facts.function) or bound[0].part:
        return None
    value = bound[0].value
    if value is None or conversion(facts, value) is None or not uses or not all(_output(facts, use) for use in uses):
        return None
    statement = facts.parent(value)
    return _Said(value, uses) if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None


def _output(facts: FunctionFacts, node: ast.expr) -> ast.stmt | None:
    """The call of print, logging or warnings that an expression is part of, whose result is not used."""
    for above in facts.ancestors(node):
        if isinstance(above, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            return None
        if isinstance(above, ast.stmt):
            call = above.value if isinstance(above, ast.Expr) else None
            name = (qualified(facts, call.func) or "") if isinstance(call, ast.Call) else ""
            return above if name in ("builtins.print", "warnings.warn") or name.startswith("logging.") else None
    return None
