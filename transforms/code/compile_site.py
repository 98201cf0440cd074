"""Where the code of a finding is compiled, as far as its own file says."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.positions import first_position

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding


class Site(NamedTuple):
    """`torch.compile`, called or as a bare decorator, and the module's statement around it."""

    node: ast.expr
    top: ast.stmt


def site_of(finding: Finding, facts: FunctionFacts) -> Site | None:
    """The compile site that the finding names, if it is in the finding's file."""
    tree = facts.source.tree
    if tree is None:
        return None
    places = [r.span[:2] for r in finding.related if r.path == finding.path]
    for top in tree.body:
        if not any(first_position(facts.source, top)[0] <= line <= (top.end_lineno or 0) for line, _ in places):
            continue
        for node in nodes_in(top):
            if not isinstance(node, (ast.Call, ast.Attribute, ast.Name)):
                continue
            if facts.source.span(node)[:2] in places and _compiles(node):
                return Site(node, top)
    return None


def _compiles(node: ast.expr) -> bool:
    function = node.func if isinstance(node, ast.Call) else node
    return (function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")) == "compile"
