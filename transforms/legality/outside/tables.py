"""Functions that a loop takes out of a table: are they those that are written there?"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bindings
from graphmend.transforms.code.liveness import locals_of, writes
from graphmend.transforms.code.qualified_names import called
from graphmend.transforms.legality.names.replaced import is_lasting

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_LOOPS = (ast.For, ast.comprehension)


def is_bound_by_loops(facts: FunctionFacts, name: str) -> bool:
    """Is a name one that loops of the function bind?"""
    return any(isinstance(n, _LOOPS) and name in writes(n.target) for n in nodes_in(facts.function))


def is_of_a_table(facts: FunctionFacts, function: ast.expr) -> bool:
    """Does one loop bind a name to the functions of a list that is written out, and that nothing but loops read?"""
    if not isinstance(function, ast.Name) or len(bindings(facts).get(function.id, ())) > 1:
        return False
    loops = [n for n in nodes_in(facts.function) if isinstance(n, _LOOPS) and function.id in writes(n.target)]
    if len(loops) != 1:
        return False
    over = loops[0].iter
    through = called(facts, over, "builtins.enumerate", "builtins.reversed")
    display = _display(facts, through.args[0] if through is not None and len(through.args) == 1 else over)
    tree = facts.source.tree
    numbered = through is not None and ast.unparse(through.func).endswith("enumerate")
    entries = _entries(display, loops[0].target, function.id, numbered=numbered) if display is not None else None
    return entries is not None and all(
        isinstance(e, ast.Lambda) or (isinstance(e, ast.Name) and is_lasting(e.id, tree)) for e in entries
    )


def _entries(display: ast.List | ast.Tuple, target: ast.expr, name: str, *, numbered: bool) -> list[ast.expr] | None:
    """What a loop binds a name to: the entries of what it runs through, or one column of tuples."""
    match target:
        case ast.Name() if not numbered:
            return display.elts
        case ast.Tuple(elts=[_, ast.Name(id=second)]) if numbered:
            return display.elts if second == name else None
        case ast.Tuple(elts=targets) if all(isinstance(t, ast.Name) for t in targets) and not numbered:
            place = [t.id for t in targets if isinstance(t, ast.Name)].index(name)
            rows = [e.elts for e in display.elts if isinstance(e, ast.Tuple) and len(e.elts) == len(targets)]
            return [row[place] for row in rows] if len(rows) == len(display.elts) else None
    return None


def is_entry(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is it an entry, by a key that is written out, of a table that is written out too, and that only lookups read?"""
    tree = facts.source.tree
    match node:
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant()) if tree is not None and is_lasting(
            name, tree
        ):
            scope = facts.function if name in locals_of(facts.function) else tree
        case _:
            return False
    looked_up = {n.value for n in nodes_in(scope) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Load)}
    others = [n for n in nodes_in(scope) if isinstance(n, ast.Name) and n.id == name and n not in looked_up]
    bound = [s.value for s in scope.body if isinstance(s, ast.Assign) and s.targets == others]
    return len(bound) == 1 and isinstance(bound[0], (ast.Dict, ast.List, ast.Tuple))


def _display(facts: FunctionFacts, table: ast.expr) -> ast.List | ast.Tuple | None:
    if isinstance(table, (ast.List, ast.Tuple)):
        return table
    tree = facts.source.tree
    if not isinstance(table, ast.Name) or tree is None or not is_lasting(table.id, tree):
        return None
    scope = facts.function if table.id in locals_of(facts.function) else tree
    uses = [n for n in nodes_in(scope) if isinstance(n, ast.Name) and n.id == table.id]
    looped = {n for loop in nodes_in(scope) if isinstance(loop, _LOOPS) for n in nodes_in(loop.iter)}
    stores = [n for n in uses if n not in looped]  # one, where nothing else reads it
    bound = [s.value for s in scope.body if isinstance(s, ast.Assign) and s.targets == stores]
    return bound[0] if len(bound) == 1 and isinstance(bound[0], (ast.List, ast.Tuple)) else None
