"""The text of an answer: its size, its characters, its comments. Answers become one parsed function or a sentence."""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
import unicodedata
import warnings

Function = ast.FunctionDef | ast.AsyncFunctionDef

MOST_CHARACTERS = 20_000
MOST_NODES = 6_000
DEEPEST = 60
_STEERS = re.compile(r"graphmend|type:|noqa|pragma|pyright|mypy|pylint|nosec|fmt:|yapf|isort|ruff|coding[:=]", re.I)
"""Comments that tools obey: one of them could hide the break from the check that follows."""
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


class Unfit(Exception):
    """An answer that must not be used; the message is one sentence for the model and the user."""


def parsed(text: str, original: str) -> Function:
    """The one function of an answer; raises `Unfit`. `original` is the text whose own comments may stay."""
    if len(text) > MOST_CHARACTERS:
        raise Unfit(f"the answer has {len(text):,} characters, and {MOST_CHARACTERS:,} are read")
    text = textwrap.dedent(text.replace("\r\n", "\n"))
    _characters(text, original)
    function = _function(text)
    _limits(function)
    _comments(text, original)
    return function


def function_of(text: str) -> Function:
    """The function of the original's text, which is indented as it stands in its file."""
    dedented = textwrap.dedent(text)
    if not dedented[:1].isspace():
        return _function(dedented)
    (block,) = ast.parse(f"if True:\n{text}").body  # a text over several lines begins further left
    assert isinstance(block, ast.If)
    (function,) = block.body
    assert isinstance(function, Function)
    ast.increment_lineno(function, -1)
    return function


def _function(text: str) -> Function:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape is the answer's affair, not standard error's
            tree = ast.parse(text)
    except SyntaxError as error:
        raise Unfit(f"the answer does not parse: {error.msg}, line {error.lineno}") from None
    except (ValueError, MemoryError, RecursionError):
        raise Unfit("the answer does not parse") from None
    if len(tree.body) != 1 or not isinstance(tree.body[0], Function):
        raise Unfit("the answer is not exactly one function")
    return tree.body[0]


def _characters(text: str, original: str) -> None:
    for character in sorted(set(text) - set("\n\t")):
        if unicodedata.category(character) in _INVISIBLE and character not in original:
            raise Unfit(f"the answer has the invisible character U+{ord(character):04X}")


def _limits(function: Function) -> None:
    count, layer, depth = 0, [function], 0
    current: list[ast.AST] = list(layer)
    while current:
        count += len(current)
        depth += 1
        if count > MOST_NODES or depth > DEEPEST:
            raise Unfit("the answer is larger or deeper than a function that is read")
        current = [child for node in current for child in ast.iter_child_nodes(node)]


def _comments(text: str, original: str) -> None:
    kept = set(comments(textwrap.dedent(original)))
    for comment in comments(text):
        if _STEERS.search(comment) and comment not in kept:
            raise Unfit(f"the answer has a comment that tools obey: {comment[:60]!r}")


def comments(text: str) -> list[str]:
    """The comments of a text, without their place."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        raise Unfit("the answer does not parse") from None
    return [token.string for token in tokens if token.type == tokenize.COMMENT]
