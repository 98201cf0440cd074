"""Write the body of a generator of the file in the place of a loop over it.

Before:
    def rows(x, masks):
        for row, mask in zip(x, masks):
            if mask.any():
                yield row.sum()

    for value in rows(x, masks):
        total = total + value

After:
    for row, mask in zip(x, masks):
        if mask.any():
            value = row.sum()
            total = total + value

Legal when:
    the generator is the one in sight whatever is called, yields at one place without using what it is sent, returns
    nothing, and could stand where it is called as the body of a function could (`body_of_call`). Where the loop goes on
    or is left early, the generator does nothing else behind its `yield`, in its only loop.

Differs in:
    nothing: a generator runs as far as its next `yield` for each iteration. A method is taken to be the one in sight.
    It is written for the mends of code that stands together, and stays where they remove the break.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.liveness import stored, writes
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.text_edits import HOLE, replace_statements
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.rewrites.answers import asks, prepare, refuse
from graphmend.transforms.rewrites.inlining.forms.calls import (
    LONGEST,
    NOT_PLAIN,
    Call,
    NotInlinedError,
    body_of,
    called,
    calls_of,
    check,
)
from graphmend.transforms.rewrites.inlining.forms.named_body import named_body

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "body_of_generator"
_LOOPS = (ast.For, ast.While)
#: what ends a generator otherwise; a StopIteration in it becomes a RuntimeError
_ENDS = (ast.Return, ast.Raise, ast.With, ast.AsyncWith, ast.AsyncFor)
_OF_OTHERS = (ast.Global, ast.Nonlocal, ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Delete)


@asks("effects", "names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    try:
        calls = _around(facts) or (calls_of(facts) if _yields(facts.function) else [])
        if not calls:
            return None
        taken: list[str] = []
        texts = [_Inlining(call, taken) for call in calls]
    except NotInlinedError as error:
        return refuse(NAME, str(error))
    title = f"write the body of `{calls[0].definition.name}` in the place of the loop over it"
    return prepare(NAME, title, facts, lambda: [edit for each in texts for edit in each.edits()])


def _yields(function: ast.AST) -> list[ast.Yield]:
    return [n for n in nodes_in(function) if isinstance(n, ast.Yield)]


def _around(facts: FunctionFacts) -> list[Call]:
    """The call of a generator that a loop around the finding runs over."""
    for above in (facts.statement, *facts.ancestors(facts.statement)):
        if isinstance(above, ast.For) and isinstance(above.iter, ast.Call):
            call = called(facts, above.iter)
            if call is not None and _yields(call.definition):
                return [call]
    return []


class _Inlining:
    """The text of one loop."""

    def __init__(self, call: Call, taken: list[str]) -> None:
        """`taken` are names that other loops need, to which those of this one are added."""
        loop, definition = call.facts.parent(call.node), call.definition
        if not isinstance(loop, ast.For) or loop.iter is not call.node or loop.orelse:
            raise NotInlinedError(f"`{definition.name}` is no loop's alone")
        if not replaceable(call.facts, [loop]):
            raise NotInlinedError("the loop shares its line with another statement")
        self._call, self._loop = call, loop
        nodes = [n for step in body_of(definition) for n in nodes_in(step)]
        if len([n for n in nodes if isinstance(n, ast.stmt)]) > LONGEST:
            raise NotInlinedError(f"`{definition.name}` is long")
        if any(isinstance(n, (*NOT_PLAIN, *_ENDS)) or _asks_for_next(n) for n in nodes):
            raise NotInlinedError(f"`{definition.name}` has several ends, or names of its own inside")
        places = [n for n in nodes if isinstance(n, ast.Expr) and isinstance(n.value, ast.Yield)]
        if len(places) != 1 or len(_yields(definition)) != 1:
            raise NotInlinedError(f"`{definition.name}` yields at several places, or uses what it is sent")
        self._place = places[0]
        if _leaves(loop.body) and not _ends_with(body_of(definition), self._place):
            raise NotInlinedError(f"`{definition.name}` goes on where the loop is left early")
        check(call, loop)
        given = self._given()
        self._named = named_body(call, taken, stored(loop.body) | writes(loop.target), given)

    def _given(self) -> set[str]:
        """The name of what is yielded, where the loop has the same one for it and nothing else has."""
        value, target, facts = self._place.value, self._loop.target, self._call.facts
        assert isinstance(value, ast.Yield)
        if not (isinstance(value.value, ast.Name) and isinstance(target, ast.Name) and value.value.id == target.id):
            return set()
        if any(isinstance(n, _OF_OTHERS) for s in facts.function.body for n in nodes_in(s)):
            return set()  # somebody else may read the name
        name, inside = target.id, {*nodes_in(self._loop)} - {*nodes_in(self._loop.iter)}
        elsewhere = any(n.id == name for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n not in inside)
        local = name in stored(body_of(self._call.definition))
        return {name} if local and not elsewhere and name not in stored(self._loop.body) else set()

    def edits(self) -> Iterator[TextEdit]:
        source, loop, value = self._call.facts.source, self._loop, self._place.value
        assert isinstance(value, ast.Yield)
        code, replace = Code(source), self._named.replace
        given = "None" if value.value is None else code.line(value.value, replace)
        target, front = code.text(loop.target), " " * source.span(self._place).column
        bound = f"{target} = {given}\n{front}" if target != given else ""
        lines = [*self._named.lines]
        for step in body_of(self._call.definition):
            text = code.text(step, {**replace, value: f"{bound}{HOLE.format(0)}"})
            lines.append(textwrap.dedent(" " * source.span(step).column + text) + "\n")
        yield replace_statements(source, [loop], "".join(lines), loop.body)


def _asks_for_next(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "next"


def _leaves(body: Sequence[ast.AST]) -> bool:
    """Does a loop's body leave the loop, or an iteration, early?"""
    for node in body:
        if isinstance(node, (ast.Break, ast.Continue)):
            return True
        inside = node.orelse if isinstance(node, _LOOPS) else [*ast.iter_child_nodes(node)]
        if _leaves(inside):
            return True
    return False


def _ends_with(body: Sequence[ast.stmt], place: ast.Expr) -> bool:
    """Is a `yield` in the one loop that ends a body, and the last thing that an iteration of it does?"""
    last, within = body[-1], 0
    while last is not place:
        if isinstance(last, _LOOPS) and not last.orelse:
            within += 1
            last = last.body[-1]
        elif isinstance(last, ast.If) and any(n is place for n in nodes_in(last)):
            side = last.body if any(n is place for s in last.body for n in nodes_in(s)) else last.orelse
            last = side[-1]
        else:
            return False
    return within == 1
