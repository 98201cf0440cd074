"""A Python test as a 0-d bool tensor: what `if`, `while`, `and`, `or`, `not` and comparisons ask, asked of tensors.

A test that has more than one element raises as a Python test (RuntimeError), and so does the tensor made here:
an unknown shape is reshaped to 0-d, which takes exactly one element.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from graphmend.analysis.lattice.values import Const, Scalar, Static, Tensor, tensor_in
from graphmend.transforms.code.bindings import display_of
from graphmend.transforms.code.expression_text import Code, is_atom
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import fresh
from graphmend.transforms.code.qualified_names import (
    asks_for_none,
    called,
    constant,
    is_tensor,
    listed,
    method,
    qualified,
)
from graphmend.transforms.fix import Difference
from graphmend.transforms.if_conversion.branch_statement import is_asked_as_it_is
from graphmend.transforms.if_conversion.kept_scalars import kept, taken
from graphmend.transforms.if_conversion.value_tests import (
    PythonValues,
    depends,
    effects_of_looking,
    is_unknown_name,
    on_some_paths,
    reads_guessed,
    split,
)
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.legality.numbers.counterparts import Counterpart
from graphmend.transforms.legality.speculation import speculate

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

Replace = dict[ast.expr, str]


class NotATensorError(Exception):
    """A test that cannot be asked of a tensor; the message says why."""


@dataclass
class Predicates:
    """Makes predicates, and collects what they need and how they differ from the Python test."""

    facts: FunctionFacts
    imports: Imports
    differences: list[Difference] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    elsewhere: dict[ast.expr, Counterpart] | None = None
    """What is written otherwise outside the code that is converted; None where the rewrite changes nothing there."""
    converts: ast.If | None = None
    """The statement that is converted, if all of it is."""

    def __post_init__(self) -> None:
        self.code = Code(self.facts.source)

    def condition(self, test: ast.expr, bound: ast.NamedExpr | None = None) -> tuple[str, bool]:
        """The text of a test as one tensor, behind what is known while tracing, and whether its sides change places;
        `bound` stands in front of it.
        """
        replace: Replace = {bound: bound.target.id} if bound is not None else {}
        swapped = False
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, swapped = test.operand, not swapped
        sign: Literal["and", "or"] = "or" if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else "and"
        static, tests = split(self.facts, test, sign)
        first = [t for t in tests if is_unknown_name(self.facts, t) and not effects(self.facts, *tests)]
        first = first if len(first) < len(tests) else []
        static, tests = [*static, *first], [t for t in tests if t not in first]
        says = "`{}` is asked first, and may raise where it was not asked"
        self.differences += [Difference("exception", says.format(ast.unparse(t))) for t in first]
        if not tests:
            raise NotATensorError("the test is not known to look at a tensor")
        turned = tests[0].operand if isinstance(tests[0], ast.UnaryOp) and isinstance(tests[0].op, ast.Not) else None
        negated = len(tests) == 1 and turned is not None and is_asked_as_it_is(self.facts, turned)
        if negated and turned is not None:  # by De Morgan
            sign, swapped, tests = "and" if sign == "or" else "or", not swapped, [turned]
        if len(tests) == 1 and not isinstance(tests[0], ast.BoolOp) and is_asked_as_it_is(self.facts, tests[0]):
            asked = self.code.argument(tests[0], replace) if not static else self.code.operand(tests[0], replace)
        elif len(tests) == 1:
            asked = self.of(tests[0], replace)
        elif sign == "or":
            asked = self.of(ast.BoolOp(ast.Or(), tests), replace)
        else:
            asked = self.all_of(tests, replace)
        if static:  # asked in their order: what stands behind is asked only where they do not decide
            bare = (ast.IfExp, ast.Lambda, ast.BoolOp)
            parts = [self.code.operand(s) if negated or isinstance(s, bare) else self.code.line(s) for s in static]
            parts = [f"not {part}" for part in parts] if negated else parts
            asked = f" {sign} ".join([*parts, f"({asked})" if "&" in asked or "|" in asked else asked])
        return asked, swapped

    def of(self, node: ast.expr, replace: Replace | None = None) -> str:
        """The text of a test as a 0-d bool tensor, for a place between commas."""
        if self._known(node):
            return self._static(node, replace)
        match node:
            case ast.BoolOp(values=values):
                return self._of_all(node.op, values, replace)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"~{_operand(self.of(operand, replace))}"
            case ast.Compare():
                return self._compare(node, replace or {})
            case ast.Call():
                if (text := self._call(node, replace or {})) is not None:
                    return text
        return self._truth(node, replace or {})

    def _of_all(self, op: ast.boolop, values: Sequence[ast.expr], replace: Replace | None) -> str:
        """The same for the operands of `and` or `or`, of which one must be a tensor whatever is None."""
        if asks_for_none(values[0]) or not any(self._is_asked(value) for value in values):
            raise NotATensorError(f"`{ast.unparse(values[0])}` may be a Python bool")
        return self._joined(op, values, replace)

    def _is_asked(self, value: ast.expr) -> bool:
        """Is a part of a test a tensor for certain, once it is written as one?"""
        if isinstance(value, ast.BoolOp):
            return not asks_for_none(value.values[0]) and any(map(self._is_asked, value.values))
        return not asks_for_none(value) and not self._known(value)

    def _joined(self, op: ast.boolop, values: Sequence[ast.expr], replace: Replace | None) -> str:
        """What is asked for None is known while tracing, and decides there whether what follows is asked at all."""
        self.always([*values[1:]])
        signs = ("&", "and") if isinstance(op, ast.And) else ("|", "or")
        pieces: list[str] = []
        for place, value in enumerate(values):
            if asks_for_none(value) and value is not values[-1]:
                rest = self._joined(op, values[place + 1 :], replace)
                pieces.append(f"({self.code.line(value, replace)} {signs[1]} {rest})")
                break
            if isinstance(value, ast.BoolOp) and not self._known(value):
                pieces.append(f"({self._joined(value.op, value.values, replace)})")
            else:
                pieces.append(_operand(self.of(value, replace)))
        return f" {signs[0]} ".join(pieces)

    def all_of(self, tests: Sequence[ast.expr], replace: Replace | None = None) -> str:
        """The text of conjuncts as one 0-d bool tensor: later ones are then always evaluated."""
        if len(tests) == 1:
            return self.of(tests[0], replace)
        return self._of_all(ast.And(), tests, replace)

    def _known(self, node: ast.expr) -> bool:
        """Is a part of a test known while tracing, and no question about a tensor?"""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self._known(node.operand)
        return isinstance(self.facts.value(node), Static) and not depends(self.facts, node)

    def _static(self, node: ast.expr, replace: Replace | None) -> str:
        """A Python bool, which goes well with `&` and `|` where another number does not."""
        text = self.code.line(node, replace)
        return f"({text})" if self._is_bool(node) else f"bool({text})"

    def _is_bool(self, node: ast.expr) -> bool:
        """Is a part of a test a bool by how it is made? An annotation promises only."""
        match node:
            case ast.UnaryOp(op=ast.Not()) | ast.Constant(value=bool()) | ast.Attribute(attr="training"):
                return True
            case ast.Compare(left=left, comparators=rights):
                return all(isinstance(self.facts.value(s), Static) or _is_none(s) for s in (left, *rights))
            case ast.BoolOp(values=values):
                return all(self._is_bool(v) for v in values)
            case ast.Call():
                return called(self.facts, node, *_TESTS) is not None
        return isinstance(self.facts.value(node), Const) and self.facts.value(node).type == "bool"  # type: ignore[attr-defined]

    def operand(self, node: ast.expr, replace: Replace | None = None) -> str:
        """The same, for a place next to an operator."""
        return _operand(self.of(node, replace))

    def negated(self, node: ast.expr) -> str:
        """The opposite of a test; never by turning a comparison around, which differs for NaN."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.of(node.operand)
        if self._known(node):
            return f"(not {self.code.operand(node)})"
        return f"~{self.operand(node)}"

    def always(self, later: list[ast.expr]) -> None:
        """Asks about parts of tests that are always evaluated now, where they were not before."""
        found, gone = speculate(self.facts, *later), effects_of_looking(self.facts, *later)
        blockers = [b for b in found.blockers if b not in gone and "takes a Python value" not in b]
        if blockers:
            raise NotATensorError(blockers[0])
        self.differences += found.differences

    def _truth(self, node: ast.expr, replace: Replace) -> str:
        """`bool(node)` of a tensor or of a Python value taken out of one."""
        value = self.facts.value(node)
        if isinstance(value, Tensor) and value.ndarray:
            raise NotATensorError(f"`{ast.unparse(node)}` is a NumPy value")
        if isinstance(value, Scalar) or not isinstance(value, Tensor):
            kept_ = kept(self.facts, node, self.imports)
            if kept_ is None:
                if (tensor := tensor_in(value)) is not None and on_some_paths(value):
                    text = self._as_tensor(self.code.argument(node, replace))
                    return text if tensor.dtype == "bool" and tensor.rank == 0 else self._single(f"{text} != 0")
                if tensor is not None:
                    raise NotATensorError(f"`{ast.unparse(node)}` is a tensor on some paths only")
                raise NotATensorError(f"`{ast.unparse(node)}` is not known to be a tensor")
            self.differences += kept_.differences
            text = self.code.argument(node, {**replace, **kept_.replace})
            return text if kept_.boolean else f"{_operand(text)} != 0"
        text = self.code.argument(node, replace)
        if PythonValues(self.facts).may_be(node):
            text = self._as_tensor(text)
        if value.dtype != "bool":
            text = f"{_operand(text)} != 0"
        if value.rank == 0 and reads_guessed(self.facts, node):
            return f"{_operand(text)}.reshape(())"
        return text if value.rank == 0 else self._single(text)

    def _as_tensor(self, text: str) -> str:
        """A Python value on some paths and a tensor on others as a tensor."""
        self.differences.append(Difference("type", "where the test is a Python value it becomes a tensor"))
        return f"{self.imports.name('torch.as_tensor')}({text})"

    def _single(self, text: str) -> str:
        """A tensor of an unknown shape as a 0-d one."""
        self.differences.append(_ANOTHER_ERROR)
        return f"{_operand(text)}.reshape(())"

    def _compare(self, node: ast.Compare, replace: Replace) -> str:
        left, operators, rights = node.left, node.ops, node.comparators
        if any(isinstance(o, (ast.In, ast.NotIn)) for o in operators):
            if len(operators) > 1:
                raise NotATensorError("a chain with `in` has no tensor form")
            text = self._member(left, rights[0], replace)
            return f"~{_operand(text)}" if isinstance(operators[0], ast.NotIn) else text
        if any(isinstance(o, (ast.Is, ast.IsNot)) for o in operators):
            raise NotATensorError(f"`{ast.unparse(node)}` is a Python bool")
        if len(operators) == 1:
            return self._truth(node, replace)
        self.always(rights[1:])
        pieces: list[str] = []
        for i, (operator, right) in enumerate(zip(operators, rights, strict=True)):
            link = ast.Compare(left, [operator], [right])
            pieces.append(f"({self._link(link, replace, bind=i < len(operators) - 1)})")
            left = right
        return " & ".join(pieces)

    def _link(self, link: ast.Compare, replace: Replace, *, bind: bool) -> str:
        """One comparison of a chain; `bind` names its right side, which the next comparison uses again."""
        left, right = link.left, link.comparators[0]
        texts = []
        for side in (left, right):
            kept_ = kept(self.facts, side, self.imports)
            changes = {**replace, **(kept_.replace if kept_ else {})}
            if kept_:
                self.differences += kept_.differences
            value = self.facts.value(side)
            if isinstance(value, Tensor) and value.rank != 0:
                changes[side] = self._single(self.code.operand(side, changes))
            texts.append(changes.get(side) or self.code.operand(side, changes))
        if bind and not isinstance(right, (ast.Name, ast.Constant, ast.Attribute)):
            name = self._name("middle")
            texts[1] = f"({name} := {texts[1]})"
            replace[right] = name
        text = f"{texts[0]} {_SIGNS[type(link.ops[0])]} {texts[1]}"
        python = PythonValues(self.facts)
        return self._as_tensor(text) if python.may_be(left) and python.may_be(right) else text

    def _name(self, wanted: str) -> str:
        name = fresh(self.facts, wanted, self.taken)
        self.taken.append(name)
        return name

    def _member(self, item: ast.expr, container: ast.expr, replace: Replace) -> str:
        """`item in container`."""
        if is_tensor(self.facts, container):
            return f"({self.code.operand(container, replace)} == {self.code.operand(item, replace)}).any()"
        display = display_of(self.facts, container)
        elements = display.elts if display is not None and not isinstance(display, ast.Dict) else None
        if elements and display is not container and any(constant(e) is None for e in elements):
            elements = None  # another value by now, perhaps
        number = None if is_tensor(self.facts, item) else taken(self.facts, item, detach=False)
        if not elements or not (number or is_tensor(self.facts, item)):
            raise NotATensorError("membership in this container has no tensor form")
        self.always(elements[1:])
        self.differences += number.differences if number else ()
        if any(constant(e) is None for e in elements):
            self.differences.append(Difference("nan", "a NaN is no more in a container that holds the same object"))
        pieces: list[str] = []
        plain = number.text if number else self.code.operand(item, replace)
        first, later = plain, plain
        if len(elements) > 1 and not plain.replace(".", "").isidentifier():  # computed once, as Python does
            later = self._name("member")
            first = f"({later} := {plain})"
        for element in elements:
            same = ast.unparse(element) == ast.unparse(item)
            asked, first = first, later
            if number is not None and not is_tensor(self.facts, element):
                asked, differences = number._replace(text=asked).compared(constant(element))
                self.differences += differences
            test = f"({asked} == {self.code.operand(element, replace)})"
            sides = [*([] if number else [item]), *([] if constant(element) is not None else [element])]
            values = [self.facts.value(side) for side in sides]
            if not all(isinstance(v, Static) or (isinstance(v, Tensor) and v.rank == 0) for v in values):
                test = self._single(test)
            pieces.append("True" if same and pieces else test)
        return " | ".join(pieces)

    def _call(self, node: ast.Call, replace: Replace) -> str | None:
        facts, code = self.facts, self.code
        name = qualified(facts, node.func)
        if name in ("torch.allclose", "torch.Tensor.allclose"):
            arguments = ", ".join(code.argument(a, replace) for a in [*node.args]) + "".join(
                f", {k.arg}={code.argument(k.value, replace)}" for k in node.keywords
            )
            first = "" if name == "torch.allclose" else f"{code.text(node.func.value)}, "  # type: ignore[attr-defined]
            return f"{self.imports.name('torch.isclose')}({first}{arguments}).all()"
        if name in ("torch.equal", "torch.Tensor.equal"):
            sides = node.args if name == "torch.equal" else [node.func.value, *node.args]  # type: ignore[attr-defined]
            if len(sides) != 2:
                return None
            left, right = (facts.value(s) for s in sides)
            if not (isinstance(left, Tensor) and isinstance(right, Tensor) and left.shape == right.shape is not None):
                self.differences.append(
                    Difference(
                        "exception",
                        "`torch.equal` is False for tensors of different shapes; the comparison may raise for them",
                    )
                )
            return f"({code.operand(sides[0], replace)} == {code.operand(sides[1], replace)}).all()"
        if name == "torch.is_nonzero" and len(node.args) == 1 and is_tensor(facts, node.args[0]):
            return self._truth(node.args[0], replace)
        truth = called(facts, node, "builtins.bool", "operator.truth")
        if truth and len(node.args) == 1 and is_tensor(facts, node.args[0]):
            return self._truth(node.args[0], replace)
        if method(facts, node, "item", "is_nonzero") and not node.args and not node.keywords:
            assert isinstance(node.func, ast.Attribute)
            return self._truth(node.func.value, replace)
        if called(facts, node, "builtins.any", "builtins.all") and len(node.args) == 1:
            return self._quantified(node, replace)
        return None

    def _quantified(self, node: ast.Call, replace: Replace) -> str:
        """`any(...)` or `all(...)` over tests of tensors."""
        which = "any" if called(self.facts, node, "builtins.any") else "all"
        items = listed(self.facts, node.args[0]) or node.args[0]
        if isinstance(items, (ast.List, ast.Tuple)) and items.elts:
            self.always(items.elts[1:])
            sign = " | " if which == "any" else " & "
            return sign.join(self.operand(e, replace) for e in items.elts)
        value = self.facts.value(items)
        if isinstance(value, Tensor) and not value.ndarray and value.rank != 0:
            if value.rank != 1:
                says = f"`{which}` of rows of several elements, or of no rows at all, raises no more"
                self.differences.append(Difference("exception", says))
            return f"{self.code.operand(items, replace)}.{which}()"
        if not isinstance(items, (ast.GeneratorExp, ast.ListComp)) or any(
            g.is_async or g.ifs for g in items.generators
        ):
            raise NotATensorError(f"what `{which}` runs over has no tensor form")
        self.always([items.elt])
        self.differences.append(Difference("exception", f"`{which}` of nothing raises, and every element is evaluated"))
        clauses = " ".join(
            f"for {self.code.text(g.target)} in {self.code.text(g.iter, replace)}" for g in items.generators
        )
        return f"{self.imports.name('torch.stack')}([{self.of(items.elt, replace)} {clauses}]).{which}()"


_ANOTHER_ERROR = Difference(
    "exception", "a test of more than one element raises a RuntimeError of torch._dynamo's own class while compiled"
)

#: calls that give a bool
_TESTS = tuple(f"builtins.{n}" for n in ("isinstance", "issubclass", "hasattr", "callable", "bool"))

_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


def _operand(text: str) -> str:
    return text if is_atom(text) or (text.startswith("~") and is_atom(text[1:])) else f"({text})"


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
