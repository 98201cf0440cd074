"""What a method calls that the analysis has not recorded: its class's methods and modules, by the text of the class."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_LISTS = ("torch.nn.ModuleList", "torch.nn.Sequential")


def called_method(facts: FunctionFacts, function: ast.expr) -> ast.FunctionDef | str | None:
    """The method of the file that is called, as `self.method`, `self.layer` or one of `self.layers` in a loop, or the
    name of a class of torch whose `forward` it is; None where it is made in several ways, or not known.
    """
    found = _submodule(facts, function)
    return _forward_of(found) if isinstance(found, ast.ClassDef) else found


def _submodule(facts: FunctionFacts, function: ast.expr) -> ast.ClassDef | ast.FunctionDef | str | None:
    match function:
        case ast.Attribute(value=ast.Name(id="self"), attr=attr):
            own = [s for s in getattr(facts.owner, "body", ()) if isinstance(s, ast.FunctionDef) and s.name == attr]
            if own:
                return own[0] if len(own) == 1 and not own[0].decorator_list else None
            made = _made(facts, attr)
            return _class_of(facts, made) if made is not None else None
        case ast.Name(id=name):
            loops = (n for n in nodes_in(facts.function) if isinstance(n, ast.For))
            targets = [n for n in loops if any(isinstance(t, ast.Name) and t.id == name for t in nodes_in(n.target))]
            match targets:
                case [ast.For(target=ast.Name(), iter=ast.Attribute(value=ast.Name(id="self"), attr=attr))]:
                    made = _made(facts, attr)
                    return _each_of(facts, made) if made is not None else None
    return None


def _forward_of(definition: ast.ClassDef) -> ast.FunctionDef | None:
    """The `forward` that a class defines itself."""
    found = [s for s in definition.body if isinstance(s, ast.FunctionDef) and s.name == "forward"]
    return found[0] if len(found) == 1 and not found[0].decorator_list else None


def _made(facts: FunctionFacts, attribute: str) -> ast.expr | None:
    """What an attribute of the object is bound to, in one place."""
    found: list[ast.expr] = []
    for node in nodes_in(facts.owner or ast.Pass()):
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    stored = [n.attr for n in nodes_in(target) if isinstance(n, ast.Attribute)]
                    found += [value] * stored.count(attribute)
            case ast.AnnAssign(target=ast.Attribute(attr=attr), value=ast.expr() as value) if attr == attribute:
                found.append(value)
            case ast.Constant(value=str() as text) if text == attribute:
                return None  # `setattr`, `add_module`
    return found[0] if len(found) == 1 else None


def _class_of(facts: FunctionFacts, made: ast.expr) -> ast.ClassDef | str | None:
    tree = facts.source.tree
    if not isinstance(made, ast.Call) or tree is None:
        return None
    if isinstance(made.func, ast.Name):
        named = [s for s in tree.body if isinstance(s, ast.ClassDef) and s.name == made.func.id]
        if named:
            return named[0] if len(named) == 1 else None
    return _qualified(facts, made.func)


def _each_of(facts: FunctionFacts, made: ast.expr) -> ast.ClassDef | str | None:
    """The one class of all modules in a list of them."""
    match made:
        case ast.Call(func=function, args=[ast.ListComp(elt=each) | ast.GeneratorExp(elt=each)]):
            items = [each]
        case ast.Call(func=function, args=[ast.List(elts=items)]):
            pass
        case ast.Call(func=function, args=items):
            pass
        case _:
            return None
    if _qualified(facts, function) not in _LISTS or not items:
        return None
    classes = [_class_of(facts, item) for item in items]
    return classes[0] if all(c is classes[0] or c == classes[0] for c in classes) else None


def _qualified(facts: FunctionFacts, function: ast.expr) -> str | None:
    match function:
        case ast.Name(id=name):
            return facts.names.get(name)
        case ast.Attribute(value=value, attr=attr):
            above = _qualified(facts, value)
            return f"{above}.{attr}" if above is not None else None
    return None
