"""Where a number is only said: written by an output call, or part of an exception's message. A tensor that stands for
the number hands it out there, when the output happens or the exception is raised.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator, Set
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Tensor, dtype_kind
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bindings, reaching, stores
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.qualified_names import constant, number_type, qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.numbers.counterparts import Counterpart
from graphmend.transforms.legality.numbers.put_off import NotCarriedError, argument

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_RUNTIME = "graphmend.runtime."
_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Said(NamedTuple):
    """What is written otherwise where a number is said, and how it differs."""

    forms: dict[ast.expr, Counterpart]
    differences: list[Difference]


def said(facts: FunctionFacts, node: ast.Name, dtype: Hashable, *, always: bool) -> Said | None:
    """What is written where a name, a tensor of a dtype now, is only said. None where it is not, or what gives the
    number back is not known: a name that is not `always` a tensor may be a Python number as well.
    """
    place = _place(facts, node)
    how, differences = ("item", []) if always else _conversion(facts, node, dtype)
    if how is None or place is None:
        return None
    try:
        argument(facts, None, place, {node: how})
    except NotCarriedError:
        return None
    return Said({place: Counterpart(place, said=((node, how),))}, differences)


def _conversion(facts: FunctionFacts, node: ast.Name, dtype: Hashable) -> tuple[str | None, list[Difference]]:
    """The builtin that gives a number of the type that a name has, as it gives it back for the number itself."""
    of = number_type(facts, node) or dtype_kind(dtype)
    if of in ("float", "int", "bool"):
        return of, []
    bound = [constant(one.value) for one in bindings(facts).get(node.id, []) if one.value is not None]
    if of is None and any(isinstance(number, float) for number in bound):
        return "float", [Difference("exception", f"`{node.id}` is not written where it becomes a complex number")]
    return None, []


def is_only_text(facts: FunctionFacts, part: ast.expr, seen: frozenset[str] = frozenset()) -> bool:
    """Is a text written, raised, kept or handed back, so that nobody looks into it in a graph? While torch 2.13 traces,
    one with a tensor in it is equal to no other text, and no key.
    """
    child: ast.AST = part
    for above in facts.ancestors(part):
        match above:
            case ast.JoinedStr() | ast.FormattedValue() | ast.Return() | ast.Raise() | ast.Assert():
                pass
            case ast.Tuple() | ast.List() | ast.keyword() | ast.Starred() | ast.IfExp() | ast.BinOp(op=ast.Add()):
                pass
            case ast.Dict(values=values) if child in values:
                pass
            case ast.Call() if not _looks_up(facts, above):
                pass
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                reads = (n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
                return name in seen or all(is_only_text(facts, n, seen | {name}) for n in reads if n.id == name)
            case ast.Assign() | ast.Expr():
                return child is getattr(above, "value", None)
            case _:
                return False
        if isinstance(above, ast.stmt):
            return True
        child = above
    return False


def _looks_up(facts: FunctionFacts, call: ast.Call) -> bool:
    """May a call look into a text that it is given? Output, exceptions and `append` do not."""
    if isinstance(facts.parent(call), (ast.Raise, ast.Assert)):
        return False
    match call.func:
        case ast.Attribute(value=of, attr="append" | "insert"):
            return any(
                isinstance(n, ast.Compare) and any(ast.unparse(c) == ast.unparse(of) for c in n.comparators)
                for n in nodes_in(facts.source.tree or of)
            )
    name = qualified(facts, call.func) or ""
    return not (_is_output(facts, call) or name.startswith(_RUNTIME))


def always_one_of(
    facts: FunctionFacts, node: ast.expr, tensors: Set[ast.expr], seen: frozenset[str] = frozenset()
) -> bool:
    """Is every number that an expression may be one of those that become tensors, or computed from them? Names in
    `seen` are taken to be: each of their bindings is asked about.
    """
    if node in tensors:
        return True
    match node:
        case ast.Name(id=name):
            bound = bindings(facts).get(name, [])
            values = [one.value for one in bound if one.value is not None and not one.part]
            known = bool(bound) and len(values) == stores(facts, name) == len(bound)
            return name in seen or (known and all(always_one_of(facts, v, tensors, seen | {name}) for v in values))
        case ast.BinOp(left=left, right=right):
            return any(always_one_of(facts, side, tensors, seen) for side in (left, right))
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            return always_one_of(facts, operand, tensors, seen)
    return False


def numbers_beside(
    facts: FunctionFacts, node: ast.expr, tensors: Set[ast.expr], seen: frozenset[str]
) -> Iterator[ast.expr]:
    """The numbers that an expression may be besides those that become tensors; computed with one, it is a tensor. Names
    in `seen` are taken to be tensors.
    """
    if node in tensors or isinstance(facts.value(node), Tensor):
        return
    match node:
        case ast.Name(id=name):
            bound = reaching(facts, node)
            values = [b.value for b in bindings(facts).get(name, ()) if b.value is not None and not b.part]
            for value in [bound] if bound is not None else values:
                if name not in seen:
                    yield from numbers_beside(facts, value, tensors, seen | {name})
        case ast.IfExp(body=body, orelse=orelse):
            yield from numbers_beside(facts, body, tensors, seen)
            yield from numbers_beside(facts, orelse, tensors, seen)
        case ast.BinOp(left=left, right=right):
            sides = [[*numbers_beside(facts, side, tensors, seen)] for side in (left, right)]
            yield from sides[0] if all(sides) else ()
        case ast.UnaryOp(operand=operand):
            yield from numbers_beside(facts, operand, tensors, seen)
        case _:
            yield node


def text(facts: FunctionFacts, imports: Imports, form: Counterpart) -> str:
    """The text of what is said: put off where the output is emitted from inside a graph."""
    only, how = form.said[0]
    if form.argument is not only or _is_emitted(facts, facts.parent(only)):
        return argument(facts, imports, form.argument, dict(form.said))
    return f"{only.id}.item()" if how == "item" else f"{how}({only.id})"


def _place(facts: FunctionFacts, node: ast.Name) -> ast.expr | None:
    """The expression that is written anew: the name, or the argument of the call that puts it off."""
    child: ast.AST = node
    scopes: list[ast.AST] = []
    emitted: ast.expr | None = None
    for above in facts.ancestors(node):
        if isinstance(above, _SCOPES):
            scopes.append(above)
        if emitted is None and _is_emitted(facts, above) and isinstance(child, (ast.expr, ast.keyword)):
            emitted = child.value if isinstance(child, ast.keyword) else child
            scopes = [] if scopes == [child] and _makes_arguments(child) else scopes  # `emit_when(c, f, lambda: (s,))`
        if isinstance(above, ast.Raise) or (isinstance(above, ast.Assert) and above.msg is child):
            return node if not scopes else None
        if isinstance(above, ast.stmt):
            call = above.value if isinstance(above, ast.Expr) else None
            if scopes or not isinstance(call, ast.Call) or node in nodes_in(call.func):
                return None
            if emitted is not None:
                return _element(emitted, node) if isinstance(emitted, ast.Lambda) else emitted
            return node if _is_output(facts, call) else None
        child = above
    return None


def _makes_arguments(node: ast.AST) -> bool:
    return isinstance(node, ast.Lambda) and isinstance(node.body, ast.Tuple)


def _element(made: ast.Lambda, node: ast.Name) -> ast.expr | None:
    """The element of what a lambda makes in which a name stands."""
    assert isinstance(made.body, ast.Tuple)
    return next((e for e in made.body.elts if any(n is node for n in nodes_in(e))), None)


def _is_emitted(facts: FunctionFacts, node: ast.AST | None) -> bool:
    """Is something a call that happens, or is made, outside the graph?"""
    name = (qualified(facts, node.func) or "") if isinstance(node, ast.Call) else ""
    return name.startswith((f"{_RUNTIME}emit", f"{_RUNTIME}later"))


def _is_output(facts: FunctionFacts, call: ast.Call) -> bool:
    name = qualified(facts, call.func) or ""
    return name in ("builtins.print", "warnings.warn") or name.startswith("logging.")
