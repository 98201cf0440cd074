"""Put places in order with a stable `argsort` instead of asking tensors for the keys one by one.

Before:
    order = sorted(range(boxes.shape[0]), key=lambda i: boxes[i, 0].item())
    boxes = boxes[order]

After:
    order = boxes[:, 0].argsort(stable=True)
    boxes = boxes[order]

Legal when:
    what is sorted are the numbers from 0 up to the size of a tensor, by elements of such tensors under the number, or
    by what is computed of them one by one; or by several of those in turn. All that is done with the order takes a
    tensor of places: an index, `torch.tensor`, a slice, `len`, a loop over it.

Differs in:
    NaN sorts as the greatest, and a quotient by zero is one more key. Keys of more dimensions than the code shows give
    another shape. What an order is returned to gets a tensor.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import always_evaluated, bindings, stores
from graphmend.transforms.code.expression_text import Code, bracketed, shortened
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import fresh, reads
from graphmend.transforms.code.positions import begins_line
from graphmend.transforms.code.qualified_names import called, constant, is_tensor, number_type
from graphmend.transforms.code.text_edits import deletion, insert_before, replace_expression, replace_statements
from graphmend.transforms.fix import Difference, DifferenceKind, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.kept_scalars import written
from graphmend.transforms.legality.dtypes import kinds
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.legality.memory import may_share
from graphmend.transforms.legality.orders.places import ListUses, NeedsListError
from graphmend.transforms.legality.orders.sizes import is_counted, is_size
from graphmend.transforms.legality.writes.changes import changes
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "order_by_key"
_SIGNS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


class _NoColumnError(Exception):
    """A key is not written for all places at once; the message says why."""


class _Order(NamedTuple):
    """Numbers in the order of a key."""

    node: ast.expr | ast.stmt
    """What gives the order: a call of `sorted`, or the statement that sorts a list."""
    size: ast.expr
    """How many numbers there are."""
    key: ast.expr
    name: str
    """The number, in the key."""
    falls: bool
    list: ast.stmt | None = None
    """What binds the list that is sorted."""


@asks("effects", "memory", "dtypes", "numbers", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    order = next((o for n in _around(facts) if (o := _order(facts, n)) is not None), None)
    if order is None:
        return None
    columns = _Columns(facts, order)
    keys = order.key.elts if isinstance(order.key, ast.Tuple) else [order.key]
    uses = ListUses(facts)
    try:
        texts = [columns.of(key, order.falls) for key in keys]
        if isinstance(order.node, ast.expr):
            uses.follow(order.node)
        elif isinstance(order.list, ast.Assign) and isinstance(order.list.targets[0], ast.Name):
            uses.named(order.list.targets[0].id, order.node)
    except (_NoColumnError, NeedsListError) as error:
        return refuse(NAME, str(error))
    if uses.one_by_one and (unknown := columns.unknown):
        return refuse(NAME, f"`{shortened(unknown[0])}` is not known to have the dimensions that its places ask for")
    if found := effects(facts, *columns.tensors):
        return refuse(NAME, found[0])
    whole = facts.statement if isinstance(order.node, ast.expr) else order.node
    statement = next((a for a in (order.node, *facts.ancestors(order.node)) if isinstance(a, ast.stmt)), whole)
    if len(texts) > 1 and not (begins_line(facts.source, statement) and _is_always(facts, order.node)):
        return refuse(NAME, "an order by several keys takes lines of its own")
    for bound in columns.bound():
        if (changed := _changed_between(facts, bound, statement)) is not None:
            return refuse(NAME, f"`{changed}` changes between the list and the order")
    sizing = reads(order.size) if columns.sized_by_text else set()
    left = [name for name in columns.lists if name in sizing or _read_elsewhere(facts, name, order)]
    if left:
        return refuse(NAME, f"`{left[0]}` is read elsewhere as well")

    def make() -> list[TextEdit]:
        lines, text = _sorted(texts, fresh(facts, "places") if len(texts) > 1 else "")
        imports = Imports(facts)
        made = written(facts, imports, dict(uses.texts), uses.counterparts)
        edits = [*imports.edits(), *(replace_expression(facts.source, n, t) for n, t in made.items())]
        edits += [deletion(facts, b) for b in columns.bound()]
        if isinstance(order.node, ast.expr):
            edits.append(replace_expression(facts.source, order.node, text))
            return [*edits, *([insert_before(facts.source, statement, lines)] if lines else [])]
        assert isinstance(order.list, ast.Assign)
        name = ast.unparse(order.list.targets[0])
        edits.append(replace_statements(facts.source, [order.node], f"{lines}{name} = {text}\n"))
        return [*edits, deletion(facts, order.list)]

    return offer(NAME, "put the places in order with argsort", facts, make, [*columns.differences, *uses.differences])


def _is_always(facts: FunctionFacts, node: ast.expr | ast.stmt) -> bool:
    return isinstance(node, ast.stmt) or always_evaluated(facts, node)


def _sorted(keys: list[_Column], name: str) -> tuple[str, str]:
    """Lines in front, and the order by several keys, the last of which is sorted by first."""
    *others, last = keys
    lines, text = "", f"{bracketed(last.text)}.{last.how}"
    for key in reversed(others):
        lines += f"{name} = {text}\n"
        text = f"{name}[{bracketed(key.text)}[{name}].{key.how}]"
    return lines, text


class _Column(NamedTuple):
    """One key of all places."""

    text: str
    falls: bool

    @property
    def how(self) -> str:
        return f"argsort({'descending=True, ' if self.falls else ''}stable=True)"


# What is sorted


def _around(facts: FunctionFacts) -> Iterable[ast.AST]:
    """The finding with what stands around it, and what sorts by a list that it makes."""
    yield from (facts.node, *facts.ancestors(facts.node))
    match facts.statement:
        case ast.Assign(targets=[ast.Name(id=name)]):
            yield from (n for n in nodes_in(facts.function) if isinstance(n, (ast.Call, ast.Expr)) and name in reads(n))


def _order(facts: FunctionFacts, node: ast.AST) -> _Order | None:
    call = node.value if isinstance(node, ast.Expr) else node
    if not isinstance(call, ast.Call):
        return None
    options = {k.arg: k.value for k in call.keywords}
    by, falls = options.pop("key", None), constant(options.pop("reverse", ast.Constant(False)))
    key = _key(by)
    if options or key is None or not isinstance(falls, bool):
        return None
    if called(facts, call, "builtins.sorted") and len(call.args) == 1:
        count = _counted(facts, call.args[0])
        return _Order(call, count, key[1], key[0], falls) if count is not None else None
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="sort"), args=[])):
            block = facts.body_of(node)
            before = block[block.index(node) - 1] if block.index(node) else None
            match before:
                case ast.Assign(targets=[ast.Name(id=own)], value=ast.Call(args=[numbers]) as made) if own == name:
                    count = _counted(facts, numbers) if called(facts, made, "builtins.list") else None
                    if count is not None and stores(facts, name) == 1:
                        return _Order(node, count, key[1], key[0], falls, before)
    return None


def _key(by: ast.expr | None) -> tuple[str, ast.expr] | None:
    """The number and the key of a lambda of one parameter, or of `xs.__getitem__`."""
    match by:
        case ast.Lambda(
            args=ast.arguments(
                posonlyargs=[], args=[ast.arg(arg=name)], vararg=None, kwonlyargs=[], kwarg=None, defaults=[]
            )
        ):
            return name, by.body
        case ast.Attribute(value=ast.Name() as values, attr="__getitem__"):
            return "", ast.Subscript(values, ast.Name("", ast.Load()), ast.Load())
    return None


def _counted(facts: FunctionFacts, values: ast.expr) -> ast.expr | None:
    if called(facts, values, "builtins.range") and isinstance(values, ast.Call) and len(values.args) == 1:
        return values.args[0]
    return None


def _read_elsewhere(facts: FunctionFacts, name: str, order: _Order) -> bool:
    inside = {*nodes_in(order.node), *(nodes_in(order.list) if order.list is not None else ())}
    loads = (n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n.id == name)
    return any(n not in inside and isinstance(n.ctx, ast.Load) for n in loads)


def _changed_between(facts: FunctionFacts, first: ast.stmt, last: ast.stmt) -> str | None:
    """What a statement reads that is bound again, or changed in place, up to another statement."""
    loops = [a for a in facts.ancestors(last) if isinstance(a, (ast.For, ast.While))]
    again = {n for loop in loops if loop not in facts.ancestors(first) for n in nodes_in(loop)}
    read, begin, end = reads(first), (first.lineno, first.col_offset), (last.lineno, last.col_offset)

    def between(node: ast.stmt | ast.expr) -> bool:
        return begin < (node.lineno, node.col_offset) < end or node in again

    for node in nodes_in(facts.function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in read and between(node):
            return node.id
    for node, target in changes(facts):
        if between(node):
            for name in read:
                if name in reads(target) or may_share(facts, ast.Name(name, ast.Load()), target):
                    return name
    return None


# Keys of all places at once


@dataclass
class _Columns:
    """Writes keys of one number as tensors of all."""

    facts: FunctionFacts
    order: _Order
    differences: list[Difference] = field(default_factory=list)
    tensors: list[ast.expr] = field(default_factory=list)
    unknown: list[ast.expr] = field(default_factory=list)
    """Those of which it is not known how many dimensions they have."""
    lists: list[str] = field(default_factory=list)
    """Names of lists that `tolist` has made, which nothing needs any more."""
    sized_by_text: bool = False
    """Is the size written as the code has it?"""

    def of(self, key: ast.expr, falls: bool) -> _Column:
        """One key, as a tensor of one dimension. The order by its negative is the falling one."""
        if not any(isinstance(n, ast.Name) and n.id == self.order.name for n in nodes_in(key)):
            raise _NoColumnError(f"`{shortened(key)}` is the same for every place")
        before = len(self.tensors)
        match key:
            case ast.UnaryOp(op=ast.USub(), operand=operand) if not is_tensor(self.facts, key):
                key, falls = operand, not falls
        text = self._column(key, exact=False)
        if any(kinds(self.facts, tensor) - {"int", "uint8", "bool"} for tensor in self.tensors[before:]):
            self.differences.append(Difference("nan", "NaN sorts as the greatest"))
        return _Column(text, falls)

    def _column(self, node: ast.expr, *, exact: bool) -> str:
        """`exact` where Python computes with the number, in 64 bits."""
        facts = self.facts
        match node:
            case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[], keywords=[]):
                return self._number(inner, exact=exact)
            case ast.Call(func=ast.Name(id="float"), args=[inner], keywords=[]) if called(
                facts, node, "builtins.float"
            ):
                text = self._number(inner, exact=exact)
                self._large("whole numbers beyond 2**53 are told apart, which are one float")
                return text
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                text = self._column(operand, exact=exact)
                if not kinds(facts, self.tensors[-1]) <= {"float", "int"}:
                    raise _NoColumnError(f"`{shortened(operand)}` may have no negative")
                return f"-{bracketed(text)}"
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _SIGNS:
                numbers = not is_tensor(facts, node)
                sides = [self._side(s, exact=numbers) for s in (left, right)]
                if numbers:
                    sides = self._as_python(node, sides)
                return f"{sides[0]} {_SIGNS[type(op)]} {sides[1]}"
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Name(id=index)) if index == self.order.name:
                made = self._list(name)
                if made is not None:
                    self.lists.append(name)
                    self._take(made, 1)
                    sized = is_size(self.order.size, ast.Name(name, ast.Load()))
                    return self._text(made, [], exact=exact, sized=sized)
        taken = self._taken(node)
        if taken is None:
            raise _NoColumnError(f"`{shortened(node)}` is not known to be an element under the number")
        tensor, rest = taken
        self._take(tensor, 1 + len(rest))
        return self._text(tensor, rest, exact=exact)

    def _as_python(self, node: ast.BinOp, sides: list[str]) -> list[str]:
        """The operands of what Python computes, where a quotient, and what a float takes part in, is a double."""
        facts = self.facts
        own = [self.order.name in reads(s) for s in (node.left, node.right)]
        plain = [s for s, under in zip((node.left, node.right), own, strict=True) if not under]
        if isinstance(node.op, ast.Div) and not constant(node.right):
            says = f"`{shortened(node)}` raises no more where it divides by zero"
            self.differences.append(Difference("exception", says))
        if isinstance(node.op, ast.Div) or any(number_type(facts, s) != "int" for s in plain):
            wide = [under and not side.endswith(".double()") for side, under in zip(sides, own, strict=True)]
            sides = [f"{side}.double()" if w else side for side, w in zip(sides, wide, strict=True)]
        self._large("whole numbers beyond 2**53 round, and those beyond 64 bits wrap around")
        return sides

    def _large(self, says: str) -> None:
        if any(kinds(self.facts, tensor) - {"float", "bool"} for tensor in self.tensors):
            self.differences.append(Difference("overflow", says))

    def _side(self, node: ast.expr, *, exact: bool) -> str:
        if number_type(self.facts, node) is not None and self.order.name not in reads(node):
            return Code(self.facts.source).operand(node)
        text = self._column(node, exact=exact)
        return bracketed(text)

    def _number(self, node: ast.expr, *, exact: bool) -> str:
        unknown, differences = len(self.unknown), len(self.differences)
        text = self._column(node, exact=False)
        tensor = self.tensors[-1]
        if len(self.unknown) == unknown + 1 and text == (of := Code(self.facts.source).operand(tensor)):
            del self.unknown[unknown:], self.differences[differences:]
            text = f"{of}.reshape(len({of}))"  # each row has one element, or raises, as `item` does
        return f"{bracketed(text)}.{self._widest(tensor)}" if exact else text

    def _widest(self, tensor: ast.expr) -> str:
        return "double()" if "float" in kinds(self.facts, tensor) else "long()"

    def _text(self, tensor: ast.expr, rest: list[ast.expr], *, exact: bool, sized: bool = False) -> str:
        code, rows = Code(self.facts.source), ":"
        if not (sized or is_size(self.order.size, tensor)):
            size, self.sized_by_text = code.text(self.order.size), True
            rows = f":{size}" if is_counted(self.order.size) else f":max({size}, 0)"  # `range` takes none then
            says = f"fewer rows of `{shortened(tensor)}` than are sorted raise no more"
            self.differences.append(Difference("exception", says))
        index = f"[{', '.join([rows, *map(code.text, rest)])}]" if rest or rows != ":" else ""
        text = f"{code.operand(tensor)}{index}"
        return f"{text}.{self._widest(tensor)}" if exact and self._is_list(tensor) else text

    def _is_list(self, tensor: ast.expr) -> bool:
        return bool(self.lists) and self._list(self.lists[-1]) is tensor

    def _taken(self, node: ast.expr) -> tuple[ast.expr, list[ast.expr]] | None:
        """The tensor, and the places behind the number, of `t[i]` and `t[i, 0]`, `t[i][0]`."""
        match node:
            case ast.Subscript(value=ast.Subscript() as inner, slice=place) if self._is_place(place):
                found = self._taken(inner)
                return (found[0], [*found[1], place]) if found is not None else None
            case ast.Subscript(value=tensor, slice=ast.Tuple(elts=[ast.Name(id=name), *rest])):
                plain = all(map(self._is_place, rest))
            case ast.Subscript(value=tensor, slice=ast.Name(id=name)):
                rest, plain = [], True
            case _:
                return None
        known = plain and name == self.order.name and name not in reads(tensor) and is_tensor(self.facts, tensor)
        return (tensor, rest) if known else None

    def _is_place(self, node: ast.expr) -> bool:
        return number_type(self.facts, node) == "int" and self.order.name not in reads(node)

    def _take(self, tensor: ast.expr, rank: int) -> None:
        value = self.facts.value(tensor)
        known = value.rank if isinstance(value, Tensor) else None
        if known is not None and known != rank:
            raise _NoColumnError(f"`{shortened(tensor)}` has {known} dimensions")
        if known is None:
            self.unknown.append(tensor)
            says = f"`{shortened(tensor)}` is taken to have {rank} dimension{'s' if rank > 1 else ''}"
            kinds_of: tuple[DifferenceKind, ...] = ("exception", "shape", "strides")
            self.differences += [Difference(what, says) for what in kinds_of]
        self.tensors.append(tensor)

    def _list(self, name: str) -> ast.expr | None:
        """The tensor of which `tolist` makes a list that has a name."""
        bound = bindings(self.facts).get(name, [])
        match bound[0].value if len(bound) == 1 and not bound[0].part else None:
            case ast.Call(func=ast.Attribute(value=tensor, attr="tolist"), args=[]) if is_tensor(self.facts, tensor):
                return tensor
        return None

    def bound(self) -> list[ast.stmt]:
        """The statements that bind lists which nothing needs any more."""
        found: list[ast.stmt] = []
        for node in nodes_in(self.facts.function):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)]) if name in self.lists:
                    found.append(node)
        return found
