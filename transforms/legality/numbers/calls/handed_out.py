"""What code that is not traced only writes, keeps or gives away: whoever gets the number there gets a 0-d tensor."""

from __future__ import annotations

import ast
import re
import sys
from io import TextIOBase
from string import Formatter
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor, dtype_kind
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bindings
from graphmend.transforms.code.liveness import locals_of, parameters, writes
from graphmend.transforms.code.qualified_names import constant, qualified

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from graphmend.analysis.facts.function_facts import FunctionFacts

_LOGGING = ("debug", "info", "warning", "error", "critical")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_STORING = ("append", "appendleft", "extend", "insert", "setdefault", "update")
#: whose methods look a number up, or write it
_OF_PYTHON = (set, dict, list, str, bytes, TextIOBase)
_COPIES = ("builtins.dict", "builtins.list", "builtins.tuple")
#: conversions of `%` for which torch 2.13 gives a tensor's number, by `__float__` and `__int__`
_OF_NUMBERS = frozenset("dieEfFgG%")


def fits(part: ast.FormattedValue, dtype: Hashable) -> bool:
    """Does a format take a number of a dtype, or the tensor without dimensions? Some are for whole numbers alone."""
    spec = part.format_spec.values if isinstance(part.format_spec, ast.JoinedStr) else []
    last = constant(spec[-1]) if spec else None
    return not (isinstance(last, str) and last[-1:] in "bcdoxX" and last and dtype_kind(dtype) == "float")


def writes_number(facts: FunctionFacts, node: ast.expr, dtype: Hashable = None) -> bool:
    """Is a number written by a format that gives the same text for a 0-d tensor of a dtype?"""
    parent = facts.parent(node)
    around = facts.parent(parent) if parent is not None else None
    match parent:
        case ast.FormattedValue(conversion=-1) as part:
            return fits(part, dtype)
        case ast.BinOp(left=text, op=ast.Mod(), right=right) if right is node:
            return _by_percent(constant(text), [node], node)
        case ast.Tuple(elts=elts) if isinstance(around, ast.BinOp) and around.right is parent:
            return isinstance(around.op, ast.Mod) and _by_percent(constant(around.left), elts, node)
        case ast.Call(func=ast.Attribute(attr=attr), args=[text, *args]) if attr in _LOGGING and node in args:
            return not _is_defined(facts, attr) and _by_percent(constant(text), args, node)
        case ast.keyword():
            return _is_format(around)
        case ast.Call(func=function, args=[first, *_]) if node is not function:
            return _is_format(parent) or (first is node and qualified(facts, function) == "builtins.format")
    return False


def _by_percent(text: object, given: Sequence[ast.expr], node: ast.expr) -> bool:
    """Does a text write one of what it is given by a conversion that asks for a number?"""
    place = given.index(node)
    if not isinstance(text, str) or any(isinstance(one, ast.Starred) for one in given[:place]):
        return False
    found = re.findall(r"%(\(\w+\))?([-+ #0\d.*]*)(.)", text)
    if any(name or "*" in flags for name, flags, _ in found):
        return False
    taken = [kind for _, _, kind in found if kind != "%"]
    return place < len(taken) and taken[place] in _OF_NUMBERS


def _is_format(call: ast.AST | None) -> bool:
    """Is this `"...".format(...)` that shows nothing by `str` or `repr`?"""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")):
            fields = [(name or "", conversion) for _, name, _, conversion in Formatter().parse(text)]
            return all(conversion is None and not {".", "["} & {*name} for name, conversion in fields)
    return False


def hands_out(facts: FunctionFacts, node: ast.expr, seen: frozenset[str] = frozenset()) -> Sequence[ast.expr] | None:
    """The places that outlive a function in which a number, or a container that holds it, is only kept; none where it
    is only handed back, or given to code that is not in sight. None where it is read.
    """
    match parent := facts.parent(node):
        case ast.Expr():
            return ()
        case ast.Return() | ast.Yield():
            inner = next((a for a in facts.ancestors(node) if isinstance(a, _SCOPES)), facts.function)
            return () if inner is facts.function and not is_added_to(facts, facts.function.name) else None
        case ast.Dict(values=values) if node in values:
            return hands_out(facts, parent, seen)
        case ast.List() | ast.Tuple():
            return hands_out(facts, parent, seen)
        case ast.Assign(targets=targets, value=value) if value is node and _makes_container(facts, node):
            return _all(_keeps(facts, target, seen) for target in targets)
        case ast.Call(args=args) if node in args:
            return _takes(facts, parent, node, seen)
        case ast.keyword() if isinstance(call := facts.parent(parent), ast.Call):
            return _takes(facts, call, node, seen)
    return None


def is_added_to(facts: FunctionFacts, function: str) -> bool:
    """Does code of the file change in place what a function gives? A number it would change under its own name only."""
    tree = facts.source.tree
    for scope in nodes_in(tree) if tree is not None else ():
        if not isinstance(scope, (*_SCOPES, ast.Module)):
            continue
        given = {
            name
            for n in nodes_in(scope)
            if isinstance(n, (ast.Assign, ast.AnnAssign)) and n.value is not None and _asks(n.value, function)
            for name in writes(n)
        }
        for adds in (n for n in nodes_in(scope) if isinstance(n, ast.AugAssign)):
            if _asks(adds.target, function) or given & {n.id for n in nodes_in(adds.target) if isinstance(n, ast.Name)}:
                return True
    return False


def _asks(node: ast.AST, function: str) -> bool:
    """Does an expression call a function, or ask for a property, by its name?"""
    return any(
        (n.attr if isinstance(n, ast.Attribute) else n.id if isinstance(n, ast.Name) else None) == function
        for n in nodes_in(node)
    )


def _all(found: Iterable[Sequence[ast.expr] | None]) -> Sequence[ast.expr] | None:
    each = list(found)
    return None if None in each else [place for places in each for place in places or ()]


def _makes_container(facts: FunctionFacts, node: ast.expr) -> bool:
    made = isinstance(node, ast.Call) and qualified(facts, node.func) in _COPIES
    return made or isinstance(node, (ast.Dict, ast.List, ast.Tuple))


def _keeps(facts: FunctionFacts, place: ast.expr, seen: frozenset[str]) -> Sequence[ast.expr] | None:
    """As `hands_out`, of a container that is kept in a place, or under a name."""
    match place:
        case ast.Name(id=name) if name in seen:
            return ()
        case ast.Name(id=name) if _is_made_here(facts, name):
            reads = [n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n.id == name]
            loads = [n for n in reads if isinstance(n.ctx, ast.Load) and not is_filled(facts, n)]
            return _all(hands_out(facts, read, seen | {name}) for read in loads)
        case ast.Attribute() | ast.Subscript() if not isinstance(facts.value(place.value), Tensor):
            return (place,)
    return None


def _is_made_here(facts: FunctionFacts, name: str) -> bool:
    """Does a local name stand for nothing but containers that the function makes?"""
    bound = bindings(facts).get(name, [])
    own = name in locals_of(facts.function) and name not in parameters(facts.function)
    shared = (n for n in nodes_in(facts.function) if isinstance(n, (ast.Global, ast.Nonlocal)))
    made = all(b.value is not None and not b.part and _makes_container(facts, b.value) for b in bound)
    return own and bool(bound) and made and not any(name in n.names for n in shared)


def is_filled(facts: FunctionFacts, container: ast.expr) -> bool:
    """Is something stored in a container, and nothing asked of it?"""
    match facts.parent(container):
        case ast.Subscript(value=value, ctx=ast.Store()) as entry if value is container:
            return not isinstance(facts.parent(entry), ast.AugAssign)
        case ast.Attribute(attr=attr) as method if attr in _STORING:
            return isinstance(call := facts.parent(method), ast.Call) and isinstance(facts.parent(call), ast.Expr)
    return False


def _takes(facts: FunctionFacts, call: ast.Call, node: ast.expr, seen: frozenset[str]) -> Sequence[ast.expr] | None:
    """As `hands_out`, of what a call is given. Nearly all of Python's library tells a tensor from a number."""
    match call.func:
        case ast.Attribute(value=of, attr=attr) if attr in _STORING:
            plain = isinstance(facts.parent(call), ast.Expr) and not call.keywords and _is_stored(attr, call, node)
            return _keeps(facts, of, seen) if plain else None
    name = qualified(facts, call.func)
    if name in _COPIES:
        return hands_out(facts, call, seen)
    last = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", None)
    if last is None or last in _LOGGING or _is_defined(facts, last):
        return None
    if name is None:
        is_method = isinstance(call.func, ast.Attribute)
        return () if is_method and not any(hasattr(of, last) for of in _OF_PYTHON) else None
    return () if name.split(".")[0] not in {"builtins", "torch", *sys.stdlib_module_names} else None


def _is_stored(attr: str, call: ast.Call, node: ast.expr) -> bool:
    """Does a method store what it is given as a value? The entries of a set, and keys, are looked up."""
    if call.args[-1:] != [node] or len(call.args) != {"insert": 2, "setdefault": 2}.get(attr, 1):
        return False
    return isinstance(node, ast.Dict) if attr == "update" else True


def _is_defined(facts: FunctionFacts, name: str | None) -> bool:
    return any(getattr(definition, "name", None) == name for definition in _definitions(facts))


def _definitions(facts: FunctionFacts) -> Sequence[ast.AST]:
    tree = facts.source.tree
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [n for n in nodes_in(tree) if isinstance(n, kinds)] if tree is not None else []
