"""Change what lies at all indices of a tensor at once, under a mask, instead of at one after the other.

Before:
    for token in set(history.tolist()):
        scores[token] = scores[token] - penalty

After:
    present = torch.zeros(len(scores), dtype=torch.bool, device=scores.device)
    present = present.index_fill(0, history.to(scores.device, torch.int64), True)
    scores[present] = scores[present] - penalty

Legal when:
    the loop runs over the different values of a tensor, and its body is one store, or a branch with one on each side,
    into a tensor at the value. The value stands for nothing but the last index of tensors, and around what they have
    there is arithmetic only, whose operands do nothing when they are read: so no iteration sees what another one does.

Differs in:
    values that are no indices raise otherwise. Where it is not known that none is below zero, one that is raises: it
    may be the same place as another one. It is written for the mends of masks, and stays where they remove the break.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Tensor, dtype_kind
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import alive, fresh, stored
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import called, constant, is_tensor, method, number_type
from graphmend.transforms.code.text_edits import replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.dtypes import kind
from graphmend.transforms.legality.memory import known_to_share, may_share
from graphmend.transforms.legality.rows.places import different_values, not_negative
from graphmend.transforms.legality.speculation import speculate
from graphmend.transforms.rewrites.answers import asks, prepare, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "indices_as_mask"
_NO_INDEX = Difference("exception", "a value that is no index raises otherwise, or not")
_FROM_THE_END = Difference("exception", "a value below zero, an index that counts from the end, raises")
_PROMOTES = Difference(
    "rounding", "one element is computed in the precision of what it meets, and all of them in their own"
)


class _NotAtOnceError(Exception):
    """What a loop does is not done at all values at once; the message says why."""


class _Store(NamedTuple):
    """The new value of what a tensor has at the loop's value."""

    target: ast.Subscript
    value: ast.expr
    operator: str = ""
    """Of `target += value`."""


@asks("effects", "totality", "memory", "order", "domain", "dtypes", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    loop = facts.statement
    if not (isinstance(loop, ast.For) and isinstance(loop.target, ast.Name) and not loop.orelse):
        return None
    values = _values(facts, loop.iter)
    if values is None:
        return None
    try:
        body = _Body(facts, loop, loop.target.id)
        text = body.text(values)
    except _NotAtOnceError as error:
        return refuse(NAME, str(error))

    def make() -> list[TextEdit]:
        return [*body.imports.edits(), replace_statements(facts.source, [loop], text)]

    return prepare(NAME, "change what is at all indices at once, under a mask", facts, make, body.differences)


def _values(facts: FunctionFacts, node: ast.expr) -> ast.expr | None:
    """The tensor whose different values a loop runs over, in whatever order."""
    match called(facts, node, "builtins.set", "builtins.frozenset"):
        case ast.Call(args=[ast.Call(func=ast.Attribute(value=value)) as listed], keywords=[]):
            return value if method(facts, listed, "tolist") else None
        case ast.Call():
            return None
    return different_values(facts, node)


class _Body:
    """The body of a loop, written for all values."""

    def __init__(self, facts: FunctionFacts, loop: ast.For, index: str) -> None:
        self.facts, self.loop, self.index = facts, loop, index
        self.code, self.imports = Code(facts.source), Imports(facts)
        self.mask = fresh(facts, "present")
        self.differences = [_NO_INDEX]
        self._replace: dict[ast.expr, str] = {}
        self._named: dict[str, str] = {}
        """Names that the body gives to what it computes of one index, with the lines that compute it of all."""
        self._read: list[ast.expr] = []
        """What else the body reads: it is read once, also where the loop has no iteration."""

    def text(self, values: ast.expr) -> str:
        if alive(self.facts, self.index, self.loop) or not replaceable(self.facts, [self.loop]):
            raise _NotAtOnceError(f"`{self.index}` is read behind the loop, or the loop shares its line")
        line, target = self._line()
        base = self._base(target)
        self._check_reads(target.value)
        known = self.facts.value(values)
        if not isinstance(known, Tensor) or dtype_kind(known.dtype) not in ("int", None) or known.dtype == "uint8":
            raise _NotAtOnceError(f"`{self.code.text(values)}` is not known to hold indices")
        lines, indices = [], self.code.text(values)
        if not isinstance(values, ast.Name):  # what gives them is evaluated once
            lines, indices = (
                [f"{fresh(self.facts, 'indices')} = {self.code.line(values)}"],
                fresh(self.facts, "indices"),
            )
        if not not_negative(self.facts, values):
            self.differences.append(_FROM_THE_END)
            asserts = self.imports.name("torch._assert_async")
            lines.append(f'{asserts}(({indices} >= 0).all(), "indices are not below zero")')
        zeros, bools, int64 = (self.imports.name(f"torch.{name}") for name in ("zeros", "bool", "int64"))
        if known.rank != 1 and called(self.facts, self.loop.iter, "builtins.set", "builtins.frozenset") is None:
            indices = f"{indices}.flatten()"
        indices = f"{indices}.to({base}.device{'' if known.dtype == 'int64' else f', {int64}'})"
        lines.append(f"{self.mask} = {zeros}(len({base}), dtype={bools}, device={base}.device)")
        lines.append(f"{self.mask} = {self.mask}.index_fill(0, {indices}, True)")
        return "".join(f"{each}\n" for each in (*lines, *self._named.values(), line))

    def _line(self) -> tuple[str, ast.Subscript]:
        *first, last = self.loop.body
        for statement in first:
            self._name(statement)
        match [last]:
            case [ast.If(test=ast.Compare(ops=[_]) as test, body=[then], orelse=orelse)] if len(orelse) <= 1:
                return self._either(test, self._store(then), self._store(orelse[0]) if orelse else None)
            case [statement]:
                target, value, operator = self._store(statement)
                if isinstance(value, ast.IfExp) and not operator and isinstance(value.test, ast.Compare):
                    sides = (_Store(target, side) for side in (value.body, value.orelse))
                    return self._either(value.test, *sides)
                self._elementwise(value)
                return f"{self._at(target)} {operator}= {self._text(value)}", target
        raise _NotAtOnceError("the body of the loop is not one store")

    def _name(self, statement: ast.stmt) -> None:
        """`v = x[i]`, which only the body reads."""
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name != self.index and name not in self._named:
                if alive(self.facts, name, self.loop):
                    raise _NotAtOnceError(f"`{name}` is read behind the loop")
                self._elementwise(value)
                self._named[name] = f"{name} = {self._text(value)}"
            case _:
                raise _NotAtOnceError("the body of the loop is not one store")

    def _either(self, test: ast.Compare, then: _Store, otherwise: _Store | None) -> tuple[str, ast.Subscript]:
        """`if test: store else: store` into one place."""
        target = then.target
        if otherwise is not None and self.code.text(otherwise.target) != self.code.text(target):
            raise _NotAtOnceError("the sides of the branch store into different places")
        if kind(self.facts, target.value) not in ("float", None):
            raise _NotAtOnceError(f"`{self.code.text(target.value)}` holds whole numbers, which the sides may not make")
        self._elementwise(test)
        there = self._at(target)
        texts = [there if side is None else self._new(side, there) for side in (then, otherwise)]
        return f"{there} = {self.imports.name('torch.where')}({self._text(test)}, {', '.join(texts)})", target

    def _new(self, store: _Store, there: str) -> str:
        self._elementwise(store.value)
        if not store.operator:
            return self._text(store.value)
        return f"{there} {store.operator} {self.code.operand(store.value, self._replace)}"

    def _store(self, statement: ast.stmt) -> _Store:
        match statement:
            case ast.Assign(targets=[ast.Subscript() as target], value=value):
                return _Store(target, value)
            case ast.AugAssign(target=ast.Subscript() as target, value=value):
                behind = self.code.text(statement)[len(self.code.text(target)) :]
                return _Store(target, value, behind.strip().partition("=")[0])
        raise _NotAtOnceError(f"`{self.code.text(statement)}` is no store at `{self.index}`")

    def _check_reads(self, stored: ast.expr) -> None:
        """Nothing is done by reading, and no iteration sees in what it reads what one before it has stored."""
        found = speculate(self.facts, stored, *self._read)
        if found.blockers:
            raise _NotAtOnceError(found.blockers[0])
        self.differences += found.differences
        for node in self._read:
            text = self.code.text(node)
            if text == self.code.text(stored) or number_type(self.facts, node) is not None:
                continue
            if known_to_share(self.facts, node, stored):
                raise _NotAtOnceError(f"`{text}` may be memory that the loop stores into")
            if may_share(self.facts, node, stored):
                says = f"`{text}` is taken not to be memory that the loop stores into"
                self.differences.append(Difference("state", says))

    def _base(self, target: ast.Subscript) -> str:
        return self._at(target).removesuffix(f"[{self.mask}]")

    def _at(self, node: ast.Subscript) -> str:
        """`x[i]` and `x[0, i]` with the mask in the place of the index."""
        if not is_tensor(self.facts, node.value) or not isinstance(node.value, (ast.Name, ast.Attribute)):
            raise _NotAtOnceError(f"`{self.code.text(node.value)}` is not known to be a tensor")
        places = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        *before, last = places
        if not (isinstance(last, ast.Name) and last.id == self.index) or not all(self._is_number(b) for b in before):
            raise _NotAtOnceError(f"`{self.code.text(node)}` is not what a tensor has at `{self.index}`")
        of = self.code.text(node.value)
        of += f"[{', '.join(self.code.text(b) for b in before)}]" if before else ""
        return f"{of}[{self.mask}]"

    def _is_number(self, node: ast.expr) -> bool:
        return number_type(self.facts, node) == "int" and self.index not in {
            n.id for n in nodes_in(node) if isinstance(n, ast.Name)
        }

    def _elementwise(self, node: ast.expr) -> None:
        """Is a value computed for one index as for all of them? Notes what is written otherwise."""
        bound = stored(self.loop.body) - self._named.keys()
        if early := next((n.id for n in nodes_in(node) if isinstance(n, ast.Name) and n.id in bound), None):
            raise _NotAtOnceError(f"`{early}` comes from the iteration before")
        match node:
            case ast.BinOp(left=left, right=right) if not isinstance(node.op, ast.MatMult):
                self._elementwise(left)
                self._elementwise(right)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
                self._elementwise(operand)
            case ast.Compare(left=left, ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE() | ast.Eq() | ast.NotEq()]):
                self._elementwise(left)
                self._elementwise(node.comparators[0])
            case ast.Subscript(value=of) if self._depends(node):
                self._replace[node] = self._at(node)
                self._read.append(of)
            case ast.Name(id=name) if name in self._named:
                return
            case ast.Name() | ast.Attribute() | ast.Constant() if not self._depends(node):
                self._read.append(node)
                if number_type(self.facts, node) is None:
                    self.differences.append(_PROMOTES)
            case ast.Call(args=[argument], keywords=[]) if called(self.facts, node, "builtins.float") is not None:
                if not isinstance(constant(argument), str):
                    raise _NotAtOnceError(f"`{self.code.text(node)}` is not computed for each index alike")
            case _:
                raise _NotAtOnceError(f"`{self.code.text(node)}` is not computed for each index alike")

    def _depends(self, node: ast.expr) -> bool:
        return any(isinstance(n, ast.Name) and (n.id == self.index or n.id in self._named) for n in nodes_in(node))

    def _text(self, node: ast.expr) -> str:
        return self.code.text(node, self._replace)
