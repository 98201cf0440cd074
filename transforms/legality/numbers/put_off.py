"""The arguments of an output call that break the graph, put off until the output happens: `later` makes them then."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Const, Scalar, Static, Tensor, options
from graphmend.analysis.program.entities import Class, Instance, Record
from graphmend.analysis.resolution.classes import mro
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import display_of
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.fstrings import quoted, template
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.qualified_names import constant, qualified

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_RUNTIME = "graphmend.runtime"
#: conversions that are a plain call of one function
_CONVERSIONS = {f"builtins.{n}" for n in ("int", "float", "bool", "str", "repr", "complex", "round", "hash")}
#: functions of numbers and texts that can be put off along with what they are called with
_CALCULATIONS = _CONVERSIONS | {
    f"builtins.{n}" for n in ("abs", "max", "min", "sum", "pow", "divmod", "len", "sorted", "list", "tuple", "format")
}
_CALCULATIONS |= {f"math.{n}" for n in ("ceil", "exp", "floor", "isfinite", "isinf", "isnan", "log", "log10", "sqrt")}
_CALCULATIONS |= {"json.dumps"}
_OPERATORS: dict[type[ast.operator] | type[ast.unaryop] | type[ast.cmpop], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.USub: "neg",
    ast.UAdd: "pos",
    ast.Not: "not_",
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}


class NotCarriedError(Exception):
    """An argument that neither `emit` nor `later` carries."""


def deferred(call: ast.Call, facts: FunctionFacts, imports: Imports | None = None) -> dict[ast.expr, str]:
    """The arguments that `later` must make, with their new text."""
    replace: dict[ast.expr, str] = {}
    for argument in [*call.args, *(k.value for k in call.keywords)]:
        if text := _Deferral(facts, imports).defer(argument):
            replace[argument] = text
    return replace


def argument(facts: FunctionFacts, imports: Imports | None, node: ast.expr, numbers: Mapping[ast.Name, str]) -> str:
    """The text of an argument of an emitted call in which some names are tensors now, and how each gives its number
    ("item", or a builtin). Raises `NotCarriedError`.
    """
    deferral = _Deferral(facts, imports, numbers)
    return deferral.defer(node) or deferral.code.argument(node)


class _Deferral:
    """Puts off the parts of an argument that break the graph."""

    def __init__(
        self, facts: FunctionFacts, imports: Imports | None, numbers: Mapping[ast.Name, str] | None = None
    ) -> None:
        self.facts = facts
        self.numbers = numbers or {}
        self.code = Code(facts.source)
        self.imports = imports
        self.later = imports.name(f"{_RUNTIME}.later", _RUNTIME) if imports is not None else "later"

    def defer(self, node: ast.expr) -> str | None:
        """New text for an expression; None where it can stay as it is."""
        if isinstance(node, ast.Call) and is_warning(self.facts, node):
            return self._call(self.code.text(node.func), node.args, node.keywords)
        if not self._breaks(node):
            return None
        match node:
            case ast.Name(id=name):
                how = self.numbers[node]
                return f"{self.later}({name}.item)" if how == "item" else f"{self.later}({how}, {name})"
            case ast.Call(func=ast.Attribute(value=value, attr="item" | "tolist" | "numpy"), args=[], keywords=[]):
                if self._breaks(value):
                    raise NotCarriedError(self.code.text(value))
                return f"{self.later}({self.code.text(node.func)})"
            case ast.Call(args=args, keywords=keywords) if _calculates(self.facts, node):
                return self._call(self.code.text(node.func), args, keywords)
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="format"), args=args):
                return self._call(self.code.text(node.func), args, node.keywords)
            case ast.Call(func=ast.Attribute(value=separator, attr="join"), args=[parts], keywords=[]) if self._stays(
                separator
            ):
                return self._call(self.code.text(node.func), [parts])
            case ast.ListComp(elt=element, generators=loops) | ast.GeneratorExp(elt=element, generators=loops):
                return self._of_each(element, loops)
            case ast.DictComp(key=key, value=value, generators=loops) if not self._breaks(key):
                if any(self._breaks(part) for loop in loops for part in (loop.iter, *loop.ifs)):
                    raise NotCarriedError(self._short(node))
                return self.code.text(node, {value: self._argument(value)})
            case ast.JoinedStr():
                text, values = template(node)
                for value in values[:-1]:  # `format` has all its arguments before it makes a text of the first
                    if _writes_itself(self.facts, value):
                        raise NotCarriedError(self._short(value))
                return self._call(f"{quoted(text)}.format", values)
            case ast.BinOp(left=left, op=ast.Mod(), right=ast.Tuple(elts=elements)) if self._stays(left):
                if any(isinstance(e, ast.Starred) for e in elements):
                    raise NotCarriedError(self._short(node))
                inside = ", ".join(self._argument(e) for e in elements)
                return f"{self.later}({self.code.operand(left)}.__mod__, ({inside}{',' if len(elements) == 1 else ''}))"
            case ast.BinOp(left=left, op=ast.Mod(), right=right) if self._stays(left):
                return f"{self.later}({self.code.operand(left)}.__mod__, {self._argument(right)})"
            case ast.BinOp(left=left, op=ast.Add(), right=right) if self._stays(left) and self._gives_text(right):
                return f"{self.later}({self.code.operand(left)}.__add__, {self._argument(right)})"
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return self._call(self._operator(_OPERATORS[type(op)]), [left, right])
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _OPERATORS:
                return self._call(self._operator(_OPERATORS[type(op)]), [left, right])
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
                return self._call(self._operator(_OPERATORS[type(op)]), [operand])
            case ast.Subscript(value=value, slice=index) if not any(isinstance(n, ast.Slice) for n in nodes_in(index)):
                if not self._breaks(value) and not self._holds_literals(value):
                    raise NotCarriedError(self._short(node))
                return self._call(self._operator("getitem"), [value, index])
            case ast.IfExp(test=test, body=body, orelse=orelse) if _chosen_by_tensor(self.facts, node):
                if unready := next((side for side in (body, orelse) if not self._is_ready(side)), None):
                    raise NotCarriedError(self._short(unready))
                truth = f"{self.later}({self._operator('truth')}, {self._argument(test)})"
                sides = f"({self._argument(orelse)}, {self._argument(body)})"
                return f"{self.later}({self._operator('getitem')}, {sides}, {truth})"
            case ast.List() | ast.Tuple():
                return self.code.text(node, {e: self._argument(e) for e in node.elts if not self._starred(e)})
            case ast.Dict(keys=keys, values=values):
                if any(k is None or self._breaks(k) for k in keys):
                    raise NotCarriedError(self._short(node))
                return self.code.text(node, {v: self._argument(v) for v in values})
        raise NotCarriedError(self._short(node))

    def _of_each(self, element: ast.expr, loops: list[ast.comprehension]) -> str:
        """A list of what is made of each element; where reading the elements breaks the graph, `map` makes it then."""
        breaking = [part for loop in loops for part in (loop.iter, *loop.ifs) if self._breaks(part)]
        if not breaking and not any(loop.is_async for loop in loops):
            clauses = (
                f" for {self.code.text(loop.target)} in {self.code.operand(loop.iter)}"
                + "".join(f" if {self.code.operand(test)}" for test in loop.ifs)
                for loop in loops
            )
            return f"[{self._argument(element)}{''.join(clauses)}]"
        match element, loops:
            case ast.Call(func=ast.Name(), args=[ast.Name(id=given)]), [
                ast.comprehension(target=ast.Name(id=name), iter=values, ifs=[], is_async=0)
            ] if given == name and _calculates(self.facts, element):
                function = self.code.text(element.func)
            case ast.JoinedStr(), [ast.comprehension(target=ast.Name(id=name), iter=values, ifs=[], is_async=0)]:
                text, given_values = template(element)
                if [v.id if isinstance(v, ast.Name) else None for v in given_values] != [name]:
                    raise NotCarriedError(self._short(breaking[0]))
                function = f"{quoted(text)}.format"
            case _:
                raise NotCarriedError(self._short(breaking[0] if breaking else element))
        made = f"{self.later}({self._function('map')}, {function}, {self._argument(values)})"
        return f"{self.later}({self._function('list')}, {made})"

    def _function(self, name: str) -> str:
        plain = qualified(self.facts, ast.Name(name, ast.Load())) == f"builtins.{name}"
        return name if plain or self.imports is None else self.imports.name(f"builtins.{name}", "builtins")

    def _holds_literals(self, node: ast.expr) -> bool:
        """Is an expression a list or tuple of texts and numbers that is written out, and stays as it is?"""
        display = display_of(self.facts, node)
        if not isinstance(display, (ast.List, ast.Tuple)):
            return False
        return all(isinstance(e, ast.Constant) or constant(e) is not None for e in display.elts)

    def _is_ready(self, node: ast.expr) -> bool:
        """Can the side of a choice be had although it is not taken: nothing is computed for it, and it is no tensor,
        which is written in another way when it is carried?
        """
        if isinstance(node, ast.IfExp) and _chosen_by_tensor(self.facts, node):
            asked = node.test
            while isinstance(asked, ast.UnaryOp) and isinstance(asked.op, ast.Not):
                asked = asked.operand
            value = self.facts.value(asked)
            one = isinstance(value, Tensor) and value.rank == 0  # the truth of several elements raises
            return one and not self._breaks(asked) and self._is_ready(node.body) and self._is_ready(node.orelse)
        return constant(node) is not None or isinstance(node, ast.Constant)

    def _short(self, node: ast.expr) -> str:
        return " ".join(self.code.text(node).split())

    def _starred(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Starred) and self._breaks(node):
            raise NotCarriedError(self._short(node))
        return isinstance(node, ast.Starred)

    def _operator(self, name: str) -> str:
        return self.imports.name(f"operator.{name}", "operator") if self.imports is not None else name

    def _stays(self, left: ast.expr) -> bool:
        """Is the left side of an operator a text that is known while tracing?"""
        return _is_text(left) and not self._breaks(left)

    def _call(self, function: str, arguments: list[ast.expr], keywords: Sequence[ast.keyword] = ()) -> str:
        parts = [function, *map(self._argument, arguments)]
        for k in keywords:
            if k.arg is None:
                raise NotCarriedError(self._short(k.value))
            parts.append(f"{k.arg}={self._argument(k.value)}")
        return f"{self.later}({', '.join(parts)})"

    def _argument(self, node: ast.expr) -> str:
        if isinstance(node, ast.Starred):
            raise NotCarriedError(self._short(node))
        return self.defer(node) or self.code.argument(node)

    def _gives_text(self, node: ast.expr) -> bool:
        """Is a value a string for certain, so that no method of its class is asked for the sum?"""
        name = (qualified(self.facts, node.func) or "") if isinstance(node, ast.Call) else ""
        return _is_text(node) or name in ("builtins.str", "builtins.repr", "builtins.format")

    def _breaks(self, node: ast.expr) -> bool:
        """Does evaluating an expression take a Python value out of a tensor?"""
        return any(self._converts(n) for n in nodes_in(node))

    def _converts(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return node in self.numbers
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in ("item", "tolist", "numpy"):
                return isinstance(self.facts.value(node.func.value), Tensor)
            if qualified(self.facts, node.func) in _CONVERSIONS:
                return any(isinstance(self.facts.value(a), (Tensor, Scalar)) for a in node.args)
            return isinstance(self.facts.value(node), Scalar)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and _is_text(node.left):
            return any(
                isinstance(self.facts.value(n), (Tensor, Scalar))
                for n in nodes_in(node.right)
                if isinstance(n, ast.expr)
            )
        if isinstance(node, ast.IfExp):
            return _chosen_by_tensor(self.facts, node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return _asks_tensor(self.facts, node.operand)
        if isinstance(node, ast.FormattedValue):
            value = self.facts.value(node.value)
            number = isinstance(value, Scalar) or (isinstance(value, Static) and value.type in ("float", "int"))
            if node.format_spec is not None and number and not isinstance(value, Const):
                return True  # torch 2.13 traces numbers that differ between calls, and loses how they are written
            return node.conversion != -1 and isinstance(value, Tensor)
        return False


def _chosen_by_tensor(facts: FunctionFacts, node: ast.IfExp) -> bool:
    """Does a tensor, or a number out of one, say which side of a conditional expression is its value?"""
    return _asks_tensor(facts, node.test)


def _asks_tensor(facts: FunctionFacts, test: ast.expr) -> bool:
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    value = facts.value(test)
    return isinstance(value, Scalar) or (isinstance(value, Tensor) and not value.ndarray)


def _is_text(node: ast.expr) -> bool:
    """Is an expression a string for certain?"""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mod)):
        return _is_text(node.left)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def is_warning(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is an argument a warning that can be made when it is given: `UserWarning("text")`?"""
    if not isinstance(node, ast.Call) or any(k.arg is None for k in node.keywords):
        return False
    if any(isinstance(a, ast.Starred) for a in node.args):
        return False
    name = qualified(facts, node.func) or ""
    known = getattr(builtins, name.removeprefix("builtins."), None) if name.startswith("builtins.") else None
    if isinstance(known, type) and issubclass(known, Warning):
        return True
    value = facts.value(node.func)
    if not isinstance(value, Class):
        return False
    bases = mro(value.info)
    plain = not any({"__init__", "__new__", "__call__"} & {*base.methods} for base in bases)
    return plain and any(_names_warning(b) for base in bases for b in base.node.bases)


def _names_warning(node: ast.expr) -> bool:
    known = getattr(builtins, node.id, None) if isinstance(node, ast.Name) else None
    return isinstance(known, type) and issubclass(known, Warning)


def _calculates(facts: FunctionFacts, node: ast.Call) -> bool:
    """Is a call one of a function that computes numbers or texts?"""
    name = qualified(facts, node.func) or ""
    return name in _CALCULATIONS or name.startswith("math.")


def at_once(facts: FunctionFacts, node: ast.expr) -> list[ast.expr]:
    """What is evaluated where an argument stands: all but conversions, which are made when the output happens."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr="item" | "tolist" | "numpy"), args=[], keywords=[]):
            return at_once(facts, value)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="join"), args=[given], keywords=[]):
            return at_once(facts, given)
        case ast.ListComp(elt=element, generators=loops) | ast.GeneratorExp(elt=element, generators=loops):
            return [
                *at_once(facts, element),
                *(part for loop in loops for n in (loop.iter, *loop.ifs) for part in at_once(facts, n)),
            ]
        case ast.DictComp(key=key, value=value, generators=loops):
            read = [key, value, *(n for loop in loops for n in (loop.iter, *loop.ifs))]
            return [part for n in read for part in at_once(facts, n)]
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="format")) | ast.JoinedStr():
            inner = [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]
            inner += [k.value for k in node.keywords] if isinstance(node, ast.Call) else []
            return [part for n in inner if n is not getattr(node, "func", None) for part in at_once(facts, n)]
        case ast.FormattedValue(value=value):
            return at_once(facts, value)
        case ast.Call(args=[function, *args], keywords=keywords) if qualified(facts, node.func) == f"{_RUNTIME}.later":
            owner = [function.value] if isinstance(function, ast.Attribute) else []
            return [part for n in (*owner, *args, *(k.value for k in keywords)) for part in at_once(facts, n)]
        case ast.IfExp(test=test, body=body, orelse=orelse) if _chosen_by_tensor(facts, node):
            return [part for n in (test, body, orelse) for part in at_once(facts, n)]
        case ast.Call() if is_warning(facts, node):
            return [part for n in (*node.args, *(k.value for k in node.keywords)) for part in at_once(facts, n)]
        case ast.Call(args=args, keywords=keywords) if _calculates(facts, node) and not any(
            isinstance(a, ast.Starred) for a in args
        ):
            return [part for n in (*args, *(k.value for k in keywords)) for part in at_once(facts, n)]
        case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.Subscript() | ast.List() | ast.Tuple() | ast.Dict():
            inner = [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]
            parts = [part for n in inner for part in at_once(facts, n)]
            return parts if parts != inner else [node]
    return [node]


def _writes_itself(facts: FunctionFacts, node: ast.expr) -> bool:
    """May making a text of an object run code of its class, which others may see?"""
    methods = ("__format__", "__str__", "__repr__")
    classes = [o.info for o in options(facts.value(node)) if isinstance(o, (Instance, Record))]
    return any(name in cls.methods for info in classes for cls in mro(info) for name in methods)
