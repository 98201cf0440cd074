"""Values of expressions that are written out in constants and call functions of Python's library that only compute.

`json.loads('{"scale": 2.5}')["scale"]` is 2.5 in every call of every program.
"""

from __future__ import annotations

import ast
import base64
import collections
import json
import math
import string
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.qualified_names import qualified
from graphmend.transforms.legality.names.replaced import is_lasting

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

#: characters of a value that is written out
LARGEST = 200
#: elements of a value on the way, and characters of a text
_MOST = 10_000

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "json.loads": json.loads,
    "json.dumps": json.dumps,
    "ast.literal_eval": ast.literal_eval,
    "base64.b64encode": base64.b64encode,
    "base64.b64decode": base64.b64decode,
    "string.capwords": string.capwords,
    "collections.Counter": collections.Counter,
    "collections.OrderedDict": collections.OrderedDict,
    **{
        f"math.{name}": getattr(math, name) for name in ("sqrt", "floor", "ceil", "log2", "gcd", "prod", "isqrt", "log")
    },
    **{
        f"builtins.{each.__name__}": each
        for each in (abs, bool, dict, float, int, len, list, max, min, reversed, round, set, sorted, str, sum, tuple)
    },
}
#: methods that change nothing, of values of these types; none makes more of little, as `"1".zfill(10**9)` would
_METHODS = {
    str: "capitalize casefold count endswith find index isdigit join lower lstrip partition rpartition rsplit rstrip "
    "split splitlines startswith strip title upper",
    bytes: "decode hex",
    int: "bit_length",
    float: "is_integer",
    dict: "get items keys values",
    list: "count index copy",
    tuple: "count index",
    collections.Counter: "get items keys values most_common total copy",
}


class NotFolded(Exception):
    """A value is not known from the code alone."""


def folded(facts: FunctionFacts, node: ast.expr) -> Any:
    """The value of an expression. Raises `NotFolded` where it is not known, or raises."""
    try:
        value = _value(facts, node)
    except NotFolded:
        raise
    except Exception as error:  # what the program itself raises, it raises where it did
        raise NotFolded(f"{type(error).__name__}: {error}") from None
    return value


def literal(value: object) -> str | None:
    """A display of a value, equal to it in all its parts, types and order; None where it has none, or a large one."""
    text = _display(value)
    return text if text is not None and len(text) <= LARGEST else None


def _display(value: object) -> str | None:
    if type(value) is dict:
        keys, entries = [_display(key) for key in value], [_display(entry) for entry in value.values()]
        if None in keys or None in entries:
            return None
        return "{" + ", ".join(f"{key}: {entry}" for key, entry in zip(keys, entries, strict=True)) + "}"
    if type(value) in (list, tuple):
        parts = [_display(each) for each in value]  # type: ignore[attr-defined]
        if None in parts:
            return None
        text = ", ".join(part for part in parts if part is not None)
        return f"[{text}]" if type(value) is list else f"({text},)" if len(parts) == 1 else f"({text})"
    if type(value) is str:
        text = repr(value)
        return text if '"' in text or "\\" in text else f'"{text[1:-1]}"'
    if type(value) is float:
        return repr(value) if math.isfinite(value) else None
    return repr(value) if value is None or type(value) in (bool, int, bytes) else None


def _value(facts: FunctionFacts, node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            values = [_value(facts, each) for each in elements]
            return values if isinstance(node, ast.List) else tuple(values)
        case ast.Dict(keys=keys, values=entries) if None not in keys:
            return {_value(facts, key): _value(facts, entry) for key, entry in zip(keys, entries, strict=True) if key}
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(facts, operand)
        case ast.Subscript(value=of, slice=ast.expr() as index) if not isinstance(index, ast.Slice):
            return _value(facts, of)[_value(facts, index)]
        case ast.Call(func=function, args=arguments, keywords=keywords):
            given = [_value(facts, each) for each in arguments]
            named = {each.arg: _value(facts, each.value) for each in keywords if each.arg is not None}
            if len(named) < len(keywords):
                raise NotFolded
            return _small(_function(facts, function)(*given, **named))
    raise NotFolded


def _function(facts: FunctionFacts, node: ast.expr) -> Callable[..., Any]:
    name = qualified(facts, node)
    if name in _FUNCTIONS and not _is_replaced(facts, node):
        return _FUNCTIONS[name]
    if isinstance(node, ast.Attribute):
        of = _value(facts, node.value)
        if node.attr in _METHODS.get(type(of), "").split():
            return getattr(of, node.attr)  # type: ignore[no-any-return]
    raise NotFolded


def _is_replaced(facts: FunctionFacts, node: ast.expr) -> bool:
    """May code of the file put something else in the place of a function, or of the module that it is read from?"""
    names = [n.attr if isinstance(n, ast.Attribute) else n.id for n in nodes_in(node) if isinstance(n, _NAMES)]
    tree = facts.source.tree
    stored = {
        n.attr for n in nodes_in(tree or node) if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load)
    }
    return bool(stored & {*names}) or not all(is_lasting(name, tree) for name in names)


_NAMES = (ast.Attribute, ast.Name)


def _small(value: Any) -> Any:
    if isinstance(value, (str, bytes, list, tuple, dict, set)) and len(value) > _MOST:
        raise NotFolded
    return value
