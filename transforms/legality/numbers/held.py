"""Where a number is kept between calls of compiled code: an attribute, a global or a variable around a function, with
every place in the file that stores or reads it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.facts.function_facts import above, parents_in
from graphmend.analysis.resolution.classes import mro
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.liveness import locals_of, parameters
from graphmend.transforms.code.qualified_names import constant, qualified
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.driver.guards.variation import Variation
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.program.definitions import ClassInfo

Assigns = ast.Assign | ast.AnnAssign
_Function = ast.FunctionDef | ast.AsyncFunctionDef
#: an expression that stands in one of these gives its value to it, not itself to another name
_READERS = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.FormattedValue)
#: builtins that give the number for a 0-d tensor; what prints or rounds one tells the two apart
_TAKE = frozenset({"builtins.int", "builtins.float", "builtins.bool"})
#: and those whose result does not matter beyond its number, where that is made a number again
_PICK = _TAKE | {"builtins.max", "builtins.min", "builtins.abs"}


class NotHeldError(Exception):
    """A tensor cannot be kept in the place of the number; the message is the sentence to refuse with."""


class Read(NamedTuple):
    """An expression that reads the number; `function` are the facts of the function around it, if it is in one."""

    node: ast.expr
    statement: ast.stmt
    function: FunctionFacts | None


@dataclass
class Held:
    """A number that is kept under a name, or as an attribute of that name."""

    name: str
    shown: str
    parents: dict[ast.AST, ast.AST]
    facts: FunctionFacts
    reads: list[Read] = field(default_factory=list)
    stores: list[tuple[Assigns, FunctionFacts | None]] = field(default_factory=list)
    counted: list[ast.AugAssign] = field(default_factory=list)
    """`name += value`."""
    is_buffer: bool = False
    """Does a module register it, so that whoever reads it is known to read a tensor?"""
    first: Assigns | None = None
    """Of an attribute, the statement in `__init__` that sets it."""

    def reads_in(self, node: ast.AST) -> bool:
        """Does an expression read the number?"""
        inside = set(nodes_in(node))
        return any(read.node in inside for read in self.reads)

    def is_read_alike(self, read: Read) -> bool:
        """Does code that is not traced do the same with a 0-d tensor?"""
        parent = self.parents[read.node]
        if any(read.node in nodes_in(store.value) for store, _ in self.stores if store.value is not None):
            return isinstance(parent, (ast.BinOp, ast.UnaryOp)) or self._calls(read, _PICK)
        if isinstance(parent, ast.Call):
            return self._calls(read, _TAKE)
        if isinstance(parent, ast.Compare):
            identity = any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in parent.ops)
            return not identity and isinstance(self.parents[parent], (ast.If, ast.While))
        return isinstance(parent, (ast.If, ast.While))

    def _calls(self, read: Read, names: frozenset[str]) -> bool:
        """Is a read an argument of one of some builtins?"""
        call = self.parents[read.node]
        if not isinstance(call, ast.Call) or read.node not in call.args or call.keywords:
            return False
        if not isinstance(call.func, ast.Name):
            return False
        tree = self.facts.source.tree
        assert tree is not None
        bound = {n.id for n in nodes_in(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        bound |= {n.arg for n in nodes_in(tree) if isinstance(n, ast.arg)}
        bound |= {n.name for n in nodes_in(tree) if isinstance(n, (*_DEFINITIONS, ast.ClassDef))}
        bound |= {n.asname or n.name for n in nodes_in(tree) if isinstance(n, ast.alias)}
        return call.func.id not in bound and qualified(read.function or self.facts, call.func) in names

    def is_read_only(self, read: Read) -> bool:
        """Does nothing else have the tensor then?"""
        parent = self.parents[read.node]
        return isinstance(parent, _READERS) or self._calls(read, _TAKE)

    def is_whole(self, node: ast.expr) -> bool:
        """Is an expression a whole number, by its form?"""
        match node:
            case ast.Call(func=ast.Name(id="len")) | ast.Call(func=ast.Attribute(attr="size"), args=[_]):
                return True
            case ast.Subscript(value=ast.Attribute(attr="shape")):
                return True
        value = constant(node)
        return isinstance(value, int) and not isinstance(value, bool)

    def is_number(self, node: ast.expr) -> bool:
        """Is an expression a number, by its form?"""
        if isinstance(node, ast.BinOp):
            return self.is_number(node.left) and self.is_number(node.right)
        return self.is_whole(node) or isinstance(constant(node), float)


@answers("memory")
def held(facts: FunctionFacts, variation: Variation) -> Held | None:
    """Everything in the file that stores or reads what varies; raises where that is not known, None where it is kept
    in something else.
    """
    tree = facts.source.tree
    assert tree is not None
    parents = parents_in(tree)
    if variation.kind == "attribute":
        return _attribute(facts, variation, Held(variation.subject, f"self.{variation.subject}", parents, facts), tree)
    if len(variation.path) != 1:
        return None
    found = Held(variation.subject, variation.subject, parents, facts)
    if variation.kind == "global":
        return _variable(facts, found, tree, None)
    if variation.write is None or not variation.write.traced or variation.target is None:
        return None
    outer = next((n for n in above(parents, facts.function) if isinstance(n, _DEFINITIONS)), None)
    return _variable(facts, found, outer, outer) if outer is not None else None


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _attribute(facts: FunctionFacts, variation: Variation, found: Held, tree: ast.Module) -> Held | None:
    info = variation.owner
    owner = next((n for n in nodes_in(tree) if isinstance(n, ast.ClassDef) and info and n.name == info.name), None)
    if info is None or owner is None or info.module.source.path != facts.source.path:
        raise NotHeldError(f"the class whose attribute `{variation.subject}` is stands in another file")
    others = _of_other_classes(found, tree, owner)
    if (binder := _binder(tree, owner, info, found.name)) is not None:
        raise NotHeldError(f"the class `{binder}` has a `{found.name}` of its own")
    for node in nodes_in(tree):
        if isinstance(node, ast.Attribute) and node.attr == found.name and node not in others:
            _note(facts, found, node)
        if isinstance(node, ast.Call) and _may_mean(node, found.name):
            raise NotHeldError(f"`{ast.unparse(node)}` may mean `{found.name}`")
    found.first = _first(owner, found)
    if found.first is None:
        raise NotHeldError(f"`{owner.name}.__init__` is not known to set `{found.name}`, behind the parent's")
    return found


def _binder(tree: ast.Module, owner: ast.ClassDef, info: ClassInfo, name: str) -> str | None:
    """The class in sight, the owner or a base, whose body binds or annotates a name; a base of another file may set it
    in a method too.
    """
    classes, queue = {n.name: n for n in nodes_in(tree) if isinstance(n, ast.ClassDef)}, [owner]
    for cls in queue:
        if name in _names_of(cls):
            return cls.name
        bases = [classes.get(ast.unparse(base).partition("[")[0].rpartition(".")[2]) for base in cls.bases]
        queue += [base for base in bases if base is not None and base not in queue]
    for other in mro(info):
        bound = {*other.names, *other.annotations, *other.methods, *other.setters, *other.classes}
        elsewhere = other.module is not info.module
        if name in bound or (elsewhere and name in {*other.assigned, *other.registered}):
            return other.name
    return None


def _names_of(cls: ast.ClassDef) -> set[str]:
    """What the body of a class binds or annotates."""
    found: set[str] = set()
    stack: list[ast.AST] = [*cls.body]
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        if isinstance(node, ast.alias):
            found.add(node.asname or node.name)
        stack += ast.iter_child_nodes(node)
    return found


def _may_mean(call: ast.Call, name: str) -> bool:
    """May `setattr` or `getattr` mean an attribute?"""
    if not (isinstance(call.func, ast.Name) and call.func.id in ("setattr", "getattr", "delattr")):
        return False
    given = constant(call.args[1]) if len(call.args) > 1 else None
    return not isinstance(given, str) or given == name


def _of_other_classes(found: Held, tree: ast.Module, owner: ast.ClassDef) -> set[ast.AST]:
    """The attributes of that name of other classes, inside these."""
    classes = [n for n in nodes_in(tree) if isinstance(n, ast.ClassDef) and n is not owner]
    own: set[ast.AST] = set()
    for other in classes:
        inside = [n for n in nodes_in(other) if isinstance(n, ast.Attribute) and n.attr == found.name]
        if not inside:
            continue
        bases = {ast.unparse(b).rpartition(".")[2] for b in (*other.bases, *owner.bases)}
        if {other.name, owner.name} & bases or any(
            not (isinstance(n.value, ast.Name) and n.value.id == "self") for n in inside
        ):
            raise NotHeldError(f"`{other.name}` has an attribute `{found.name}` too")
        own.update(inside)
    return own


def _first(owner: ast.ClassDef, found: Held) -> Assigns | None:
    """The one store in `__init__`, behind the parent's where there is one."""
    init = next((s for s in owner.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"), None)
    stores = [s for s, _ in found.stores]
    inside = [s for s in (init.body if init is not None else ()) if s in stores]
    begun = not owner.bases
    for statement in init.body if init is not None else ():
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="__init__"))):
                begun = True
        if statement in inside:
            one = statement if len(inside) == 1 and begun else None
            return one if isinstance(one, (ast.Assign, ast.AnnAssign)) else None
    return None


def _variable(facts: FunctionFacts, found: Held, scope: ast.AST, outer: _Function | None) -> Held:
    for node in nodes_in(scope):
        if isinstance(node, ast.Name) and node.id == found.name and not _is_hidden(found, node, outer):
            _note(facts, found, node)
        if isinstance(node, ast.alias) and found.name in (node.asname, node.name):
            raise NotHeldError(f"`{found.name}` is imported")
    if outer is not None and found.name in parameters(outer):
        raise NotHeldError(f"`{found.name}` is given by who calls `{outer.name}`")
    if not found.stores:
        raise NotHeldError(f"`{found.name}` is not known to be set to a number first")
    return found


def _is_hidden(found: Held, node: ast.AST, outer: _Function | None) -> bool:
    """Does a function around a name have another variable of that name?"""
    for around in above(found.parents, node):
        if around is outer:
            return False
        if isinstance(around, _DEFINITIONS):
            shared = [
                n for n in nodes_in(around) if isinstance(n, (ast.Global, ast.Nonlocal)) and found.name in n.names
            ]
            if found.name in parameters(around) or (found.name in locals_of(around) and not shared):
                return True
    return False


def _note(facts: FunctionFacts, found: Held, node: ast.Attribute | ast.Name) -> None:
    """One more place that stores or reads the number."""
    parent = found.parents[node]
    outside = list(above(found.parents, node))
    statement = next(n for n in outside if isinstance(n, ast.stmt))
    around = next((n for n in outside if isinstance(n, _DEFINITIONS)), None)
    function = facts.within(around) if around is not None else None
    if isinstance(node.ctx, ast.Load):
        found.reads.append(Read(node, statement, function))
    elif isinstance(parent, ast.AugAssign):
        found.counted.append(parent)
    elif isinstance(parent, (ast.Assign, ast.AnnAssign)) and parent.value is not None:
        several = isinstance(parent, ast.Assign) and len(parent.targets) > 1
        if several or (function is not None and function.is_traced(parent) and not _computes(found, parent.value)):
            raise NotHeldError(f"`{ast.unparse(parent)}` sets it anew")
        found.stores.append((parent, function))
    else:
        raise NotHeldError(f"`{ast.unparse(statement).splitlines()[0]}` sets it, and to what is not known")


def _computes(found: Held, value: ast.expr) -> bool:
    """Is a new value computed from the old one?"""
    return any(isinstance(n, (ast.Attribute, ast.Name)) and _is(found, n) for n in nodes_in(value))


def _is(found: Held, node: ast.Attribute | ast.Name) -> bool:
    return (node.attr if isinstance(node, ast.Attribute) else node.id) == found.name
