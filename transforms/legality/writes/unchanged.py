"""Is what a name was made of still what it was, where the name is read?"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import still
from graphmend.transforms.legality.memory import may_share
from graphmend.transforms.legality.writes.changes import changes
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
#: what is asked of a tensor that no change in place of its elements changes
_METADATA = ("shape", "ndim", "dtype", "device", "size", "dim", "numel")


@answers("memory")
def still_made_of(facts: FunctionFacts, name: ast.Name) -> ast.expr | None:
    """What a name was bound to, where nothing that it was made of, nor it itself, is another value by now."""
    made = still(facts, name)
    if made is None:
        return None
    around = [*facts.ancestors(name)]
    loops = [a for a in around if isinstance(a, _LOOPS) and a not in facts.ancestors(made)]
    begin, end = _end(made), max([(name.lineno, name.col_offset), *map(_end, loops)])
    read = [name, *(n for n in nodes_in(made) if isinstance(n, ast.Name) and not _asks_metadata(facts.parent(n)))]
    for node, target in changes(facts):
        between = begin <= (node.lineno, node.col_offset) <= end and (loops or node not in around)
        if between and any(may_share(facts, one, target) for one in read):
            return None
    return made


def _asks_metadata(above: ast.AST | None) -> bool:
    return isinstance(above, ast.Attribute) and above.attr in _METADATA


def _end(node: ast.stmt | ast.expr) -> tuple[int, int]:
    return node.end_lineno or 0, node.end_col_offset or 0
