"""Who else sees a tensor: what a value may be, whose memory it may share, and who changes that memory in place.

A parameter, an attribute and whatever unknown code returns come from outside: any two of them may be one tensor. What
an operation has made new is reached only through the names that it is bound to, until it is handed out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Container, Scalar, Static, Tensor, tensor_in
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import Bound, bindings, bound_before, name_given, precedes, reaching, straight
from graphmend.transforms.code.liveness import locals_of, parameters, reads
from graphmend.transforms.code.qualified_names import constant, qualified
from graphmend.transforms.legality.bodies.new_results import gives_new_memory
from graphmend.transforms.legality.effects import is_layer
from graphmend.transforms.legality.operations import aliases
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.own_functions import handed_over, runs_own_method
from graphmend.transforms.legality.rows.modules import has_hooks
from graphmend.transforms.legality.writes.changes import changes
from graphmend.transforms.legality.writes.operands import in_place_operands
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

OUTSIDE = "<outside>"
_NOTHING: frozenset[str] = frozenset()
_NEAR = 16
"""How many reads of names one question follows, and how many bindings from each."""


@dataclass(frozen=True)
class Shares:
    """Which existing tensors a value may be, and whose memory it may share, as paths (`x`, `self.state`)."""

    same: frozenset[str] = _NOTHING
    views: frozenset[str] = _NOTHING
    bases: frozenset[str] = _NOTHING
    """Where the memory may come from: the places of what was made new, and `<outside>`."""

    @property
    def fresh(self) -> bool:
        """Is it new memory that nothing has a name for, or no tensor at all?"""
        return not (self.same or self.views or OUTSIDE in self.bases)

    @property
    def paths(self) -> frozenset[str]:
        """All that it may be or share memory with."""
        return self.same | self.views

    def __or__(self, other: Shares) -> Shares:
        return Shares(self.same | other.same, self.views | other.views, self.bases | other.bases)

    def viewed(self) -> Shares:
        """A part of it, or another shape of it."""
        return Shares(_NOTHING, self.paths, self.bases)


@answers("memory")
def shares(facts: FunctionFacts, node: ast.expr) -> Shares:
    """What a value may be, and what its memory may be a part of."""
    return _Sharing(facts).of(node)


@answers("memory")
def may_share(facts: FunctionFacts, one: ast.expr, other: ast.expr) -> bool:
    """May two values share memory?"""
    return _meet(facts, shares(facts, one), shares(facts, other))


@answers("memory")
def known_to_share(facts: FunctionFacts, one: ast.expr, other: ast.expr) -> bool:
    """Does the function itself say that two values share memory, or may?"""
    return _related(shares(facts, one), shares(facts, other))


@answers("memory")
def seen_elsewhere(facts: FunctionFacts, node: ast.expr, rebound: str = "") -> bool:
    """May the tensor that a value is, or that it is a part of, be seen through something else than the name `rebound`,
    which is bound to another one from now on?
    """
    found = shares(facts, node)
    if found.fresh:
        return False
    if not found.bases or OUTSIDE in found.bases or found.bases & _published(facts):
        return True
    return any(
        _Sharing(facts).of(ast.Name(name, ast.Load())).bases & found.bases
        for name in locals_of(facts.function) - {rebound}
        if bindings(facts).get(name)
    )


@answers("memory")
def only_here(facts: FunctionFacts, name: str, given: Iterable[ast.expr | None], statement: ast.stmt) -> bool:
    """Is what a statement gives to a name new, or the name's own tensor, which nothing else has held until then?"""
    if not all(node is not None and (_is(node, name) or shares(facts, node).fresh) for node in given):
        return False
    bound = bound_before(facts, statement, name)
    bases = shares(facts, bound if bound is not None else ast.Name(name, ast.Load())).bases
    again = any(isinstance(above, (ast.For, ast.AsyncFor, ast.While)) for above in facts.ancestors(statement))
    others = (each.value for other in bindings(facts).keys() - {name} for each in bindings(facts)[other])
    held = (n for n in (*handed_over(facts), *others) if n is not None)
    earlier = (n for n in held if again or getattr(n, "lineno", 0) <= statement.lineno)
    return bool(bases) and OUTSIDE not in bases and not any(shares(facts, n).bases & bases for n in earlier)


@answers("memory")
def changed_in_place(facts: FunctionFacts, *tensors: str | ast.expr, behind: ast.stmt | None = None) -> bool:
    """Is the object that a name or an expression stands for changed in place in the function, by this name
    or one that is known to share its memory? With `behind`: at that statement or later, or earlier in a loop around it.
    """
    wanted = Shares()
    for tensor in tensors:
        wanted |= shares(facts, ast.Name(tensor, ast.Load()) if isinstance(tensor, str) else tensor)
    changed = [shares(facts, target) for _, target in changes(facts, behind)]
    given = frozenset(parameters(facts.function))  # a caller may pass one tensor for two of them
    return any(_related(wanted, c) or all(OUTSIDE in s.bases and s.paths & given for s in (wanted, c)) for c in changed)


@answers("memory")
def outlived(facts: FunctionFacts, name: str, statement: ast.stmt) -> bool:
    """Would a copy that a statement binds to `name` be told from what it was, as the one or the other is changed in
    place behind it, or in a loop around it?
    """
    if not seen_elsewhere(facts, ast.Name(name, ast.Load()), rebound=name):
        return False
    inside = {id(node) for node in nodes_in(statement)}
    wanted = shares(facts, ast.Name(name, ast.Load()))
    return any(
        id(node) not in inside and _related(wanted, shares(facts, target)) for node, target in changes(facts, statement)
    )


@answers("memory")
def written_to(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is what is read changed in place: as it stands, or by the name that it is given?"""
    inner: ast.AST = node
    for above in facts.ancestors(node):
        match above:
            case (
                ast.Subscript(value=value, ctx=ast.Store() | ast.Del()) | ast.Attribute(value=value, ctx=ast.Store())
            ) if value is inner:
                return True
            case ast.Call() if any(any(n is node for n in nodes_in(o)) for o in in_place_operands(facts, above)):
                return True
            case ast.AugAssign(target=target) if target is inner:
                return True
            case ast.stmt() | ast.Tuple() | ast.List():
                name = name_given(facts, inner) if isinstance(inner, ast.expr) else None
                if name is not None or isinstance(above, ast.stmt):
                    return name is not None and changed_in_place(facts, name)
        inner = above
    return False


@answers("memory")
def escapes(facts: FunctionFacts, name: str, behind: ast.stmt | None = None) -> bool:
    """May the object that `name` is bound to be seen under another name, or be changed in place, somewhere in
    the function?
    """
    wanted = shares(facts, ast.Name(name, ast.Load()))
    for node in nodes_in(facts.function):
        match node:
            case ast.Return(value=ast.expr() as value) | ast.Yield(value=ast.expr() as value):
                handed = value
            case ast.Assign(targets=targets, value=value) if not all(_is(t, name) for t in targets):
                handed = value
            case ast.AnnAssign(value=ast.expr() as value, target=target) if not _is(target, name):
                handed = value
            case ast.NamedExpr(value=value, target=target) if target.id != name:
                handed = value
            case _:
                continue
        if _related(wanted, shares(facts, handed)):
            return True
    changed = (target for _, target in changes(facts, behind))
    return given_away(facts, name) or any(_meet(facts, wanted, shares(facts, target)) for target in changed)


@answers("memory")
def given_away(facts: FunctionFacts, name: str) -> bool:
    """May code that is not known keep, or change, what a name stands for?"""
    own = shares(facts, ast.Name(name, ast.Load()))
    return any(_related(own, shares(facts, handed)) for handed in handed_over(facts))


def _related(one: Shares, other: Shares) -> bool:
    """Do two values share memory by what the function itself says?"""
    return bool(one.paths & other.paths or (one.bases & other.bases) - {OUTSIDE})


def _meet(facts: FunctionFacts, one: Shares, other: Shares) -> bool:
    """May two values share memory, by whatever comes from outside as well?"""
    if _related(one, other):
        return True
    published = _published(facts)
    return all(OUTSIDE in s.bases or s.bases & published for s in (one, other))


@lru_cache(maxsize=2)
def _anywhere(facts: FunctionFacts) -> dict[str, Shares]:
    """What each name that is bound may be anywhere in the function, in whatever order its code runs."""
    outer = parameters(facts.function)
    found = {n: Shares(frozenset({n}), bases=frozenset({OUTSIDE} if n in outer else ())) for n in bindings(facts)}
    before: dict[str, Shares] = {}
    while before != found:
        before = dict(found)
        for name, bound in bindings(facts).items():
            found[name] |= _Sharing(facts, found, near=0).bound(bound)
    return found


class _Sharing:
    """One question, which follows a few names to what is bound in front of them; others are what they are anywhere."""

    def __init__(self, facts: FunctionFacts, names: dict[str, Shares] | None = None, near: int = _NEAR) -> None:
        self.facts = facts
        self._names = _anywhere(facts) if names is None else names
        self._near = near
        self._followed: dict[ast.Name, Shares] = {}

    def of(self, node: ast.expr) -> Shares:
        value = self.facts.value(node)
        if isinstance(value, (Static, Scalar)):
            return Shares()
        match node:
            case ast.Constant() | ast.JoinedStr() | ast.Lambda():
                return Shares()
            case ast.Name():
                return self._name(node)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript():
                return self._subscript(node)
            case ast.Call():
                return self._call(node)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.of(operand) | _made(node)
            case ast.UnaryOp() | ast.Compare():
                return _made(node)
            case ast.BinOp():
                return self._binary(node)
            case ast.BoolOp(values=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                return self._all(parts)
            case ast.Dict(values=parts):
                return self._all(parts)
            case ast.IfExp(body=body, orelse=orelse):
                return self.of(body) | self.of(orelse)
            case ast.NamedExpr(value=inner) | ast.Starred(value=inner):
                return self.of(inner)
        return self._unknown(node)

    def _name(self, read: ast.Name) -> Shares:
        anywhere = self._names.get(read.id)
        if anywhere is None:
            return Shares(frozenset({read.id}), bases=frozenset({OUTSIDE}))
        if read not in self._followed and len(self._followed) < self._near:
            self._followed[read] = anywhere
            self._followed[read] = self._in_front(read) or anywhere
        return self._followed.get(read, anywhere)

    def _in_front(self, read: ast.Name) -> Shares | None:
        """What a name is bound to in front of where it is read; None where that is not once, or is too much."""
        own = Shares(frozenset({read.id}))
        reached = reaching(self.facts, read)
        if reached is not None:
            return own | self.of(reached)
        if straight(self.facts, read) is None:
            return None
        bound = [b for b in bindings(self.facts)[read.id] if b.value is None or precedes(b.value, read)]
        outer = frozenset({OUTSIDE} if read.id in parameters(self.facts.function) else ())
        return own | Shares(bases=outer) | self.bound(bound) if len(bound) <= self._near else None

    def bound(self, several: Iterable[Bound]) -> Shares:
        """What a name may be that is bound to one of several."""
        found = Shares()
        for value, part in several:
            inner = Shares(bases=frozenset({OUTSIDE})) if value is None else self.of(value)
            found |= inner | inner.viewed() if part else inner
        return found

    def _attribute(self, node: ast.Attribute) -> Shares:
        base = self.facts.value(node.value)
        if tensor_in(base) is not None and isinstance(base, Tensor):
            if node.attr in aliases.VIEW_ATTRIBUTES:
                inner = self.of(node.value)
                return inner.viewed() | Shares(inner.same if node.attr in ("H", "mH", "mT", "real") else _NOTHING)
            return _made(node)
        return Shares(frozenset({ast.unparse(node)}), bases=frozenset({OUTSIDE}))

    def _subscript(self, node: ast.Subscript) -> Shares:
        base, inner = self.facts.value(node.value), self.of(node.value)
        if isinstance(base, Tensor):
            return _made(node) if _gathers(self.facts, node.slice) else inner.viewed()
        text = ast.unparse(node)
        if isinstance(base, Container) and isinstance(node.value, ast.Name):
            return Shares(frozenset({text}) | inner.paths, bases=inner.bases)
        return Shares(frozenset({text}) | inner.paths, bases=inner.bases | {OUTSIDE})

    def _binary(self, node: ast.BinOp) -> Shares:
        if any(isinstance(self.facts.value(o), Container) for o in (node.left, node.right)):
            return self.of(node.left) | self.of(node.right)  # lists and tuples are joined
        return self._unknown(node) if runs_own_method(self.facts, node) else _made(node)

    def _call(self, node: ast.Call) -> Shares:
        function, arguments = node.func, [*node.args, *(k.value for k in node.keywords)]
        value = self.facts.value(function)
        if isinstance(value, ExternalInstance) and value.cls.startswith("torch.nn."):
            last = value.cls.rpartition(".")[2]
            if last in aliases.LAYERS_MAY_BE_INPUT:
                return self._all(arguments) | _made(node)
            if has_hooks(self.facts.source.tree):
                return self._unknown(node)
            if last in aliases.LAYERS_VIEW:
                return self._all(arguments).viewed() | _made(node)
            plain = is_layer(self.facts, function) and not in_place_operands(self.facts, node)
            return _made(node) if plain else self._all(arguments) | _made(node)
        name = qualified(self.facts, function) or ""
        folder, _, last = name.rpartition(".")
        if folder == "torch.Tensor" and isinstance(function, ast.Attribute):
            arguments.insert(0, function.value)
        if folder == "builtins" and last in ("max", "min", "tuple", "list", "zip", "enumerate", "reversed", "sorted"):
            return self._all(arguments)
        if folder == "builtins" and last in ("abs", "round", "pow", "len", "int", "float", "bool", "str"):
            return _made(node)
        if isinstance(self.facts.value(node), Tensor) and gives_new_memory(self.facts, node):
            return _made(node)
        if folder not in known.FUNCTIONAL:
            return self._unknown(node)
        if changed := in_place_operands(self.facts, node):
            return self._all(changed)
        return self._operation(node, last, arguments)

    def _operation(self, node: ast.Call, last: str, arguments: list[ast.expr]) -> Shares:
        copied = any(k.arg == "copy" and constant(k.value) is True for k in node.keywords)
        if any(k.arg == "requires_grad" and constant(k.value) is not False for k in node.keywords):
            return Shares(bases=frozenset({OUTSIDE}))  # a leaf, whose gradients backward leaves with it
        if last in aliases.NEW or (copied and last in ("to", "asarray")):
            return _made(node)
        tensors = self._all(arguments)
        if last in aliases.MAY_BE_INPUT or last in aliases.VIEWS:
            same = tensors if last in aliases.MAY_BE_INPUT else Shares()
            return same | tensors.viewed() | _made(node)
        return tensors | Shares(bases=frozenset({OUTSIDE}))

    def _all(self, nodes: Iterable[ast.expr]) -> Shares:
        found = Shares()
        for node in nodes:
            found |= self.of(node)
        return found

    def _unknown(self, node: ast.expr) -> Shares:
        names = reads(node) - {*self.facts.names}
        inner = self._all(n for n in nodes_in(node) if isinstance(n, ast.Name) and n.id in names)
        return inner | inner.viewed() | Shares(bases=frozenset({OUTSIDE}))


def _made(node: ast.expr) -> Shares:
    place = f"{getattr(node, 'lineno', 0)}:{getattr(node, 'col_offset', 0)}:{getattr(node, 'end_col_offset', 0)}"
    return Shares(bases=frozenset({place}))


def _gathers(facts: FunctionFacts, index: ast.expr) -> bool:
    """Does an index give new memory for certain: a mask, a list, or positions with at least one dimension?"""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    for part in parts:
        value = facts.value(part)
        if isinstance(part, ast.List) or (isinstance(value, Container) and value.kind == "list"):
            return True
        if isinstance(value, Tensor) and (value.dtype == "bool" or (value.rank or 0) > 0):
            return True
    return False


@lru_cache(maxsize=2)
def _published(facts: FunctionFacts) -> frozenset[str]:
    """Where memory comes from that is handed to attributes, containers, inner functions and unknown code."""
    found: set[str] = set()
    for node in handed_over(facts):
        found |= shares(facts, node).bases
    return frozenset(found)


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
