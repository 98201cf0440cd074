"""One file while it is edited: a change inside a function parses and walks that function again, and its callers.

A text is cut into units: the functions of its top level and the methods of its top-level classes. As long as an edit
stays inside one of them and does not change what others can see of it (its header, attributes it sets, names it
rebinds, what it compiles), everything else that was learned stays as it is. Any other edit starts again from the text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Hashable, Iterator
from typing import NamedTuple

from graphmend.analysis.activation import Activation, reached
from graphmend.analysis.binding import declared
from graphmend.analysis.definitions import FunctionInfo
from graphmend.analysis.finding import Finding
from graphmend.analysis.function_text import ANOTHER, BEFORE_INDENT, parse
from graphmend.analysis.project import Project
from graphmend.analysis.region import Region, roots
from graphmend.analysis.report import shifted
from graphmend.analysis.session import Session
from graphmend.analysis.settings import Settings
from graphmend.analysis.source import Source
from graphmend.analysis.standing import Standing
from graphmend.analysis.suppress import Suppression, suppressions
from graphmend.analysis.units import (
    Unit,
    header,
    is_seen_outside,
    leaves_unit,
    may_go_on,
    units,
)
from graphmend.analysis.values import Value

_LINE_END = re.compile(r"\r\n|\r|\n")
#: a chain of callers whose results keep changing is followed this far; then everything is walked again
_ROUNDS = 6


class Update(NamedTuple):
    """What is known after a change.

    `findings` are those of all functions that parse. Evidence in a function that was not walked again may still tell of
    its caller's text as it was; a `check` of the whole text tells it anew. `broken` are the ranges of lines (from 1) of
    which nothing new is known because they do not parse: what was shown there before stands, moved with the edits.
    `notice` says it where that is because the text is of a newer Python.
    """

    findings: tuple[Finding, ...]
    broken: tuple[tuple[int, int], ...] = ()
    comments: tuple[Suppression, ...] = ()
    """The comments that take findings back; in a broken range, those that stood there before."""
    notice: str | None = None


class Document:
    """The analysis of one file, kept up to date from text to text."""

    def __init__(self, path: str, project: Project | None = None, settings: Settings | None = None) -> None:
        self.path = path
        self.project = project or Project()
        self.settings = settings or Settings()
        self._text: str | None = None
        self._units: list[Unit] = []
        self._last: Unit | None = None
        self._session: Session | None = None
        self._standing = Standing(path)
        self._comments: tuple[Suppression, ...] = ()
        self._of_function: dict[FunctionInfo, list[Activation]] = {}
        self._indexed = -1
        self._roots: set[Activation] = set()
        self._kept = 0
        self._generalised = 0

    def update(self, text: str) -> Update:
        """What is known of the text as it is now."""
        if self._text is None or self._session is None:
            return self._from_scratch(text)
        unit = self._edited(text)
        if unit is None:
            return self._from_scratch(text)
        return self._within(unit, text)

    def close(self) -> None:
        """Let go of all that was learned, and of the syntax tree at once: what refers to itself in circles would stay
        until the collector finds it."""
        session, self._session = self._session, None
        self._text, self._units, self._last = None, [], None
        self._roots, self._of_function, self._standing = set(), {}, Standing(self.path)
        if session is not None and session.module is not None:
            session.close()
            session.module.fold()

    def _from_scratch(self, text: str) -> Update:
        """Parse and walk everything. Of a text that does not parse nothing is known."""
        source = Source(text, self.path)
        self.close()
        self._text = text
        self._comments = suppressions(source)
        if "torch" not in text:
            return Update((), (), self._comments)
        if source.tree is None:
            problem = source.problem
            notice = f"line {problem.line}: {problem.message}" if problem is not None and problem.newer else None
            return Update((), ((1, len(source.lines)),), self._comments, notice)
        self.project.forget(self.path)
        module = self.project.alone(source)
        assert module is not None
        self._session = session = Session(module, self.project, self.settings)
        for root in roots(session, module):
            session.walk_root(root)
        self._kept, self._generalised = len(session.activations), session.generalised
        self._indexed = -1
        self._roots = {activation for activation, _ in session.roots}
        self._standing.start(session.roots)
        self._units = sorted(units(module, source), key=lambda u: u.begin)
        return self._update()

    def _update(self) -> Update:
        broken = tuple((u.line, u.line + u.lines - 1) for u in self._units if u.broken)
        findings = self._standing.findings()
        if broken:
            findings = tuple(f for f in findings if not any(a <= f.span.line <= b for a, b in broken))
        return Update(findings, broken, self._comments)

    # -- which unit an edit is in

    def _edited(self, text: str) -> Unit | None:
        """The unit that every difference to the last text is in; None where there is none."""
        old = self._text
        assert old is not None
        if self._last is not None and self._holds(self._last, text):
            return self._last
        begin = _common_prefix(old, text)
        for unit in self._units:
            if unit.begin <= begin <= unit.end:
                return unit if self._holds(unit, text) else None
        return None

    def _holds(self, unit: Unit, text: str) -> bool:
        old = self._text
        assert old is not None
        fits = len(text) >= len(old) - (unit.end - unit.begin)
        return fits and text.startswith(old[: unit.begin]) and text.endswith(old[unit.end :])

    # -- an edit inside a unit

    def _within(self, unit: Unit, text: str) -> Update:
        assert self._text is not None
        assert self._session is not None
        new = text[unit.begin : len(text) - (len(self._text) - unit.end)]
        grown = len(new) - (unit.end - unit.begin)
        lines = len(_LINE_END.findall(new)) + 1
        if leaves_unit(new, unit.indent, text[unit.begin + len(new) : unit.begin + len(new) + 1]):
            return self._from_scratch(text)
        node = parse(new)
        if isinstance(node, ast.AST):
            if unit.seen_outside or header(node) != unit.header or is_seen_outside(node, unit.info, new):
                return self._from_scratch(text)
        elif node is ANOTHER or (may_go_on(new, unit.indent, text) and Source(text).tree is not None):
            return self._from_scratch(text)
        self._text, self._last = text, unit
        moved = lines - unit.lines
        self._comments = tuple(self._comments_after(unit, new, moved, isinstance(node, ast.AST)))
        unit.end += grown
        unit.lines = lines
        if grown or moved:
            self._move(unit, grown, moved)
        unit.broken = node is None
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not self._replace(unit, node, new):
            return self._from_scratch(text)
        return self._update()

    def _comments_after(self, edited: Unit, text: str, lines: int, parses: bool) -> Iterator[Suppression]:
        """The comments after an edit, those of a function that does not parse as they were."""
        behind = edited.line + edited.lines
        yield from (c for c in self._comments if c.span.line < edited.line)
        if parses:
            yield from (c.moved(edited.line - 1) for c in suppressions(Source(text)))
        else:
            yield from (c for c in self._comments if edited.line <= c.span.line < behind)
        yield from (c.moved(lines) for c in self._comments if c.span.line >= behind)

    def _move(self, edited: Unit, characters: int, lines: int) -> None:
        """Everything behind the edited unit moves."""
        behind = self._units[self._units.index(edited) + 1 :]
        for unit in behind:
            unit.begin += characters
            unit.end += characters
        if lines:
            for unit in behind:
                unit.line += lines
                unit.info.moved(lines)
            self._standing.moved(unit.info for unit in behind)
            self._move_the_rest(edited, lines)

    def _move_the_rest(self, edited: Unit, lines: int) -> None:
        """What stands behind the edited unit and in no unit itself: lambdas, inner classes' methods, compile sites."""
        session = self._session
        assert session is not None
        for where, info, line in list(self._standing.outside({unit.info for unit in self._units})):
            info.moved(sum(u.grown for u in self._units if u.first < line) - info.shift)
            self._standing.moved([where])
        roots = [(a, self._moved(r, edited, lines)) for a, r in session.roots]
        if any(new is not old for (_, new), (_, old) in zip(roots, session.roots, strict=True)):
            session.roots = roots
            self._standing.start(roots)

    def _moved(self, region: Region, edited: Unit, lines: int) -> Region:
        if region.site is None or region.site[0] != self.path or region.site[1].line <= edited.line:
            return region
        return region._replace(site=(self.path, shifted(region.site[1], lines)))

    def _replace(self, unit: Unit, node: ast.FunctionDef | ast.AsyncFunctionDef, text: str) -> bool:
        """Take a function's new text and walk it. False where what follows from it reaches too far."""
        session, info = self._session, unit.info
        assert session is not None
        before = _declared(session, info)
        info.replaced(node, Source(BEFORE_INDENT + text if unit.indent else text, self.path))
        info.moved(unit.line - (2 if unit.indent else 1))
        session.forget(info)
        # how a parameter without annotation is used tells what it is
        if [value.key for value in _declared(session, info).values()] != [value.key for value in before.values()]:
            return False
        session.known_parameters.update(before)  # the walks that were made hold these very values
        return self._walk_again(info)

    def _walk_again(self, info: FunctionInfo) -> bool:
        """Walk a function's activations, then the callers of those whose result changed; False if that goes too far."""
        session = self._session
        assert session is not None
        todo = self._activations_of(info)
        for _ in range(_ROUNDS):
            changed = {a for a in todo if self._gives_another(a)} - self._roots  # nobody enters those
            if not changed:
                self._standing.walked(info, session.roots)
                self._prune()
                return session.generalised == self._generalised
            if info in session.consulted or any(a.info in session.consulted for a in changed):
                return False  # an attribute's value may hang on it
            todo = [a for a in self._activations() if not changed.isdisjoint(a.calls)]
        return False

    def _gives_another(self, activation: Activation) -> bool:
        """Walk an activation again: whether those who entered it get another value."""
        assert self._session is not None
        self._standing.walks_again(activation)
        before = _seen_by_callers(activation)
        self._session.walk(activation)
        return _seen_by_callers(activation) != before

    def _prune(self) -> None:
        """Let go of activations that no root reaches any more, once there are many of them."""
        session = self._session
        assert session is not None
        if len(session.activations) > 2 * self._kept + 100:
            live = {one.activation for one in reached(session.roots)}
            session.activations = {k: a for k, a in session.activations.items() if a in live}
            self._kept = len(session.activations)

    def _activations(self) -> list[Activation]:
        assert self._session is not None
        return [*self._session.activations.values(), *(activation for activation, _ in self._session.roots)]

    def _activations_of(self, info: FunctionInfo) -> list[Activation]:
        """All walks of a function. Activations are only added, and taken away many at once; so their number tells
        whether the index still holds."""
        assert self._session is not None
        if self._indexed != len(self._session.activations):
            self._indexed = len(self._session.activations)
            self._of_function = {}
            for activation in self._activations():
                self._of_function.setdefault(activation.info, []).append(activation)
        return self._of_function.get(info, [])


def _seen_by_callers(activation: Activation) -> tuple[Hashable, bool, bool]:
    """What a walk gives to the walks that entered it."""
    return (None if activation.value is None else activation.value.key, activation.breaks, activation.always_breaks)


def _declared(session: Session, info: FunctionInfo) -> dict[tuple[FunctionInfo, str], Value]:
    """What is known of the parameters of a function without any call."""
    return {(info, p.arg): declared(session, info, p) for p in (*info.parameters, *info.node.args.kwonlyargs)}


def _common_prefix(a: str, b: str) -> int:
    """Length of the longest common beginning, by halving: comparing slices is fast, comparing characters is not."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
