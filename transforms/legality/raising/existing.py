"""Whether names of the module, and attributes of its objects, surely exist, and may be read earlier."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import options
from graphmend.analysis.program.entities import Instance
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.liveness import writes
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.program.definitions import ClassInfo


@answers("totality")
def surely_there(facts: FunctionFacts, node: ast.Attribute) -> bool:
    """Does every object on a way such as `self.config.size` have the attribute that is read of it?"""
    objects = [*options(facts.value(node.value))]
    if not all(isinstance(o, Instance) and _binds(o.info, node.attr) for o in objects):
        return False
    return not isinstance(node.value, ast.Attribute) or surely_there(facts, node.value)


@answers("totality")
def surely_of_module(facts: FunctionFacts, name: str) -> bool:
    """Does a statement of the module's top level bind a name on every way?"""
    tree = facts.source.tree
    plain = (ast.Assign, ast.AnnAssign, ast.Import, ast.ImportFrom)
    return isinstance(tree, ast.Module) and any(isinstance(s, plain) and name in writes(s) for s in tree.body)


def _binds(info: ClassInfo, name: str) -> bool:
    """Does a class, or whatever makes its objects, bind a name of them on every way?"""
    chain = info.chain or [info]
    if any(name in each.names for each in chain):
        return True
    if any(name in each.annotations and _is_dataclass(each.node) for each in chain):
        return True
    made = next((each.methods["__init__"].node for each in chain if "__init__" in each.methods), None)
    if not isinstance(made, ast.FunctionDef) or any(isinstance(n, ast.Return) for n in nodes_in(made)):
        return False
    own = made.args.args[0].arg if made.args.args else ""
    targets = (t for s in made.body if isinstance(s, ast.Assign) for t in s.targets)
    stored = [n for t in targets for n in nodes_in(t)]
    stored += [s.target for s in made.body if isinstance(s, ast.AnnAssign) and s.value is not None]
    return any(
        isinstance(n, ast.Attribute) and n.attr == name and isinstance(n.value, ast.Name) and n.value.id == own
        for n in stored
    )


def _is_dataclass(node: ast.ClassDef) -> bool:
    return any("dataclass" in ast.unparse(each) for each in node.decorator_list)
