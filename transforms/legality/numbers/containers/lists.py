"""Lists of Python numbers that hold 0-d tensors instead: what becomes of them, and of their elements."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Container, Tensor, dtype_kind
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bindings
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.liveness import parameters
from graphmend.transforms.code.qualified_names import called, constant, is_tensor, method, qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.numbers import counterparts
from graphmend.transforms.legality.numbers.arithmetic import NeedsPythonNumberError, number_of
from graphmend.transforms.legality.numbers.as_tensors import PRECISION, WRAPS
from graphmend.transforms.legality.numbers.containers.asked_lists import AskedLists

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


#: of Python numbers, the narrower first
_KINDS = ("bool", "int", "float")
_OF_NOTHING = Difference("dtype", "of no numbers the new tensor holds whole ones, where it was of floating ones")
#: the same elements, perhaps in another order
_ORDERS = ("builtins.reversed", "builtins.list", "builtins.tuple")
_STATISTICS = ("numpy.mean", "numpy.sum", "numpy.max", "numpy.min", "statistics.mean", "statistics.fmean")


class Lists(AskedLists):
    """Follows lists, whose elements are followed by `_follow` and `_name`."""

    def __init__(self, facts: FunctionFacts, *, rewrites: bool = False) -> None:
        super().__init__(facts, rewrites=rewrites)
        self.also: list[ast.expr] = []
        """Other expressions of numbers, which must become tensors along with the one that is followed."""
        self._lists: set[tuple[str, Hashable]] = set()
        self._inside: set[ast.expr] = set()
        """Elements of lists that are tensors now."""
        self.rows = False
        """Are the elements lists themselves, which are taken apart?"""

    @abstractmethod
    def _follow(self, node: ast.expr, dtype: Hashable) -> None: ...

    @abstractmethod
    def _name(self, name: str, dtype: Hashable) -> None: ...

    def _listed(self, node: ast.expr, dtype: Hashable) -> None:
        """What becomes of a list whose elements are tensors now."""
        parent = self.facts.parent(node)
        match parent:
            case ast.Call(func=ast.Name(id="len")) | ast.UnaryOp(op=ast.Not()):
                return
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) if test is node:
                return
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value) if (
                value is node and isinstance(node, ast.List) and self._grows(name)
            ):
                self._list_name(name, dtype)
            case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[of]) if of is node:
                self._member(parent, left, node, dtype)
            case ast.Call(args=[first], keywords=[]) if first is node and called(self.facts, parent, "builtins.set"):
                self._set(parent, node, dtype)
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]) if node in (left, right):
                self._equal(parent, node, right if node is left else left, dtype)
            case ast.Attribute(value=of, attr="count" | "index") if of is node:
                self._searched(parent, node, dtype)
            case ast.Call(args=[first], keywords=[]) if (
                first is node and not isinstance(node, ast.GeneratorExp) and called(self.facts, parent, *_ORDERS)
            ):
                self._listed(parent, dtype)
            case ast.Call(args=[first], keywords=[]) if first is node and called(self.facts, parent, "builtins.sum"):
                kind = dtype_kind(dtype)
                if kind == "bool" or kind is None:
                    raise NeedsPythonNumberError(f"`{shortened(parent)}` adds what may be bools")
                if dtype not in ("float64", "int64"):
                    self.computes = True
                self.differences.append(PRECISION if kind == "float" else WRAPS)
                self._follow(parent, dtype)
            case ast.Call(args=[first], keywords=[]) if first is node and called(
                self.facts, parent, "builtins.max", "builtins.min"
            ):
                self._all_of(node)
                if dtype_kind(dtype) not in ("int", "bool"):
                    self.differences.append(Difference("nan", f"`{shortened(parent)}` of a NaN is NaN, once compiled"))
                self._follow(parent, dtype)
            case ast.Call(args=[first]) if first is node and called(self.facts, parent, "builtins.sorted"):
                if (
                    isinstance(node, (ast.GeneratorExp, ast.Name))
                    or (result := counterparts.sorted_(parent, dtype)) is None
                ):
                    raise NeedsPythonNumberError(f"`{shortened(parent)}` needs Python numbers")
                self._all_of(node)
                self._becomes(parent, result)
                self._sorted(parent, dtype)
            case ast.Call(args=[first]) if (
                first is node and not isinstance(node, ast.GeneratorExp) and self._makes(parent) is not None
            ):
                self._made(parent, node, dtype)
            case ast.List() | ast.Tuple() | ast.ListComp() if (maker := self._around(node)) is not None:
                self._made(maker, maker.args[0], dtype)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[row]) if (
                row is node and isinstance(node, ast.List) and is_statement(self.facts, parent) and self._grows(name)
            ):
                self._rows_of(name, dtype)
            case ast.ListComp(elt=row) if (
                row is node
                and isinstance(above := self.facts.parent(parent), ast.Assign)
                and isinstance(above.targets[0], ast.Name)
            ):
                self._rows_of(above.targets[0].id, dtype)
            case ast.For(target=ast.Name(id=name), iter=it) | ast.comprehension(target=ast.Name(id=name), iter=it) if (
                it is node
            ):
                self._one_of(node, lambda: self._name(name, dtype))
            case (
                ast.For(target=ast.Tuple(elts=elts), iter=it) | ast.comprehension(target=ast.Tuple(elts=elts), iter=it)
            ) if it is node:
                self._row(node, elts, dtype)
            case ast.Call(args=args, keywords=[]) if called(self.facts, parent, "builtins.enumerate", "builtins.zip"):
                self._together(parent, args.index(node) if len(args) > 1 else 1, dtype)
            case ast.Call(args=[first], keywords=[]) if first is node and called(self.facts, parent, *_STATISTICS):
                self._all_of(node)
                last = (qualified(self.facts, parent.func) or "").rpartition(".")[2]
                self._follow(parent, self._becomes(parent, counterparts.statistic(parent, last, dtype)))
            case ast.Subscript(value=value, slice=index, ctx=ast.Load()) if value is node:
                if isinstance(index, ast.Slice):
                    self._listed(parent, dtype)
                elif (element := self._element(node, index)) is None:
                    self._one_of(node, lambda: self._follow(parent, dtype))
                elif element in self._inside:
                    self._follow(parent, dtype)
            case ast.Subscript(value=of, slice=index, ctx=ast.Load()) if index is node and is_tensor(self.facts, of):
                # the numbers of a tuple are indices of one dimension each
                if dtype_kind(dtype) != "int" or self._kind_of(node, dtype) != "int" or not is_list(self.facts, node):
                    raise NeedsPythonNumberError(f"`{shortened(parent)}` needs Python numbers")
                self._becomes(parent, counterparts.gathered(parent, dtype))
            case ast.Assign(targets=[ast.Tuple(elts=targets)]) if all(isinstance(t, ast.Name) for t in targets):
                self._one_of(node, lambda: self._taken_apart(targets, dtype))
            case ast.Assign(targets=[ast.Name(id=name)]) if not isinstance(node, ast.GeneratorExp):
                self._list_name(name, dtype)
            case ast.Attribute(attr="append" | "insert" | "reverse") if isinstance(node, ast.Name) and self._grows(
                node.id
            ):
                return
            case _:
                raise NeedsPythonNumberError(f"`{shortened(parent or node)}` needs Python numbers")

    def _rows_of(self, name: str, dtype: Hashable) -> None:
        """A list of lists of numbers that a name has for a tensor alone, which is made of all of them."""
        if (name, dtype) in self._lists:
            return
        self._lists.add((name, dtype))
        for node in nodes_in(self.facts.function):
            if not (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)):
                continue
            match parent := self.facts.parent(node):
                case ast.Attribute(attr="append"):
                    pass
                case ast.Call(args=[first]) if first is node and called(self.facts, parent, "builtins.len"):
                    pass
                case ast.Call(args=[first]) if first is node and self._makes(parent) is not None:
                    self._made(parent, node, dtype)
                case _:
                    raise NeedsPythonNumberError(f"`{shortened(parent or node)}` needs lists of Python numbers")
        if name in parameters(self.facts.function) or not self._grows(name):
            raise NeedsPythonNumberError(f"`{name}` may be something else than a list of this function")

    def _held_in(self, of: ast.expr, node: ast.expr, dtype: Hashable) -> None:
        """An element of a list becomes a tensor."""
        self._inside.add(node)
        self._listed(of, dtype)

    def _element(self, node: ast.expr, index: ast.expr) -> ast.expr | None:
        """The element of a list that an index picks, where the list stays as it is written."""
        place, made = constant(index), node
        if isinstance(node, ast.Name):
            bound = self._bound(node.id)
            made = bound[0] if len(bound) == 1 and bound[0] is not None else node
            for other in nodes_in(self.facts.function):
                around = self.facts.parent(other)
                if isinstance(other, ast.Name) and other.id == node.id and isinstance(other.ctx, ast.Load):
                    read = isinstance(around, ast.Subscript) and isinstance(around.ctx, ast.Load)
                    if not (read and isinstance(around, ast.Subscript) and around.value is other):
                        return None
        elements = made.elts if isinstance(made, (ast.List, ast.Tuple)) else []
        if not isinstance(place, int) or any(isinstance(e, ast.Starred) for e in elements):
            return None
        return elements[place] if -len(elements) <= place < len(elements) else None

    def _one_of(self, node: ast.expr, follow: Callable[[], None]) -> None:
        """Any element of a list: where what becomes of it is written for a tensor, as is what it is an index of, all
        of them have to be tensors.
        """
        before = {*self.counterparts, *self.asks}
        follow()
        indexed = {asked for asked in self.asks if isinstance(asked, ast.Subscript)}
        if {*self.counterparts, *indexed} - before:
            self._all_of(node)

    def _makes(self, call: ast.Call) -> str | None:
        """The name of what makes a tensor or an array of numbers."""
        name = qualified(self.facts, call.func)
        return name if name in counterparts.MAKERS or name in counterparts.ARRAYS else None

    def _around(self, node: ast.expr) -> ast.Call | None:
        """The call that makes a tensor of lists, of which this is one."""
        above = self.facts.parent(node)
        while isinstance(above, (ast.List, ast.Tuple)) or (isinstance(above, ast.ListComp) and above.elt is node):
            node, above = above, self.facts.parent(above)
        return above if isinstance(above, ast.Call) and above.args == [node] and self._makes(above) else None

    def _made(self, call: ast.Call, numbers: ast.expr, dtype: Hashable) -> None:
        """`torch.tensor(numbers)`, in which tensors may stand among numbers."""
        result = counterparts.listed(call, self._makes(call) or "", dtype, self._kind_of(numbers, dtype))
        if result is None:
            raise NeedsPythonNumberError(f"`{shortened(call)}` needs Python numbers")
        if (self._makes(call) or "") in counterparts.ARRAYS:
            self._all_of(numbers)
        self._becomes(call, counterparts.unless_cast(self.facts.parent(call), result))
        if self._kind_of(numbers, dtype) in ("int", "bool") and not isinstance(numbers, (ast.List, ast.Tuple)):
            self.differences += () if any(k.arg == "dtype" for k in call.keywords) else (_OF_NOTHING,)

    def _kind_of(self, node: ast.expr, dtype: Hashable) -> str | None:
        """The kind that the numbers in a list, or in lists, have together as Python's; None where it is not known."""
        elements = self._elements(node)
        found = {dtype_kind(dtype)}
        for element in elements:
            value = self.facts.value(element)
            if isinstance(element, (ast.List, ast.Tuple, ast.ListComp)):
                found.add(self._kind_of(element, dtype))
            else:
                kind = dtype_kind(value.dtype) if isinstance(value, Tensor) else number_of(self.facts, element)
                found.add(kind or self._kind_taken(element))
        return "float" if "float" in found else max(found, key=_KINDS.index) if found <= {*_KINDS} else None

    def _kind_taken(self, element: ast.expr) -> str | None:
        """The kind of a number that is taken out of a tensor of a known one."""
        call = method(self.facts, element, "item")
        value = self.facts.value(call.func.value) if call and isinstance(call.func, ast.Attribute) else None
        return dtype_kind(value.dtype) if isinstance(value, Tensor) else None

    def _sorted(self, node: ast.expr, dtype: Hashable) -> None:
        """What becomes of a sorted list that is a tensor of one dimension now."""
        parent = self.facts.parent(node)
        match parent:
            case ast.Assign(targets=[ast.Tuple(elts=targets)]) if all(isinstance(t, ast.Name) for t in targets):
                for target in targets:
                    assert isinstance(target, ast.Name)
                    self._name(target.id, dtype)
            case ast.Assign(targets=[ast.Name(id=name)]) if len(self._bound(name)) == 1:
                for read in nodes_in(self.facts.function):
                    if isinstance(read, ast.Name) and read.id == name and not isinstance(read.ctx, ast.Store):
                        self._sorted(read, dtype)
            case ast.Subscript(value=value, slice=index, ctx=ast.Load()) if value is node:
                if not isinstance(constant(index), int):
                    raise NeedsPythonNumberError(f"`{shortened(parent)}` needs Python numbers")
                self._follow(parent, dtype)
            case ast.For(target=ast.Name(id=name), iter=it) | ast.comprehension(target=ast.Name(id=name), iter=it) if (
                it is node
            ):
                self._name(name, dtype)
            case ast.Call(func=ast.Name(id="len")):
                return
            case _:
                raise NeedsPythonNumberError(f"`{shortened(parent or node)}` needs Python numbers")

    def _together(self, call: ast.Call, place: int, dtype: Hashable) -> None:
        """A list that is run through along with others: `for i, s in enumerate(list)`."""
        match self.facts.parent(call):
            case (
                ast.For(target=ast.Tuple(elts=targets), iter=it)
                | ast.comprehension(target=ast.Tuple(elts=targets), iter=it)
            ) if it is call and place < len(targets):
                numbers = call.args[place if len(targets) == len(call.args) else 0]
                match targets[place]:
                    case ast.Name(id=name):
                        self._one_of(numbers, lambda: self._name(name, dtype))
                    case ast.Tuple(elts=elts):
                        self._row(numbers, elts, dtype)
                    case _:
                        raise NeedsPythonNumberError(f"`{shortened(call)}` needs Python numbers")
            case _:
                raise NeedsPythonNumberError(f"`{shortened(call)}` needs Python numbers")

    def _row(self, node: ast.expr, targets: list[ast.expr], dtype: Hashable) -> None:
        """The lists in a list are taken apart: `for i, j in table.tolist()`, of a tensor of two dimensions."""
        call = method(self.facts, node, "tolist")
        table = self.facts.value(call.func.value) if call is not None and isinstance(call.func, ast.Attribute) else None
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if not isinstance(table, Tensor) or table.rank not in (None, 2) or len(names) < len(targets):
            raise NeedsPythonNumberError(f"`{shortened(node)}` needs Python numbers")
        self.rows = True
        for name in names:
            self._name(name, dtype)

    def _taken_apart(self, targets: list[ast.expr], dtype: Hashable) -> None:
        """`a, b = [t.item() for t in ts]`: each name is given one of them."""
        for target in targets:
            assert isinstance(target, ast.Name)
            self._name(target.id, dtype)

    def _list_name(self, name: str, dtype: Hashable) -> None:
        if (name, dtype) in self._lists:
            return
        self._lists.add((name, dtype))
        if name in parameters(self.facts.function):
            raise NeedsPythonNumberError(f"`{name}` comes from outside")
        for node in nodes_in(self.facts.function):
            if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
                raise NeedsPythonNumberError(f"`{name}` is no local name")
            read = isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Store)
            if read and isinstance(node, ast.Name) and not isinstance(self.facts.value(node), Tensor):
                self._listed(node, dtype)

    def _all_of(self, node: ast.expr) -> None:
        """Every element of a list must become a tensor."""
        for element in self._elements(node):
            if not isinstance(self.facts.value(element), Tensor):
                self.also.append(element)

    def _elements(self, node: ast.expr) -> list[ast.expr]:
        match node:
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return elements
            case ast.ListComp(elt=element) | ast.GeneratorExp(elt=element):
                return [element]
            case ast.Call() if self._is_empty(node):
                return []
            case ast.Call(func=ast.Attribute(attr="tolist")):
                return []
            case ast.Call(args=[inner]) if called(self.facts, node, *_ORDERS):
                return self._elements(inner)
            case ast.Subscript(value=inner, slice=ast.Slice()):
                return self._elements(inner)
            case ast.Name(id=name):
                bound = self._bound(name)
                if len(bound) == 1 and bound[0] is not None:
                    return [*self._elements(bound[0]), *self._appended(name)]
        raise NeedsPythonNumberError(f"what `{shortened(node)}` holds is not known")

    def _bound(self, name: str) -> list[ast.expr | None]:
        """What a name is bound to, tensors aside, which a list may become: `out = torch.tensor(out)`."""
        bound = [one.value for one in bindings(self.facts).get(name, []) if not one.part]
        return [b for b in bound if b is None or not isinstance(self.facts.value(b), Tensor)]

    def _grows(self, name: str) -> bool:
        """Is a name bound to lists alone? The parts of a tensor are a tuple."""
        bound = self._bound(name)
        return bool(bound) and all(
            isinstance(value, (ast.List, ast.ListComp)) or self._is_empty(value) for value in bound
        )

    def _is_empty(self, node: ast.expr | None) -> bool:
        """Is code `list()`?"""
        if not isinstance(node, ast.Call) or node.args or node.keywords:
            return False
        return qualified(self.facts, node.func) == "builtins.list"

    def _appended(self, name: str) -> list[ast.expr]:
        found = []
        for node in nodes_in(self.facts.function):
            match node:
                case (
                    ast.Call(func=ast.Attribute(value=ast.Name(id=of), attr="append"), args=[one])
                    | ast.Call(func=ast.Attribute(value=ast.Name(id=of), attr="insert"), args=[_, one])
                ) if of == name:
                    found.append(one)
                case ast.AugAssign(target=ast.Name(id=of), value=ast.List(elts=added)) if of == name:
                    found += added
        return found

    def _unpacked(self, node: ast.Tuple) -> list[ast.expr] | None:
        """The targets that the parts of a tuple are given."""
        match self.facts.parent(node):
            case ast.Assign(targets=[ast.Tuple(elts=elts)], value=value) if value is node:
                starred = any(isinstance(e, ast.Starred) for e in [*elts, *node.elts])
                return elts if len(elts) == len(node.elts) and not starred else None
        return None


def is_statement(facts: FunctionFacts, call: ast.Call) -> bool:
    return isinstance(facts.parent(call), ast.Expr)


def is_list(facts: FunctionFacts, node: ast.expr) -> bool:
    value = facts.value(node)
    return isinstance(value, Container) and value.kind in ("list", "deque")
