"""May code read a place that a branch stores to: an attribute, an entry of a dict, or what a name is bound to?"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.program.entities import class_of
from graphmend.analysis.resolution.classes import mro
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bindings
from graphmend.transforms.code.liveness import reads
from graphmend.transforms.code.qualified_names import constant

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


def may_read(facts: FunctionFacts, code: ast.AST, target: str, root: str) -> bool:
    """May code read a place: that one, or what it is a part of, under any name? What has a name alone is read wherever
    that stands.
    """
    if target == root:
        return root in reads(code)
    written = ast.unparse(ast.parse(target, mode="eval"))  # the file may quote a key otherwise
    called = {n.func for n in nodes_in(code) if isinstance(n, ast.Call)}  # a method may read all of its object
    others = {
        n.value
        for n in nodes_in(code)
        if (isinstance(n, ast.Attribute) and n not in called and not _runs_code(facts, n))
        or (isinstance(n, ast.Subscript) and isinstance(constant(n.slice), str))
        if not written.startswith(f"{root}{ast.unparse(n).removeprefix(ast.unparse(n.value))}")
    }
    names = _names_of(facts, root)
    return any(isinstance(n, ast.Name) and n.id in names and n not in others for n in nodes_in(code))


def _names_of(facts: FunctionFacts, root: str) -> set[str]:
    """A name, and those that are bound to what it is bound to, or the other way round."""
    pairs = [
        (name, b.value.id) for name, made in bindings(facts).items() for b in made if isinstance(b.value, ast.Name)
    ]
    found, more = {root}, {root}
    while more:
        more = {b for a, b in (*pairs, *((b, a) for a, b in pairs)) if a in found} - found
        found |= more
    return found


def _runs_code(facts: FunctionFacts, node: ast.Attribute) -> bool:
    """Does a class say what is done where an attribute is read?"""
    cls = class_of(facts.value(node.value))
    return cls is not None and any({node.attr, "__getattr__", "__getattribute__"} & {*c.methods} for c in mro(cls))
