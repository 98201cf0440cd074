"""Which setting of a constructor's call reaches the statement that failed, and what that statement asks of it.

The object is made again with numbers and texts that remember where they stand in the call. What they are added to or
multiplied with forgets it; what only hands them on, stores them or compares them does not, in whatever class that is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ..configs import small_value
from ..examples import evaluate
from . import frames

Place = tuple[int, int]
"""Where a constant begins and ends in the text of a call of one line."""
MOST_FRAMES = 6
MOST_CHOICES = 4
_AT = "__at__"


class _Number(int):
    place: Place


class _Text(str):
    place: Place


def at(value: Any, *place: int) -> Any:
    """A number or text that remembers its place."""
    made: Any = _Number(value) if type(value) is int else _Text(value)
    made.place = place
    return made


def others(text: str, error: BaseException, names: dict[str, Any], run: Callable[[Any], Any] | None) -> Iterator[str]:
    """Other texts of a constructor's call that failed, or made what fails when it is run, as the error asks for."""
    tree = _call(text)
    failed = None if tree is None else _again(text, names, run)
    if tree is None or failed is None or type(failed) is not type(error.__cause__ or error):
        return
    yield from _lacking(text, tree, failed)
    for around, found in frames.inner(failed)[:MOST_FRAMES]:
        for place, node in _marked(around, found):
            said = [*_choices(failed, around, node, found), *_of_kind(failed, frames.value(node, found))]
            yield from (text[: place[0]] + other + text[place[1] :] for other in said[:MOST_CHOICES])


def _call(text: str) -> ast.Call | None:
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
    return tree if isinstance(tree, ast.Call) and "\n" not in text and text.isascii() else None


class _Marks(ast.NodeTransformer):
    """Wraps each number and text but the keys of mappings."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if type(node.value) not in (int, str):
            return node
        ends: list[ast.expr] = [ast.Constant(node.col_offset), ast.Constant(node.end_col_offset)]
        return ast.Call(ast.Name(_AT, ast.Load()), [node, *ends], [])

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        node.values = [self.visit(value) for value in node.values]
        return node


def _again(text: str, names: dict[str, Any], run: Callable[[Any], Any] | None) -> BaseException | None:
    """The error of the same call with marked arguments."""
    marked = ast.unparse(ast.fix_missing_locations(_Marks().visit(ast.parse(text, mode="eval"))))
    try:
        made = evaluate(marked, {**names, _AT: at}, "constructor")
        if run is not None:
            run(made)
    except Exception as error:
        return error.__cause__ or error
    return None


def _marked(around: list[ast.stmt], names: dict[str, Any]) -> Iterator[tuple[Place, ast.expr]]:
    """The expressions of a statement, and of the tests that led to a `raise`, whose value remembers its place."""
    parts = [around[-1], *(each.test for each in _tests(around))]
    seen: set[Place] = set()
    for node in (n for part in parts for n in frames.header(part)):
        value = frames.value(node, names) if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) else None
        if isinstance(value, (_Number, _Text)) and value.place not in seen:
            seen.add(value.place)
            yield value.place, node  # type: ignore[misc]


def _tests(around: list[ast.stmt]) -> list[ast.If]:
    """The chain of `if` and `elif` at whose end, or behind which, a `raise` stands, or the one `if` around it."""
    found: list[ast.If] = []
    for outer, inner in zip(reversed(around[:-1]), reversed(around)):  # noqa: B905
        if not isinstance(around[-1], ast.Raise):
            break
        if not isinstance(outer, ast.If):
            body = getattr(outer, "body", [])
            found += [part for each in body[: body.index(inner) if inner in body else 0] for part in _chain(each)]
            break
        found.append(outer)
        if inner in outer.body:
            break
    return found


def _chain(node: ast.stmt) -> Iterator[ast.If]:
    while isinstance(node, ast.If):
        yield node
        if len(node.orelse) != 1:
            break
        node = node.orelse[0]


def _choices(error: BaseException, around: list[ast.stmt], node: ast.expr, names: dict[str, Any]) -> list[str]:
    """What a value is compared with on the way to a `raise` or in an assertion, or is to be a key of."""
    found: list[Any] = []
    wanted = ast.unparse(node)
    tests = [each.test for each in _tests(around)]
    tests += [around[-1].test] if isinstance(around[-1], ast.Assert) else []
    for compare in (n for test in tests for n in ast.walk(test) if isinstance(n, ast.Compare)):
        if ast.unparse(compare.left) == wanted and isinstance(compare.ops[0], (ast.Eq, ast.In, ast.NotEq, ast.NotIn)):
            other = frames.value(compare.comparators[0], names)
            found += list(other) if isinstance(other, (list, tuple, set, frozenset, dict)) else [other]
    if isinstance(error, KeyError):
        for part in frames.header(around[-1]):
            if isinstance(part, ast.Subscript) and ast.unparse(part.slice) == wanted:
                table = frames.value(part.value, names)
                found += list(table) if isinstance(table, dict) else []
    if isinstance(error, AttributeError) and "module" in str(error):
        found.append("relu" if "functional" in str(error) else "ReLU")
    return [repr(each) for each in found if isinstance(each, (str, int, float))]


def _of_kind(error: BaseException, value: Any) -> list[str]:
    """A value of the kind that an error says is missing."""
    said = str(error)
    plain = int(value) if isinstance(value, int) else 16
    if isinstance(value, str):
        wants_number = re.search(r"not str|'str' and|and 'str'|must be (int|real number)|'str' object cannot", said)
        return ["16", "1.0"] if wants_number else []
    if not isinstance(error, (TypeError, AttributeError)):
        return []
    if re.search(r"not (iterable|subscriptable)|has no len|non-iterable|int' and '(list|tuple)'", said):
        return [f"[{plain}, {plain}]", f"({plain}, {plain})"]
    if re.search(r"'\w*_Number' object is not callable", said):
        return ["nn.ReLU()", "nn.ReLU"]
    asked = re.search(r"'_Number' object has no attribute '(\w+)'", said)
    if asked is not None and not hasattr(torch.Tensor, asked[1]):
        return [f"SimpleNamespace({asked[1]}={small_value(asked[1], None, {})})"]
    if asked is not None or re.search(r"(expected|must be) (a )?Tensor|Tensor.*, not (int|_Number)", said):
        return [f"torch.randn({plain}, {plain})", f"torch.randn({plain})"]
    return []


def _lacking(text: str, tree: ast.Call, error: BaseException) -> Iterator[str]:
    """The text with the argument, setting or key that an error says is missing."""
    missing = re.search(r"missing \d+ required (?:keyword-only |positional )?arguments?: (.+)", str(error))
    if isinstance(error, TypeError) and missing is not None:
        names = re.findall(r"'(\w+)'", missing[1])
        if any(n not in {k.arg for k in tree.keywords} for n in names):
            yield _with(text, tree, names)
    name = getattr(error, "name", None)
    if isinstance(error, AttributeError) and type(getattr(error, "obj", None)).__name__ in (
        "Namespace",
        "SimpleNamespace",
    ):
        fields = set(vars(error.obj))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and {k.arg for k in node.keywords} == fields and not node.args and name:
                yield _with(text, node, [name])


def _with(text: str, node: ast.Call, names: list[str]) -> str:
    end = (node.end_col_offset or len(text)) - 1
    more = ", ".join(f"{name}={small_value(name, None, {})}" for name in names)
    return text[:end] + (", " if node.args or node.keywords else "") + more + text[end:]
