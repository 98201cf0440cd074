"""Which dtypes may come, and what a cast or a Python number does to them.

Kinds that are possible are gathered from the analysis, from how a value is built, and from what was evaluated before
without an exception: behind `x.mean()` no integer is left.
"""

from __future__ import annotations

import ast
import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Scalar, Static, Tensor, dtype_kind
from graphmend.transforms.code.bindings import bindings, reaching
from graphmend.transforms.code.certain import changed_on_the_way, evaluated_before, place_of
from graphmend.transforms.code.liveness import parameters, reads
from graphmend.transforms.code.qualified_names import constant, qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.operations import domains
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

#: what dtypes have in common; `uint8` stands apart, because it is a mask where another integer is an index
Kind = Literal["bool", "uint8", "int", "float", "complex"]
Kinds = frozenset[str]

_ORDER = ("bool", "uint8", "int", "float", "complex")
ALL: Kinds = frozenset(_ORDER)
_NUMBERS = ("bool", "int", "float", "complex")


@answers("dtypes")
def kind(facts: FunctionFacts, node: ast.expr) -> Kind | None:
    """The kind of a tensor or a Python number; None where several are possible."""
    found = kinds(facts, node)
    found_one = next(iter(found), None)
    return found_one if len(found) == 1 else None  # type: ignore[return-value]


@answers("dtypes")
def kinds(facts: FunctionFacts, node: ast.expr, at: ast.stmt | None = None) -> Kinds:
    """The kinds that a tensor or a Python number may have where a statement is reached, by default the branch of the
    finding.
    """
    return _Kinds(facts, at if at is not None else place_of(facts)).of(node)


@answers("dtypes")
def casts_into(facts: FunctionFacts, target: ast.expr, value: ast.expr) -> bool | None:
    """Does writing `value` into `target` in place do what `copy_` of it does: True for certain, False where it raises
    instead, None where that is not known?
    """
    into, of = kinds(facts, target), kinds(facts, value)
    if max(map(_rank, of), default=0) <= min(map(_rank, into), default=0):
        return True
    return False if min(map(_rank, of), default=0) > max(map(_rank, into), default=0) else None


@answers("dtypes")
def filled(facts: FunctionFacts, *tensors: ast.expr) -> list[Difference]:
    """What differs where a number stands for elements of tensors: a tensor of bool takes none."""
    bools = [t for t in tensors if "bool" in kinds(facts, t)]
    return [Difference("dtype", f"`{ast.unparse(t)}` of bool becomes whole numbers") for t in bools]


def in_float32(value: object) -> bool:
    """Is a Python number the same in float32?"""
    if not isinstance(value, (bool, int, float)):
        return False
    try:
        return bool(struct.unpack("f", struct.pack("f", value))[0] == value) or value != value
    except (OverflowError, struct.error):
        return False


def raises_for(facts: FunctionFacts, node: ast.expr) -> tuple[list[ast.expr], Kinds]:
    """The tensor operands of an operation, and the kinds for which it raises whatever else is given."""
    match node:
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            return [operand], frozenset({"bool"})
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return [operand], frozenset({"float", "complex"})
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return [left, right], frozenset({"bool"})
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr() | ast.BitXor(), right=right):
            return [left, right], frozenset({"float", "complex"})
        case ast.BinOp(left=left, op=ast.LShift() | ast.RShift(), right=right):
            return [left, right], frozenset({"bool", "float", "complex"})
        case ast.BinOp(left=left, op=ast.FloorDiv() | ast.Mod(), right=right):
            return [left, right], frozenset({"complex"})
        case ast.Compare(left=left, ops=ops, comparators=rights) if any(
            isinstance(o, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for o in ops
        ):
            return [left, rights[0]], frozenset({"complex"})
        case ast.Call():
            name = qualified(facts, node.func) or ""
            folder, _, last = name.rpartition(".")
            if folder in known.FUNCTIONAL and last in domains.RAISES_FOR:
                method = folder == "torch.Tensor" and isinstance(node.func, ast.Attribute)
                first = [node.func.value] if method and isinstance(node.func, ast.Attribute) else []
                return [*first, *node.args], domains.RAISES_FOR[last]
    return [], frozenset()


#: names that are followed to what they are bound to, for one question; a long function holds more than the stack does
_FAR = 100


class _Kinds:
    def __init__(self, facts: FunctionFacts, at: ast.stmt, established: bool = True) -> None:
        self.facts, self.at, self.established = facts, at, established
        self._seen: set[str] = set()
        self._hops = 0

    def of(self, node: ast.expr) -> Kinds:
        if not self.established:
            return self._of(node)
        return (self._of(node) - self._excluded(node)) or self._of(node)

    def _excluded(self, node: ast.expr) -> Kinds:
        found = _established(self.facts, self.at).get(ast.unparse(node))
        if not found:
            return frozenset()
        names = reads(node)
        if isinstance(node, ast.Name) and _bound_once(self.facts, node.id):
            return found
        changed = changed_on_the_way(self.facts, self.at, node)
        return found if changed is not None and not names & changed else frozenset()

    def _of(self, node: ast.expr) -> Kinds:
        value = self.facts.value(node)
        if isinstance(value, (Static, Scalar)):
            return frozenset({value.type}) if value.type in _NUMBERS else ALL
        literal = constant(node)
        if isinstance(literal, (bool, int, float, complex)):
            return frozenset({type(literal).__name__})
        possible = _of_dtype(value.dtype) if isinstance(value, Tensor) else ALL
        return possible if len(possible) == 1 else (possible & self._built(node)) or possible

    def _built(self, node: ast.expr) -> Kinds:
        match node:
            case ast.Name(id=name):
                self._hops += 1
                bound = reaching(self.facts, node) if self._hops < _FAR else None
                return self.of(bound) if bound is not None else self._name(name)
            case ast.Compare():
                return frozenset({"bool"})
            case ast.UnaryOp(op=ast.Not()):
                return frozenset({"bool"})
            case ast.UnaryOp(operand=operand):
                return (self.of(operand) - raises_for(self.facts, node)[1]) or ALL
            case ast.BinOp():
                return self._binary(node)
            case ast.IfExp(body=body, orelse=orelse):
                return self.of(body) | self.of(orelse)
            case ast.NamedExpr(value=inner):
                return self.of(inner)
            case ast.Subscript(value=base) if isinstance(self.facts.value(base), Tensor):
                return self.of(base)
            case ast.Attribute(value=base, attr=attr):
                if isinstance(self.facts.value(base), Tensor) and attr in domains.SAME_KIND:
                    return self.of(base)
                owner = self.facts.value(base)
                if isinstance(owner, ExternalInstance) and _last(owner) in domains.FLOAT_LAYERS:
                    return frozenset({"float"}) if attr in domains.FLOAT_PARAMETERS else ALL
            case ast.Call():
                return self._call(node)
        return ALL

    def _name(self, name: str) -> Kinds:
        bound = bindings(self.facts).get(name, [])
        if name in self._seen or not bound or name in parameters(self.facts.function):
            return ALL
        self._seen.add(name)
        found: Kinds = frozenset()
        for one in bound:
            found |= self.of(one.value) if one.value is not None and not one.part else ALL
        self._seen.discard(name)
        return found

    def _binary(self, node: ast.BinOp) -> Kinds:
        left, right = self.of(node.left), self.of(node.right)
        if isinstance(node.op, ast.Div):
            return frozenset({"float"}) if "complex" not in left | right else frozenset({"float", "complex"})
        python = [not isinstance(self.facts.value(o), Tensor) and len(self.of(o)) == 1 for o in (node.left, node.right)]
        both = promoted(left, right, number=python[0] or python[1])
        return (both - raises_for(self.facts, node)[1]) or both

    def _call(self, node: ast.Call) -> Kinds:
        value = self.facts.value(node.func)
        if isinstance(value, ExternalInstance):
            return frozenset({"float"}) if _last(value) in domains.FLOAT_LAYERS else ALL
        name = qualified(self.facts, node.func) or ""
        folder, _, last = name.rpartition(".")
        if folder not in known.FUNCTIONAL or any(k.arg in ("dtype", None) for k in node.keywords):
            return ALL
        method = folder == "torch.Tensor" and isinstance(node.func, ast.Attribute)
        operands = [node.func.value] if method and isinstance(node.func, ast.Attribute) else []
        operands += node.args
        if not operands:
            return frozenset({"float"}) if last in domains.FLOAT else ALL
        first = self.of(operands[0]) - domains.RAISES_FOR.get(last, frozenset())
        if last in known.TESTS or last == "bool":
            return frozenset({"bool"})
        if last in ("any", "all"):
            return frozenset({"bool", "uint8"}) if "uint8" in first else frozenset({"bool"})
        if last in domains.FLOAT or (last in ("zeros", "ones", "empty") and not method):
            return frozenset({"float"})
        if last in domains.INTEGER:
            return frozenset({"int"})
        if last in ("abs", "absolute"):
            return frozenset("float" if k == "complex" else k for k in first)
        if last in domains.FLOATING:
            return frozenset({"float"}) if "complex" not in first else frozenset({"float", "complex"})
        if last in domains.SUMMED:
            return frozenset("int" if k in ("bool", "uint8", "int") else k for k in first)
        if last in domains.PROMOTES:
            found = first
            for operand in operands[1:]:
                found = promoted(found, self.of(operand), number=constant(operand) is not None)
            return found
        return (first or ALL) if last in domains.SAME_KIND else ALL


def promoted(left: Kinds, right: Kinds, *, number: bool = False) -> Kinds:
    """The kinds that two operands promote to; of a tensor and a number, `number`."""
    found = {max(a, b, key=_rank) for a in left for b in right}
    if not number and "uint8" in left | right and "int" in left | right:
        found.add("int")
    if number and "uint8" in left | right and found == {"int"}:
        found.add("uint8")
    return frozenset(found)


def _rank(of: str) -> int:
    return _ORDER.index(of)


def _of_dtype(dtype: object) -> Kinds:
    """The kinds of a dtype as the analysis knows it: a name, a kind, or a token."""
    if dtype == "int":
        return frozenset({"uint8", "int"})
    if dtype == "uint8":
        return frozenset({"uint8"})
    if isinstance(dtype, tuple) and dtype:
        if dtype[0] == "float":
            return frozenset({"float", "complex"})
        if dtype[0] in ("int", "sum"):
            return ALL - {"bool"}
    found = dtype_kind(dtype) if isinstance(dtype, (str, tuple)) else None
    return frozenset({found}) if found else ALL


def _last(value: ExternalInstance) -> str:
    return value.cls.rpartition(".")[2]


def _bound_once(facts: FunctionFacts, name: str) -> bool:
    return len(bindings(facts).get(name, [])) + (name in parameters(facts.function)) <= 1


@lru_cache(maxsize=4)
def _established(facts: FunctionFacts, at: ast.stmt) -> dict[str, Kinds]:
    """Expressions by text, and the kinds that they cannot have, because what was evaluated would have raised."""
    found: dict[str, Kinds] = {}
    inner = _Kinds(facts, at, established=False)
    for node in evaluated_before(facts, at):
        operands, excluded = raises_for(facts, node)
        for operand in operands if excluded else ():
            if not isinstance(facts.value(operand), (Static, Scalar)):
                _exclude(facts, operand, excluded, found)
        owner = facts.value(node.func) if isinstance(node, ast.Call) else None
        if isinstance(owner, ExternalInstance) and _last(owner) in domains.FLOAT_LAYERS - {"Embedding"}:
            for operand in node.args if isinstance(node, ast.Call) else ():
                _exclude(facts, operand, ALL - {"float"}, found)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            for one, other in ((node.left, node.right), (node.right, node.left)):
                if inner.of(other) == {"float"}:
                    _exclude(facts, one, ALL - {"float"}, found)
    return found


def _exclude(facts: FunctionFacts, node: ast.expr, excluded: Kinds, found: dict[str, Kinds]) -> None:
    """A value cannot have some kinds; nor can the one that it takes its kind from."""
    text = ast.unparse(node)
    found[text] = found.get(text, frozenset()) | excluded
    for operand, inherited in _inherits(facts, node, excluded):
        _exclude(facts, operand, inherited, found)


def _inherits(facts: FunctionFacts, node: ast.expr, excluded: Kinds) -> Iterable[tuple[ast.expr, Kinds]]:
    match node:
        case ast.Subscript(value=base) if isinstance(facts.value(base), Tensor):
            yield base, excluded
        case ast.UnaryOp(operand=operand) if not isinstance(node.op, ast.Not):
            yield operand, excluded
        case ast.Call(func=ast.Attribute(value=base, attr=attr)) if isinstance(facts.value(base), Tensor):
            if attr in domains.SAME_KIND:
                yield base, excluded
            elif attr in domains.SUMMED or attr in domains.FLOATING:
                yield base, excluded & {"complex"}
        case ast.BinOp(left=left, right=right):
            for operand in (left, right):
                yield operand, excluded & {"complex"}
