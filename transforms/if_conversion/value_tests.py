"""Which tests look at the elements of a tensor, and not at what is known while tracing alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from graphmend.analysis.lattice.values import Choice, Const, Scalar, Static, Tensor, Value, tensor_in
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bindings, reaching
from graphmend.transforms.code.qualified_names import called, qualified
from graphmend.transforms.legality.effects import effects

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


def depends(facts: FunctionFacts, node: ast.expr) -> bool:
    """Does a test look at the elements of a tensor?"""
    inner = (n for n in nodes_in(node) if isinstance(n, ast.expr) and _may_be_of_tensor(facts.value(n)))
    return any(not _only_metadata(facts, n, node) for n in inner)


def _may_be_of_tensor(value: Value) -> bool:
    return isinstance(value, Scalar) or tensor_in(value) is not None


def _only_metadata(facts: FunctionFacts, inner: ast.expr, top: ast.expr) -> bool:
    """Is a tensor inside a test only asked for its shape, dtype, device, or for being there?"""
    child: ast.expr = inner
    above = facts.parent(inner)
    while child is not top and above is not None:
        if _compares(facts, above):
            return False
        if isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.Not) and _may_be_of_tensor(facts.value(child)):
            return False
        if isinstance(above, ast.expr) and isinstance(facts.value(above), Static):
            return True
        if isinstance(above, ast.Compare) and all(isinstance(o, (ast.Is, ast.IsNot)) for o in above.ops):
            return True
        if isinstance(above, ast.Call) and child is not above.func and (qualified(facts, above.func) or "") in _ABOUT:
            return True
        if isinstance(above, ast.Attribute) and above.attr in _METADATA:
            return True
        child, above = above if isinstance(above, ast.expr) else child, facts.parent(above)
    return False


def _compares(facts: FunctionFacts, node: ast.AST) -> bool:
    """Does an expression look at elements although its value is a Python bool: membership, `any`, `all`,
    `torch.equal`?
    """
    if isinstance(node, ast.Compare):
        return any(isinstance(o, (ast.In, ast.NotIn)) for o in node.ops)
    return isinstance(node, ast.Call) and (qualified(facts, node.func) or "") in _LOOKING


_LOOKING = (
    *(f"builtins.{n}" for n in ("any", "all", "bool", "int", "float")),
    *(f"torch.{folder}{n}" for folder in ("", "Tensor.") for n in ("equal", "allclose", "is_nonzero", "item")),
    "operator.truth",
)
_ABOUT = (
    *(f"builtins.{n}" for n in ("isinstance", "len", "hasattr", "callable", "type")),
    "torch.is_tensor",
)
_METADATA = (
    *("shape", "dtype", "device", "ndim", "is_cuda", "requires_grad", "layout"),
    *("size", "dim", "numel", "is_floating_point"),
)


def effects_of_test(facts: FunctionFacts, test: ast.expr) -> list[str]:
    """What evaluating a test as a tensor does besides giving a value: what takes Python values out of tensors is gone
    from it then.
    """
    gone = effects_of_looking(facts, test)
    return [effect for effect in effects(facts, test) if effect not in gone]


def effects_of_looking(facts: FunctionFacts, *tests: ast.expr) -> set[str]:
    """What the calls in tests do that take Python values out of tensors."""
    calls = (n for test in tests for n in nodes_in(test) if isinstance(n, ast.Call))
    return {e for call in calls if (qualified(facts, call.func) or "") in _LOOKING for e in effects(facts, call)[:1]}


def split(
    facts: FunctionFacts, test: ast.expr, sign: Literal["and", "or"] = "and"
) -> tuple[list[ast.expr], list[ast.expr]]:
    """The conjuncts (or disjuncts) of a test: those in front that are no question about a tensor's elements, and the
    rest.
    """
    conjuncts = [*_parts(test, ast.And if sign == "and" else ast.Or)]
    static = 0
    while static < len(conjuncts) and not depends(facts, conjuncts[static]):
        static += 1
    return conjuncts[:static], conjuncts[static:]


def _parts(test: ast.expr, joins: type[ast.boolop]) -> Iterator[ast.expr]:
    """The parts of a test in the order in which they are asked: `a and (b and c)` asks as `a and b and c` does."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, joins):
        for part in test.values:
            yield from _parts(part, joins)
    else:
        yield test


def is_unknown_name(facts: FunctionFacts, part: ast.expr) -> bool:
    """Is a part of a test a name of which nothing says that it stands for a tensor? Python asks it then, and may do so
    in front of other parts.
    """
    while isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not):
        part = part.operand
    value = facts.value(part)
    return isinstance(part, ast.Name) and not isinstance(value, (Static, Scalar)) and tensor_in(value) is None


def reads_guessed(facts: FunctionFacts, node: ast.expr) -> bool:
    """Does a test read a parameter that nothing but its default says to be a number?"""
    given = facts.function.args
    positional = [*given.posonlyargs, *given.args]
    optional = [*positional[len(positional) - len(given.defaults) :], *given.kwonlyargs]
    guessed = {a.arg for a in optional if a.annotation is None}
    return any(isinstance(n, ast.Name) and n.id in guessed for n in nodes_in(node))


def on_some_paths(value: Value) -> bool:
    """Is a value a tensor or a Python bool or number, by the path?"""
    numbers = ("bool", "int", "float")
    return isinstance(value, Choice) and all(
        (isinstance(o, Tensor) and not o.ndarray)
        or (isinstance(o, Static) and o.type in (*numbers, None))
        or (isinstance(o, Const) and type(o.value).__name__ in numbers)
        for o in value.options
    )


class PythonValues:
    """Which parts of tests may be Python numbers or bools: an operation gives a tensor where one of what it is given is
    one, and something else on other paths, of which its value does not tell.
    """

    def __init__(self, facts: FunctionFacts) -> None:
        self._facts = facts
        self._known: dict[ast.expr, bool] = {}

    def may_be(self, node: ast.expr) -> bool:
        if node not in self._known:
            self._known[node] = False  # where a way comes back to it, the others say what it is
            self._known[node] = self._found(node)
        return self._known[node]

    def _found(self, node: ast.expr) -> bool:
        value = self._facts.value(node)
        if not isinstance(value, (Tensor, Scalar)):
            return True
        match node:
            case ast.Compare(left=left, comparators=rights):
                return all(map(self.may_be, (left, *rights)))
            case ast.BinOp(left=left, right=right):
                return self.may_be(left) and self.may_be(right)
            case ast.UnaryOp(operand=operand):
                return self.may_be(operand)
            case ast.NamedExpr(value=inner):
                return self.may_be(inner)
            case ast.IfExp(body=body, orelse=orelse):
                return self.may_be(body) or self.may_be(orelse)
            case ast.Call(func=function, args=[*args], keywords=[]) if called(self._facts, node, *_OF_NUMBERS):
                several = len(args) > 1 and ast.unparse(function) in ("max", "min")
                return any(map(self.may_be, args)) if several else all(map(self.may_be, args))
            case ast.Call(args=[items, *start]) if called(self._facts, node, "builtins.sum"):  # of nothing 0
                some = items.elts if isinstance(items, (ast.List, ast.Tuple)) else []
                return all(map(self.may_be, (*some, *start)))
            case ast.Name():
                bound = reaching(self._facts, node)
                every = [one.value for one in bindings(self._facts).get(node.id, []) if not one.part]
                return any(self.may_be(one) for one in ([bound] if bound is not None else every) if one is not None)
        return False


#: they give a number of numbers, and a tensor of tensors
_OF_NUMBERS = ("builtins.abs", "builtins.max", "builtins.min", "builtins.round")
