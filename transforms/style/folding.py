"""One statement folded at a line length, as ruff and black fold it: at the last bracket, else at operators in brackets.

What is not known to be folded in the same way (comments, strings over several lines, backslashes) stays as it is.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from graphmend.transforms.style.pieces import (
    LEVELS,
    Group,
    NotFoldedError,
    Piece,
    Word,
    divided,
    hug_powers,
    parsed,
    without_brackets,
    without_gap,
)

_STEP = 4
_STRING = re.compile(r"[A-Za-z]{0,3}[\"']")


def fold(text: str, indent: int, width: int) -> list[str]:
    """The lines of a simple statement, or of a header with its colon, that stands `indent` columns deep. The first is
    without its indentation. Raises `NotFoldedError`.
    """
    pieces = parsed(text)
    head, value, tail = divided(pieces)
    if text[:6] != "assert" and any(map(_is_comma, value)):
        hug_powers(value)
        if not head or _is_comma(value[-1]):
            raise NotFoldedError("a tuple without brackets")
        return _Layout(width).of_several(head, value, tail, indent)
    value = without_brackets(value)
    hug_powers(value)
    return _Layout(width).statement(head, value, tail, indent)


def _is_comma(piece: Piece) -> bool:
    return isinstance(piece, Word) and piece.text == ","


class _Layout:
    def __init__(self, width: int) -> None:
        self._width = width

    def statement(self, head: list[Piece], value: list[Piece], tail: list[Piece], indent: int) -> list[str]:
        if self._fits([*head, *value, *tail], indent, ""):
            return [_flat([*head, *value, *tail])]
        suffix = _flat(tail)
        if head and isinstance(head[0], Word) and head[0].text == "assert":
            return self._asserted(head, value, indent)
        if not head or not self._needs_brackets(head, value, indent):
            return self._at_bracket([*head, *value], indent, suffix)
        wrapped = Group("(", value[0].gap, ")", [[*without_gap(value)]], bare=True)
        return self._at_bracket([*head, wrapped], indent, suffix)

    def of_several(self, head: list[Piece], values: list[Piece], tail: list[Piece], indent: int) -> list[str]:
        """A statement with a tuple that has no brackets: where it is folded, it gets them, and a line for each item."""
        if self._fits([*head, *values, *tail], indent, ""):
            return [_flat([*head, *values, *tail])]
        cuts = [-1, *(i for i, piece in enumerate(values) if _is_comma(piece)), len(values)]
        items = [without_gap(values[begin + 1 : end]) for begin, end in itertools.pairwise(cuts)]
        return self._at_bracket([*head, Group("(", values[0].gap, ")", items, display=True)], indent, _flat(tail))

    def _asserted(self, head: list[Piece], value: list[Piece], indent: int) -> list[str]:
        at = next((i for i, p in enumerate(value) if isinstance(p, Word) and p.text == ","), len(value))
        test, said = without_brackets(value[:at]), without_brackets(value[at + 1 :])
        value = [*test, *value[at : at + 1], *said]
        at = len(test)
        if self._fits([*head, *value], indent, ""):
            return [_flat([*head, *value])]
        if said and self._fits([*head, *test], indent, ", ("):
            wrapped = Group("(", " ", ")", [[*without_gap(said)]], bare=True)
            return self._at_bracket([*head, *value[: at + 1], wrapped], indent, "")
        wrapped = Group("(", " ", ")", [[*without_gap(test)]], bare=True)
        return self._at_bracket([*head, wrapped], indent, _flat(value[at:]))

    def _needs_brackets(self, head: list[Piece], value: list[Piece], indent: int) -> bool:
        """Whether a value is put into brackets: its operators count for more than its own brackets."""
        operators = _operators(value)
        if not operators and len(_links(value)) > 1:
            return True
        if not operators:
            return not any(isinstance(piece, Group) and piece.items for piece in value)
        if len(operators) > 1:
            return True
        if _encloses(value[0]):
            return False
        if not _encloses(value[-1]):
            return True
        groups = [i for i, piece in enumerate(value) if isinstance(piece, Group) and piece.items]
        return not self._fits([*head, *value[: groups[0]]], indent, "(")

    def _fits(self, pieces: Sequence[Piece], indent: int, suffix: str) -> bool:
        return not any(map(_is_forced, pieces)) and indent + len(_flat(pieces)) + len(suffix) <= self._width

    def _at_bracket(self, pieces: list[Piece], indent: int, suffix: str) -> list[str]:
        """The last bracket that holds something is opened; of what stands in front of it the last again, if need be."""
        if self._fits(pieces, indent, suffix):
            return [_flat(pieces) + suffix]
        groups = [i for i, piece in enumerate(pieces) if isinstance(piece, Group) and piece.items]
        if not groups:
            return [_flat(pieces) + suffix]
        at = next((i for i in reversed(groups) if self._fits(pieces[:i], indent, pieces[i].gap + "(")), groups[0])
        group = pieces[at]
        assert isinstance(group, Group)
        front = f"{_flat(pieces[:at])}{group.gap}{group.opening}"
        first, *more = self._at_bracket([Word(group.closing), *pieces[at + 1 :]], indent, suffix)
        return [front, *self._inside(group, indent + _STEP), " " * indent + first, *more]

    def _inside(self, group: Group, indent: int) -> list[str]:
        lead = " " * indent
        whole = [piece for number, item in enumerate(group.items) for piece in ([Word(",")] * bool(number) + item)]
        several = group.single or (group.display and len(group.items) > 1)
        if not group.comma and not several and self._fits(whole, indent, ""):
            return [lead + _flat(whole).lstrip()]
        lines: list[str] = []
        for item in group.items:
            sole = len(group.items) == 1 and not (group.single or group.comma)
            comma = "" if group.bare or sole else ","
            first, *more = self._item(without_gap(item), indent, comma)
            lines += [lead + first, *more]
        return lines

    def _item(self, item: list[Piece], indent: int, comma: str, front: Sequence[Piece] = ()) -> list[str]:
        """The lines of one item between brackets, the first behind the words in `front`: cut at its operators, which
        stand in front of their lines.
        """
        if self._fits([*front, *item], indent, comma):
            return [_flat([*front, *item]) + comma]
        body = _body_of_lambda(item)
        if body and self._needs_brackets(item[:body], item[body:], indent):
            wrapped = Group("(", " ", ")", [[*without_gap(item[body:])]], bare=True)
            return self._at_bracket([*front, *item[:body], wrapped], indent, comma)
        cuts = [] if body else _loops(item) or _operators(item)
        cuts = cuts or _between_strings(item)
        if not cuts and len(_links(item)) > 1:
            cuts = _links(item)
        if not cuts:
            return self._at_bracket([*front, *item], indent, comma)
        parts = [item[a:b] for a, b in zip([0, *cuts], [*cuts, len(item)], strict=True)]
        lines: list[str] = []
        for number, part in enumerate(parts):
            last = comma if number == len(parts) - 1 else ""
            words, operand = _led(without_gap(part)) if number else (front, part)
            first, *more = self._item(operand, indent, last, words)
            lines += [first if not number else " " * indent + first, *more]
        return lines


def _led(part: list[Piece]) -> tuple[list[Piece], list[Piece]]:
    """The operator, or the `for x in`, that a part of an expression begins with, and its operand."""
    words = [piece.text if isinstance(piece, Word) else "" for piece in part]
    if words[0] in ("for", "async"):
        at = words.index("in") + 1
    elif words[:2] in (["is", "not"], ["not", "in"]):
        at = 2
    else:
        at = int(words[0] == "if" or (isinstance(part[0], Word) and part[0].operator))
    return part[:at], part[at:]


def _operators(pieces: Sequence[Piece]) -> list[int]:
    """Where the operators stand that bind least."""
    for level in LEVELS:
        found = [i for i, p in enumerate(pieces) if isinstance(p, Word) and p.operator and p.text in level]
        if found:
            return found
    return []


def _body_of_lambda(pieces: Sequence[Piece]) -> int:
    """Where the body of a lambda begins that is all of an expression; 0 where there is none."""
    if not (isinstance(pieces[0], Word) and pieces[0].text == "lambda"):
        return 0
    return next((i + 1 for i, p in enumerate(pieces) if isinstance(p, Word) and p.text == ":"), 0)


def _loops(pieces: Sequence[Piece]) -> list[int]:
    """Where the `for` and `if` of a comprehension stand."""
    words = [piece.text if isinstance(piece, Word) else "" for piece in pieces]
    if "for" not in words:
        return []
    first = words.index("for")
    cuts = [i for i, word in enumerate(words) if word == "for" or (word == "if" and i > first)]
    if "else" in words[first:]:
        raise NotFoldedError("a choice in a comprehension's source or filter")
    return [i - (words[i - 1] == "async") for i in cuts]


def _between_strings(pieces: Sequence[Piece]) -> list[int]:
    """Where a text of several strings next to each other can be parted."""
    strings = all(isinstance(piece, Word) and _STRING.match(piece.text) for piece in pieces)
    return list(range(1, len(pieces))) if strings else []


def _links(pieces: Sequence[Piece]) -> list[int]:
    """Where a chain of calls goes on: the dots behind brackets."""
    dots = (i for i, piece in enumerate(pieces) if i and isinstance(piece, Word) and piece.text == ".")
    return [i for i in dots if isinstance(pieces[i - 1], Group)]


def _encloses(piece: Piece) -> bool:
    """Whether a piece at an end of an expression is brackets that may be opened there: an index is not."""
    if not isinstance(piece, Group) or not piece.items:
        return False
    inner = piece.items[0][-1] if piece.bare and len(piece.items) == 1 and not _operators(piece.items[0]) else None
    return (
        _encloses(inner) if isinstance(inner, Group) and inner.opening == "[" else piece.opening != "[" or piece.display
    )


def _is_forced(piece: Piece) -> bool:
    """Whether brackets stay open over several lines."""
    return isinstance(piece, Group) and (piece.comma or any(_is_forced(p) for item in piece.items for p in item))


def _flat(pieces: Sequence[Piece]) -> str:
    return "".join(f"{p.gap}{p.text if isinstance(p, Word) else _flat_group(p)}" for p in pieces)


def _flat_group(group: Group) -> str:
    inner = ""
    for number, item in enumerate(group.items):
        inner += ("," if number else "") + _flat(item)
    return f"{group.opening}{inner}{',' if group.single else ''}{group.closing}"
