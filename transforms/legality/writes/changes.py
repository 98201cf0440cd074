"""What changes a tensor in place in a function, and which one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Const, Container, Scalar, Static, Tensor, options
from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo
from graphmend.analysis.program.entities import Function, Instance
from graphmend.analysis.resolution.classes import mro
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.liveness import locals_of, parameters
from graphmend.transforms.code.qualified_names import constant, qualified
from graphmend.transforms.legality.bodies.changed import arguments_for, changed_in
from graphmend.transforms.legality.bodies.layers import Effect
from graphmend.transforms.legality.bodies.module_effects import of_module
from graphmend.transforms.legality.operations import flags
from graphmend.transforms.legality.writes.in_place_flags import constructed, given
from graphmend.transforms.legality.writes.operands import in_place_operands, methods_by_name

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

Change = tuple[ast.stmt | ast.expr, ast.expr]

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
#: the methods that operators run, of the left operand and of the right one
_OPERATORS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.MatMult: "matmul", ast.Div: "truediv", ast.Mod: "mod",
    ast.Pow: "pow", ast.LShift: "lshift", ast.RShift: "rshift", ast.BitOr: "or", ast.BitXor: "xor",
    ast.BitAnd: "and", ast.FloorDiv: "floordiv",
}  # fmt: skip


def changes(facts: FunctionFacts, behind: ast.stmt | None = None) -> list[Change]:
    """What changes a tensor in place, and which one; from a statement on, or the loop around it, where one is given."""
    if behind is None:
        return [*_all_changes(facts)]
    loops = [a for a in facts.ancestors(behind) if isinstance(a, (ast.For, ast.AsyncFor, ast.While))]
    begin = loops[-1] if loops else behind
    place = begin.lineno, begin.col_offset
    return [
        (n, target) for n, target in _all_changes(facts) if (n.lineno, n.col_offset) >= place or at_any_time(facts, n)
    ]


def at_any_time(facts: FunctionFacts, change: ast.AST) -> bool:
    """May a change happen behind its place: in a function inside of the function, or by a method that is only named?"""
    if isinstance(change, ast.Attribute) and isinstance(change.ctx, ast.Load) and flags.is_in_place(change.attr):
        return True
    if isinstance(change, ast.Call) and methods_by_name(facts, change):
        return True
    return any(isinstance(a, _FUNCTIONS) and a is not facts.function for a in facts.ancestors(change))


@lru_cache(maxsize=2)
def _all_changes(facts: FunctionFacts) -> tuple[Change, ...]:
    found: list[Change] = []
    for node in nodes_in(facts.function):
        place = node.context_expr if isinstance(node, ast.withitem) else node
        if isinstance(place, (ast.stmt, ast.expr)):
            found += [(place, target) for target in _changed(facts, node) if not isinstance(target, ast.Constant)]
    return tuple(found)


def _changed(facts: FunctionFacts, node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.AugAssign(target=target, value=value, op=op):
            if not (isinstance(target, ast.Name) and _is_no_tensor(facts, node, target.id)):
                yield target.value if isinstance(target, ast.Subscript) else target
            for name in (f"__i{_OPERATORS[type(op)]}__", f"__{_OPERATORS[type(op)]}__"):
                yield from _by_method(facts, target, name, value)
        case ast.Subscript(value=of, slice=index, ctx=ast.Store() | ast.Del()):
            if not isinstance(facts.value(of), Container):
                yield of
            yield from _by_method(facts, of, "__setitem__", index, *_stored(facts, node))
        case ast.Attribute(value=of, attr=attr, ctx=ast.Store()):
            yield from _by_setter(facts, of, attr, *_stored(facts, node))
        case ast.Attribute(value=of, attr=attr) if flags.is_in_place(attr) and not _is_called(facts, node):
            yield of
        case ast.Attribute(value=of, attr=attr, ctx=ast.Load()) if not _is_called(facts, node):
            yield from _by_method(facts, of, attr)  # a property
        case ast.BinOp(left=left, right=right, op=op):
            yield from _by_method(facts, left, f"__{_OPERATORS[type(op)]}__", right)
            yield from _by_method(facts, right, f"__r{_OPERATORS[type(op)]}__", left)
        case ast.withitem(context_expr=of):
            yield from (*_by_method(facts, of, "__enter__"), *_by_method(facts, of, "__exit__"))
        case ast.Call():
            yield from in_place_operands(facts, node)
            yield from methods_by_name(facts, node)
            yield from _statistics(facts, node)
            yield from _by_optimizer(facts, node)
            yield from _by_call(facts, node)


def _is_called(facts: FunctionFacts, node: ast.Attribute) -> bool:
    above = facts.parent(node)
    return isinstance(above, ast.Call) and above.func is node


def _stored(facts: FunctionFacts, target: ast.expr) -> list[ast.expr]:
    """What is stored into an attribute or an item."""
    above = facts.parent(target)
    return [above.value] if isinstance(above, ast.Assign) else []


def _statistics(facts: FunctionFacts, call: ast.Call) -> Iterator[ast.expr]:
    """What a normalisation counts in its calls: the arguments of the function, the buffers of a layer and its parts."""
    folder, _, last = (qualified(facts, call.func) or "").rpartition(".")
    if folder in ("torch", "torch.nn.functional") and (places := flags.STATISTICS.get(f"{folder}.{last}")):
        counts = given(call, places.flag, places.flag_position)
        if counts is None or constant(counts) is not False:
            yield from filter(None, (given(call, name, position) for name, position in places.counted))
    if isinstance(facts.value(call.func), (ExternalInstance, Instance, Container)):
        owner = f"{ast.unparse(call.func)}."
        for node in nodes_in(facts.function):
            if isinstance(node, ast.Attribute) and node.attr in flags.COUNTED and ast.unparse(node).startswith(owner):
                yield node


def _by_optimizer(facts: FunctionFacts, call: ast.Call) -> Iterator[ast.expr]:
    """Every tensor from outside, where an optimizer makes a step: which ones it has is not known."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "step" and _is_optimizer(facts, call.func.value):
        own = locals_of(facts.function) - {*parameters(facts.function)}
        for node in nodes_in(facts.function):
            match node:
                case ast.Attribute(ctx=ast.Load()) | ast.Name(ctx=ast.Load()) if isinstance(facts.value(node), Tensor):
                    if isinstance(node, ast.Attribute) or node.id not in own:
                        yield node


def _is_optimizer(facts: FunctionFacts, node: ast.expr) -> bool:
    made = [(qualified(facts, c.func) or "") for c in constructed(facts, node) if isinstance(c, ast.Call)]
    return any(name.startswith("torch.optim.") for name in (*made, qualified(facts, node) or ""))


def _by_call(facts: FunctionFacts, call: ast.Call) -> Iterator[ast.expr]:
    """What functions of the program, and the methods that its objects are called by, may change in place. Other code is
    taken to change nothing that it is given.
    """
    for value in options(facts.value(call.func)):
        if isinstance(value, Instance):
            if not of_module(value, facts.source.tree, {}).effect & (Effect.STAYS | Effect.UNKNOWN):
                continue
            for name in ("__call__", "forward"):
                yield from _by_method(facts, call.func, name, *call.args, keywords=call.keywords)
        elif isinstance(value, Function):
            of = value.bound.info if isinstance(value.bound, Instance) and not value.info.is_static else None
            owner = call.func.value if isinstance(call.func, ast.Attribute) else None
            if value.bound is not None and of is None and changed_in(value.info, of):
                # of a class, whose first parameter is no argument
                yield from (*call.args, *(k.value for k in call.keywords))
            yield from _by_function(facts, value.info, of, owner, call, by_name=False)


def _by_method(
    facts: FunctionFacts, owner: ast.expr, name: str, *args: ast.expr, keywords: list[ast.keyword] | None = None
) -> Iterator[ast.expr]:
    """What a method of an object of the program may change in place, where the object has one of that name."""
    for value in options(facts.value(owner)):
        if isinstance(value, Instance):
            method = next((cls.methods[name] for cls in mro(value.info) if name in cls.methods), None)
            if method is not None:
                call = ast.Call(owner, [*args], keywords or [])
                yield from _by_function(facts, method, None if method.is_static else value.info, owner, call)


def _by_setter(facts: FunctionFacts, owner: ast.expr, name: str, *args: ast.expr) -> Iterator[ast.expr]:
    for value in options(facts.value(owner)):
        if isinstance(value, Instance):
            setter = next((cls.setters[name] for cls in mro(value.info) if name in cls.setters), None)
            if setter is not None:
                yield from _by_function(facts, setter, value.info, owner, ast.Call(owner, [*args], []))


def _by_function(
    facts: FunctionFacts,
    function: FunctionInfo,
    of: ClassInfo | None,
    owner: ast.expr | None,
    call: ast.Call,
    *,
    by_name: bool = True,
) -> Iterator[ast.expr]:
    """Its arguments, and what the object holds whose method it is, as far as the function names it."""
    changed = changed_in(function, of, by_name=by_name)
    if not changed:
        return
    yield from arguments_for(call, function, of, changed)
    if owner is not None:
        text = ast.dump(owner)
        held = (n for n in nodes_in(facts.function) if isinstance(n, ast.Attribute) and ast.dump(n.value) == text)
        yield from (n for n in held if changed.unknown or n.attr in changed.attributes)


def _is_no_tensor(facts: FunctionFacts, statement: ast.stmt, name: str) -> bool:
    """Is a name a number, a text, or a container, whose elements stay what they are, before a statement?"""
    value = facts.before(statement).get(name)
    return isinstance(value, (Static, Scalar, Container)) and not (isinstance(value, Const) and value.value is None)
