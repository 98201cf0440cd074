"""Sort objects by the field that their class compares, instead of by the comparison itself.

Before:
    guesses = sorted(Guess(score, value) for score, value in found)

After:
    guesses = sorted((Guess(score, value) for score, value in found), key=lambda guess: guess.score)

Legal when:
    what is sorted is made there, by calls of one class of the file that is as it is written, whose `__lt__` compares
    the same fields of both objects, which each has; or it is a dataclass with `order=True` and fields of plain types.

Differs in:
    nothing: the same fields are compared in the same order. One that falls (`self.score > other.score`) is left, as
    `reverse=True` compares the other way round, of which NaN tells.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.program.definitions import ClassInfo
from graphmend.analysis.program.entities import Instance
from graphmend.analysis.resolution.classes import mro
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.liveness import fresh, locals_of
from graphmend.transforms.code.qualified_names import called
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Fix, Refusal
from graphmend.transforms.legality.names.replaced import is_free
from graphmend.transforms.legality.objects.exact import exact_class, has_any, method_named
from graphmend.transforms.legality.objects.plain_fields import is_plain_field
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "order_of_objects"
_PLAIN = frozenset({"int", "float", "str", "bool"})


class _Key(NamedTuple):
    fields: list[str]
    is_tuple: bool


@asks("names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    call = called(facts, facts.node, "builtins.sorted") if isinstance(facts.node, ast.Call) else None
    if call is None or len(call.args) != 1 or call.keywords or not isinstance(call.func, ast.Name):
        return None
    if call.func.id in locals_of(facts.function) or not is_free(call.func.id, facts.source.tree):
        return refuse(NAME, f"`{call.func.id}` is another function here")
    info = _class_of(facts, call.args[0])
    if info is None:
        return refuse(NAME, "what is sorted is not made there by calls of one class of the file, as it is written")
    found = _key(facts, info)
    if found is None:
        return refuse(NAME, f"`{info.name}` does not compare the same fields of two objects alone")
    one = fresh(facts, info.name.strip("_").lower() or "item")
    fields = [f"{one}.{field}" for field in found.fields]
    compared = f"({', '.join(fields)}{',' if len(fields) == 1 else ''})" if found.is_tuple else fields[0]
    text = f"{call.func.id}({Code(facts.source).argument(call.args[0])}, key=lambda {one}: {compared})"
    return offer(
        NAME,
        "sort by what is compared",
        facts,
        lambda: [replace_expression(facts.source, call, text)],
    )


def _class_of(facts: FunctionFacts, given: ast.expr) -> ClassInfo | None:
    """The class whose calls make what is sorted, where that is written out, or by a comprehension."""
    match given:
        case ast.List(elts=made) | ast.Tuple(elts=made) if made:
            pass
        case ast.ListComp(elt=element) | ast.GeneratorExp(elt=element):
            made = [element]
        case _:
            return None
    classes = {exact_class(facts, one) if isinstance(one, ast.Call) else None for one in made}
    return next(iter(classes)) if len(classes) == 1 else None


def _key(facts: FunctionFacts, info: ClassInfo) -> _Key | None:
    """What puts the objects of a class in the order of its own `__lt__`."""
    compared = _compared(info) if has_any(info, frozenset({"__lt__"})) else _of_dataclass(info)
    if compared is None or any(name.startswith("__") for name in compared.fields):
        return None
    plain = all(is_plain_field(name, facts.function, Instance(info)) for name in compared.fields)
    return compared if plain else None


def _compared(info: ClassInfo) -> _Key | None:
    """The fields that `def __lt__(self, other): return self.a < other.a` compares."""
    method = method_named(info, "__lt__")
    match method.node if method is not None else None:
        case ast.FunctionDef(
            args=ast.arguments(posonlyargs=[], args=[ast.arg(arg=own), ast.arg(arg=other)], vararg=None, kwonlyargs=[]),
            body=[ast.Return(value=ast.Compare(left=left, ops=[ast.Lt()], comparators=[right]))],
        ):
            one, two = _fields(left, own), _fields(right, other)
            if one is None or one != two or isinstance(left, ast.Tuple) != isinstance(right, ast.Tuple):
                return None
            return _Key(one, isinstance(left, ast.Tuple))
    return None


def _fields(node: ast.expr, owner: str) -> list[str] | None:
    names: list[str] = []
    for part in node.elts if isinstance(node, ast.Tuple) else [node]:
        match part:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == owner:
                names.append(attr)
            case _:
                return None
    return names or None


def _of_dataclass(info: ClassInfo) -> _Key | None:
    """All fields of a dataclass that is ordered, which has nothing but fields of plain types, and methods."""
    if len(mro(info)) != 1 or has_any(info, frozenset({"__gt__", "__eq__", "__le__", "__ge__"})):
        return None
    if [_is_ordered(d) for d in info.node.decorator_list] != [True]:
        return None
    fields: list[str] = []
    for statement in info.node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id=kind), value=ast.Constant() | None):
                if kind not in _PLAIN:
                    return None
                fields.append(name)
            case ast.FunctionDef() | ast.Pass() | ast.Expr(value=ast.Constant()):
                pass
            case _:
                return None
    return _Key(fields, True) if fields else None


def _is_ordered(decorator: ast.expr) -> bool:
    """`@dataclass(order=True)`; that it is the one of `dataclasses` is asked of every class that is plain."""
    given = decorator.keywords if isinstance(decorator, ast.Call) else []
    return [(k.arg, getattr(k.value, "value", None)) for k in given] == [("order", True)]
