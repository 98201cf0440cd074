"""May code read a place that a branch stores to: an attribute, an entry of a dict, or what a name is bound to?"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.program.entities import class_of
from graphmend.analysis.resolution.classes import mro
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bindings
from graphmend.transforms.code.liveness import reads
from graphmend.transforms.code.qualified_names import constant, is_tensor, qualified
from graphmend.transforms.legality.operations import aliases

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


def may_read(facts: FunctionFacts, code: ast.AST, target: str, root: str) -> bool:
    """May code read a place: that one, or what it is a part of, under any name? What has a name alone is read wherever
    that stands.
    """
    names = _names_of(facts, root)
    if target == root:
        return not names.isdisjoint(reads(code))
    place = ast.parse(target, mode="eval").body
    nodes = [*nodes_in(code)]
    if any(_is_named_alike(facts, n, place) for n in nodes) or any(
        isinstance(n, ast.Call) and _is_own(facts, n) for n in nodes
    ):
        return True  # of what object it is asked, and what a function of the program reads, is not known
    apart = {n.value for n in nodes if isinstance(n, (ast.Attribute, ast.Subscript)) and _is_apart(facts, n, place)}
    return any(isinstance(n, ast.Name) and n.id in names and n not in apart for n in nodes)


def _is_apart(facts: FunctionFacts, node: ast.Attribute | ast.Subscript, place: ast.expr) -> bool:
    """Is an attribute of a name, or an entry under a text, neither a place nor what that is a part of?"""
    if isinstance(node, ast.Attribute):
        if _runs_code(facts, node):
            return False
    elif _key(node) is None:
        return False
    written, own = ast.unparse(place), ast.unparse(node)
    _, dot, rest = own.partition("." if isinstance(node, ast.Attribute) else "[")
    root = next(n.id for n in ast.walk(place) if isinstance(n, ast.Name))
    return not written.startswith(f"{root}{dot}{rest}")


def _is_named_alike(facts: FunctionFacts, node: ast.AST, place: ast.expr) -> bool:
    """Has what is read the attribute, or the key, of a place? A method of a tensor of that name is something else."""
    if isinstance(node, ast.Attribute) and isinstance(place, ast.Attribute):
        if is_tensor(facts, node.value) and node.attr not in aliases.VIEW_ATTRIBUTES:
            return False
        return node.attr == place.attr and isinstance(node.ctx, ast.Load)
    return isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and _key(node) == _key(place) is not None


def _key(node: ast.AST) -> str | None:
    """The text in `d["key"]`."""
    key = constant(node.slice) if isinstance(node, ast.Subscript) else None
    return key if isinstance(key, str) else None


def _is_own(facts: FunctionFacts, call: ast.Call) -> bool:
    """Is what is called no function of torch or of Python, and no layer of torch?"""
    value, name = facts.value(call.func), qualified(facts, call.func) or ""
    layer = isinstance(value, ExternalInstance) and value.cls.startswith("torch.nn.")
    return not layer and not name.startswith(("torch.", "builtins.", "math."))


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
