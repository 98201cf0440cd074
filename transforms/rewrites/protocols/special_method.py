"""Call a special method by its name where Dynamo hands the object on instead of asking its class.

Before:
    scale, place = Scale(2), Place(1)
    y = scale * x + x[place]

After:
    scale, place = Scale(2), Place(1)
    y = scale.__mul__(x) + x[place.__index__()]

Legal when:
    the object is made in sight, by a call of a class of the file that is as it is written. An operator's method answers
    with what it computes, and so never NotImplemented; where the left side is a tensor, torch does not know the object
    for a number, an array or a sequence, and evaluating it first is the same. An index is a whole number, and its
    method only computes.

Differs in:
    nothing.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Const, Static, Tensor
from graphmend.analysis.program.definitions import FunctionInfo
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code, bracketed, shortened
from graphmend.transforms.code.liveness import locals_of, parameters, surely_bound
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import called, is_tensor, number_type
from graphmend.transforms.code.text_edits import replace_expression, replace_statements
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.legality.objects.exact import exact_class, has_any, method_named
from graphmend.transforms.legality.outside.pure_bodies import only_computes
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "special_method"
_TITLE = "call the method by its name"
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "lshift",
    ast.RShift: "rshift",
}  # fmt: skip
_ROUNDING = {f"math.{name}": f"__{name}__" for name in ("floor", "ceil", "trunc")}
#: by these torch takes an object for something that it can compute with, before the object is asked
_KNOWN_TO_TORCH = frozenset(
    "__torch_function__ __array__ __array_interface__ __index__ __int__ __float__ __complex__ __bool__ __len__ "
    "__getitem__ __iter__".split()
)
#: by these torch takes an index for several
_SEVERAL = frozenset("__torch_function__ __array__ __array_interface__ __len__ __getitem__ __iter__ __bool__".split())


class _NotCalledError(Exception):
    """A method cannot be called by its name; the message is the sentence to refuse with."""


@asks(any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    code = Code(facts.source)
    try:
        match facts.node:
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value) as statement:
                text = _reflected(facts, code, op, target, value)
                return _offered(facts, statement, f"{name} = {text}\n") if text else None
            case ast.BinOp(left=left, op=op, right=right) as node:
                return _written(facts, node, _operated(facts, code, op, left, right))
            case ast.Subscript(value=value, slice=index, ctx=ast.Load()):
                return _written(facts, index, _index(facts, code, value, index))
            case ast.UnaryOp(op=ast.Invert(), operand=operand) as node:
                return _written(facts, node, _asked(facts, code, operand, "__invert__"))
            case ast.Call(args=[given], keywords=[]) as node if call := called(facts, node, *_ROUNDING):
                method = _ROUNDING[f"math.{ast.unparse(call.func).rpartition('.')[2]}"]
                return _written(facts, node, _asked(facts, code, given, method))
    except _NotCalledError as error:
        return refuse(NAME, str(error))
    return None


def _written(facts: FunctionFacts, node: ast.expr, text: str | None) -> Fix | None:
    return None if text is None else offer(NAME, _TITLE, facts, lambda: [replace_expression(facts.source, node, text)])


def _offered(facts: FunctionFacts, statement: ast.stmt, text: str) -> Fix:
    if not replaceable(facts, [statement]):
        raise _NotCalledError("the statement shares its line with another one")

    def make() -> list[TextEdit]:
        return [replace_statements(facts.source, [statement], text)]

    return offer(NAME, _TITLE, facts, make)


def _operated(facts: FunctionFacts, code: Code, op: ast.operator, left: ast.expr, right: ast.expr) -> str | None:
    """The call that `left op right` is, where one side is a tensor and the other an object."""
    if not is_tensor(facts, right):
        return _reflected(facts, code, op, left, right)
    name = f"__{_OPERATORS[type(op)]}__"
    _answers(_method(facts, left, name))
    return f"{bracketed(code.text(left))}.{name}({code.argument(right)})"


def _reflected(facts: FunctionFacts, code: Code, op: ast.operator, left: ast.expr, right: ast.expr) -> str | None:
    """The call that `left op right` is, where the left side is a tensor, which knows nothing of the object."""
    if not is_tensor(facts, left):
        return None
    name = f"__r{_OPERATORS[type(op)]}__"
    _answers(_method(facts, right, name))
    own = exact_class(facts, right)
    if own is not None and (known := has_any(own, _KNOWN_TO_TORCH)) is not None:
        raise _NotCalledError(f"torch may compute with what has `{known}` itself")
    if not _may_come_first(facts, right, left):
        raise _NotCalledError(f"`{shortened(right)}` would be evaluated before `{shortened(left)}`")
    return f"{bracketed(code.text(right))}.{name}({code.argument(left)})"


def _may_come_first(facts: FunctionFacts, right: ast.expr, left: ast.expr) -> bool:
    """Is it the same in which order two sides are evaluated: is one a name that is bound, and binds the other none?"""
    names = {*locals_of(facts.function), *parameters(facts.function)}
    for one, other in ((left, right), (right, left)):
        bound = isinstance(one, ast.Name) and one.id in names and one.id in surely_bound(facts, one)
        if bound and not any(isinstance(n, (ast.NamedExpr, ast.Await, ast.Yield)) for n in nodes_in(other)):
            return True
    return False


def _index(facts: FunctionFacts, code: Code, value: ast.expr, index: ast.expr) -> str | None:
    method = _method(facts, index, "__index__")
    own, tensor = exact_class(facts, index), facts.value(value)
    if own is not None and (several := has_any(own, _SEVERAL)) is not None:
        raise _NotCalledError(f"torch may take what has `{several}` for several indices")
    if not isinstance(tensor, Tensor) or tensor.rank in (None, 0):
        raise _NotCalledError(f"`{shortened(value)}` may have no dimension, and its index is not asked then")
    results = [s.value for s in nodes_in(method.node) if isinstance(s, ast.Return)]
    if not only_computes(method) or len(results) != 1 or not _is_whole(facts, method, results[0]):
        raise _NotCalledError("`__index__` is not known to give a whole number, and to do nothing else")
    return f"{bracketed(code.text(index))}.__index__()"


def _is_whole(facts: FunctionFacts, method: FunctionInfo, node: ast.expr | None) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    within = facts.within(method.node) if node is not None and isinstance(method.node, ast.FunctionDef) else None
    if within is None or node is None:
        return False
    value = within.value(node)
    known = isinstance(value, Const) and type(value.value) is int
    return known or (isinstance(value, Static) and value.type == "int" and number_type(within, node) == "int")


def _asked(facts: FunctionFacts, code: Code, node: ast.expr, name: str) -> str | None:
    _method(facts, node, name)
    return f"{bracketed(code.text(node))}.{name}()"


def _method(facts: FunctionFacts, node: ast.expr, name: str) -> FunctionInfo:
    own = exact_class(facts, node)
    if own is None:
        raise _NotCalledError(f"`{shortened(node)}` is not known to be made by a class of the file, as it is written")
    method = method_named(own, name)
    if method is None:
        raise _NotCalledError(f"`{name}` of `{own.name}` is not known to be the one method in sight")
    return method


def _answers(method: FunctionInfo) -> None:
    """Raises where a method may answer NotImplemented, so that the other side is asked."""
    given = method.parameters
    own = {p.arg for p in given}
    if len(given) != 2:
        raise _NotCalledError(f"`{method.name}` is given its operand otherwise")
    if any(isinstance(n, ast.Name) and n.id in own and not isinstance(n.ctx, ast.Load) for n in nodes_in(method.node)):
        raise _NotCalledError(f"`{method.name}` binds what it is given anew")
    for statement in nodes_in(method.node):
        if isinstance(statement, (ast.Yield, ast.YieldFrom, ast.AsyncFunctionDef, ast.Lambda)) or (
            isinstance(statement, ast.Return) and not _computed(statement.value, given[1].arg, own)
        ):
            raise _NotCalledError(f"`{method.name}` may answer NotImplemented, and the other side is asked then")


def _computed(node: ast.expr | None, other: str, own: set[str]) -> bool:
    """Is a value certainly not NotImplemented? An operator of two sides never gives it, nor a tensor's method."""
    match node:
        case ast.BinOp() | ast.Compare() | ast.List() | ast.Tuple() | ast.Dict() | ast.JoinedStr():
            return True
        case ast.UnaryOp(op=ast.Not()) | None:
            return True
        case ast.Constant(value=value):
            return value is not NotImplemented
        case ast.Name(id=name):
            return name in own
        case ast.IfExp(body=body, orelse=orelse):
            return _computed(body, other, own) and _computed(orelse, other, own)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)) if name == other:
            return not attr.startswith("__")
    return False
