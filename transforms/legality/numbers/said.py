"""Where a number is only said: written by an output call, or part of an exception's message. A tensor that stands for
the number hands it out there, when the output happens or the exception is raised. And whether a tensor stands there on
every way (`Beside`), or what may stay a number.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator, Set
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Tensor, dtype_kind
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bindings, reaching
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import parameters, writes
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


class Beside:
    """Finds the numbers that an expression may be besides those that become `tensors`: constants, parameters, what is
    not known. What is computed with a tensor is one. The name `given` is taken for a tensor.
    """

    def __init__(self, facts: FunctionFacts, tensors: Set[ast.expr], given: str = "") -> None:
        self._facts, self._tensors, self._given = facts, tensors, given
        self._known: dict[ast.expr | str, list[ast.expr]] = {}
        """Each expression and name is asked about once; where a way comes back to it, the others say what it is."""

    def of(self, node: ast.expr) -> list[ast.expr]:
        if node not in self._known:
            self._known[node] = []
            self._known[node] = self._found(node)
        return self._known[node]

    def _found(self, node: ast.expr) -> list[ast.expr]:
        if node in self._tensors or isinstance(self._facts.value(node), Tensor):
            return []
        match node:
            case ast.Name():
                return self._of_name(node)
            case ast.IfExp(body=one, orelse=other):
                return [*self.of(one), *self.of(other)]
            case ast.NamedExpr(value=value) | ast.UnaryOp(operand=value):
                return self.of(value)
            case ast.BinOp(left=left, right=right):
                return self.of(left) and self.of(right)
            case ast.Call(func=function, args=[_, *_] as args, keywords=[]):
                name = qualified(self._facts, function) or ""
                if name in _OF_NUMBERS or name.startswith("math."):
                    return [found for argument in args for found in self.of(argument)]
        return [node]

    def _of_name(self, node: ast.Name) -> list[ast.expr]:
        if node.id == self._given or any(not self.of(value) for value in added_before(self._facts, node)):
            return []
        if (bound := reaching(self._facts, node)) is not None:
            return self.of(bound)
        if node.id not in self._known:
            self._known[node.id] = []
            self._known[node.id] = self._of_all(node)
        return self._known[node.id]

    def _of_all(self, node: ast.Name) -> list[ast.expr]:
        """What any binding of a name makes it."""
        bound = bindings(self._facts).get(node.id, [])
        values = [b.value for b in bound if b.value is not None and not (b.part and b.value not in self._tensors)]
        if not bound or len(values) < len(bound) or node.id in parameters(self._facts.function):
            return [node]
        return [found for value in values for found in self.of(value)]


#: builtins that give a number of their arguments, and a tensor of tensors as they are written then
_OF_NUMBERS = frozenset(f"builtins.{name}" for name in ("abs", "float", "int", "max", "min", "round"))


def added_before(facts: FunctionFacts, node: ast.Name) -> Iterator[ast.expr]:
    """What is added to a name by statements that always run between its last binding and where it is read."""
    child: ast.AST = node
    for above in facts.ancestors(node):
        for block in (getattr(above, part, ()) for part in ("body", "orelse", "finalbody")):
            for statement in (
                reversed(block[: block.index(child)]) if isinstance(block, list) and child in block else ()
            ):
                match statement:
                    case ast.AugAssign(target=ast.Name(id=name), value=value) if name == node.id:
                        yield value
                    case _ if node.id in writes(statement):
                        return
        if above is facts.function:
            return
        child = above


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


def is_said(facts: FunctionFacts, call: ast.Call) -> bool:
    """Does a call only write text, also where it is put off?"""
    return _is_output(facts, call) or _is_emitted(facts, call)


def _is_output(facts: FunctionFacts, call: ast.Call) -> bool:
    name = qualified(facts, call.func) or ""
    return name in ("builtins.print", "warnings.warn") or name.startswith("logging.")
