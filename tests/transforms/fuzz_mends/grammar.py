"""Composes text from rules: a rule is a weight with a template, or with a function of the writer.

In a template, `<kind>` stands for a text of that kind; the others are:

    <old:kind>      a name that holds such a value; kinds joined by `|`
    <new:kind>      a name to bind, which is known from the next statement on
    <kind@a>, <@a>  a text that is used again, by rules further in, too; <let:a=kind> only chooses it
    <one:a|b|c>     one of these texts
    <use:math>      nothing, but the module is imported
    <has:feature>   nothing; the rule applies only where the program has the feature
    <block>         statements, indented as the line is

Rules apply only where all that they need is there; whoever gets none raises `Dead`, and another rule is tried.
"""

from __future__ import annotations

import random
import re
import textwrap
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from fuzz_mends.scope import POOLS, Scope

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")
Rules = dict[str, list[tuple[float, "str | Callable[[Writer], str]"]]]

_HOLE = re.compile(r"<([a-z]+:[^<>]*|[a-z_]*0?(?:@[a-z])?)>")
_DEEPEST = 3


class Dead(Exception):
    """A rule needs what the program does not have here."""


class Writer:
    """Writes one program: a source of chance, the rules, and what is in reach."""

    def __init__(self, seed: str, rules: Rules) -> None:
        self.chance = random.Random(seed)
        self.rules = rules
        self.scope = Scope()
        self.features: set[str] = set()
        self.imports: set[str] = set()
        self.depth = 0
        self.budget = 0
        self._labels: list[dict[str, str]] = [{}]
        self._pending: list[tuple[str, str]] = []

    # chance

    def maybe(self, probability: float) -> bool:
        return self.chance.random() < probability

    def one(self, options: Sequence[T]) -> T:
        if not options:
            raise Dead
        return options[self.chance.randrange(len(options))]

    def weighted(self, options: Sequence[tuple[float, T]]) -> T:
        return self.chance.choices([o for _, o in options], [weight for weight, _ in options])[0]

    # composing

    def make(self, kind: str) -> str:
        """A text of a kind. Deep down, `kind0` (leaves) is asked where there is one."""
        deep = self.depth >= _DEEPEST or self.maybe(0.12 * self.depth)
        options = self.rules[f"{kind}0" if deep and f"{kind}0" in self.rules else kind]
        for _ in range(8):
            try:
                return self.apply(self.weighted(options))
            except Dead:
                continue
        for _, rule in self.rules.get(f"{kind}0", ()):
            try:
                return self.apply(rule)
            except Dead:
                continue
        raise Dead

    def apply(self, rule: str | Callable[[Writer], str]) -> str:
        """What one rule gives. A rule that turns out dead leaves nothing behind."""
        kept = len(self._pending), set(self.imports)
        self.depth += 1
        self._labels.append({})
        try:
            return self.fill(rule) if isinstance(rule, str) else rule(self)
        except Dead:
            del self._pending[kept[0] :]
            self.imports = kept[1]
            raise
        finally:
            self._labels.pop()
            self.depth -= 1

    def fill(self, template: str) -> str:
        """A template with its holes filled, from left to right."""
        parts: list[str] = []
        end = 0
        for match in _HOLE.finditer(template):
            parts.append(template[end : match.start()])
            line = template[template.rfind("\n", 0, match.start()) + 1 : match.start()]
            text = self._hole(match[1])
            parts.append(textwrap.indent(text, " " * len(line))[len(line) :] if line.isspace() else text)
            end = match.end()
        return "".join(parts) + template[end:]

    def _hole(self, hole: str) -> str:
        order, _, rest = hole.partition(":")
        if not rest:
            kind, _, label = order.partition("@")
            if not kind:
                return self._labelled(label)
            text = self.block() if kind == "block" else self.make(kind)
        else:
            rest, _, label = rest.partition("@")
            text = self._order(order, rest)
        if label:
            self._labels[-1][label] = text
        return text

    def _order(self, order: str, rest: str) -> str:
        match order:
            case "old":
                return self.old(*rest.split("|"))
            case "new":
                return self.new(rest)
            case "one":
                return self.one(rest.split("|"))
            case "let":
                label, _, kind = rest.partition("=")
                self._labels[-1][label] = self.make(kind)
                return ""
            case "use":
                self.imports.add(rest)
                return ""
            case "has":
                if rest.lstrip("!") in self.features if rest.startswith("!") else rest not in self.features:
                    raise Dead
                return ""
        raise AssertionError(order)

    def _labelled(self, label: str) -> str:
        for frame in reversed(self._labels):
            if label in frame:
                return frame[label]
        raise Dead

    def label(self, label: str, text: str) -> None:
        self._labels[-1][label] = text

    # names

    def old(self, *kinds: str) -> str:
        names = self.scope.of(*kinds)
        if not names:
            raise Dead
        # what was bound last is what interesting programs go on with
        return names[-1] if self.maybe(0.35) else self.one(names)

    def new(self, kind: str) -> str:
        pool = [n for n in POOLS[kind].split() if self.scope.kinds.get(n, kind) == kind]
        name = self.one(pool)
        self._pending.append((name, kind))
        return name

    def settle(self) -> None:
        """What the statement bound is in reach from now on."""
        for name, kind in self._pending:
            self.scope.bind(name, kind)
        self._pending.clear()

    # statements

    def statement(self, kind: str = "statement") -> str:
        self.budget -= 1
        depth, self.depth = self.depth, min(self.depth, 1)
        try:
            text = self.make(kind)
            self.settle()
            return text
        finally:
            self.depth = depth

    def statements(self, count: int, kind: str = "statement") -> str:
        lines: list[str] = []
        for _ in range(count):
            try:
                lines.append(self.statement(kind))
            except Dead:
                continue
            if lines[-1].startswith(("return", "raise", "break", "continue")):
                break
        return "\n".join(lines) or "pass"

    def block(self, kind: str = "statement", count: int | None = None) -> str:
        """Statements with names of their own."""
        with self.inner():
            return self.statements(count or (1 if self.budget <= 0 else self.weighted([(5, 1), (4, 2), (1, 3)])), kind)

    @contextmanager
    def inner(self) -> Iterator[None]:
        outer, self.scope = self.scope, self.scope.inner()
        held, self._pending = self._pending, []
        try:
            yield
        finally:
            self.scope, self._pending = outer, held

    @contextmanager
    def having(self, *features: str) -> Iterator[None]:
        added = set(features) - self.features
        self.features |= added
        try:
            yield
        finally:
            self.features -= added
