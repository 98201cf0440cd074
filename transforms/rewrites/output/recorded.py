"""Keep a number that a tensor decides in a dictionary of the module from inside the graph.

Before:
    METRICS["norm"] = y.norm().item()

After:
    emit(METRICS.__setitem__, "norm", later(y.norm().item))

Legal when:
    what is stored to is a dictionary that the module makes, which neither the function nor what it may call in the file
    reads or changes otherwise, under keys that are known while tracing; what is stored is something that `emit`
    carries, or that `later` can put off. All stores of the function go into the graph.

Differs in:
    it happens when the graph runs: code that is traced along and reads the dictionary sees the old state. A tensor that
    is kept is a copy.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Static
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import locals_of
from graphmend.transforms.code.positions import is_elif, replaceable
from graphmend.transforms.code.qualified_names import called
from graphmend.transforms.code.text_edits import replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.context import cached_around, guarding_try
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.legality.names.replaced import is_lasting
from graphmend.transforms.legality.numbers.put_off import NotCarriedError, argument, at_once
from graphmend.transforms.legality.outside.kept_records import NoticedError, check_unnoticed, kept_copies
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "recorded"
_DICTIONARIES = ("builtins.dict", "collections.OrderedDict", "collections.defaultdict")
_LATER = Difference(
    "output-order", "it happens when the graph runs: code of the region that reads what it changes sees the old state"
)


@asks("effects", "memory", "order", "context", "names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    record = _record(facts)
    if record is None:
        return None
    name = record.id
    mentions = [n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n.id == name]
    stores = [_store(facts, n) for n in mentions]
    if None in stores:
        return refuse(NAME, f"`{name}` is read or changed elsewhere in the function, too")
    imports, code = Imports(facts), Code(facts.source)
    emit = imports.name("graphmend.runtime.emit", "graphmend.runtime")
    differences = [_LATER]
    written: dict[ast.Assign, tuple[ast.expr, ast.expr]] = {}
    for store in filter(None, stores):  # what tracing itself stored would be written over the others
        target = store.targets[0]
        assert isinstance(target, ast.Subscript)
        written[store] = target.slice, store.value
        if not isinstance(facts.value(target.slice), Static):
            return refuse(NAME, f"`{ast.unparse(target.slice)}` is not known while tracing")
        if guarding_try(facts, store) is not None:
            return refuse(NAME, "what fails in a graph does not reach the handler of the `try` around it")
        if not replaceable(facts, [store]) or is_elif(facts.source, store):
            return refuse(NAME, "the statement shares its line with another one")
        if found := effects(facts, target.slice, *at_once(facts, store.value)):
            return refuse(NAME, found[0])
        try:
            argument(facts, None, store.value, {})
            differences += kept_copies(facts, store.value)
        except NotCarriedError as error:
            return refuse(NAME, f"`{error}` breaks the graph before it is stored")
        except NoticedError as error:
            return refuse(NAME, str(error))
    try:
        check_unnoticed(facts, record, *written)
    except NoticedError as error:
        return refuse(NAME, str(error))
    if (cached := cached_around(facts)) is not None:
        return refuse(NAME, f"`{cached}` keeps its results, which Dynamo does not know")

    def make() -> list[TextEdit]:
        edits = []
        for store, (key, value) in written.items():
            text = f"{emit}({name}.__setitem__, {code.argument(key)}, {argument(facts, imports, value, {})})\n"
            edits.append(replace_statements(facts.source, [store], text))
        return [*imports.edits(), *edits]

    return offer(NAME, "keep the number from inside the graph (graphmend.runtime)", facts, make, differences)


def _record(facts: FunctionFacts) -> ast.Name | None:
    """The dictionary of the module that the statement of the finding stores to."""
    tree = facts.source.tree
    match facts.statement:
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name) as record)]) if isinstance(tree, ast.Module):
            if name in locals_of(facts.function) or not is_lasting(name, tree):
                return None
            made = next(
                (s.value for s in tree.body if isinstance(s, (ast.Assign, ast.AnnAssign)) and _names(s, name)), None
            )
            plain = made is not None and called(facts, made, *_DICTIONARIES) is not None
            return record if plain or isinstance(made, ast.Dict) else None
    return None


def _names(statement: ast.Assign | ast.AnnAssign, name: str) -> bool:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return any(isinstance(t, ast.Name) and t.id == name for t in targets)


def _store(facts: FunctionFacts, node: ast.Name) -> ast.Assign | None:
    """The statement that stores one value under a key of a dictionary, and does no more."""
    parent = facts.parent(node)
    above = facts.parent(parent) if parent is not None else None
    stores = isinstance(parent, ast.Subscript) and parent.value is node
    return above if stores and isinstance(above, ast.Assign) and above.targets == [parent] else None
