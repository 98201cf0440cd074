"""Where other functions of a file read an attribute of what may be the same object."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.program.entities import class_of
from graphmend.analysis.resolution.classes import mro
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.legality.numbers.arithmetic import NeedsPythonNumberError

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def reads_elsewhere(facts: FunctionFacts, attribute: ast.Attribute) -> Iterator[tuple[FunctionFacts, ast.Attribute]]:
    """Where other functions of the file read an attribute of that name, of what may be the same object."""
    tree = facts.source.tree
    if tree is not None and (outside := _read_outside(tree, attribute.attr)) is not None:
        raise NeedsPythonNumberError(f"`{shortened(outside)}` is read outside of functions")
    for function in nodes_in(tree) if tree is not None else ():
        if not isinstance(function, _DEFINITIONS) or function is facts.function:
            continue
        within: FunctionFacts | None = None
        for node in nodes_in(function):
            if not (isinstance(node, ast.Attribute) and node.attr == attribute.attr):
                continue
            within = within or facts.within(function)
            if not isinstance(node.ctx, ast.Load) and not isinstance(within.parent(node), ast.AugAssign):
                continue
            first = _is_self(facts, attribute.value) and _comes_first(within, node)
            if not first and _may_be_same(facts, attribute.value, within, node.value):
                yield within, node


def is_called_otherwise(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Is a function called by a decorator, as what `torch.compile` makes does, or where its module is?"""
    plain = ("property", "staticmethod", "classmethod", "cached_property")
    names = [getattr(d, "attr", None) or getattr(d, "id", "") for d in function.decorator_list]
    return function.name in ("forward", "__call__") or not all(name in plain for name in names)


def asked_elsewhere(facts: FunctionFacts) -> Iterator[tuple[FunctionFacts, ast.expr]]:
    """Where other functions of the file call a function, or read it where it is a property."""
    function, tree = facts.function, facts.source.tree
    if facts.owner is not None and (parameters := [*function.args.posonlyargs, *function.args.args]):
        method = ast.Attribute(ast.Name(parameters[0].arg, ast.Load()), function.name, ast.Load())
        for within, read in reads_elsewhere(facts, method):
            call = within.parent(read)
            yield within, call if isinstance(call, ast.Call) and call.func is read else read
        return
    for other in nodes_in(tree) if tree is not None else ():
        if isinstance(other, _DEFINITIONS) and other is not function:
            called = [n for n in nodes_in(other) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
            named = [n for n in called if n.func.id == function.name]  # type: ignore[attr-defined]
            yield from ((facts.within(other), node) for node in named)


def _read_outside(tree: ast.AST, name: str) -> ast.expr | None:
    """What reads an attribute of that name as something else than a number, in a lambda or at the top of the file."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        for child in ast.iter_child_nodes(node):
            read = isinstance(child, ast.Attribute) and child.attr == name and isinstance(child.ctx, ast.Load)
            if read and not isinstance(node, (ast.BinOp, ast.Compare, ast.FormattedValue, ast.Attribute)):
                return child  # type: ignore[return-value]
            if not isinstance(child, _DEFINITIONS):
                todo.append(child)
    return None


def _comes_first(facts: FunctionFacts, read: ast.Attribute) -> bool:
    """Does an object read one of its attributes while it is made, before any other method of it runs? It does where
    nothing that `__init__` calls has the object, and no other function calls that.
    """
    if facts.function.name != "__init__" or not _is_self(facts, read.value) or facts.source.tree is None:
        return False
    inner = (ast.Lambda, ast.GeneratorExp, *_DEFINITIONS)
    around = [above for above in facts.ancestors(read) if isinstance(above, inner)]
    own = {n for n in nodes_in(facts.function) if isinstance(n, ast.Call)}
    others = (n for n in nodes_in(facts.source.tree) if isinstance(n, ast.Call) and n not in own)
    if around not in ([], [facts.function]) or any(_calls_init(call) for call in others if not _in_init(facts, call)):
        return False
    return not any(_may_run_methods(facts, call) for call in own)


def _in_init(facts: FunctionFacts, call: ast.Call) -> bool:
    """Stands a call in another `__init__`?"""
    made = (n for n in nodes_in(facts.source.tree or call) if isinstance(n, _DEFINITIONS) and n.name == "__init__")
    return any(n is call for function in made for n in nodes_in(function))


def _calls_init(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "__init__"


def _may_run_methods(facts: FunctionFacts, call: ast.Call) -> bool:
    """May a call in `__init__` run another method of the object: has it that as a whole, or is it one?"""
    given = [*call.args, *(k.value for k in call.keywords)]
    match call.func:
        case ast.Attribute(attr="__init__"):
            return False
        case ast.Attribute(value=of, attr=attr) if _is_self(facts, of):
            return attr not in ("register_buffer", "register_parameter", "add_module") or any(
                _is_self(facts, one) for one in given
            )
    return any(_is_self(facts, one) for one in given)


def _may_be_same(facts: FunctionFacts, one: ast.expr, within: FunctionFacts, other: ast.expr) -> bool:
    """May two expressions of different functions be one object? Not those of unrelated classes."""
    if isinstance(within.value(other), Tensor):
        return False
    first, second = class_of(facts.value(one)), class_of(within.value(other))
    if first is not None and second is not None:
        return first in mro(second) or second in mro(first)
    if not (_is_self(facts, one) and _is_self(within, other)):
        return True
    families = _families(facts.source.tree)
    return any({facts.owner, within.owner} <= family for family in families)


def _families(tree: ast.AST | None) -> list[set[ast.ClassDef | None]]:
    """For each class of a file it and its bases there, whose methods one object has."""
    classes = {n.name: n for n in nodes_in(tree) if isinstance(n, ast.ClassDef)} if tree is not None else {}
    found: list[set[ast.ClassDef | None]] = []
    for cls in classes.values():
        family: set[ast.ClassDef | None] = set()
        todo = [cls]
        while todo:
            if (one := todo.pop()) not in family:
                family.add(one)
                todo += [classes[b.id] for b in one.bases if isinstance(b, ast.Name) and b.id in classes]
        found.append(family)
    return found


def _is_self(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is an expression the first parameter of a method?"""
    arguments = facts.function.args
    first = next(iter([*arguments.posonlyargs, *arguments.args]), None)
    return isinstance(node, ast.Name) and first is not None and node.id == first.arg and facts.owner is not None
