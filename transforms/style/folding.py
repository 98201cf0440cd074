"""One statement folded at a line length, as ruff and black fold it: at the last bracket, else at operators in brackets.

What is not known to be folded in the same way (comments, strings over several lines, backslashes) stays as it is.
"""

from __future__ import annotations

import io
import keyword
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

_OPEN, _CLOSE = "([{", ")]}"
_STEP = 4
_STRING = re.compile(r"[A-Za-z]{0,3}[\"']")
_WORDS = frozenset({tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP})
#: operators at which a line is folded, those that bind least first
_LEVELS: tuple[frozenset[str], ...] = (
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
class _Word:
    """A token, with the blanks in front of it."""

    text: str
    gap: str = ""
    operator: bool = False
    """Whether it is an operator between two operands."""


@dataclass
class _Group:
    """A pair of brackets with what is between its commas."""

    opening: str
    gap: str = ""
    closing: str = ""
    items: list[list[_Piece]] = field(default_factory=list)
    comma: bool = False
    """Whether a comma ends it, over several lines: it then stays one item a line."""
    bare: bool = False
    """Whether no comma may end it: a comprehension, or an expression in brackets."""
    single: bool = False
    """Whether it is a tuple of one, which a comma ends on one line too."""
    display: bool = False
    """Whether it is a list, tuple, set or dictionary, and neither a call nor an index: each item has its own line."""


_Piece = _Word | _Group


class NotFoldedError(Exception):
    """The statement is not known to be folded as formatters do."""


def fold(text: str, indent: int, width: int) -> list[str]:
    """The lines of a simple statement, or of a header with its colon, that stands `indent` columns deep. The first is
    without its indentation. Raises `NotFoldedError`.
    """
    pieces = _parsed(text)
    head, value, tail = _divided(pieces)
    if any(isinstance(piece, _Word) and piece.text == "," for piece in value) and text[:6] != "assert":
        raise NotFoldedError("a tuple without brackets")
    value = _without_brackets(value)
    _hug_powers(value)
    return _Layout(width).statement(head, value, tail, indent)


# From text to pieces


def _parsed(text: str) -> list[_Piece]:
    root = _Group("")
    current: list[_Piece] = []
    stack: list[tuple[_Group, list[_Piece]]] = [(root, current)]
    lambdas, loops, end = [0], [False], (1, 0)
    for token in _tokens(text):
        group, current = stack[-1]
        gap = _gap(text, end, token.start, current, group)
        end = token.end
        word = token.string
        if word in _OPEN and token.type == tokenize.OP:
            called = _is_called(current, gap)
            opened = _Group(word, gap, bare=word == "(" and not called, display=not called)
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
        current.append(_Word(word, gap, _is_operator(token, current)))
    return stack[0][1]


def _is_called(before: Sequence[_Piece], gap: str) -> bool:
    """Whether a bracket is that of a call."""
    if not before or gap:
        return False
    last = before[-1]
    return isinstance(last, _Group) or not (last.operator or keyword.iskeyword(last.text) or last.text in "=:~*-+")


def _between(text: str, position: tuple[int, int], group: _Group) -> str:
    """The blanks in front of a closing bracket, behind the comma there."""
    lines = text.split("\n")
    before = "\n".join([*lines[: position[0] - 1], lines[position[0] - 1][: position[1]]])
    return before[len(before.rstrip()) :]


def _gap(text: str, end: tuple[int, int], start: tuple[int, int], current: list[_Piece], group: _Group) -> str:
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


def _is_operator(token: tokenize.TokenInfo, before: Sequence[_Piece]) -> bool:
    """Whether a token stands between two operands, and is not a sign or a part of `is not`."""
    if not before or not any(token.string in level for level in _LEVELS):
        return False
    last = before[-1]
    if isinstance(last, _Group):
        return True
    return (
        not last.operator
        and last.text not in ("=", ":", "not", "lambda", "**", "~", ",")
        and (not keyword.iskeyword(last.text) or last.text in ("None", "True", "False"))
    )


def _divided(pieces: list[_Piece]) -> tuple[list[_Piece], list[_Piece], list[_Piece]]:
    """What stands in front of a statement's value, the value, and the colon of a header behind it."""
    words = [piece.text if isinstance(piece, _Word) else "" for piece in pieces]
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


def _hug_powers(pieces: Sequence[_Piece]) -> None:
    """No blanks around a power of plain names and numbers, as formatters have it."""
    for i, piece in enumerate(pieces):
        if isinstance(piece, _Group):
            for item in piece.items:
                _hug_powers(item)
        elif piece.text == "**" and 0 < i < len(pieces) - 1:
            left, right = pieces[i - 1], pieces[i + 1]
            plain = all(isinstance(p, _Word) and (p.text.isidentifier() or p.text[:1].isdigit()) for p in (left, right))
            ends = pieces[i + 2] if i + 2 < len(pieces) else None
            if plain and not (isinstance(ends, _Group) and not ends.gap):
                piece.gap = right.gap = ""


def _without_brackets(value: list[_Piece]) -> list[_Piece]:
    """A value without brackets around all of it that only a longer line would need."""
    match value:
        case [_Group(opening="(", bare=True, items=[[*inner]]) as group] if inner and not group.comma:
            kept = {piece.text for piece in inner if isinstance(piece, _Word)} & {":=", "yield", "for", "*"}
            if not kept or (kept == {"*"} and not _starred(inner)):
                first, *rest = _without_gap(inner)
                first.gap = group.gap
                return _without_brackets([first, *rest])
    return value


def _starred(pieces: Sequence[_Piece]) -> bool:
    return any(isinstance(piece, _Word) and piece.text == "*" and not piece.operator for piece in pieces)


# From pieces to lines


class _Layout:
    def __init__(self, width: int) -> None:
        self._width = width

    def statement(self, head: list[_Piece], value: list[_Piece], tail: list[_Piece], indent: int) -> list[str]:
        if self._fits([*head, *value, *tail], indent, ""):
            return [_flat([*head, *value, *tail])]
        suffix = _flat(tail)
        if head and isinstance(head[0], _Word) and head[0].text == "assert":
            return self._asserted(head, value, indent)
        if not head or not self._needs_brackets(head, value, indent):
            return self._at_bracket([*head, *value], indent, suffix)
        wrapped = _Group("(", value[0].gap, ")", [[*_without_gap(value)]], bare=True)
        return self._at_bracket([*head, wrapped], indent, suffix)

    def _asserted(self, head: list[_Piece], value: list[_Piece], indent: int) -> list[str]:
        at = next((i for i, p in enumerate(value) if isinstance(p, _Word) and p.text == ","), len(value))
        test, said = _without_brackets(value[:at]), _without_brackets(value[at + 1 :])
        value = [*test, *value[at : at + 1], *said]
        at = len(test)
        if self._fits([*head, *value], indent, ""):
            return [_flat([*head, *value])]
        if said and self._fits([*head, *test], indent, ", ("):
            wrapped = _Group("(", " ", ")", [[*_without_gap(said)]], bare=True)
            return self._at_bracket([*head, *value[: at + 1], wrapped], indent, "")
        wrapped = _Group("(", " ", ")", [[*_without_gap(test)]], bare=True)
        return self._at_bracket([*head, wrapped], indent, _flat(value[at:]))

    def _needs_brackets(self, head: list[_Piece], value: list[_Piece], indent: int) -> bool:
        """Whether a value is put into brackets: its operators count for more than its own brackets."""
        operators = _operators(value)
        if not operators and len(_links(value)) > 1:
            return True
        if not operators:
            return not any(isinstance(piece, _Group) and piece.items for piece in value)
        if len(operators) > 1:
            return True
        last = value[-1]
        return not (isinstance(last, _Group) and last.items and self._fits([*head, *value[:-1]], indent, last.opening))

    def _fits(self, pieces: Sequence[_Piece], indent: int, suffix: str) -> bool:
        return not any(map(_is_forced, pieces)) and indent + len(_flat(pieces)) + len(suffix) <= self._width

    def _at_bracket(self, pieces: list[_Piece], indent: int, suffix: str) -> list[str]:
        """The last bracket that holds something is opened; of what stands in front of it the last again, if need be."""
        if self._fits(pieces, indent, suffix):
            return [_flat(pieces) + suffix]
        groups = [i for i, piece in enumerate(pieces) if isinstance(piece, _Group) and piece.items]
        if not groups:
            return [_flat(pieces) + suffix]
        at = next((i for i in reversed(groups) if self._fits(pieces[:i], indent, "(")), groups[0])
        group = pieces[at]
        assert isinstance(group, _Group)
        front = f"{_flat(pieces[:at])}{group.gap}{group.opening}"
        first, *more = self._at_bracket([_Word(group.closing), *pieces[at + 1 :]], indent, suffix)
        return [front, *self._inside(group, indent + _STEP), " " * indent + first, *more]

    def _inside(self, group: _Group, indent: int) -> list[str]:
        lead = " " * indent
        whole = [piece for number, item in enumerate(group.items) for piece in ([_Word(",")] * bool(number) + item)]
        several = group.single or (group.display and len(group.items) > 1)
        if not group.comma and not several and self._fits(whole, indent, ""):
            return [lead + _flat(whole).lstrip()]
        lines: list[str] = []
        for item in group.items:
            sole = len(group.items) == 1 and not (group.single or group.comma)
            comma = "" if group.bare or sole else ","
            first, *more = self._item(_without_gap(item), indent, comma)
            lines += [lead + first, *more]
        return lines

    def _item(self, item: list[_Piece], indent: int, comma: str) -> list[str]:
        """The lines of one item between brackets: at its operators, which stand in front of their lines."""
        if self._fits(item, indent, comma):
            return [_flat(item) + comma]
        body = _body_of_lambda(item)
        if body and self._needs_brackets(item[:body], item[body:], indent):
            wrapped = _Group("(", " ", ")", [[*_without_gap(item[body:])]], bare=True)
            return self._at_bracket([*item[:body], wrapped], indent, comma)
        cuts = [] if body else _loops(item) or _operators(item)
        cuts = cuts or _between_strings(item)
        if not cuts and len(_links(item)) > 1:
            cuts = _links(item)
        if not cuts:
            return self._at_bracket(item, indent, comma)
        parts = [item[a:b] for a, b in zip([0, *cuts], [*cuts, len(item)], strict=True)]
        lines: list[str] = []
        for number, part in enumerate(parts):
            last = comma if number == len(parts) - 1 else ""
            first, *more = self._at_bracket(_without_gap(part), indent, last)
            lines += [first if not number else " " * indent + first, *more]
        return lines


def _operators(pieces: Sequence[_Piece]) -> list[int]:
    """Where the operators stand that bind least."""
    for level in _LEVELS:
        found = [i for i, p in enumerate(pieces) if isinstance(p, _Word) and p.operator and p.text in level]
        if found:
            return found
    return []


def _body_of_lambda(pieces: Sequence[_Piece]) -> int:
    """Where the body of a lambda begins that is all of an expression; 0 where there is none."""
    if not (isinstance(pieces[0], _Word) and pieces[0].text == "lambda"):
        return 0
    return next((i + 1 for i, p in enumerate(pieces) if isinstance(p, _Word) and p.text == ":"), 0)


def _loops(pieces: Sequence[_Piece]) -> list[int]:
    """Where the `for` and `if` of a comprehension stand."""
    words = [piece.text if isinstance(piece, _Word) else "" for piece in pieces]
    if "for" not in words:
        return []
    first = words.index("for")
    cuts = [i for i, word in enumerate(words) if word == "for" or (word == "if" and i > first)]
    if "else" in words[first:]:
        raise NotFoldedError("a choice in a comprehension's source or filter")
    return [i - (words[i - 1] == "async") for i in cuts]


def _between_strings(pieces: Sequence[_Piece]) -> list[int]:
    """Where a text of several strings next to each other can be parted."""
    strings = all(isinstance(piece, _Word) and _STRING.match(piece.text) for piece in pieces)
    return list(range(1, len(pieces))) if strings else []


def _links(pieces: Sequence[_Piece]) -> list[int]:
    """Where a chain of calls goes on: the dots behind brackets."""
    dots = (i for i, piece in enumerate(pieces) if i and isinstance(piece, _Word) and piece.text == ".")
    return [i for i in dots if isinstance(pieces[i - 1], _Group)]


def _is_forced(piece: _Piece) -> bool:
    """Whether brackets stay open over several lines."""
    return isinstance(piece, _Group) and (piece.comma or any(_is_forced(p) for item in piece.items for p in item))


def _without_gap(pieces: Sequence[_Piece]) -> list[_Piece]:
    first = pieces[0]
    if isinstance(first, _Word):
        bare: _Piece = _Word(first.text, "", first.operator)
    else:
        bare = replace(first, gap="")
    return [bare, *pieces[1:]]


def _flat(pieces: Sequence[_Piece]) -> str:
    return "".join(f"{p.gap}{p.text if isinstance(p, _Word) else _flat_group(p)}" for p in pieces)


def _flat_group(group: _Group) -> str:
    inner = ""
    for number, item in enumerate(group.items):
        inner += ("," if number else "") + _flat(item)
    return f"{group.opening}{inner}{',' if group.single else ''}{group.closing}"
