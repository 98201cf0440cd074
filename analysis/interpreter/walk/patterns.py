"""Patterns of `match`: whether a value fits, its refined values on both sides, and the names that are bound."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.interpreter.events import Branch
from graphmend.analysis.interpreter.operations.attributes import attribute
from graphmend.analysis.interpreter.operations.conditions import is_one_of
from graphmend.analysis.interpreter.operations.subscripts import element_of
from graphmend.analysis.interpreter.walk.assignment import bind
from graphmend.analysis.lattice.values import (
    NONE,
    UNKNOWN,
    Const,
    Container,
    Static,
    Tensor,
    Value,
    join_all,
    options,
    tensor_in,
)
from graphmend.analysis.program.entities import Instance, Record

if TYPE_CHECKING:
    from graphmend.analysis.interpreter.interface import Walk


class Match(NamedTuple):
    """The result of matching a value with a pattern."""

    fits: bool | None
    """None where that is not known."""
    kept: Value
    """The value where it fits."""
    rest: Value
    """The value where it does not fit."""


def matched(w: Walk, pattern: ast.pattern, subject: Value, node: ast.expr) -> Match:
    """Match `subject`, the value of `node`, with a pattern, and bind the pattern's names in the walk."""
    if isinstance(pattern, ast.MatchAs):
        return _named(w, pattern, subject, node)
    if isinstance(pattern, ast.MatchOr):
        return _either(w, pattern, subject, node)
    if isinstance(pattern, ast.MatchStar):
        w.env.update({pattern.name: Container("list", of=element_of(w, subject, node))} if pattern.name else {})
        return Match(True, subject, UNKNOWN)
    return _sorted(w, pattern, subject, node)


def _named(w: Walk, pattern: ast.MatchAs, subject: Value, node: ast.expr) -> Match:
    everything = Match(True, subject, UNKNOWN)
    match = everything if pattern.pattern is None else matched(w, pattern.pattern, subject, node)
    if pattern.name is not None:
        bind(w, pattern.name, match.kept)
    return match


def _either(w: Walk, pattern: ast.MatchOr, subject: Value, node: ast.expr) -> Match:
    answers: list[bool | None] = []
    kept: list[Value] = []
    for alternative in pattern.patterns:
        match = matched(w, alternative, subject, node)
        answers.append(match.fits)
        kept.append(match.kept)
        subject = match.rest
        if match.fits:
            break
    known = True if True in answers else None if None in answers else False
    return Match(known, join_all(kept), subject)


def _sorted(w: Walk, pattern: ast.pattern, subject: Value, node: ast.expr) -> Match:
    """Match each of the values that the subject may be; those that fit bind the pattern's names."""
    answers: list[bool | None] = []
    kept: list[Value] = []
    rest: list[Value] = []
    for option in options(subject):
        answer = _fits(w, pattern, option, node)
        answers.append(answer)
        if answer is not False:
            kept.append(option)
        if answer is not True:
            rest.append(option)
    known = answers[0] if all(a is answers[0] for a in answers) else None
    return Match(known, join_all(kept), join_all(rest))


def _fits(w: Walk, pattern: ast.pattern, value: Value, node: ast.expr) -> bool | None:
    if isinstance(pattern, ast.MatchValue):
        if tensor_in(value) is not None:
            w.emit(Branch, pattern.value, value, "match")
            return None
        wanted = w.eval(pattern.value)
        known = isinstance(value, Const) and isinstance(wanted, Const)
        return value.value == wanted.value if known and isinstance(value, Const) and isinstance(wanted, Const) else None
    if isinstance(pattern, ast.MatchSingleton):
        if isinstance(value, Const):
            return value.value is pattern.value
        return False if isinstance(value, (Tensor, Container, Instance)) else None
    if isinstance(pattern, ast.MatchSequence):
        return _sequence(w, pattern, value, node)
    if isinstance(pattern, ast.MatchMapping):
        return _mapping(w, pattern, value, node)
    return _class(w, pattern, value, node) if isinstance(pattern, ast.MatchClass) else None


def _sequence(w: Walk, pattern: ast.MatchSequence, value: Value, node: ast.expr) -> bool | None:
    """`case (a, b)`; a tensor is no sequence to `match`."""
    if isinstance(value, (Tensor, Instance)) or value is NONE or (isinstance(value, Static) and value.type == "str"):
        return False
    items = value.items if isinstance(value, Container) else None
    starred = any(isinstance(p, ast.MatchStar) for p in pattern.patterns)
    if items is None or starred:
        one = element_of(w, value, node)
        for inner in pattern.patterns:
            matched(w, inner, value if isinstance(inner, ast.MatchStar) else one, node)
        return None
    if len(items) != len(pattern.patterns):
        return False
    return _all([matched(w, inner, item, node).fits for inner, item in zip(pattern.patterns, items, strict=True)])


def _mapping(w: Walk, pattern: ast.MatchMapping, value: Value, node: ast.expr) -> bool | None:
    """`case {"x": a}`."""
    if isinstance(value, (Tensor, Instance)) or (isinstance(value, Container) and value.kind != "dict"):
        return False
    fields = value.fields or {} if isinstance(value, Container) else {}
    answers = []
    for key, inner in zip(pattern.keys, pattern.patterns, strict=True):
        name = w.eval(key)
        item = fields.get(name.value) if isinstance(name, Const) else None
        answers.append(matched(w, inner, item or UNKNOWN, node).fits if item is not None else None)
        if item is None:
            matched(w, inner, UNKNOWN, node)
    if pattern.rest is not None:
        w.env[pattern.rest] = UNKNOWN
    return _all(answers) if fields else None


def _class(w: Walk, pattern: ast.MatchClass, value: Value, node: ast.expr) -> bool | None:
    """`case Tensor()`, `case Point(x, y=0)`."""
    answer = is_one_of(value, [w.eval(pattern.cls)])
    if answer is False:
        return False
    names = list(value.fields or {}) if isinstance(value, Record) else []
    itself = not names and not isinstance(value, Instance)  # `case int(n)`: builtin classes alone match themselves
    answers: list[bool | None] = [answer]
    for i, inner in enumerate(pattern.patterns):
        part = attribute(w, value, names[i], node) if i < len(names) else value if itself and i == 0 else UNKNOWN
        answers.append(matched(w, inner, part, node).fits)
    for name, inner in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
        answers.append(matched(w, inner, attribute(w, value, name, node), node).fits)
    return _all(answers)


def _all(answers: list[bool | None]) -> bool | None:
    return False if False in answers else None if None in answers else True
