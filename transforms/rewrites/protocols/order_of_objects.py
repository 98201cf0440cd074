"""Sort objects by the field that their class compares, instead of by the comparison itself.

Before:
    best = max(guesses)

After:
    best = sorted(guesses, key=lambda guess: guess.score, reverse=True)[0]

Legal when:
    the class of what is sorted is in sight, and its `__lt__`, or `__gt__`, compares the same fields of both objects; or
    it is a dataclass with `order=True`, all of whose fields are compared.

Differs in:
    nothing for `sorted`. `max` and `min` of nothing raise another exception, and where a NaN is compared another object
    may come out.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Container, Value, options
from graphmend.analysis.program.definitions import ClassInfo
from graphmend.analysis.program.entities import Instance, Record, class_of
from graphmend.analysis.resolution.classes import mro
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.liveness import fresh, locals_of
from graphmend.transforms.code.qualified_names import called
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal
from graphmend.transforms.legality.names.replaced import is_free
from graphmend.transforms.legality.objects.classes import subclasses
from graphmend.transforms.questions import take_for_granted
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "order_of_objects"
_COMPARISONS: dict[str, type[ast.cmpop]] = {"__lt__": ast.Lt, "__gt__": ast.Gt}
_NAN = Difference("nan", "where a NaN is compared, another object may come out")
_EMPTY = Difference("exception", "of nothing it raises an IndexError instead of a ValueError")


class _Key(NamedTuple):
    fields: list[str]
    is_tuple: bool
    falls: bool
    """Is the object with the greatest fields the first one?"""


@asks("names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    names = ("builtins.sorted", "builtins.max", "builtins.min")
    call = called(facts, facts.node, *names) if isinstance(facts.node, ast.Call) else None
    if call is None or not call.args or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    name = ast.unparse(call.func)
    several = len(call.args) > 1
    values = [facts.value(a) for a in call.args]
    elements = values if several else [values[0].element] if isinstance(values[0], Container) else []
    info = _class_of(elements)
    if info is None:
        return None
    given = {k.arg: k.value for k in call.keywords}
    if "default" in given or None in given or (name != "sorted" and "reverse" in given):
        return refuse(NAME, f"`{name}` is given more than what is to be put in order, and a key")
    if "sorted" in facts.names or "sorted" in locals_of(facts.function) or not is_free("sorted", facts.source.tree):
        return refuse(NAME, "`sorted` is another function here")
    code = Code(facts.source)
    falls = False
    if "key" in given:
        if name == "sorted":
            return None
        key = code.text(given["key"])
    else:
        found = _key(info)
        if found is None:
            return refuse(NAME, f"`{info.name}` does not compare the same fields of two objects alone")
        falls = found.falls
        one = fresh(facts, info.name.strip("_").lower() or "item")
        fields = [f"{one}.{field}" for field in found.fields]
        compared = f"({', '.join(fields)}{',' if len(fields) == 1 else ''})" if found.is_tuple else fields[0]
        key = f"lambda {one}: {compared}"
    if not all(isinstance(o, Instance) and o.made_inside for e in elements for o in options(e)):
        take_for_granted(f"what `{name}` puts in order is taken to be of class `{info.name}`")
    among = f"[{', '.join(code.argument(a) for a in call.args)}]" if several else code.argument(call.args[0])
    options_ = "".join(f", {k.arg}={code.text(k.value)}" for k in call.keywords if k.arg == "reverse")
    if name == "sorted":
        if falls and options_:
            return refuse(NAME, "the order falls already, and is to be turned round")
        falling = ", reverse=True" if falls else options_
        text = f"sorted({among}, key={key}{falling})"
        return offer(NAME, "sort by what is compared", facts, lambda: [replace_expression(facts.source, call, text)])
    falling = ", reverse=True" if (name == "max") != falls else ""  # which keeps the first of equal ones first, too
    text = f"sorted({among}, key={key}{falling})[0]"
    there = several or (isinstance(call.args[0], (ast.List, ast.Tuple)) and call.args[0].elts)
    differences = [_NAN] if there else [_NAN, _EMPTY]
    return offer(
        NAME,
        "sort by what is compared",
        facts,
        lambda: [replace_expression(facts.source, call, text)],
        differences,
    )


def _class_of(elements: list[Value]) -> ClassInfo | None:
    """The class of all of some values, where they are objects of one."""
    found = {class_of(o) for e in elements for o in options(e) if isinstance(o, (Instance, Record))}
    whole = all(isinstance(o, (Instance, Record)) for e in elements for o in options(e))
    return next(iter(found)) if whole and len(found) == 1 else None


def _key(info: ClassInfo) -> _Key | None:
    """What puts the objects of a class in the order of its own comparison."""
    own = {name for cls in (*mro(info), *subclasses(info)) for name in _COMPARISONS if name in cls.methods}
    if any(own & cls.methods.keys() for cls in subclasses(info) if cls is not info):
        return None
    keys = {_compared(info, name) for name in own} if own else {_of_dataclass(info)}
    found = next(iter(keys)) if len(keys) == 1 else None
    if found is None:
        return None
    fields, is_tuple, falls = found
    if any(field in cls.methods for field in fields for cls in mro(info)):
        return None
    return _Key(list(fields), is_tuple, falls)


def _compared(info: ClassInfo, name: str) -> tuple[tuple[str, ...], bool, bool] | None:
    """The fields that `def __lt__(self, other): return self.a < other.a` compares, and whether the order falls."""
    method = next(cls.methods[name] for cls in mro(info) if name in cls.methods)
    match method.node:
        case ast.FunctionDef(
            args=ast.arguments(args=[ast.arg(arg=own), ast.arg(arg=other)], vararg=None, kwonlyargs=[]),
            body=[ast.Return(value=ast.Compare(left=left, ops=[op], comparators=[right]))],
            decorator_list=[],
        ) if isinstance(op, (ast.Lt, ast.Gt)):
            one, two = _fields(left, own), _fields(right, other)
            if one is None or one != two:
                return None
            return one, isinstance(left, ast.Tuple), not isinstance(op, _COMPARISONS[name])
    return None


def _fields(node: ast.expr, owner: str) -> tuple[str, ...] | None:
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    names = [p.attr for p in parts if isinstance(p, ast.Attribute) and isinstance(p.value, ast.Name)]
    own = all(isinstance(p, ast.Attribute) and isinstance(p.value, ast.Name) and p.value.id == owner for p in parts)
    return tuple(names) if own and names else None


def _of_dataclass(info: ClassInfo) -> tuple[tuple[str, ...], bool, bool] | None:
    if info.node.bases or not any(_is_ordered(d) for d in info.node.decorator_list):
        return None
    stated = [s for s in info.node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]
    if not stated or any(isinstance(s.value, ast.Call) or "Var" in ast.unparse(s.annotation) for s in stated):
        return None
    return tuple(s.target.id for s in stated if isinstance(s.target, ast.Name)), True, False


def _is_ordered(decorator: ast.expr) -> bool:
    given = decorator.keywords if isinstance(decorator, ast.Call) else ()
    return any(k.arg == "order" and isinstance(k.value, ast.Constant) and k.value.value is True for k in given)
