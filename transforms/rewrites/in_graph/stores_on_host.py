"""Call a loop that stores to tensors, at places that only plain Python can tell, from inside the graph.

Before:
    def ones(lengths):
        mask = torch.zeros(len(lengths), 8, dtype=torch.bool)
        for row, length in enumerate(lengths.tolist()):
            mask[row, :length] = True
        return mask

After:
    def ones(lengths):
        mask = torch.zeros(len(lengths), 8, dtype=torch.bool)

        def fill(mask, lengths):
            for row, length in enumerate(lengths.tolist()):
                mask[row, :length] = True

        (mask,) = stores_on_host(fill, (mask,), lengths)
        return mask

Legal when:
    the loop computes and stores to tensors, and does nothing else; what it stores to is new, dense, bound once before,
    and nothing else sees it; what it stores cannot ask for gradients; what it reads are tensors, numbers, and functions
    of torch and Python; none of the names that it binds is read behind it. What only it reads of the places of a mask,
    or of the values of a tensor, moves into it, where that cannot raise, and what stands between only binds names.

Differs in:
    nothing: a graph calls the loop each time it runs, with copies of what it stores to, and goes on with these. Under
    autocast, and where the region has changed what outlives it, which an exception would undo, the graph breaks there.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis import torch_facts
from graphmend.analysis.lattice.values import Scalar, Static, Tensor, Value, options
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import alive, fresh, live_into, locals_of, reads, surely_bound, writes
from graphmend.transforms.code.positions import begins_line
from graphmend.transforms.code.qualified_names import qualified
from graphmend.transforms.code.text_edits import HOLE, delete, replace_statements
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.legality.effects import effects, warns
from graphmend.transforms.legality.gradients.sides import carries, told_by
from graphmend.transforms.legality.in_place import bound_to, dense, writable
from graphmend.transforms.legality.memory import seen_elsewhere
from graphmend.transforms.legality.raising.existing import surely_of_module, surely_there
from graphmend.transforms.legality.totality import may_raise
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "stores_on_host"
Loop = ast.For | ast.While
_STATEMENTS = (ast.For, ast.While, ast.If, ast.Assign, ast.AugAssign, ast.Break, ast.Continue, ast.Pass)
#: what takes a Python value out of a tensor, and changes nothing
_TAKES = frozenset(
    "torch.Tensor.item torch.Tensor.tolist builtins.int builtins.float builtins.bool builtins.len".split()
)
_BUILTINS = frozenset(
    "range len int float bool min max abs sum enumerate zip sorted reversed any all divmod pow round tuple list".split()
)
#: what is told by them of an object would be told of another one behind the loop
_KNOWING = frozenset({"builtins.id", "builtins.hash", "builtins.getattr", "builtins.hasattr"})
_LISTS = frozenset(f"torch.{name}" for name in "nonzero argwhere where Tensor.nonzero Tensor.tolist".split())
#: attributes of a tensor that a copy has as well
_SAME = frozenset({"shape", "dtype", "device", "ndim", "T"})
#: values known while tracing that an operator takes, or that are the same for every run of the graph
_CARRIED = frozenset({"int", "float", "bool", "str", "NoneType", "dtype", "device"})
#: they make tensors on the device that is the default, unless they are told one
_MAKERS = frozenset({"zeros", "ones", "empty", "full", "arange", "linspace", "tensor", "as_tensor", "eye", "range"})


class _Loop(NamedTuple):
    """What a loop needs."""

    changed: list[str]
    """The tensors that it stores to."""
    given: list[str]
    """What else it reads of the function, and numbers of the module."""
    attributes: dict[ast.Attribute, str]
    """The numbers of objects that it reads, and the text of each."""
    moved: list[ast.Assign]
    """The statements before it whose values it alone reads, and that move into it."""


@asks("effects", "totality", "memory", "order", "gradients", "names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = _loop(facts)
    if statement is None or not begins_line(facts.source, statement):
        return None
    loop = _needs(facts, statement)
    if not isinstance(loop, _Loop):
        return refuse(NAME, loop) if loop else None
    imports, code = Imports(facts), Code(facts.source)
    host = imports.name("graphmend.runtime.stores_on_host", "graphmend.runtime")
    name = fresh(facts, "fill")
    called: dict[str, str] = {}
    for node, text in loop.attributes.items():
        if text not in called:
            called[text] = fresh(facts, node.attr, [name, *called.values()])

    def make() -> list[TextEdit]:
        names: dict[ast.expr, str] = {node: called[text] for node, text in loop.attributes.items()}
        changed = ", ".join(loop.changed) + ("," if len(loop.changed) == 1 else "")
        head = f"def {name}({', '.join([*loop.changed, *loop.given, *called.values()])}):\n"
        head += "".join(f"    {ast.unparse(s.targets[0])} = {code.text(s.value, names)}\n" for s in loop.moved)
        target = f"({changed})" if len(loop.changed) == 1 else changed
        call = f"{target} = {host}({', '.join([name, f'({changed})', *loop.given, *called])})\n"
        body = HOLE.format(0) if not names else _flush_left(facts, statement, code.text(statement, names))
        text = f"{head}{textwrap.indent(body, '    ')}\n{call}"
        edits = [delete(facts.source, s) for s in loop.moved]
        kept = [] if names else [[statement]]
        return [*imports.edits(), *edits, replace_statements(facts.source, [statement], text, *kept)]

    return offer(NAME, "call the loop from the graph (graphmend.runtime)", facts, make)


def _flush_left(facts: FunctionFacts, statement: ast.stmt, text: str) -> str:
    """The text of a statement without the indentation of its own first line."""
    indent = facts.source.lines.line(statement.lineno - 1)[: statement.col_offset]
    return "\n".join(each.removeprefix(indent) for each in text.splitlines())


def _loop(facts: FunctionFacts) -> Loop | None:
    """The outermost loop around a finding, or the one that alone reads what its statement binds."""
    around = [facts.statement, *facts.ancestors(facts.statement)]
    for node in reversed(around[: around.index(facts.function)]):
        if isinstance(node, (ast.For, ast.While)):
            return node if isinstance(facts.function, ast.FunctionDef) else None
        if not isinstance(node, ast.If):
            break
    match facts.statement:
        case ast.Assign(targets=[ast.Name(id=name)]):
            block = facts.body_of(facts.statement)
            behind = block[block.index(facts.statement) + 1 :]
            reader = next((s for s in behind if name in reads(s)), None)
            return reader if isinstance(reader, (ast.For, ast.While)) else None
    return None


def _needs(facts: FunctionFacts, loop: Loop) -> _Loop | str:
    """What a loop needs; why it cannot be called, as a sentence, or an empty one where it is another kind of loop."""
    about = facts.about(loop)
    stored = list(dict.fromkeys(filter(None, map(_root, _stores(loop)))))
    lists = [name for name in stored if _moves(facts, loop, name, _makes_list) is not None]
    changed = [name for name in stored if name not in lists]
    counted = any(_stores(n.target) for n in nodes_in(loop) if isinstance(n, ast.For))
    if not changed or counted or None in map(_root, _stores(loop)):
        return ""
    if (more := _does_more(facts, loop)) is not None:
        return f"`{more}` may do more than compute and store"
    for name in changed:
        read = next(n for n in nodes_in(loop) if isinstance(n, ast.Name) and n.id == name)
        known = writable(about, loop, name) and dense(about, loop, read) and not seen_elsewhere(about, read, name)
        if not known or len(bound_to(facts, name)) != 1 or name in writes(loop) - {name}:
            return f"`{name}` is not known to be a new tensor, which nothing else sees"
        if carries(about, read):
            return f"`{name}` may ask for gradients"
        if not _is_only_used(facts, name, loop):
            return f"`{name}` may be held, or known, as this very object"
    if left := next((n for n in sorted(writes(loop)) if n not in changed and alive(about, n, loop)), None):
        return f"`{left}` is read behind the loop"
    own = locals_of(facts.function)
    moved: list[ast.Assign] = []
    needed = live_into([loop]) & own
    for each in sorted(needed - {*changed}):
        statement = _moves(facts, loop, each, _makes_list if each in lists else _breaks)
        if statement is not None:
            moved.append(statement)
            needed = needed - {each} | (reads(statement.value) & own)
    moved.sort(key=lambda s: (s.lineno, s.col_offset))
    every = [n for s in (loop, *moved) for n in nodes_in(s)]
    attributes = {n: ast.unparse(n) for n in every if isinstance(n, ast.Attribute) and _is_number_of_object(facts, n)}
    if unsure := next((n for n in attributes if reads(n) & writes(loop) or not surely_there(facts, n)), None):
        return (
            f"`{ast.unparse(unsure)}` is another one in the loop, or may be missing where the loop does not ask for it"
        )
    hidden = {n for node in attributes for n in nodes_in(node)}
    if attributes and any(isinstance(n, ast.Constant) and n.end_lineno != n.lineno for n in nodes_in(loop)):
        return "a text in the loop spans lines"
    names = [n for n in every if isinstance(n, ast.Name) and n not in hidden]
    numbers = {n.id for n in names if n.id not in own and _is_number(facts, n)}
    given = sorted(needed & {n.id for n in names} - {*changed}) + sorted(numbers)
    if unbound := sorted({*given} - numbers - surely_bound(facts, loop)):
        return f"`{unbound[0]}` may not be bound before the loop"
    for name in given[: len(given) - len(numbers)]:
        value = facts.before(loop).get(name)
        if value is None or not all(map(_is_carried, options(value))):
            return f"`{name}` is not known to be a tensor or a number"
    if told := next((v for v in _stored(loop) if carries(about, v)), None):
        return f"`{ast.unparse(told)}` may ask for gradients"
    return _Loop(changed, given, attributes, moved)


def _stores(node: ast.AST) -> list[ast.Subscript]:
    return [n for n in nodes_in(node) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)]


def _stored(loop: Loop) -> Iterator[ast.expr]:
    """The values that are stored."""
    statements = (n for n in nodes_in(loop) if isinstance(n, (ast.Assign, ast.AugAssign)))
    return (n.value for n in statements if any(map(_stores, n.targets if isinstance(n, ast.Assign) else [n.target])))


def _root(node: ast.expr) -> str | None:
    """The name of the tensor that is stored to."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _does_more(facts: FunctionFacts, statement: ast.stmt) -> str | None:
    """The part of a statement that may do more than compute and store."""
    for node in nodes_in(statement):
        if isinstance(node, ast.stmt) and not isinstance(node, _STATEMENTS):
            return ast.unparse(node).splitlines()[0]
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            value = facts.before(node).get(node.target.id)
            if value is None or not all(isinstance(v, (Static, Scalar)) for v in options(value)):
                return ast.unparse(node)  # a tensor is changed in place
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and not _is_lasting(facts, node):
            return node.id
        if isinstance(node, ast.Attribute) and not (
            _is_read(facts, node) or any(_is_number_of_object(facts, each) for each in (node, *facts.ancestors(node)))
        ):
            return ast.unparse(node)
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Call) and not _is_whole(facts, node)):
            return ast.unparse(node)
        if isinstance(node, ast.Compare) and _asks_which(facts, node):
            return ast.unparse(node)
    parts = [n for n in nodes_in(statement) if isinstance(n, ast.expr) and isinstance(facts.parent(n), ast.stmt)]
    return next((ast.unparse(p) for p in parts if _has_effects(facts, p)), None)


def _has_effects(facts: FunctionFacts, node: ast.expr) -> bool:
    """Does evaluating an expression do more than to give a value, which may be one that it takes out of a tensor?"""
    taking = [n for n in nodes_in(node) if isinstance(n, ast.Call) and _takes(facts, n)]
    found = {*effects(facts, node)} - {*effects(facts, *taking)}
    operands = [o for call in taking for o in (*call.args, call.func) if o is not node]
    return bool(found or warns(facts, node) or told_by(facts, node)) or any(_has_effects(facts, o) for o in operands)


def _takes(facts: FunctionFacts, call: ast.Call) -> bool:
    name = qualified(facts, call.func)
    return name in _TAKES and not call.keywords and len(call.args) <= (0 if name.startswith("torch.") else 1)


def _is_lasting(facts: FunctionFacts, name: ast.Name) -> bool:
    """Is a name one of the function's, or does it mean the same whenever the graph runs: torch, or Python's own?"""
    if name.id in locals_of(facts.function) or (_is_number(facts, name) and surely_of_module(facts, name.id)):
        return True
    folder, _, last = (qualified(facts, name) or "").rpartition(".")
    return folder.partition(".")[0] == "torch" or last == "torch" or (folder == "builtins" and last in _BUILTINS)


def _is_number(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is an expression known while tracing, a number or the like?"""
    return all(isinstance(v, Static) and v.type in _CARRIED for v in options(facts.value(node)))


def _is_number_of_object(facts: FunctionFacts, node: ast.AST) -> bool:
    """Is a number read of an object, which the loop cannot change?"""
    if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load) or not _is_number(facts, node):
        return False
    root: ast.expr = node.value
    while isinstance(root, ast.Attribute):
        root = root.value
    own = isinstance(root, ast.Name) and root.id in locals_of(facts.function)
    return own and not isinstance(facts.value(node.value), Tensor)


def _asks_which(facts: FunctionFacts, node: ast.Compare) -> bool:
    """May a comparison ask which tensor a value is? A copy, or what is cut off its history, is another one."""
    for operator, right in zip(node.ops, node.comparators, strict=True):
        if isinstance(operator, (ast.Is, ast.IsNot)) and not (isinstance(right, ast.Constant) and right.value is None):
            return True
        if isinstance(operator, (ast.In, ast.NotIn)):
            parts = right.elts if isinstance(right, (ast.Tuple, ast.List, ast.Set)) else [right]
            if not all(isinstance(facts.value(p), (Static, Scalar)) for p in parts):
                return True
    return False


def _is_only_used(facts: FunctionFacts, name: str, loop: Loop) -> bool:
    """Is a tensor only computed with, and stored to, in front of a loop?"""
    for node in nodes_in(facts.function):
        if not (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)):
            continue
        if (node.lineno, node.col_offset) >= (loop.lineno, loop.col_offset):
            continue
        statement = next(a for a in facts.ancestors(node) if isinstance(a, ast.stmt))
        calls = [a for a in facts.ancestors(node) if isinstance(a, ast.Call)]
        if not isinstance(statement, (ast.Assign, ast.AugAssign, ast.If, ast.For, ast.While)) or any(
            effects(facts, c) or (qualified(facts, c.func) or "") in _KNOWING for c in calls
        ):
            return False
    return True


def _is_read(facts: FunctionFacts, node: ast.Attribute) -> bool:
    """Is an attribute one of torch's, of a tensor that a copy has as well, or called?"""
    if (qualified(facts, node) or "").startswith("torch.") and not isinstance(facts.value(node.value), Tensor):
        return True
    called = isinstance(above := facts.parent(node), ast.Call) and above.func is node
    return isinstance(facts.value(node.value), Tensor) and (called or node.attr in _SAME)


def _is_whole(facts: FunctionFacts, call: ast.Call) -> bool:
    """Does a call that makes a tensor say where, which a default may say otherwise when the graph runs?"""
    folder, _, last = (qualified(facts, call.func) or "").rpartition(".")
    return folder != "torch" or last not in _MAKERS or any(k.arg == "device" for k in call.keywords)


def _is_carried(value: Value) -> bool:
    """Can a graph hand a value to an operator, or is it the same in each run?"""
    if isinstance(value, Tensor):
        return not (value.likely or value.ndarray)
    return isinstance(value, (Static, Scalar)) and value.type in _CARRIED


def _moves(
    facts: FunctionFacts, loop: Loop, name: str, wanted: Callable[[FunctionFacts, ast.expr], bool]
) -> ast.Assign | None:
    """The statement that binds a name which the loop alone reads to a `wanted` value, if that can be computed in the
    loop's place.
    """
    block = facts.body_of(loop)
    for at, statement in enumerate(block[: block.index(loop)]):
        match statement:
            case ast.Assign(targets=[ast.Name(id=bound)], value=value) if bound == name:
                between = block[at + 1 : block.index(loop)]
                free = (
                    bound_to(facts, name) == [value]
                    and wanted(facts, value)
                    and begins_line(facts.source, statement)
                    and not alive(facts, name, loop)
                    and name not in reads(*between)
                    and reads(value).isdisjoint(writes(*between))
                    and _does_more(facts, statement) is None
                    and (
                        _is_listed(facts, value)
                        or _makes_list(facts, value)
                        or not may_raise(facts, value, at=statement)
                    )
                    and all(_only_binds(facts, s) for s in between)
                )
                return statement if free else None
    return None


def _makes_list(facts: FunctionFacts, value: ast.expr) -> bool:
    """Does an expression make a list of numbers?"""
    match value:
        case ast.BinOp(left=ast.List() as made, op=ast.Mult(), right=times):
            return _makes_list(facts, made) and _is_number(facts, times)
        case ast.List(elts=elements):
            return all(_is_number(facts, e) for e in elements)
    return False


def _is_listed(facts: FunctionFacts, value: ast.expr) -> bool:
    """Does an expression list the values, or the places, of a tensor, which never raises?"""
    match value:
        case ast.Call(func=ast.Attribute() as function, args=args, keywords=[]) if (
            qualified(facts, function) in _LISTS and len(args) < 2
        ):
            tensor = args[0] if args else function.value
            known = facts.value(tensor)
            return isinstance(tensor, ast.Name) and isinstance(known, Tensor) and not (known.likely or known.ndarray)
    return False


def _only_binds(facts: FunctionFacts, statement: ast.stmt) -> bool:
    """Does a statement bind names to what it computes, and nothing else?"""
    match statement:
        case ast.Assign(targets=[ast.Name() | ast.Tuple() as target], value=value):
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            return all(isinstance(n, ast.Name) for n in names) and not effects(facts, value)
    return False


def _breaks(facts: FunctionFacts, value: ast.expr) -> bool:
    """Does an expression take Python values out of a tensor, or give a tensor whose shape depends on values?"""
    torch = torch_facts.load(facts.torch_version)
    for node in nodes_in(value):
        if isinstance(node, ast.Call):
            keywords = frozenset(k.arg or "" for k in node.keywords)
            name = qualified(facts, node.func) or ""
            if _takes(facts, node) or torch.is_dynamic_shape(name, len(node.args), keywords):
                return True
    return False
