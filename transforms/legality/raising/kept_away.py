"""What a test keeps an operation away from: `n < len(bank)` stands in front of `bank[n]` so that this does not raise.

An operation that raises for some values of its operands (an index, a key, a divisor, a size) must not be evaluated
where a test that is about the same values was not met. A test of anything else has nothing to do with it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Static, Tensor, dtype_kind
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bindings
from graphmend.transforms.code.qualified_names import qualified
from graphmend.transforms.legality.operations import domains
from graphmend.transforms.legality.operations import names as known

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

#: functions that raise for some values of an operand, and which one: its position, the receiver of a method counted
_BY_VALUE: dict[str, tuple[int, ...]] = {
    **dict.fromkeys("gather scatter scatter_add scatter_reduce index_select index_add index_copy".split(), (2,)),
    **dict.fromkeys("index_fill select".split(), (2,)),
    **dict.fromkeys("take take_along_dim cross_entropy nll_loss repeat_interleave".split(), (1,)),
    **dict.fromkeys("embedding embedding_bag one_hot bincount multinomial inverse cholesky inv solve".split(), (0,)),
    **dict.fromkeys("floor_divide remainder fmod pow".split(), (1,)),
    "binary_cross_entropy": (0, 1),
    "narrow": (2, 3),
}
_KEYWORDS = frozenset("index indices target start length repeats other exponent".split())
#: the same for layers
_LAYERS = {"Embedding": 0, "EmbeddingBag": 0}
_LOSSES = ("cross_entropy", "nll_loss")
#: a test that asks these is about what they are made of
_SAYS = known.REDUCTIONS | known.CASTS | known.TESTS | frozenset("max min amax amin aminmax".split())
#: they give the same value once more, or one that follows it
_GOES_WITH = known.CASTS | frozenset(
    "item clone detach to tolist squeeze unsqueeze reshape view flatten clamp clip clamp_min clamp_max contiguous "
    "int float bool abs min max round tensor as_tensor".split()
)
_SIZES = frozenset("shape size numel nelement".split())


def kept_away(facts: FunctionFacts, node: ast.expr, at: ast.stmt) -> list[ast.expr]:
    """The operands of an operation that raises for some values of them, which a test in a statement is about."""
    asked = _asked(facts, at, _ignored(node))
    return [operand for operand, about in _decisive(facts, node) if not asked.isdisjoint(about)] if asked else []


def _ignored(node: ast.expr) -> str | None:
    """The class that a loss leaves out, so that it does not raise for it: without others its mean is NaN."""
    if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith(_LOSSES):
        return None
    return next((ast.unparse(k.value) for k in node.keywords if k.arg == "ignore_index"), "-100")


@lru_cache(maxsize=8)
def _asked(facts: FunctionFacts, at: ast.stmt, ignored: str | None) -> frozenset[str]:
    """The values that the tests in a statement are about, but for questions whether they equal an ignored one; with a
    test that leaves an iteration those of its loop.
    """
    leaves = any(isinstance(n, (ast.Break, ast.Continue)) for n in nodes_in(at))
    loops = (a for a in facts.ancestors(at) if isinstance(a, (ast.For, ast.While)))
    whole = next(loops, at) if leaves else at
    return frozenset(about for test in _tests(whole) for about in _values(facts, test, _SAYS, ignored))


def _tests(statement: ast.AST) -> Iterator[ast.expr]:
    for node in nodes_in(statement):
        match node:
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
                yield test
            case ast.BoolOp(values=[*parts, _]):
                yield from parts
            case ast.comprehension(ifs=tests):
                yield from tests


def _decisive(facts: FunctionFacts, node: ast.expr) -> Iterator[tuple[ast.expr, set[str]]]:
    """The operands that decide whether an operation raises, but for dtypes and shapes, with what they go with."""
    match node:
        case ast.Subscript(value=owner, slice=place):
            parts = place.elts if isinstance(place, ast.Tuple) else [place]
            slices = [b for p in parts if isinstance(p, ast.Slice) for b in (p.lower, p.upper, p.step)]
            for index in (*parts, *slices):
                if index is not None and not isinstance(index, ast.Slice) and not _is_mask(facts, index):
                    yield index, _values(facts, index)
            yield owner, {_size_of(owner)}
        case ast.BinOp(op=ast.FloorDiv() | ast.Mod() | ast.Pow(), right=right):
            yield right, _values(facts, right)
        case ast.Call():
            yield from _of_call(facts, node)


def _of_call(facts: FunctionFacts, node: ast.Call) -> Iterator[tuple[ast.expr, set[str]]]:
    called = facts.value(node.func)
    if isinstance(called, ExternalInstance) and called.cls.startswith("torch.nn."):
        position = _LAYERS.get(called.cls.rpartition(".")[2])
        if position is not None and len(node.args) > position:
            yield node.args[position], _values(facts, node.args[position])
        return
    folder, _, last = (qualified(facts, node.func) or "").rpartition(".")
    if folder not in known.FUNCTIONAL:
        return
    operands = list(node.args)
    if folder == "torch.Tensor" and isinstance(node.func, ast.Attribute):
        operands.insert(0, node.func.value)
    if last in domains.EMPTY and operands:
        yield operands[0], {_size_of(operands[0])}
    positions = _BY_VALUE.get(last, ())
    for operand in (operands[p] for p in positions if p < len(operands)):
        yield operand, _values(facts, operand)
    for keyword in node.keywords if positions else ():
        if keyword.arg in _KEYWORDS:
            yield keyword.value, _values(facts, keyword.value)


def _values(
    facts: FunctionFacts, expression: ast.expr, says: frozenset[str] = frozenset(), ignored: str | None = None
) -> set[str]:
    """An expression and what its value goes with, each as a text: operands of its arithmetic, what its names are bound
    to. What is known while tracing is asked there.
    """
    found: set[str] = set()
    rest: list[ast.expr] = [expression]
    while rest:
        node = rest.pop()
        if isinstance(node, ast.Constant) or isinstance(facts.value(node), Static):
            continue
        if (sized := _sized(node)) is not None:
            found.add(_size_of(sized))
            continue
        text = ast.unparse(node)
        if text in found or (ignored is not None and _equals(node, ignored)):
            continue
        found.add(text)
        match node:
            case ast.Name(id=name):
                rest += [b.value for b in bindings(facts).get(name, ()) if b.value is not None and not b.part]
            case ast.BinOp(left=left, right=right):
                rest += [left, right]
            case ast.UnaryOp(operand=operand):
                rest.append(operand)
            case ast.Subscript(value=value):
                rest.append(value)
            case ast.Compare(left=left, comparators=others) if says:
                rest += [left, *others]
            case ast.BoolOp(values=values) if says:
                rest += values
            case ast.Call(func=ast.Attribute(value=value, attr=last), args=args) if last in _GOES_WITH | says:
                rest += [value, *args]
            case ast.Call(func=ast.Name(id=last), args=args) if last in _GOES_WITH:
                rest += args
    return found


def _equals(node: ast.expr, value: str) -> bool:
    """Is it asked whether something equals a value that is given as a text?"""
    match node:
        case ast.Compare(ops=[ast.Eq() | ast.NotEq()], comparators=[other]):
            return ast.unparse(other) == value
        case ast.Call(func=ast.Attribute(attr="eq" | "ne" | "not_equal"), args=[other]):
            return ast.unparse(other) == value
    return False


def _sized(node: ast.expr) -> ast.expr | None:
    """What an expression is the size of."""
    match node:
        case ast.Subscript(value=ast.Attribute(value=owner, attr="shape")) | ast.Attribute(value=owner, attr="shape"):
            return owner
        case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in _SIZES:
            return owner
        case ast.Call(func=ast.Name(id="len"), args=[owner]):
            return owner
    return None


def _size_of(owner: ast.expr) -> str:
    return f"size of {ast.unparse(owner)}"


def _is_mask(facts: FunctionFacts, node: ast.expr) -> bool:
    value = facts.value(node)
    return isinstance(value, Tensor) and dtype_kind(value.dtype) == "bool"
