"""Questions that are asked of lists of Python numbers, which hold 0-d tensors instead."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Hashable

from graphmend.analysis.lattice.values import Container, Static, Tensor, Value, dtype_kind, options
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.qualified_names import called, method, number_type
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.numbers import counterparts
from graphmend.transforms.legality.numbers.arithmetic import NeedsPythonNumberError
from graphmend.transforms.legality.numbers.counterparts import Counterpart
from graphmend.transforms.legality.numbers.written_out import WrittenOut
from graphmend.transforms.legality.operations import formulas
from graphmend.transforms.legality.speculation import repeatable

WIDE = Difference("exception", "whole numbers of more than 64 bits raise")


class AskedLists(WrittenOut):
    """What a list of numbers holds: one of them, how often, where, and how many different ones."""

    @abstractmethod
    def _follow(self, node: ast.expr, dtype: Hashable) -> None: ...

    @abstractmethod
    def _all_of(self, node: ast.expr) -> None: ...

    def _member(self, asked: ast.Compare, one: ast.expr, node: ast.expr, dtype: Hashable) -> None:
        """`number in numbers`: whether any is equal."""
        tensor = self._among(asked, one, node, dtype)
        sign, joint = ("==", "any") if isinstance(asked.ops[0], ast.In) else ("!=", "all")
        text = f"({'{input}' if tensor else 'torch.stack({input})'} {sign} {{one}}).{joint}()"
        if tensor is not None and not self._is_line(tensor):  # no list in a list is equal to a number
            text = f"({text} & ({{input}}.dim() == 1))" if joint == "any" else f"({text} | ({{input}}.dim() != 1))"
        form = Counterpart(asked, formula=text, parts=(("input", tensor or node), ("one", one)))
        none = Difference("exception", f"`{shortened(asked)}` of no numbers raises")
        self._follow(asked, self._becomes(asked, counterparts.Result("bool", () if tensor else (none,), form)))

    def _different(self, numbers: ast.Call, node: ast.expr) -> None:
        """`len(set(numbers))`: each number but the first that differs from the one in front of it, in order."""
        count = self.facts.parent(numbers)
        if (
            isinstance(node, ast.GeneratorExp)
            or not isinstance(count, ast.Call)
            or not called(self.facts, count, "builtins.len")
        ):
            raise NeedsPythonNumberError(f"`{shortened(numbers)}` needs Python numbers")
        self._all_of(node)
        call = method(self.facts, node, "tolist")
        tensor = call.func.value if call is not None and isinstance(call.func, ast.Attribute) else None
        if tensor is not None and not repeatable(self.facts, tensor):
            raise NeedsPythonNumberError(f"`{shortened(tensor)}` would be evaluated more than once")
        text = formulas.DISTINCT if tensor is not None else formulas.DISTINCT.replace("{input}", "torch.stack({input})")
        form = Counterpart(count, formula=text, parts=(("input", tensor or node),))
        none = Difference("exception", f"`{shortened(count)}` of no numbers raises")
        self._follow(count, self._becomes(count, counterparts.Result("int64", () if tensor else (none,), form)))

    def _set(self, numbers: ast.Call, node: ast.expr, dtype: Hashable) -> None:
        """`set(numbers)`, in which one is looked up, or of which is asked how many there are."""
        asked = self.facts.parent(numbers)
        match asked:
            case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[of]) if of is numbers:
                self._member(asked, left, node, dtype)
            case _:
                self._different(numbers, node)

    def _searched(self, asked: ast.Attribute, node: ast.expr, dtype: Hashable) -> None:
        """`numbers.count(one)` and `numbers.index(one)`."""
        call = self.facts.parent(asked)
        if not isinstance(call, ast.Call) or call.func is not asked or len(call.args) != 1 or call.keywords:
            raise NeedsPythonNumberError(f"`{shortened(asked)}` needs Python numbers")
        one, is_count = call.args[0], asked.attr == "count"
        tensor = self._among(call, one, node, dtype)
        text = "{input}" if tensor else "torch.stack({input})"
        text = f"({text} == {{one}})" + (".sum()" if is_count else ".int().argmax()")
        if is_count and tensor is not None and not self._is_line(tensor):
            text = f"({text} * ({{input}}.dim() == 1))"
        form = Counterpart(call, formula=text, parts=(("input", tensor or node), ("one", one)))
        none = Difference("exception", f"`{shortened(call)}` of no numbers raises")
        absent = Difference("exception", f"`{shortened(call)}` of a number that is not there is 0, and raised")
        found = counterparts.Result("int64", (*(() if tensor else (none,)), *(() if is_count else (absent,))), form)
        self._follow(call, self._becomes(call, found))

    def _equal(self, asked: ast.Compare, node: ast.expr, other: ast.expr, dtype: Hashable) -> None:
        """`x.tolist() == numbers`, of a list of whole numbers."""
        call, value = method(self.facts, node, "tolist"), self.facts.value(other)
        listed = isinstance(value, Container) and value.kind == "list"
        whole = isinstance(value, Container) and listed and (value.items == () or number_kind(value.element) == "int")
        if call is None or not isinstance(call.func, ast.Attribute) or not whole or dtype_kind(dtype) != "int":
            raise NeedsPythonNumberError(f"`{shortened(asked)}` needs Python numbers")
        tensor = call.func.value
        if not repeatable(self.facts, tensor):
            raise NeedsPythonNumberError(f"`{shortened(tensor)}` would be evaluated more than once")
        same = "torch.equal({input}, torch.tensor({other}, device={input}.device))"
        text = f"({{input}}.shape == (len({{other}}),) and {same})"
        form = Counterpart(asked, formula=text, parts=(("input", tensor), ("other", other)))
        self._follow(asked, self._becomes(asked, counterparts.Result("bool", (WIDE,), form)))

    def _is_line(self, tensor: ast.expr) -> bool:
        """Has a tensor one dimension for certain?"""
        value = self.facts.value(tensor)
        return isinstance(value, Tensor) and value.rank == 1

    def _among(self, asked: ast.expr, one: ast.expr, node: ast.expr, dtype: Hashable) -> ast.expr | None:
        """The tensor that a list is made of, where one number may be looked for in it; None of another list."""
        value = self.facts.value(one)
        single = value.rank == 0 if isinstance(value, Tensor) else number_type(self.facts, one) is not None
        if not single or isinstance(node, ast.GeneratorExp):
            raise NeedsPythonNumberError(f"`{shortened(asked)}` needs Python numbers")
        self._all_of(node)
        call = method(self.facts, node, "tolist")
        tensor = call.func.value if call is not None and isinstance(call.func, ast.Attribute) else None
        held = self.facts.value(tensor) if tensor is not None else None
        if tensor is not None and not self._is_line(tensor) and not repeatable(self.facts, tensor):
            raise NeedsPythonNumberError(f"`{shortened(tensor)}` is not known to have one dimension")
        among = held.dtype if isinstance(held, Tensor) else dtype
        if not isinstance(value, Tensor) and not self._comparable(one, value, among):
            raise NeedsPythonNumberError(f"`{shortened(one)}` may be equal to another number in the tensor's precision")
        self._compared(one, among)
        return tensor


def number_kind(value: Value) -> str | None:
    """The type that a Python number has, whichever it is of several; None where that is not one and the same."""
    types = {option.type if isinstance(option, Static) else None for option in options(value)}
    return types.pop() if len(types) == 1 else None
