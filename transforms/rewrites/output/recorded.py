"""Keep a number that a tensor decides in a dictionary of the module from inside the graph.

Before:
    METRICS["norm"] = y.norm().item()

After:
    emit(METRICS.__setitem__, "norm", later(y.norm().item))

Legal when:
    what is stored to is a dictionary that the module makes, which the function does not read, under a key that is
    known while tracing; what is stored is something that `emit` carries, or that `later` can put off.

Differs in:
    it happens when the graph runs: code of the region that reads the dictionary by another name, or in another
    function, sees the old state.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Container, Static
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import locals_of
from graphmend.transforms.code.positions import is_elif, replaceable
from graphmend.transforms.code.text_edits import replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.context import cached_around, guarding_try
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.legality.names.replaced import is_lasting
from graphmend.transforms.legality.numbers.put_off import NotCarriedError, argument, at_once
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "recorded"
_LATER = Difference(
    "output-order", "it happens when the graph runs: code of the region that reads what it changes sees the old state"
)


@asks("effects", "context", "names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement, tree = facts.statement, facts.source.tree
    match statement:
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name) as record, slice=key)], value=value):
            pass
        case _:
            return None
    made = facts.value(record)
    if name in locals_of(facts.function) or not (isinstance(made, Container) and made.kind == "dict"):
        return None
    if not (isinstance(tree, ast.Module) and is_lasting(name, tree)):
        return refuse(NAME, f"`{name}` may be another one when the graph runs")
    reads = [n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n.id == name and n is not record]
    if any(not _is_stored_to(facts, n) for n in reads):
        return refuse(NAME, f"the function reads `{name}` itself")
    if not isinstance(facts.value(key), Static):
        return refuse(NAME, f"`{ast.unparse(key)}` is not known while tracing")
    if (cached := cached_around(facts)) is not None:
        return refuse(NAME, f"`{cached}` keeps its results, which Dynamo does not know")
    if guarding_try(facts, statement) is not None:
        return refuse(NAME, "what fails in a graph does not reach the handler of the `try` around it")
    if not replaceable(facts, [statement]) or is_elif(facts.source, statement):
        return refuse(NAME, "the statement shares its line with another one")
    if found := effects(facts, key, *at_once(facts, value)):
        return refuse(NAME, found[0])
    try:
        argument(facts, None, value, {})
    except NotCarriedError as error:
        return refuse(NAME, f"`{error}` breaks the graph before it is stored")
    imports, code = Imports(facts), Code(facts.source)
    emit = imports.name("graphmend.runtime.emit", "graphmend.runtime")

    def make() -> list[TextEdit]:
        given = argument(facts, imports, value, {})
        text = f"{emit}({name}.__setitem__, {code.argument(key)}, {given})\n"
        return [*imports.edits(), replace_statements(facts.source, [statement], text)]

    return offer(NAME, "keep the number from inside the graph (graphmend.runtime)", facts, make, [_LATER])


def _is_stored_to(facts: FunctionFacts, node: ast.Name) -> bool:
    parent = facts.parent(node)
    return isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Store)
