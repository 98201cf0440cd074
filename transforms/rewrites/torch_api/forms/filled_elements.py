"""Methods that fill a tensor element by element: `random_`, and `apply_` of a Python function."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Const
from graphmend.analysis.program.entities import Function
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code, bracketed
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.qualified_names import called, method, qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.dtypes import kinds
from graphmend.transforms.legality.gradients.sides import recorded
from graphmend.transforms.legality.in_place import dense
from graphmend.transforms.legality.memory import known_to_share, may_share
from graphmend.transforms.legality.speculation import repeatable
from graphmend.transforms.rewrites.torch_api.forms.form import Form, asked

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

#: functions of `math` that torch has under the same name; `floor` and `ceil` give whole numbers, which have no -0.0
_MATH = frozenset("exp expm1 log log2 log10 log1p sqrt sin cos tan sinh cosh tanh asin acos atan erf".split())
_READ = "what is read is read as it was before, where it shares memory with what is changed"
_MAKERS = tuple(f"torch.{name}{like}" for name in ("empty", "zeros", "ones") for like in ("", "_like"))
#: how many other tensors the function is given elements of
_APPLIED = {"apply_": 0, "map_": 1, "map2_": 2}
_SIGNS: dict[type[ast.AST], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**",
    ast.USub: "-", ast.UAdd: "+",
}  # fmt: skip


def drawn(facts: FunctionFacts, code: Code, imports: Imports) -> Form | str | None:
    """`t.random_(a, b)`."""
    call = method(facts, asked(facts), "random_")
    if call is None or not isinstance(call.func, ast.Attribute):
        return None
    if not call.args or call.keywords or len(call.args) > 2:
        return "`random_` without a range has no other form"
    base = call.func.value
    like = imports.name("torch.randint_like")
    arguments = ", ".join(code.argument(a) for a in call.args)
    differences = [Difference("random", "other random numbers are drawn from the same generator")]
    if recorded(facts, facts.statement):
        differences.append(Difference("gradients", "the result does not ask for gradients, and a leaf raises no more"))
    if fresh_copy := method(facts, base, "clone"):
        assert isinstance(fresh_copy.func, ast.Attribute)
        return call, f"{like}({code.argument(fresh_copy.func.value)}, {arguments})", differences
    if called(facts, base, *_MAKERS):  # nothing else holds it, and it is dense
        return call, f"{like}({code.argument(base)}, {arguments})", differences
    if repeatable(facts, base):
        return call, f"{code.operand(base)}.copy_({like}({code.argument(base)}, {arguments}))", differences
    return "what `random_` fills would be evaluated twice"


def applied(facts: FunctionFacts, code: Code, imports: Imports) -> Form | str | None:
    """`t.apply_(lambda v: v + 1)`, and `t.map_(o, lambda v, w: v + w)`."""
    call = method(facts, asked(facts), *_APPLIED)
    if call is None or not isinstance(call.func, ast.Attribute):
        return None
    *others, given = call.args or [call]
    if call.keywords or len(others) != _APPLIED[call.func.attr]:
        return None
    base = call.func.value
    copied = method(facts, base, "clone")
    tensor = copied.func.value if copied and isinstance(copied.func, ast.Attribute) else base
    operands = [tensor, *others]
    if not repeatable(facts, *operands):
        return "what is changed would be evaluated twice"
    if any(known_to_share(facts, base, other) for other in others):
        return "what is changed shares memory with what is read, and is changed one element after the other"
    if copied is None and not dense(facts, facts.statement, base):
        return f"`{code.text(base)}` is not known to have memory of its own for each element"
    function = _of_elements(facts, given, len(operands))
    if function is None:
        return "only a function of elements that returns an expression can be applied to the whole tensor"
    if unlike := next((o for o in operands if kinds(facts, o) != {"float"}), None):
        return f"`{code.text(unlike)}` is not known to be of floats, as Python's numbers are"
    texts = dict(zip(function.parameters, map(code.operand, operands), strict=True))
    elementwise = _Elementwise(facts, imports, texts)
    try:
        text = elementwise.of(function.body)
    except _NotElementwiseError as error:
        return str(error)
    differences = [
        Difference("rounding", "arithmetic and comparisons happen in the tensor's precision instead of Python's"),
        Difference("overflow", "a number beyond the range of the dtype becomes infinite"),
        Difference("nan", "what is computed further of a number that became infinite may be NaN"),
        Difference("exception", "a tensor that is not on the CPU, or asks for gradients, raises no more"),
        *elementwise.differences,
        *(Difference("aliasing", _READ) for other in others if may_share(facts, base, other)),
    ]
    return (
        call,
        f"{code.operand(base)}.{'copy_' if elementwise.depends(function.body) else 'fill_'}({text})",
        differences,
    )


class _OfElements(NamedTuple):
    parameters: list[str]
    body: ast.expr


def _of_elements(facts: FunctionFacts, node: ast.expr, count: int) -> _OfElements | None:
    """A lambda, or a function in sight that only returns, of so many parameters."""
    value = facts.value(node)
    here = isinstance(value, Function) and value.info.module.source.path == facts.source.path
    definition = value.info.node if isinstance(value, Function) and here and value.bound is None else node
    match definition:
        case ast.Lambda(args=arguments, body=body):
            pass
        case ast.FunctionDef(args=arguments, body=[ast.Return(value=ast.expr() as body)], decorator_list=[]):
            pass
        case _:
            return None
    match arguments:
        case ast.arguments(posonlyargs=[], args=[*plain], vararg=None, kwonlyargs=[], kwarg=None) if (
            len(plain) == count
        ):
            return _OfElements([a.arg for a in plain], body)
    return None


class _NotElementwiseError(Exception):
    """What a function does that has no form for a whole tensor."""


class _Elementwise:
    """A Python function of numbers as an expression of tensors, for each of their elements."""

    def __init__(self, facts: FunctionFacts, imports: Imports, tensors: Mapping[str, str]) -> None:
        """`tensors`: the text of one for each parameter."""
        self._facts, self._imports, self._tensors = facts, imports, tensors
        self.differences: list[Difference] = []

    def of(self, node: ast.expr) -> str:
        """The text of a number, or of a tensor of them."""
        match node:
            case ast.Name(id=name) if name in self._tensors:
                return self._tensors[name]
            case ast.Constant(value=int() | float()):
                return ast.unparse(node)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as op, operand=operand):
                return f"{_SIGNS[type(op)]}{self._operand(operand)}"
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _SIGNS:
                if isinstance(op, (ast.Div, ast.Pow)) and self.depends(node):
                    self._no_error()
                return f"{self._operand(left)} {_SIGNS[type(op)]} {self._operand(right)}"
            case ast.IfExp(test=test, body=body, orelse=orelse) if self.depends(test):
                return self._where(self.test(test), body, orelse)
            case ast.Call(args=[one, other], keywords=[]) if self.depends(node) and called(
                self._facts, node, "builtins.max", "builtins.min"
            ):
                # the first one stays where they are equal, or one is NaN
                sign = ">" if called(self._facts, node, "builtins.max") else "<"
                wins = f"{self._operand(other)} {sign} {self._operand(one)}"
                return self._where(wins, other, one)
            case ast.Call(args=[one], keywords=[]) if self.depends(one):
                if called(self._facts, node, "builtins.abs"):
                    return f"{self._operand(one)}.abs()"
                folder, _, last = (qualified(self._facts, node.func) or "").rpartition(".")
                if folder == "math" and last in _MATH:
                    self._no_error()
                    return f"{self._operand(one)}.{last}()"
        value = self._facts.value(node)
        number = value.value if isinstance(value, Const) and not self.depends(node) else None
        if isinstance(number, (int, float)) and math.isfinite(number):
            return repr(number)
        raise _NotElementwiseError(f"`{ast.unparse(node)}` has no form for a whole tensor")

    def _where(self, test: str, one: ast.expr, other: ast.expr) -> str:
        first = self.of(one)
        if not (self.depends(one) or self.depends(other)):  # two numbers would be of torch's usual dtype
            first = f"{self._imports.name('torch.full_like')}({next(iter(self._tensors.values()))}, {first})"
        return f"{self._imports.name('torch.where')}({test}, {first}, {self.of(other)})"

    def test(self, node: ast.expr) -> str:
        """The text of a test, as a tensor of bools."""
        match node:
            case ast.BoolOp(op=op, values=values):
                return (" & " if isinstance(op, ast.And) else " | ").join(bracketed(self.test(v)) for v in values)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"~{bracketed(self.test(operand))}"
            case ast.Compare(left=left, ops=ops, comparators=rights) if all(type(op) in _SIGNS for op in ops):
                sides = [left, *rights]
                if not all(self.depends(a) or self.depends(b) for a, b in zip(sides, rights, strict=False)):
                    raise _NotElementwiseError(f"`{ast.unparse(node)}` compares numbers alone")
                links = [
                    f"{self._operand(a)} {_SIGNS[type(op)]} {self._operand(b)}"
                    for a, op, b in zip(sides, ops, rights, strict=False)
                ]
                return links[0] if len(links) == 1 else " & ".join(f"({link})" for link in links)
        if not self.depends(node):
            raise _NotElementwiseError(f"`{ast.unparse(node)}` has no form for a whole tensor")
        return f"{self._operand(node)} != 0"

    def _operand(self, node: ast.expr) -> str:
        text = self.of(node)
        return text if text.isdecimal() else bracketed(text)

    def depends(self, node: ast.expr) -> bool:
        """Is a number computed of the elements?"""
        return any(isinstance(n, ast.Name) and n.id in self._tensors for n in nodes_in(node))

    def _no_error(self) -> None:
        difference = Difference("exception", "an element for which Python's arithmetic raises is infinite or NaN")
        if difference not in self.differences:
            self.differences.append(difference)
