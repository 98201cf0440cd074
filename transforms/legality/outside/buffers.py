"""Can a number of a module become one of its buffers? What else in the file would meet that buffer."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

#: what goes through the buffers of modules, or through all attributes of objects
_GOES_THROUGH = frozenset(
    "buffers named_buffers _buffers state_dict __dict__ __getstate__ __setstate__ _apply get_buffer "
    "register_buffer".split()
)
#: what stores an attribute, or copies all of an object, by a name that is not in the text
_BY_NAME = frozenset({"setattr", "delattr", "vars", "eval", "exec", "globals"})


@answers("memory")
def meets_buffer(facts: FunctionFacts, name: str) -> str | None:
    """What in the file would meet `self.name` as a buffer; None where nothing does. Persistent buffers of other names
    are no reason: `register_buffer` and `state_dict` count where they are given this one, or given none."""
    if name.startswith("__") and not name.endswith("__"):
        return f"`{name}` is a private name, which the class mangles"
    tree = facts.source.tree
    for node in nodes_in(tree) if tree is not None else ():
        match node:
            case ast.Call(func=ast.Attribute(attr="register_buffer"), args=[ast.Constant(value=other), *_]):
                if other == name:
                    return f"`{name}` is registered already"
            case ast.Attribute(attr="register_buffer" | "state_dict"):
                pass
            case ast.Attribute(attr=attr) if attr in _GOES_THROUGH:
                return f"`{attr}` meets every buffer"
            case ast.Call(func=ast.Name(id=called), args=args) if called in _BY_NAME and _may_name(args, name):
                return f"`{called}` may mean `{name}`"
            case ast.Call(func=ast.Attribute(value=ast.Name(id="copy"), attr="copy")):
                return "a copy that `copy.copy` makes of the module would share the buffer"
            case ast.FunctionDef(name=defined) | ast.ClassDef(name=defined) if defined in (*_GOES_THROUGH, name):
                return f"`{defined}` is defined anew"
            case _:
                pass
    return None


def _may_name(args: list[ast.expr], name: str) -> bool:
    """May the arguments of `setattr(owner, name, ...)` and the like name an attribute?"""
    named = args[1] if len(args) > 1 else None
    return not isinstance(named, ast.Constant) or named.value == name
