"""May a 0-d tensor stand where a Python number stands? Follows the number from its expression through names to
every use, and asks of each what the tensor would do differently.

A Python float is a double, and a Python int has no end: what is computed with numbers is the same for a tensor only
where it is a float64, and while whole numbers stay within 64 bits. Measured with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable
from typing import TYPE_CHECKING, cast

from graphmend.analysis.lattice.values import Container, Tensor, dtype_kind, tensor_in
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import is_read_earlier, reaching
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.liveness import parameters
from graphmend.transforms.code.qualified_names import asks_for_none, number_type, qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.dtypes import kinds
from graphmend.transforms.legality.numbers import counterparts
from graphmend.transforms.legality.numbers.arithmetic import NeedsPythonNumberError as NeedsPythonNumberError
from graphmend.transforms.legality.numbers.arithmetic import compares, number_of
from graphmend.transforms.legality.numbers.as_tensors import OVERFLOW, PROMOTES, UNORDERED, holds
from graphmend.transforms.legality.numbers.calls.counting import Counting
from graphmend.transforms.legality.numbers.calls.handed_out import fits
from graphmend.transforms.legality.numbers.containers.lists import is_list, is_statement
from graphmend.transforms.legality.numbers.counterparts import joined
from graphmend.transforms.legality.numbers.said import is_only_text, said
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.rows.slices import fills_slice
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.FloorDiv, ast.Mod)


class ScalarUses(Counting):
    """Follows a number to its uses, and collects what a tensor of `dtype` in its place would do differently."""

    def __init__(
        self,
        facts: FunctionFacts,
        dtype: Hashable = None,
        within: ast.expr | None = None,
        *,
        rewrites: bool = False,
        says: bool = False,
        restates: bool = False,
        converts: ast.stmt | None = None,
    ) -> None:
        """Nothing is asked of what becomes of `within`: whoever keeps a tensor for that sees to it. With `says` numbers
        that are only said may be written otherwise there, with `rewrites` other uses as well, with `restates` `+=` too;
        inside `converts` whoever asks writes it as a new value.
        """
        super().__init__(facts, rewrites=rewrites)
        self._within = within
        self._dtype, self._may_say, self._restates = dtype, says or rewrites, restates
        self._seen: set[tuple[str, Hashable, ast.expr | None]] = set()
        self._mixed = False
        self._anew = frozenset(nodes_in(converts) if converts is not None else ())

    @answers("numbers")
    def follow(self, node: ast.expr) -> None:
        """Goes up from an expression whose value would become a 0-d tensor."""
        self._start = node
        self._follow(node, self._dtype)
        self._check_names()

    @answers("numbers")
    def parts(self, node: ast.expr) -> None:
        """Goes up from a list of numbers that becomes a tuple of 0-d tensors."""
        match self.facts.parent(node):
            case ast.Assign(targets=[ast.Tuple(elts=targets)]):
                for target in targets:
                    self._target(target, self._dtype)
            case _:
                self._listed(node, self._dtype)
        self._check_names()

    @answers("numbers")
    def name(self, name: str) -> None:
        """Follows a number to the uses of a name that it is given."""
        self._named = name
        self._name(name, self._dtype)
        self._check_names()

    @answers("numbers")
    def place(self, text: str) -> None:
        """Follows a number to the readers of an attribute or a key that it is stored under."""
        self._target(ast.parse(text, mode="eval").body, self._dtype)
        self._check_names()

    @answers("numbers")
    def result(self) -> None:
        """Follows a number that the function returns to its calls."""
        self._returned(self.facts.function, self._dtype)

    @property
    def _may_be_number(self) -> bool:
        return self._mixed

    def _in(self, facts: FunctionFacts, dtype: Hashable, *, rewrites: bool) -> ScalarUses:
        uses = ScalarUses(facts, dtype, rewrites=rewrites, restates=rewrites and self._restates)
        uses._is_elsewhere = self._is_elsewhere
        return uses

    def _follow(self, node: ast.expr, dtype: Hashable) -> None:
        if node is self._within or asks_for_none(self.facts.parent(node)):  # a tensor is no more None than a number
            return
        if self._is_elsewhere and self._is_alike_elsewhere(node, dtype):
            return
        self._passed.append(node)
        match parent := self.facts.parent(node):
            case ast.BinOp(op=op) if isinstance(op, _ARITHMETIC):
                self._arithmetic(parent, node, dtype)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
                self._needs_no_bool(parent, dtype)
                self._follow(parent, dtype)
            case ast.Compare(ops=ops) if not any(isinstance(o, (ast.In, ast.NotIn, ast.Is, ast.IsNot)) for o in ops):
                self._compare(parent, node, dtype)
            case ast.BoolOp():
                self._test(parent, dtype)
            case ast.UnaryOp(op=ast.Not()):
                self._test(parent, self._negated(parent, node))
            case ast.If(test=t) | ast.IfExp(test=t) | ast.While(test=t) | ast.Assert(test=t) if t is node:
                self.asks.append(parent)  # a branch on a tensor
            case ast.Match(cases=cases) if all(compares(case.pattern) for case in cases):
                self.asks.append(parent)
            case ast.IfExp():
                self._follow(parent, dtype)
            case ast.FormattedValue(conversion=-1) if is_only_text(self.facts, parent) and fits(parent, dtype):
                pass
            case ast.Slice() if self._bounds(parent, node, dtype):
                self.asks.append(parent)
            case ast.Attribute(attr=attr) if not any(hasattr(one, attr) for one in (0, 0.0, [0])):
                pass  # neither a number nor a list has it: what is computed is a tensor already
            case ast.Subscript(slice=index) if index is node and self._picks(parent, dtype):
                self.asks.append(parent)
            case (
                ast.Compare(left=left, ops=[ast.In() | ast.NotIn()])
                | ast.Subscript(slice=left)
                | ast.Call(func=ast.Attribute(attr="get"), args=[left, *_])
            ) if left is node and (result := self._entry_of(parent, node, dtype)) is not None:
                self._follow(parent, self._becomes(parent, result))
            case ast.Tuple() if isinstance(above := self.facts.parent(parent), ast.Subscript) and self._picks(
                above, dtype
            ):
                self.asks.append(above)
            case ast.Tuple() | ast.Dict() if self._is_kept(parent):
                pass
            case ast.List() | ast.ListComp() | ast.GeneratorExp() if self.rewrites:
                self._held_in(parent, node, dtype)
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="append" | "insert"), args=[*_, one], keywords=[]
            ) if one is node and self._may_say and is_statement(self.facts, parent):
                self._list_name(name, dtype)
            case ast.Call(func=ast.Attribute(value=ast.Attribute() as of, attr="append"), args=[one]) if (
                one is node and is_statement(self.facts, parent) and is_list(self.facts, of)
            ):
                self._grown(of, dtype)
            case ast.Dict() if node in parent.values:
                self._stored_in(node, dtype)
            case ast.DictComp(value=value) if value is node:
                self._of_comprehension(parent, dtype)
            case ast.Call() if node in parent.args or any(k.value is node for k in parent.keywords):
                self._argument(parent, node, dtype)
            case ast.keyword():
                above = cast("ast.Call", self.facts.parent(parent))
                self._argument(above, node, dtype)
            case ast.NamedExpr(target=target):
                self._hand(node, [target])
                self._name(target.id, dtype)
                self._follow(parent, dtype)
            case ast.Assign(targets=targets):
                self._hand(node, targets)
                for one in targets:
                    self._target(one, dtype, node)
            case ast.AnnAssign(target=target):
                self._hand(node, [target])
                self._target(target, dtype, node)
            case ast.Tuple(elts=elts) if (unpacked := self._unpacked(parent)) is not None:
                taker = unpacked[next(i for i, e in enumerate(elts) if e is node)]
                self._hand(node, [taker])
                self._target(taker, dtype, node)
            case ast.Tuple(ctx=ast.Load()):
                self._carry_in_tuple(node, parent, dtype)
            case ast.AugAssign():
                self._added(parent, dtype)
            case ast.Return():
                self._returned(parent, dtype)
            case _:
                raise NeedsPythonNumberError(f"`{shortened(parent or node)}` needs a Python number")

    def _arithmetic(self, parent: ast.BinOp, node: ast.expr, dtype: Hashable) -> None:
        left = parent.left is node
        other = parent.right if left else parent.left
        value = self.facts.value(other)
        if isinstance(value, Tensor) and not value.ndarray:
            self._meets(value, dtype, type(parent.op), left=left, number=node, other=other)
            return
        if tensor_in(value) is not None:
            self.differences.append(PROMOTES)
            back = isinstance(self.facts.parent(parent), ast.Return)
            if back and self.returns_to is None:  # who gets it has to take a tensor already
                says = f"`{shortened(parent)}` is a tensor also where `{shortened(other)}` is a Python number"
                self.differences.append(Difference("type", says))
                return
        self._steps(parent, node, dtype)
        self._follow(parent, self._combined(dtype, parent.op, other, left=left, number=node))

    # Tests

    def _compare(self, parent: ast.Compare, node: ast.expr, dtype: Hashable) -> None:
        for other in (parent.left, *parent.comparators):
            if other is not node:
                self._compared(other, dtype, node)
        if any(isinstance(o, _ORDERED) for o in parent.ops):
            self._order(node, dtype)
        if not isinstance(self.facts.value(parent), Tensor):
            self._test(parent, "bool")

    def _order(self, node: ast.expr, dtype: Hashable) -> None:
        """Complex numbers have no order, of which Python and torch tell in exceptions of their own."""
        taken = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else node
        if "complex" in (kinds(self.facts, taken) if dtype_kind(dtype) is None else {dtype_kind(dtype)}):
            self.differences.append(UNORDERED)

    def _test(self, parent: ast.expr, dtype: Hashable) -> None:
        if (self._mixed or self.is_partial) and not self._is_elsewhere:
            raise NeedsPythonNumberError(
                f"`{shortened(parent)}` would be a Python bool for some values and a tensor for others"
            )
        above = self.facts.parent(parent)
        if isinstance(above, (ast.GeneratorExp, ast.ListComp)) and above.elt is parent:
            return  # an element of `any` or `all`, or the list is judged by itself
        self._follow(parent, dtype)

    def _bounds(self, part: ast.Slice, node: ast.expr, dtype: Hashable) -> bool:
        """Is a number a bound of a tensor's slice, which takes a 0-d tensor of whole numbers as well?"""
        above = next(a for a in self.facts.ancestors(part) if isinstance(a, ast.Subscript))
        value = self.facts.value(above.value)
        plain = isinstance(value, Tensor) and not value.ndarray
        return plain and part.step is not node and dtype_kind(dtype) in ("int", None)

    def _picks(self, subscript: ast.Subscript, dtype: Hashable) -> bool:
        """Is a number an index, which a 0-d tensor of whole numbers is as well? It is mended next."""
        value, kind = self.facts.value(subscript.value), dtype_kind(dtype)
        indexed = (isinstance(value, Tensor) and not value.ndarray) or isinstance(value, Container)
        if not (self.rewrites and indexed and kind == "int" and not isinstance(subscript.ctx, ast.Del)):
            return False
        if isinstance(value, Container) and value.kind not in ("list", "tuple", "modules"):
            return False
        self.computes |= dtype != "int64"  # a uint8 is a mask
        return True

    def _argument(self, call: ast.Call, node: ast.expr, dtype: Hashable) -> None:
        name = qualified(self.facts, call.func) or ""
        folder, _, last = name.rpartition(".")
        if folder == "builtins" and last in ("max", "min") and len(call.args) > 1 and not call.keywords:
            bound = next((a for a in call.args if a is not node), None)
            of = number_type(self.facts, bound) if bound is not None and len(call.args) == 2 else None
            if self.rewrites and bound is not None and of is not None:
                self._compared(bound, dtype)
                self._needs_tensor(node)
                dtype = self._becomes(call, counterparts.bounded(node, bound, last, dtype, of))
            else:
                self._greatest(call, node, dtype, last)
        elif folder == "builtins" and last == "abs":
            self._needs_no_bool(call, dtype)
        elif (result := counterparts.of_number(call, folder, last, dtype)) is not None:
            self._steps(call, node, dtype)
            self._needs_tensor(node)
            dtype = self._becomes(call, result)
        elif call.args == [node] and (result := self._copied(call, name, dtype)) is not None:
            self._becomes(call, result)
        elif name == "torch.arange" and self.rewrites and dtype_kind(dtype) == "int" and fills_slice(self.facts, call):
            self.asks.append(call)
            return
        elif self.rewrites and (result := counterparts.ranged(name, call, node, dtype, self._is_whole)):
            self._becomes(call, result)
            return
        elif folder in known.FUNCTIONAL and not any(isinstance(a, ast.Starred) for a in call.args):
            self._torch(call, node, dtype, last, method=folder == "torch.Tensor")
        elif self._is_in_record(call, node, dtype) or self._is_handed_on(call, node, dtype):
            return
        else:
            raise NeedsPythonNumberError(f"`{shortened(call)}` needs a Python number")
        given = self.facts.value(call)
        if tensor_in(given) is None and not isinstance(given, Container):  # several tensors, as `topk` gives
            self._follow(call, dtype)

    def _greatest(self, call: ast.Call, node: ast.expr, dtype: Hashable, last: str) -> None:
        """`max(0.0, s)`: either may be the result, and a compiled one takes NaN for the greatest."""
        self._mixed = True
        for other in call.args:
            if other is node:
                continue
            self._compared(other, dtype)
            kind = dtype_kind(dtype)
            if kind is None or kind != number_of(self.facts, other):
                self.differences.append(
                    Difference("dtype", f"once compiled, `{last}` gives the wider type of whole and other numbers")
                )
        if dtype_kind(dtype) not in ("int", "bool") and (call.args[0] is not node or len(call.args) > 2):
            self.differences.append(Difference("nan", f"once compiled, `{last}` of NaN and a number is NaN"))

    # Names and places

    def _target(self, target: ast.expr, dtype: Hashable, bound: ast.expr | None = None) -> None:
        match target:
            case ast.Name(id=name):
                self._name(name, dtype, bound)
            case ast.Attribute():
                self._outlives(target, dtype)
            case ast.Subscript(value=value) if isinstance(found := self.facts.value(value), Tensor):
                if not holds(found, dtype):
                    self.differences.append(OVERFLOW)
            case ast.Subscript():
                self._entry(target, dtype)
            case _:
                raise NeedsPythonNumberError(f"`{shortened(target)}` is to hold a Python number")

    def _name(self, name: str, dtype: Hashable, bound: ast.expr | None = None) -> None:
        """Follows a name to its readers, but for those that surely read something else than `bound`."""
        if (name, dtype, bound) in self._seen:
            return
        self._seen.add((name, dtype, bound))
        given = self.returns_to is not None and name in parameters(self.facts.function)
        for node in nodes_in(self.facts.function):
            if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
                raise NeedsPythonNumberError(f"`{name}` is no local name")
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                other = bound is not None and reaching(self.facts, node) not in (bound, None)
                other |= not given and is_read_earlier(self.facts, node)
                if not (other or isinstance(self.facts.value(node), Tensor) or self._says(node, dtype)):
                    self._follow(node, dtype)
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
                self._counts(node, dtype)

    def _says(self, node: ast.Name, dtype: Hashable) -> bool:
        """Is a number only written, or part of a message? It is taken out of its tensor there."""
        if not self._may_say or isinstance(self.facts.parent(node), ast.FormattedValue):
            return False
        always = not self._mixed and not self._beside(node)
        found = said(self.facts, node, dtype, always=always)
        if found is not None:
            joined(self.counterparts, found.forms)
            self.differences += found.differences
        return found is not None
