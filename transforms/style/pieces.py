"""A statement's text as words and brackets, from which it is laid out in lines."""

from __future__ import annotations

import io
import keyword
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

_OPEN, _CLOSE = "([{", ")]}"
_WORDS = frozenset({tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP})
#: operators at which a line is folded, those that bind least first
LEVELS: tuple[frozenset[str], ...] = (
    frozenset({"if", "else"}),
    frozenset({"or"}),
    frozenset({"and"}),
    frozenset({"in", "is", "<", ">", "==", "!=", "<=", ">="}),
    frozenset({"|"}),
    frozenset({"^"}),
    frozenset({"&"}),
    frozenset({"<<", ">>"}),
    frozenset({"+", "-"}),
    frozenset({"*", "/", "//", "%", "@"}),
)


@dataclass
class Word:
    """A token, with the blanks in front of it."""

    text: str
    gap: str = ""
    operator: bool = False
    """Whether it is an operator between two operands."""


@dataclass
class Group:
    """A pair of brackets with what is between its commas."""

    opening: str
    gap: str = ""
    closing: str = ""
    items: list[list[Piece]] = field(default_factory=list)
    comma: bool = False
    """Whether a comma ends it, over several lines: it then stays one item a line."""
    bare: bool = False
    """Whether no comma may end it: a comprehension, or an expression in brackets."""
    single: bool = False
    """Whether it is a tuple of one, which a comma ends on one line too."""
    display: bool = False
    """Whether it is a list, tuple, set or dictionary, and neither a call nor an index: each item has its own line."""


Piece = Word | Group


class NotFoldedError(Exception):
    """The statement is not known to be folded as formatters do."""


def parsed(text: str) -> list[Piece]:
    """The pieces of a statement. Raises `NotFoldedError`."""
    root = Group("")
    current: list[Piece] = []
    stack: list[tuple[Group, list[Piece]]] = [(root, current)]
    lambdas, loops, end = [0], [False], (1, 0)
    for token in _tokens(text):
        group, current = stack[-1]
        gap = _gap(text, end, token.start, current, group)
        end = token.end
        word = token.string
        if word in _OPEN and token.type == tokenize.OP:
            called = _is_called(current, gap)
            opened = Group(word, gap, bare=word == "(" and not called, display=not called)
            current.append(opened)
            stack.append((opened, []))
            lambdas.append(0)
            loops.append(False)
            continue
        if word in _CLOSE and token.type == tokenize.OP:
            if current:
                group.items.append(current)
            elif group.items:
                group.comma = "\n" in _between(text, token.start, group)
                group.single = len(group.items) == 1 and group.opening == "(" and group.bare
            group.closing = word
            group.bare = group.bare and not group.single and (loops[-1] or len(group.items) == 1)
            match group.items:
                case [[Group(opening="(", bare=True) as inner]] if group.bare:  # one pair of brackets does
                    group.items = inner.items
            stack.pop()
            lambdas.pop()
            loops.pop()
            continue
        if word == "lambda":
            lambdas[-1] += 1
        elif word == ":" and lambdas[-1]:
            lambdas[-1] -= 1
        elif word == "for" and len(stack) > 1:
            group.bare = loops[-1] = True
        elif word == "," and len(stack) > 1 and not lambdas[-1] and not loops[-1]:
            group.items.append(current)
            stack[-1] = (group, [])
            continue
        current.append(Word(word, gap, _is_operator(token, current)))
    return stack[0][1]


def _is_called(before: Sequence[Piece], gap: str) -> bool:
    """Whether a bracket is that of a call."""
    if not before or gap:
        return False
    last = before[-1]
    return isinstance(last, Group) or not (last.operator or keyword.iskeyword(last.text) or last.text in "=:~*-+")


def _between(text: str, position: tuple[int, int], group: Group) -> str:
    """The blanks in front of a closing bracket, behind the comma there."""
    lines = text.split("\n")
    before = "\n".join([*lines[: position[0] - 1], lines[position[0] - 1][: position[1]]])
    return before[len(before.rstrip()) :]


def _gap(text: str, end: tuple[int, int], start: tuple[int, int], current: list[Piece], group: Group) -> str:
    """The blanks in front of a token as they are on one line."""
    if not current:
        return " " if group.items and group.opening else ""
    return " " if start[0] != end[0] else " " * (start[1] - end[1])


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    """The tokens of a statement; a formatted string is one."""
    begun: list[tokenize.TokenInfo] = []
    lines = text.split("\n")
    body = text if not text.rstrip().endswith(":") else f"{text} pass"
    if "\\\n" in text:
        raise NotFoldedError("a backslash")
    try:
        for token in tokenize.generate_tokens(io.StringIO(body).readline):
            name = tokenize.tok_name[token.type]
            if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and token.start[0] != token.end[0]):
                raise NotFoldedError("a comment, or a string over several lines")
            if name in ("FSTRING_START", "TSTRING_START"):
                begun.append(token)
            elif name in ("FSTRING_END", "TSTRING_END"):
                first = begun.pop()
                if first.start[0] != token.end[0]:
                    raise NotFoldedError("a string over several lines")
                if not begun:
                    whole = lines[first.start[0] - 1][first.start[1] : token.end[1]]
                    yield tokenize.TokenInfo(tokenize.STRING, whole, first.start, token.end, token.line)
            elif not begun and token.type in _WORDS and token.start[1] < len(lines[token.start[0] - 1]):
                yield token
    except (tokenize.TokenError, SyntaxError) as error:
        raise NotFoldedError(str(error)) from error


def _is_operator(token: tokenize.TokenInfo, before: Sequence[Piece]) -> bool:
    """Whether a token stands between two operands, and is not a sign or a part of `is not`."""
    if not before or not any(token.string in level for level in LEVELS):
        return False
    last = before[-1]
    if isinstance(last, Group):
        return True
    return (
        not last.operator
        and last.text not in ("=", ":", "not", "lambda", "**", "~", ",")
        and (not keyword.iskeyword(last.text) or last.text in ("None", "True", "False"))
    )


def divided(pieces: list[Piece]) -> tuple[list[Piece], list[Piece], list[Piece]]:
    """What stands in front of a statement's value, the value, and the colon of a header behind it."""
    words = [piece.text if isinstance(piece, Word) else "" for piece in pieces]
    tail = 1 if words and words[-1] == ":" else 0
    stop = len(pieces) - tail
    assigned = [i for i, word in enumerate(words) if word.endswith("=") and word not in ("==", "!=", "<=", ">=")]
    if assigned:
        start = assigned[-1] + 1
    elif words[:1] and words[0] in ("return", "if", "elif", "while", "with", "assert", "raise"):
        start = 1
    else:
        start = 0
    return pieces[:start], pieces[start:stop], pieces[stop:]


def hug_powers(pieces: Sequence[Piece]) -> None:
    """No blanks around a power of plain names and numbers, as formatters have it."""
    for i, piece in enumerate(pieces):
        if isinstance(piece, Group):
            for item in piece.items:
                hug_powers(item)
        elif piece.text == "**" and 0 < i < len(pieces) - 1:
            left, right = pieces[i - 1], pieces[i + 1]
            plain = all(isinstance(p, Word) and (p.text.isidentifier() or p.text[:1].isdigit()) for p in (left, right))
            ends = pieces[i + 2] if i + 2 < len(pieces) else None
            if plain and not (isinstance(ends, Group) and not ends.gap):
                piece.gap = right.gap = ""


def without_brackets(value: list[Piece]) -> list[Piece]:
    """A value without brackets around all of it that only a longer line would need."""
    match value:
        case [Group(opening="(", bare=True, items=[[*inner]]) as group] if inner and not group.comma:
            kept = {piece.text for piece in inner if isinstance(piece, Word)} & {":=", "yield", "for", "*"}
            if not kept or (kept == {"*"} and not _starred(inner)):
                first, *rest = without_gap(inner)
                first.gap = group.gap
                return without_brackets([first, *rest])
    return value


def _starred(pieces: Sequence[Piece]) -> bool:
    return any(isinstance(piece, Word) and piece.text == "*" and not piece.operator for piece in pieces)


def without_gap(pieces: Sequence[Piece]) -> list[Piece]:
    first = pieces[0]
    if isinstance(first, Word):
        bare: Piece = Word(first.text, "", first.operator)
    else:
        bare = replace(first, gap="")
    return [bare, *pieces[1:]]
