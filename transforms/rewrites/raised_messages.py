"""The message of an assertion that a graph holds: it must be one text, whatever the call is given."""

from __future__ import annotations

import ast
import re
import string
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.fstrings import quoted
from graphmend.transforms.code.liveness import stored
from graphmend.transforms.code.qualified_names import called

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_PERCENT = re.compile(r"%(?:%|(?:\((\w+)\))?[-+ #0]*[\d.]*([diouxXeEfFgGcrsa]))")
_NOTHING = "assertion failed"


def message(facts: FunctionFacts, node: ast.expr | None) -> str:
    """The message in its author's words, as the second argument of the assertion. The counter of a loop that is
    unrolled stands in it as it did; any other value is not known while compiled, or would be compiled anew with, and
    what it is computed from is named in its place.
    """
    parts = (_parts(node) if node is not None else None) or [_NOTHING]
    values = [part for part in parts if isinstance(part, ast.FormattedValue)]
    formatted = any(_counts(facts, part) for part in values)
    text = ""
    for part in parts:
        if isinstance(part, ast.FormattedValue) and _counts(facts, part):
            text += ast.unparse(ast.JoinedStr([part]))[2:-1]
            continue
        words = part if isinstance(part, str) else f"<{shortened(part.value)}>"
        text += words.replace("{", "{{").replace("}", "}}") if formatted else words
    return f", {'f' if formatted else ''}{quoted(text or _NOTHING)}"


def _counts(facts: FunctionFacts, part: ast.FormattedValue) -> bool:
    """Is it the counter of an enclosing loop, `range` or `enumerate`, that nothing else gives a value to? TorchDynamo
    unrolls such a loop, and knows the number in each round, also where the number of rounds varies (torch 2.13).
    """
    name, form = part.value, part.format_spec
    if not isinstance(name, ast.Name) or (form is not None and any(isinstance(n, ast.Name) for n in nodes_in(form))):
        return False
    for loop in facts.ancestors(facts.statement):
        if isinstance(loop, ast.For) and name.id in stored([loop]):
            return _counter(facts, loop) == name.id and name.id not in stored(loop.body)
    return False


def _counter(facts: FunctionFacts, loop: ast.For) -> str | None:
    match loop.target:
        case ast.Name(id=name) if called(facts, loop.iter, "builtins.range"):
            return name
        case ast.Tuple(elts=[ast.Name(id=name), _]):
            call = called(facts, loop.iter, "builtins.enumerate")
            return name if call is not None and len(call.args) == 1 and not call.keywords else None
    return None


def _parts(node: ast.expr) -> list[str | ast.FormattedValue] | None:
    """The text of a message and the values in it, in order; None where it is not known to be a text."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=values):
            return [part for value in values for part in _parts(value) or []]
        case ast.FormattedValue():
            return [node]
        case ast.Call(func=ast.Name(id="str" | "repr"), args=[value], keywords=[]):
            return [_shown(value)]
        case ast.BinOp(left=left, op=ast.Add(), right=right) if _parts(left) is not None or _parts(right) is not None:
            return [part for side in (left, right) for part in _parts(side) or [_shown(side)]]
        case ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Mod(), right=right):
            return _by_percent(text, right)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format"), args=values):
            return _by_format(text, values, {k.arg: k.value for k in node.keywords})
        case ast.Call(func=ast.Name() | ast.Attribute(), args=[said]):  # assert c, ValueError("message")
            return _parts(said)
    return None


def _shown(value: ast.expr) -> ast.FormattedValue:
    return ast.FormattedValue(value, -1, None)


def _by_percent(text: str, right: ast.expr) -> list[str | ast.FormattedValue]:
    values = list(right.elts) if isinstance(right, ast.Tuple) else [right]
    pairs = zip(right.keys, right.values, strict=True) if isinstance(right, ast.Dict) else ()
    named = {key.value: value for key, value in pairs if isinstance(key, ast.Constant)}
    parts: list[str | ast.FormattedValue] = []
    end = 0
    for found in _PERCENT.finditer(text):
        parts.append(text[end : found.start()])
        end = found.end()
        if found[0] == "%%":
            parts.append("%")
            continue
        value = named.get(found[1]) if found[1] else values.pop(0) if values else None
        parts.append(found[0] if value is None else _shown(value))
    return [*parts, text[end:]]


def _by_format(text: str, values: list[ast.expr], named: dict[str | None, ast.expr]) -> list[str | ast.FormattedValue]:
    numbered = {str(at): value for at, value in enumerate(values)}
    parts: list[str | ast.FormattedValue] = []
    next_one = 0
    try:
        fields = list(string.Formatter().parse(text))
    except ValueError:  # no template
        return [text]
    for words, field, _, _ in fields:
        parts.append(words)
        if field is None:
            continue
        at = field or str(next_one)
        next_one += not field
        value = named.get(at) or numbered.get(at)
        parts.append(f"<{at}>" if value is None or isinstance(value, ast.Starred) else _shown(value))
    return parts
