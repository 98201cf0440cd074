"""Live variables hold on every path: random programs are walked on random paths, and a name that is read before it is
bound again was live behind each statement in between.
"""

from __future__ import annotations

import ast
import contextlib
import random
from collections.abc import Iterator, Sequence

import pytest

from graphmend.transforms.code.liveness import LiveVariables

NAMES = "abcd"
PROGRAMS, PATHS, LONGEST = 400, 20, 60


def block(draw: random.Random, depth: int, looped: bool) -> list[str]:
    """Lines of some statements; `t` stands for a test, whose answer the walk draws."""
    lines: list[str] = []
    for _ in range(draw.randint(1, 3)):
        kind = draw.choice(
            ["=", "=", "=", "+=", "if", "for", "while", "try", "with", "leave"] if depth else ["=", "+="]
        )
        inner = ["    " + line for line in block(draw, depth - 1, looped or kind in ("for", "while"))] if depth else []
        other = ["    " + line for line in block(draw, depth - 1, looped)] if depth else []
        one, two = draw.choice(NAMES), draw.choice(NAMES)
        if kind in ("=", "+="):
            lines.append(f"{one} {kind} {two}")
        elif kind in ("if", "while"):
            lines += [f"{kind} {one}:", *inner, *(["else:", *other] if draw.random() < 0.5 else [])]
        elif kind == "for":
            lines += [f"for {one} in {two}:", *inner, *(["else:", *other] if draw.random() < 0.3 else [])]
        elif kind == "try":
            last = ["finally:", *other] if draw.random() < 0.5 else []
            lines += ["try:", *inner, *(["except E as e:", *other] if not last or draw.random() < 0.5 else []), *last]
        elif kind == "with":
            lines += [f"with {one} as {two}:", *inner]
        else:
            lines.append(draw.choice(["break", "continue"] if looped else [f"return {one}", f"raise {one}"]))
    return lines


class Left(Exception):
    """Control leaves some statements: by "break", "continue", "return", "raise", or as the walk is long enough."""


class Walk:
    """One path through statements: `events` are the reads and stores of names and the ends of statements, in order."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.events: list[tuple[str, str | ast.stmt]] = []

    def block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if len(self.events) > LONGEST:
                raise Left("long")
            self.statement(statement)
            self.events.append(("behind", statement))

    def read(self, *nodes: ast.AST) -> None:
        for name in (n for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)):
            self.events.append(("read", name.id))
        if self.draw.random() < 0.1:
            raise Left("raise")

    def store(self, node: ast.AST) -> None:
        assert isinstance(node, ast.Name)
        self.events.append(("store", node.id))

    def statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets=[target], value=value):
                self.read(value)
                self.store(target)
            case ast.AugAssign(target=target, value=value):
                self.read(target, value)
                self.store(target)
            case ast.If(test=test, body=body, orelse=orelse):
                self.read(test)
                self.block(self.draw.choice([body, orelse]))
            case ast.While() | ast.For():
                self.loop(statement)
            case ast.With(items=[ast.withitem(context_expr=context, optional_vars=ast.Name() as name)], body=body):
                self.read(context)
                self.store(name)
                self.attempt(body, swallow=self.draw.random() < 0.5)
            case ast.Try(body=body, handlers=handlers, finalbody=last):
                try:
                    self.handled(body, handlers)
                except Left as left:
                    if str(left) != "long":
                        self.block(last)
                    raise
                self.block(last)
            case ast.Return(value=ast.expr() as value):
                self.read(value)
                raise Left("return")
            case ast.Raise(exc=ast.expr() as value):
                self.read(value)
                raise Left("raise")
            case _:
                raise Left("break" if isinstance(statement, ast.Break) else "continue")

    def attempt(self, body: Sequence[ast.stmt], *, swallow: bool) -> None:
        try:
            self.block(body)
        except Left as left:
            if str(left) != "raise" or not swallow:
                raise

    def handled(self, body: Sequence[ast.stmt], handlers: Sequence[ast.ExceptHandler]) -> None:
        try:
            self.block(body)
        except Left as left:
            if str(left) != "raise" or not handlers:
                raise
            self.block(handlers[0].body)

    def loop(self, loop: ast.While | ast.For) -> None:
        if isinstance(loop, ast.For):
            self.read(loop.iter)
        for _ in range(self.draw.randint(0, 3)):
            if isinstance(loop, ast.For):
                self.store(loop.target)
            else:
                self.read(loop.test)
            try:
                self.block(loop.body)
            except Left as left:
                if str(left) == "break":
                    return
                if str(left) != "continue":
                    raise
        if isinstance(loop, ast.While):
            self.read(loop.test)
        self.block(loop.orelse)


def read_later(events: Sequence[tuple[str, str | ast.stmt]]) -> Iterator[tuple[ast.stmt, str]]:
    """Each statement, with the names that are read behind it before they are stored to."""
    wanted: set[str] = set()
    for kind, what in reversed(events):
        if kind == "behind" and isinstance(what, ast.stmt):
            yield from ((what, name) for name in sorted(wanted))
        elif kind == "read":
            wanted.add(str(what))
        else:
            wanted.discard(str(what))


@pytest.mark.parametrize("seed", range(4))
def test_what_a_path_reads_was_live(seed: int) -> None:
    draw = random.Random(seed)
    seen = 0
    for _ in range(PROGRAMS // 4):
        lines = block(draw, 3, False)
        (function,) = ast.parse("def f():\n" + "\n".join("    " + line for line in lines)).body
        assert isinstance(function, ast.FunctionDef)
        live = LiveVariables(function.body)
        for _ in range(PATHS):
            walk = Walk(draw)
            with contextlib.suppress(Left):
                walk.block(function.body)
            for statement, name in read_later(walk.events):
                seen += 1
                assert name in live.after[statement], (name, ast.unparse(statement), "\n".join(lines))
    assert seen > 1000


def test_what_a_comprehension_or_a_lambda_binds_is_its_own() -> None:
    body = ast.parse("a = [b for b in c for d in b if (e := d)]\nf = lambda g, h=i: g + j").body
    assert LiveVariables(body).before == {"c", "i", "j"}
