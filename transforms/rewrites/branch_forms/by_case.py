"""Choose from a table by comparing the key with each of its keys instead of looking it up.

Before:
    functions = {0: torch.relu, 1: torch.tanh}
    return functions[mode.item()](x)

After:
    functions = {0: torch.relu, 1: torch.tanh}
    return functions[0](x) if mode.item() == 0 else functions[1](x)

Legal when:
    the key is a number out of a tensor, or a text with such a number in it, and the table is written in the function or
    the module, with numbers, or such texts, for keys or as a list of functions, and is only looked up in. What is
    chosen is a number or a tensor, or is called at once. A truth chooses from two values of any kind.

Differs in:
    a key that the table does not have gives some entry where it raised, unless `get` has a value for it. It is
    written for the mends of branches, and stays where they remove the break.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Tensor, dtype_kind
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import always_evaluated, display_of, precedes, reaching, stores
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.fstrings import number_in
from graphmend.transforms.code.liveness import fresh, locals_of
from graphmend.transforms.code.positions import begins_line
from graphmend.transforms.code.qualified_names import called, constant, method
from graphmend.transforms.code.text_edits import insert_before, replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.kept_scalars import conversion
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.legality.names.replaced import is_lasting
from graphmend.transforms.rewrites.answers import asks, prepare, refuse
from graphmend.transforms.rewrites.respelled import inlined, is_plain

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "by_case"
#: a table of more entries is better kept in a tensor
_MOST = 8
#: with more entries than this, several comparisons ask for the key
_ONCE = 2

_TABLES = (ast.Dict, ast.List, ast.Tuple)


class _Looked(NamedTuple):
    """A table that is looked up in."""

    whole: ast.expr
    """The subscript, or the call of `get`."""
    table: ast.expr
    key: ast.expr
    default: ast.expr | None = None
    text: ast.JoinedStr | None = None
    """The text that the key stands in, as in those of all keys: `table[f"layer{n}"]`."""


class _Choice(NamedTuple):
    """What takes the place of an expression, and how it differs."""

    whole: ast.expr
    text: str
    differences: list[Difference]
    named: str = ""
    """A line in front of the statement, which gives the key a name."""


class _UnknownTableError(Exception):
    """A table that is not chosen from by cases; the message says why."""


@asks("effects", "names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    tables = [(looked, display_of(facts, looked.table)) for looked in _looked_up(facts)]
    try:
        chosen = [_chosen(facts, looked, table) for looked, table in tables if isinstance(table, _TABLES)]
    except _UnknownTableError as error:
        return refuse(NAME, str(error))
    if not chosen:
        return None

    def make() -> list[TextEdit]:
        named = [insert_before(facts.source, facts.statement, one.named) for one in chosen if one.named]
        return [*named, *(replace_expression(facts.source, one.whole, one.text) for one in chosen)]

    differences = [difference for one in chosen for difference in one.differences]
    return prepare(NAME, "compare the key with those of the table", facts, make, differences)


def _chosen(facts: FunctionFacts, looked: _Looked, display: ast.Dict | ast.List | ast.Tuple) -> _Choice:
    """A conditional expression over the entries of a table."""
    call = facts.parent(looked.whole)
    called = call if isinstance(call, ast.Call) and call.func is looked.whole else None
    if isinstance(display, ast.Dict):
        written: list[object] = [None if key is None else constant(key) for key in display.keys]
        keys: list[object] = [key if looked.text is None else number_in(looked.text, key) for key in written]
        values = display.values
    else:
        keys, values = list(range(len(display.elts))), display.elts
        written = keys
        functions = all(isinstance(v, ast.Lambda) or _lasts(facts, v) for v in values)
        if (called is None and not functions and not _is_truth(facts, looked.key)) or any(
            isinstance(value, ast.Starred) for value in values
        ):
            raise _UnknownTableError(f"`{ast.unparse(looked.table)}` is a list of values, or of unknown length")
    if not 1 < len(keys) <= _MOST or not all(isinstance(key, (int, float)) for key in keys):
        raise _UnknownTableError(f"the keys of `{ast.unparse(looked.table)}` are not known, or too many")
    if len({*keys}) < len(keys):
        raise _UnknownTableError(f"`{ast.unparse(looked.table)}` has keys that are equal")
    if looked.default is not None and (found := effects(facts, looked.default)):
        raise _UnknownTableError(f"{found[0]}, and would be evaluated for keys alone that the table does not have")
    taken_from = looked.key
    while (inner := conversion(facts, taken_from)) is not None:
        taken_from = inner[1]
    if effects(facts, taken_from):
        raise _UnknownTableError(f"`{ast.unparse(looked.key)}` would be evaluated more than once")
    if looked.text is not None and looked.default is not None and not _is_whole(facts, looked.key):
        raise _UnknownTableError(f"`{ast.unparse(looked.key)}` is not known to be a whole number, which is written so")
    code = Code(facts.source)

    def entry(text: str, value: ast.expr | None = None) -> str:
        if called is None:
            return text
        own = inlined(facts, value, called) if value is not None else None
        return own or code.text(called, {looked.whole: text})

    place = code.operand(looked.table)
    if display is looked.table and effects(facts, *values):
        raise _UnknownTableError(f"only one of the entries of `{ast.unparse(looked.table)}` would be evaluated")
    given = [
        entry(
            code.operand(value) if display is looked.table or _lasts(facts, value) else f"{place}[{_spelled(key)}]",
            value,
        )
        for key, value in zip(written, values, strict=True)
    ]
    differences: list[Difference] = []
    if display is looked.table and not all(is_plain(value) or constant(value) is not None for value in values):
        differences.append(Difference("exception", "an entry that raises, and is not chosen, raises no more"))
    if looked.default is not None and not isinstance(looked.default, (ast.Constant, ast.Name)):
        differences.append(Difference("exception", "a default that raises, and is not chosen, raises no more"))
    asked = code.operand(looked.key)
    if keys == [0, 1] and _is_truth(facts, looked.key):
        return _Choice(called or looked.whole, f"({given[1]} if {asked} else {given[0]})", differences)
    if not isinstance(display, ast.Dict) and not _counts_from_zero(facts, looked.key):
        asked = f"{asked} % {len(keys)}"  # an index below zero counts from the end
    named = ""
    if len(keys) > _ONCE and _comes_first(facts, looked):
        name = fresh(facts, "key")
        named, asked = f"{name} = {asked}\n", name
    tested = [f"{text} if {asked} == {key!r}" for text, key in zip(given, keys, strict=True)]
    if looked.default is not None:
        text = " else ".join([*tested, entry(code.operand(looked.default))])
    else:
        text = " else ".join([*tested[:-1], given[-1]])
        differences.append(Difference("exception", "a key that the table does not have gives an entry, and raised"))
    return _Choice(called or looked.whole, f"({text})", differences, named)


def _comes_first(facts: FunctionFacts, looked: _Looked) -> bool:
    """May the key be taken out on a line in front of its statement, where nothing is done before it?"""
    if isinstance(looked.key, ast.Name) or not begins_line(facts.source, facts.statement):
        return False
    calls = (n for n in nodes_in(facts.statement) if isinstance(n, (ast.Call, ast.Await, ast.Yield, ast.YieldFrom)))
    inside = set(nodes_in(looked.whole))
    return always_evaluated(facts, looked.whole) and not any(c not in inside and precedes(c, looked.key) for c in calls)


def _taken_out(facts: FunctionFacts, key: ast.expr) -> tuple[list[str], ast.expr | None]:
    """How a number is taken out of a tensor, the last conversion first, and of which."""
    made, how = reaching(facts, key) if isinstance(key, ast.Name) else key, []
    while made is not None and (inner := conversion(facts, made)) is not None:
        how.append(inner[0])
        made = inner[1]
    return how, made


def _is_truth(facts: FunctionFacts, key: ast.expr) -> bool:
    """Is a number out of a tensor False or True, or 0 or 1 for one of them?"""
    how, made = _taken_out(facts, key)
    value = facts.value(made) if made is not None else None
    return "bool" in how or (isinstance(value, Tensor) and value.dtype == "bool")


def _is_whole(facts: FunctionFacts, key: ast.expr) -> bool:
    """Is a number out of a tensor a whole one, and no bool?"""
    how, made = _taken_out(facts, key)
    if (last := next((each for each in how if each != "item"), None)) is not None:
        return last == "int"
    value = facts.value(made) if made is not None else None
    return isinstance(value, Tensor) and dtype_kind(value.dtype) == "int"


_FROM_ZERO = ("argmax", "argmin", "count_nonzero", "any", "all")


def _counts_from_zero(facts: FunctionFacts, key: ast.expr) -> bool:
    """Is a number out of a tensor never below zero?"""
    how, made = _taken_out(facts, key)
    if "bool" in how or made is None:
        return made is not None
    value = facts.value(made)
    unsigned = isinstance(value, Tensor) and value.dtype in ("bool", "uint8")
    functions = (f"torch.{name}" for name in _FROM_ZERO)
    return unsigned or method(facts, made, *_FROM_ZERO) is not None or called(facts, made, *functions) is not None


def _spelled(key: object) -> str:
    text = repr(key)
    return f'"{key}"' if isinstance(key, str) and text == f"'{key}'" else text


def _lasts(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is an entry of a table of the module a function that an import or a definition names, here as there?"""
    tree = facts.source.tree
    if tree is None or node in nodes_in(facts.function):
        return False
    while isinstance(node, ast.Attribute):
        node = node.value
    if not isinstance(node, ast.Name) or node.id in locals_of(facts.function):
        return False
    return is_lasting(node.id, tree)


def _looked_up(facts: FunctionFacts) -> list[_Looked]:
    """The tables in which the number of the finding is a key: where it is taken out, or by the name that it gets."""
    node = facts.node
    if not isinstance(node, ast.expr):
        return []
    while isinstance(above := facts.parent(node), ast.Call) and conversion(facts, above) is not None:
        node = above
    if conversion(facts, node) is None:
        return []
    match above:
        case ast.Assign(targets=[ast.Name(id=name)]) if stores(facts, name) == 1:
            names = [n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n.id == name]
            return [looked for n in names if (looked := _looked(facts, n)) is not None]
    looked = _looked(facts, node)
    return [] if looked is None else [looked]


def _looked(facts: FunctionFacts, node: ast.expr) -> _Looked | None:
    asked, text, above = node, _text_around(facts, node), facts.parent(node)
    if text is not None:
        asked, above = text, facts.parent(text)
    match above:
        case ast.Subscript(value=table, slice=key, ctx=ast.Load()) if key is asked:
            return _Looked(above, table, node, None, text)
        case ast.Call(func=ast.Attribute(value=table, attr="get"), args=[key, *rest], keywords=[]) if key is asked:
            return _Looked(above, table, node, rest[0], text) if len(rest) == 1 else None
    return None


def _text_around(facts: FunctionFacts, node: ast.expr) -> ast.JoinedStr | None:
    """The f-string that a number is written in."""
    part = facts.parent(node)
    if not isinstance(part, ast.FormattedValue) or part.conversion != -1 or part.format_spec is not None:
        return None
    text = facts.parent(part)
    return text if isinstance(text, ast.JoinedStr) else None
