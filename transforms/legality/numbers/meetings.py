"""A 0-d tensor in the place of a Python number, where it meets tensors and other numbers: what differs there."""

from __future__ import annotations

import ast
from collections.abc import Hashable
from dataclasses import replace
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Scalar, Static, Tensor, Value, dtype_kind
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bindings
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.liveness import parameters
from graphmend.transforms.code.qualified_names import NUMBER_TYPES, called, qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.dtypes import kinds
from graphmend.transforms.legality.numbers.arithmetic import (
    NeedsPythonNumberError,
    always,
    combined,
    folded,
    is_added_to,
    is_narrow,
    is_rounded,
    number_of,
    of_its_dtype,
)
from graphmend.transforms.legality.numbers.as_tensors import (
    BEYOND_DOUBLE,
    COMPARED,
    HALF,
    IMAGINARY,
    INVERSE,
    NEGATIVE,
    NO_BOUND,
    OF_BOOL,
    OVERFLOW,
    POWER,
    PRECISION,
    PROMOTES,
    RANGE,
    WRAPS,
    exact_in,
    holds,
    is_refused,
    unlike,
)
from graphmend.transforms.legality.numbers.counterparts import WHOLE, Counterpart, Result, copied
from graphmend.transforms.legality.numbers.said import Beside
from graphmend.transforms.legality.operations import numeric

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_TESTS = (ast.If, ast.While, ast.Assert, ast.BoolOp, ast.UnaryOp, ast.comprehension)
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
#: functions of a number that give whole ones
_STEPS = frozenset({"int", "round"}) | WHOLE


class Meetings:
    """Collects what differs where a kept number is computed with, compared, or given to torch."""

    def __init__(self, facts: FunctionFacts, *, rewrites: bool = False) -> None:
        """Without `rewrites` a use that takes no tensor as it is written needs a Python number."""
        self.facts, self.rewrites, self._may_say = facts, rewrites, rewrites
        self.counterparts: dict[ast.expr, Counterpart] = {}
        """The uses that must be written otherwise."""
        self.differences: list[Difference] = []
        self._start: ast.expr | None = None
        """What takes the number out of its tensor."""
        self._named = ""
        """The name whose number is followed."""
        self.asks: list[ast.AST] = []
        """The uses that ask torch for the number: branches, bounds of slices, indices. They have mends of their own."""
        self.computes = False
        """Are numbers computed or compared, which a wider dtype does as Python does?"""
        self.jumps: list[ast.expr] = []
        """Steps, as `int` and `%` have them, over which a rounded number would come out as another one."""

    def _meets(
        self, value: Tensor, dtype: Hashable, op: type[ast.operator], *, left: bool, number: ast.expr, other: ast.expr
    ) -> None:
        """A tensor and the number, as operands of one operation: written out as `other` and `number`."""
        if (found := unlike(value, dtype)) == PROMOTES and self._casts(number, other, dtype):
            found = None if value.dtype in ("float32", "float64") else HALF
        if found is not None:
            self.differences.append(found)
        steps = op in (ast.FloorDiv, ast.Mod) and dtype_kind(dtype) not in ("int", "bool")
        # steps are others where they are computed in another precision, too
        if steps and (found == PROMOTES or (is_narrow(dtype) and is_rounded(self.facts, number))):
            self.jumps.append(number)
        if op is ast.Div:
            self.differences.append(INVERSE)
        elif op is ast.Pow:
            self.differences.append(POWER)
            if "float" not in (dtype_kind(value.dtype), dtype_kind(dtype)):
                self.differences.append(NEGATIVE)

    def _changes(self, value: Tensor, dtype: Hashable, op: type[ast.operator]) -> None:
        """A tensor that is changed in place by the number, which keeps its dtype: `x *= s`, `x.mul_(s)`."""
        if unlike(value, dtype) is not None:
            self.differences.append(PRECISION)
        if op is ast.Div:
            self.differences.append(INVERSE)
        elif op is ast.Pow:
            self.differences += [POWER, NEGATIVE]

    def _casts(self, number: ast.expr, other: ast.expr, dtype: Hashable) -> bool:
        """Is the number cast to the dtype that torch computes in when a Python number meets the tensor?"""
        kind, of = dtype_kind(dtype), kinds(self.facts, other)
        before = self.counterparts.get(number, Counterpart(number))
        like = of_its_dtype(self.facts, other)
        if not self.rewrites or before.like is not None or like is None:
            return False
        if kind not in ("bool", "int", "float") or (kind != "float" and of != {"float"}):
            return False
        if not self._is_taken(number, set()):
            return False
        suffix = before.suffix.removesuffix(".double()")
        real = "complex" not in of
        if of != {"complex"} and self._may_be_complex(number, like, set()):
            self.differences.append(IMAGINARY)
        self.counterparts[number] = replace(before, suffix=suffix, like=like, floating=of == {"float"}, real=real)
        return True

    def _is_taken(self, node: ast.expr, seen: set[str]) -> bool:
        """Is a number taken out of tensors for certain, and not a Python number on some path?"""
        inside = [n for n in nodes_in(node) if isinstance(n, ast.expr)]
        if any(isinstance(n, (ast.IfExp, ast.BoolOp, ast.NamedExpr)) or self._adds_what_is_there(n) for n in inside):
            return False
        if any(isinstance(self.facts.value(n), Tensor) for n in inside):
            return True
        for name in (n for n in inside if isinstance(n, ast.Name) and n.id not in seen):
            bound = bindings(self.facts).get(name.id, [])
            if len(bound) != 1 or bound[0].value is None or bound[0].part or name.id in parameters(self.facts.function):
                continue
            seen.add(name.id)
            if not is_added_to(self.facts, name.id) and self._is_taken(bound[0].value, seen):
                return True
        return False

    def _adds_what_is_there(self, node: ast.expr) -> bool:
        """Is an expression a sum of values of a dictionary, which is the number 0 where there are none?"""
        match node:
            case ast.Call(args=[ast.Call(func=ast.Attribute(attr="values"))]):
                return called(self.facts, node, "builtins.sum") is not None
            case ast.Call(args=[ast.GeneratorExp(generators=[ast.comprehension(iter=ast.Name())])]):
                return called(self.facts, node, "builtins.sum") is not None
        return False

    def _may_be_complex(self, node: ast.expr, like: ast.expr, seen: set[str]) -> bool:
        """May a number be taken out of a complex tensor, where `like` is none? What is not known to be taken out of one
        does not count.
        """
        match node:
            case ast.Call(func=ast.Attribute(value=tensor, attr="item"), args=[]):
                return "complex" in kinds(self.facts, tensor) and not self._is_dtype_of(like, tensor)
            case ast.BinOp(left=left, right=right):
                return self._may_be_complex(left, like, seen) or self._may_be_complex(right, like, seen)
            case ast.UnaryOp(operand=operand):
                return self._may_be_complex(operand, like, seen)
            case ast.Name(id=name) if name not in seen:
                seen.add(name)
                bound = [b.value for b in bindings(self.facts).get(name, []) if b.value is not None and not b.part]
                return any(self._may_be_complex(value, like, seen) for value in bound)
        return False

    def _is_dtype_of(self, like: ast.expr, tensor: ast.expr) -> bool:
        """Has a tensor the dtype of the name `like`, which is bound once?"""
        of = of_its_dtype(self.facts, tensor)
        if not (isinstance(like, ast.Name) and isinstance(of, ast.Name) and like.id == of.id):
            return False
        return len(bindings(self.facts).get(like.id, [])) + (like.id in parameters(self.facts.function)) == 1

    def _combined(
        self,
        dtype: Hashable,
        op: ast.operator,
        other: ast.expr,
        *,
        left: bool,
        known: Value | None = None,
        number: ast.expr | None = None,
    ) -> Hashable:
        """The dtype of the number and another number, computed as tensors."""
        found = combined(self.facts, dtype, op, other, left=left, known=known, number=number)
        self.differences += found.differences
        self.computes |= found.computes
        return found.dtype

    def _steps(self, whole: ast.expr, node: ast.expr, dtype: Hashable) -> None:
        """The number goes into an operation, which may have steps."""
        last = (qualified(self.facts, whole.func) or "").rpartition(".")[2] if isinstance(whole, ast.Call) else ""
        rest = isinstance(whole, ast.BinOp) and isinstance(whole.op, (ast.FloorDiv, ast.Mod))
        if not (rest or last in _STEPS) or not is_narrow(dtype):
            return
        rounded = is_rounded(self.facts, node)
        if isinstance(whole, ast.BinOp):
            other = whole.left if whole.right is node else whole.right
            number = folded(other)
            whole_number = number_of(self.facts, other) == "int"
            rounded |= not (whole_number or (isinstance(number, float) and exact_in(number, "float32")))
        if rounded:
            self.jumps.append(whole)

    def _copied(self, call: ast.Call, name: str, dtype: Hashable) -> Result | None:
        """What a function makes of the number that gives a tensor of it."""
        of_any = not self.rewrites or bool(self._beside(call.args[0]))
        return copied(call, name, dtype, only_read=self._is_only_read(call), of_any=of_any)

    def _beside(self, node: ast.expr) -> list[ast.expr]:
        """The numbers that an expression may be still once the number that is followed is a tensor."""
        tensors = {*self.counterparts, *([self._start] if self._start is not None else [])}
        return Beside(self.facts, tensors, self._named).of(node)

    def _is_only_read(self, node: ast.expr) -> bool:
        """Is a tensor given to a function that changes nothing in place, and to nothing else?"""
        taker = self.facts.parent(node)
        name = (qualified(self.facts, taker.func) or "") if isinstance(taker, ast.Call) else ""
        return name.startswith(("torch.", "graphmend.runtime.")) and not name.endswith("_")

    def _falls(self, node: ast.AugAssign, dtype: Hashable) -> None:
        """`s //= n`, `s %= n`: what changes `s` once may have done so before, in a loop."""
        if isinstance(node.op, (ast.FloorDiv, ast.Mod)) and is_narrow(dtype):
            self.jumps.append(node.target)

    def exactly(self) -> None:
        """Refuses where the number, as wide as it stays, would come out as another one."""
        if self.jumps:
            raise NeedsPythonNumberError(f"`{shortened(self.jumps[0])}` of a number that is rounded may be another one")

    def _needs_no_bool(self, node: ast.expr, dtype: Hashable) -> None:
        kind = dtype_kind(dtype)
        if kind == "bool":
            raise NeedsPythonNumberError(f"`{shortened(node)}` of a bool needs a Python number")
        if kind is None:
            self.differences += [OF_BOOL, RANGE]
        elif kind == "int" and dtype != "int64":
            self.computes = True
            self.differences.append(WRAPS)

    def _compared(self, other: ast.expr, dtype: Hashable, number: ast.expr | None = None) -> None:
        """The number, which is written as `number` where it is an operand, and another one, or a tensor."""
        value = self.facts.value(other)
        if isinstance(value, Tensor):
            if unlike(value, dtype) is None or (number is not None and self._is_out_of(number, other)):
                return
            if number is None or not self._casts(number, other, dtype):
                self.differences.append(COMPARED)
        elif is_refused(always(other, value)):
            raise NeedsPythonNumberError(f"`{shortened(other)}` is more than a tensor can hold")
        elif isinstance(literal := always(other, value), int) and not exact_in(
            literal, dtype if dtype_kind(dtype) == "int" else "float64"
        ):
            raise NeedsPythonNumberError(f"`{shortened(other)}` may wrap around in the tensor's dtype")
        elif not self._comparable(other, value, dtype):
            self.computes = True
            if number is None or not self._compares_as_double(number, other, value, dtype):
                self.differences.append(COMPARED)

    def _negated(self, negation: ast.UnaryOp, number: ast.expr) -> Hashable:
        """`not number`, of which Python makes a bool where nothing but a test asks for it."""
        above = self.facts.parent(negation)
        asked = isinstance(above, _TESTS) or (isinstance(above, ast.IfExp) and above.test is negation)
        if self.rewrites and not asked:
            self.counterparts[negation] = Counterpart(negation, formula="({number} == 0)", parts=(("number", number),))
        return "bool"

    def _compares_as_double(self, number: ast.expr, other: ast.expr, value: Value, dtype: Hashable) -> bool:
        """Is the number written as the double that Python compares, where another number stands on the other side?
        Whole numbers keep their order among doubles, up to those that are no double themselves.
        """
        literal, comparison = always(other, value), self.facts.parent(number)
        known = isinstance(value, Scalar) or (isinstance(value, Static) and value.type in NUMBER_TYPES)
        known |= isinstance(literal, (bool, int, float))
        if not (self.rewrites and known and self._is_taken(number, set())):
            return False
        kind, signs = dtype_kind(dtype), comparison.ops if isinstance(comparison, ast.Compare) else []
        if kind in ("float", "int", "bool") or any(isinstance(op, _ORDERS) for op in signs):
            form = Counterpart(number, suffix=".double()")
        elif isinstance(number, ast.Name):  # a complex number may be equal, too
            text = "{number}.to(torch.promote_types({number}.dtype, torch.float64))"
            form = Counterpart(number, formula=text, parts=(("number", number),))
        else:
            return False
        if self.counterparts.get(number, form) not in (form, Counterpart(number)):
            return False
        if kind != "float" and not (isinstance(literal, (bool, int, float)) and exact_in(literal, "float64")):
            self.differences.append(BEYOND_DOUBLE)
        self.counterparts[number] = form
        return True

    def _is_out_of(self, number: ast.expr, other: ast.expr) -> bool:
        """Is a number taken out of the tensor that it meets, or a part of it, so that it is of its dtype?"""
        if isinstance(number, ast.Name):
            bound = bindings(self.facts).get(number.id, [])
            if len(bound) != 1 or bound[0].value is None or bound[0].part or is_added_to(self.facts, number.id):
                return False
            number = bound[0].value
        match number:
            case ast.Call(func=ast.Attribute(value=tensor, attr="item"), args=[]):
                like = of_its_dtype(self.facts, other)
                return like is not None and self._is_dtype_of(like, tensor)
        return False

    def _comparable(self, other: ast.expr, value: Value, dtype: Hashable) -> bool:
        """Does the tensor compare with a number as Python does?"""
        number = always(other, value)
        if isinstance(number, (bool, int, float)):
            return exact_in(number, dtype)
        of = value.type if isinstance(value, (Static, Scalar)) else None
        if dtype == "float64":
            return of in NUMBER_TYPES
        return dtype in ("int64", "bool") and of in ("int", "bool")

    def _torch(self, call: ast.Call, node: ast.expr, dtype: Hashable, last: str, *, method: bool) -> None:
        arguments = [*([call.func.value] if method and isinstance(call.func, ast.Attribute) else []), *call.args]
        keyword = next((k.arg for k in call.keywords if k.value is node), None)
        place = next((i for i, a in enumerate(arguments) if a is node), None)
        if last == "linspace" and (place in (0, 1) or keyword in ("start", "end")):
            return
        if place is None and keyword not in numeric.KEYWORDS:
            raise NeedsPythonNumberError(f"`{shortened(call)}` needs a Python number")
        first = self.facts.value(arguments[0]) if arguments and place != 0 else None
        of = first if isinstance(first, Tensor) and not first.ndarray else None
        changed = last.removesuffix("_") if method else ""
        if last in numeric.OPERATORS and place in (1, None) and of is not None:
            self._meets(of, dtype, numeric.OPERATORS[last], left=False, number=node, other=arguments[0])
        elif changed in numeric.OPERATORS and place in (1, None) and of is not None:
            self._changes(of, dtype, numeric.OPERATORS[changed])
        elif last == "pow" and place == 0 and len(arguments) == 2:
            exponent = self.facts.value(arguments[1])
            if not isinstance(exponent, Tensor):
                raise NeedsPythonNumberError(f"`{shortened(call)}` needs a Python number")
            self._meets(exponent, dtype, ast.Pow, left=True, number=node, other=arguments[1])
        elif last in numeric.COMPARISONS and place in (1, None) and of is not None:
            self._compared(arguments[0], dtype, node)
        elif (last in numeric.BOUNDS or changed in numeric.BOUNDS) and of is not None:
            if len(arguments) + len(call.keywords) != 2:
                self._clamps(call, arguments, last)
            self._takes(of, dtype)
            self.differences += [NO_BOUND] if "bool" in kinds(self.facts, arguments[0]) else []
        elif last == "where" and place in (1, 2):
            self._selected(arguments[3 - place], dtype)
        elif last in numeric.FILLS and place in (numeric.FILLS[last], None) and of is not None:
            if last in ("fill_", "fill") and not holds(of, dtype):
                self.differences.append(OVERFLOW)
        elif self.rewrites and of is not None and (last, place, len(arguments)) in numeric.NEW_FILLED:
            self._fills(call, of, dtype)
        elif last == "full" and place in (1, None):
            if not any(k.arg == "dtype" for k in call.keywords) and dtype_kind(dtype) != "float":
                raise NeedsPythonNumberError("once compiled, `torch.full` makes a float of any tensor")
        else:
            raise NeedsPythonNumberError(f"`{shortened(call)}` needs a Python number")

    def _clamps(self, call: ast.Call, arguments: list[ast.expr], last: str) -> None:
        """Two bounds, which are both numbers or both tensors, one after the other."""
        given = dict(zip(("min", "max"), arguments[1:], strict=False)) | {k.arg or "": k.value for k in call.keywords}
        if not self.rewrites or last not in ("clamp", "clip") or set(given) != {"min", "max"}:
            raise NeedsPythonNumberError(f"`{shortened(call)}` takes two numbers or two tensors for its bounds")
        bounds = tuple((name, given[name]) for name in ("min", "max"))
        self.counterparts[call] = Counterpart(arguments[0], bounds=bounds)

    def _fills(self, call: ast.Call, value: Tensor, dtype: Hashable) -> None:
        """`torch.full_like(x, number)`, `x.new_full(size, number)`, which take no tensor to fill with."""
        if any(k.arg in ("dtype", None) for k in call.keywords) or not holds(value, dtype):
            self.differences += [OVERFLOW, PRECISION]
        options = "".join(f", {k.arg}={ast.unparse(k.value)}" for k in call.keywords if k.arg)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "new_full":
            parts = (("input", call.func.value), ("size", call.args[0]), ("value", call.args[1]))
            text = f"{{input}}.new_empty({{size}}{options}).fill_({{value}})"
            self.counterparts[call] = Counterpart(call, formula=text, parts=parts)
        else:
            self.counterparts[call] = Counterpart(call.args[0], "", "empty_like", options, filled=call.args[1])

    def _takes(self, value: Tensor, dtype: Hashable) -> None:
        """A tensor and a number that is converted to its dtype."""
        if (found := unlike(value, dtype)) is not None:
            self.differences.append(found)
        self.differences += [] if holds(value, dtype) else [OVERFLOW]

    def _selected(self, other: ast.expr, dtype: Hashable) -> None:
        """The other value of a `torch.where`."""
        value = self.facts.value(other)
        if isinstance(value, Tensor) and not value.ndarray:
            self._takes(value, dtype)
        elif (dtype, number_of(self.facts, other)) not in (("float32", "float"), ("int64", "int"), ("bool", "bool")):
            self.differences.append(PROMOTES)

    def _becomes(self, call: ast.expr, result: Result) -> Hashable:
        """A call is written otherwise; the dtype that it gives then."""
        if not (self.rewrites or (self._may_say and result.of_any)):
            raise NeedsPythonNumberError(f"`{shortened(call)}` needs a Python number")
        if result.form is not None:
            self.counterparts[call] = result.form
        self.differences += result.differences
        self.computes |= result.computes
        return result.dtype
