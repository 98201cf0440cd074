"""Call a special method by its name where Dynamo hands the object on instead of asking its class.

Before:
    y = scale * x + x[place]

After:
    y = scale.__mul__(x) + x[place.__index__()]

Legal when:
    the object's class is in sight and has the method, which never answers NotImplemented and is looked up as any other
    attribute; of an operator whose left side is a tensor, torch does not know the object for a number, an array or a
    sequence, and one of the sides is a name, as the object comes first then.

Differs in:
    nothing. What is not made in sight is taken to be an object of the class that it is annotated with, or found as.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.program.entities import Instance, class_of
from graphmend.analysis.resolution.classes import mro
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code, bracketed, shortened
from graphmend.transforms.code.liveness import locals_of, parameters
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import called
from graphmend.transforms.code.text_edits import replace_expression, replace_statements
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.questions import take_for_granted
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "special_method"
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "lshift",
    ast.RShift: "rshift",
}  # fmt: skip
_ROUNDING = {f"math.{name}": f"__{name}__" for name in ("floor", "ceil", "trunc")}
#: by these torch takes an object for something that it can compute with, before the object is asked
_KNOWN_TO_TORCH = frozenset(
    "__torch_function__ __array__ __index__ __int__ __float__ __complex__ __bool__ __len__ __getitem__ __iter__".split()
)
#: with these an attribute of an object is not what its class has
_LOOKED_UP = frozenset({"__getattribute__", "__slots__"})


class _NotCalledError(Exception):
    """A method cannot be called by its name; the message is the sentence to refuse with."""


@asks(any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    code = Code(facts.source)
    try:
        match facts.node:
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value) as statement:
                text = _operated(facts, code, op, target, value, in_place=True)
                return _offered(facts, statement, f"{name} = {text}\n") if text else None
            case ast.BinOp(left=left, op=op, right=right) as node:
                return _written(facts, node, _operated(facts, code, op, left, right))
            case ast.Subscript(slice=index):
                return _written(facts, index, _asked(facts, code, index, "__index__"))
            case ast.UnaryOp(op=ast.Invert(), operand=operand) as node:
                return _written(facts, node, _asked(facts, code, operand, "__invert__"))
            case ast.Call(args=[given], keywords=[]) as node if call := called(facts, node, *_ROUNDING):
                method = _ROUNDING[f"math.{ast.unparse(call.func).rpartition('.')[2]}"]
                return _written(facts, node, _asked(facts, code, given, method))
    except _NotCalledError as error:
        return refuse(NAME, str(error))
    return None


def _written(facts: FunctionFacts, node: ast.expr, text: str | None) -> Fix | None:
    if text is None:
        return None
    return offer(NAME, "call the method by its name", facts, lambda: [replace_expression(facts.source, node, text)])


def _offered(facts: FunctionFacts, statement: ast.stmt, text: str) -> Fix:
    if not replaceable(facts, [statement]):
        raise _NotCalledError("the statement shares its line with another one")

    def make() -> list[TextEdit]:
        return [replace_statements(facts.source, [statement], text)]

    return offer(NAME, "call the method by its name", facts, make)


def _operated(
    facts: FunctionFacts, code: Code, op: ast.operator, left: ast.expr, right: ast.expr, *, in_place: bool = False
) -> str | None:
    """The call that `left op right` is, where one side is a tensor and the other an object."""
    operator = _OPERATORS[type(op)]
    if isinstance(facts.value(right), Tensor):
        own = [f"__i{operator}__", f"__{operator}__"] if in_place else [f"__{operator}__"]
        for name in own:
            if _has(facts, left, name):
                _check(facts, left, name)
                return f"{bracketed(code.text(left))}.{name}({code.argument(right)})"
        return None
    name = f"__r{operator}__"
    if not isinstance(facts.value(left), Tensor) or not _has(facts, right, name):
        return None
    _check(facts, right, name)
    if known := sorted(n for n in _KNOWN_TO_TORCH if _has(facts, right, n)):
        raise _NotCalledError(f"torch may compute with what has `{known[0]}` itself")
    own_names = {*locals_of(facts.function), *parameters(facts.function)}
    if not any(isinstance(side, ast.Name) and side.id in own_names for side in (left, right)):
        raise _NotCalledError(f"`{shortened(right)}` would be evaluated before `{shortened(left)}`")
    return f"{bracketed(code.text(right))}.{name}({code.argument(left)})"


def _asked(facts: FunctionFacts, code: Code, node: ast.expr, name: str) -> str | None:
    if not _has(facts, node, name):
        return None
    _check(facts, node, name)
    return f"{bracketed(code.text(node))}.{name}()"


def _has(facts: FunctionFacts, node: ast.expr, name: str) -> bool:
    info = class_of(facts.value(node))
    return info is not None and any(name in cls.methods for cls in mro(info))


def _check(facts: FunctionFacts, node: ast.expr, name: str) -> None:
    """Does calling the method by its name do what Python does?"""
    value = facts.value(node)
    info = class_of(value)
    assert info is not None
    for cls in mro(info):
        if looked_up := _LOOKED_UP & (cls.methods.keys() | cls.names.keys()):
            raise _NotCalledError(f"`{cls.name}` has `{min(looked_up)}`, by which attributes may be others")
        if name in cls.assigned:
            raise _NotCalledError(f"an object of `{cls.name}` may have a `{name}` of its own")
    method = next(cls.methods[name] for cls in mro(info) if name in cls.methods)
    if any(isinstance(n, ast.Name) and n.id == "NotImplemented" for n in nodes_in(method.node)):
        raise _NotCalledError(f"`{name}` may answer NotImplemented, and the other side is asked then")
    if method.decorators:
        raise _NotCalledError(f"`{name}` is decorated")
    if not (isinstance(value, Instance) and value.made_inside):
        take_for_granted(f"`{shortened(node)}` is taken to be of class `{info.name}`")
