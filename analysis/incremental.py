"""One file while it is edited: a change inside a function parses and walks that function again, and its callers.

A text is cut into units: the functions of its top level and the methods of its top-level classes. As long as an edit
stays inside one of them and does not change what others can see of it (its header, attributes it sets, names it
rebinds, what it compiles), everything else that was learned stays as it is. Any other edit starts again from the text.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Hashable, Iterator
from typing import NamedTuple

from graphmend.analysis.activation import Activation, reached
from graphmend.analysis.definitions import FunctionInfo, ModuleInfo
from graphmend.analysis.finding import Finding
from graphmend.analysis.project import Project
from graphmend.analysis.region import Region, may_compile, roots
from graphmend.analysis.report import report, shifted
from graphmend.analysis.session import Session
from graphmend.analysis.settings import Settings
from graphmend.analysis.source import Source

_LINE_END = re.compile(r"\r\n|\r|\n")
#: what a function may do that others see: register members, rebind globals
_REGISTERS = re.compile(r"\.register_|\.add_module\b|\bsetattr\(|^[ \t]*global[ \t]", re.MULTILINE)
#: attributes that a text sets
_SETS = re.compile(
    r"(\w+)\.(\w+)[ \t]*(?::[^=\n]+)?(?:[-+*/|&^%@]|//|\*\*|<<|>>)?=(?!=)",
)
#: a chain of callers whose results keep changing is followed this far; then everything is walked again
_ROUNDS = 6


class Update(NamedTuple):
    """What is known after a change.

    `findings` are those of all functions that parse. Evidence in a function that was not walked again may still tell of
    its caller's text as it was; a `check` of the whole text tells it anew. `broken` are the ranges of lines (from 1) of
    which nothing new is known because they do not parse: what was shown there before stands, moved with the edits.
    """

    findings: tuple[Finding, ...]
    broken: tuple[tuple[int, int], ...] = ()


class _Unit:
    """A function's place in the text. Offsets count characters, lines from 1."""

    __slots__ = ("begin", "broken", "end", "header", "info", "line", "lines", "seen_outside")

    def __init__(self, info: FunctionInfo, begin: int, end: int, line: int, lines: int, text: str) -> None:
        self.info = info
        self.begin = begin
        self.end = end
        self.line = line
        self.lines = lines
        self.broken = False
        self.header = _header(info.node)
        self.seen_outside = _is_seen_outside(text, info)


class Document:
    """The analysis of one file, kept up to date from text to text."""

    def __init__(self, path: str, project: Project | None = None, settings: Settings | None = None) -> None:
        self.path = path
        self.project = project or Project()
        self.settings = settings or Settings()
        self._text: str | None = None
        self._units: list[_Unit] = []
        self._last: _Unit | None = None
        self._session: Session | None = None
        self._reached = 0

    def update(self, text: str) -> Update:
        """What is known of the text as it is now."""
        if self._text is None or self._session is None:
            return self._from_scratch(text)
        unit = self._edited(text)
        if unit is None:
            return self._from_scratch(text)
        return self._within(unit, text)

    def _from_scratch(self, text: str) -> Update:
        """Parse and walk everything. A text that does not parse keeps what is known of the last one that did."""
        source = Source(text, self.path)
        self._text, self._session, self._units, self._last = text, None, [], None
        if "torch" not in text:
            return Update(())
        if source.tree is None:
            return Update((), ((1, len(source.lines)),))
        self.project.forget(self.path)
        module = self.project.alone(source)
        assert module is not None
        self._session = session = Session(module, self.project, self.settings)
        for root in roots(session, module):
            session.walk_root(root)
        self._reached = len(session.activations)
        self._units = sorted(_units(module, source), key=lambda u: u.begin)
        return self._update()

    def _update(self) -> Update:
        assert self._session is not None
        found = report(self._session.roots, self._session.activations).get(self.path, [])
        broken = tuple((u.line, u.line + u.lines - 1) for u in self._units if u.broken)
        findings = tuple(one.finding for one in found)
        if broken:
            findings = tuple(f for f in findings if not any(a <= f.span.line <= b for a, b in broken))
        return Update(findings, broken)

    # -- which unit an edit is in

    def _edited(self, text: str) -> _Unit | None:
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

    def _holds(self, unit: _Unit, text: str) -> bool:
        old = self._text
        assert old is not None
        tail = len(old) - unit.end
        if len(text) < unit.begin + tail or text[: unit.begin] != old[: unit.begin]:
            return False
        return text[len(text) - tail :] == old[unit.end :]

    # -- an edit inside a unit

    def _within(self, unit: _Unit, text: str) -> Update:
        assert self._text is not None
        assert self._session is not None
        new = text[unit.begin : len(text) - (len(self._text) - unit.end)]
        grown = len(new) - (unit.end - unit.begin)
        lines = len(_LINE_END.findall(new)) + 1
        node = _parse(new, unit.info)
        seen_outside = _is_seen_outside(new, unit.info)
        if node is not None and (seen_outside or unit.seen_outside or _header(node) != unit.header):
            return self._from_scratch(text)
        if node is None and not _may_be_unfinished(new, unit):
            return self._from_scratch(text)
        self._text, self._last = text, unit
        moved = lines - unit.lines
        unit.end += grown
        unit.lines = lines
        if grown or moved:
            self._move(unit, grown, moved)
        unit.broken = node is None
        if node is not None:
            indent = "if 1:\n" if unit.info.owner is not None or unit.info.node.col_offset else ""
            unit.info.replaced(node, Source(indent + new, self.path))
            unit.info.moved(unit.line - (2 if indent else 1))
            self._forget(unit.info)
            if not self._walk_again(unit.info):
                return self._from_scratch(text)
        return self._update()

    def _move(self, edited: _Unit, characters: int, lines: int) -> None:
        """Everything behind the edited unit moves."""
        assert self._session is not None
        for unit in self._units:
            if unit.begin > edited.begin:
                unit.begin += characters
                unit.end += characters
                if lines:
                    unit.line += lines
                    unit.info.moved(lines)
        if lines:
            self._session.roots = [(a, self._moved(r, edited, lines)) for a, r in self._session.roots]

    def _moved(self, region: Region, edited: _Unit, lines: int) -> Region:
        if region.site is None or region.site[0] != self.path or region.site[1].line <= edited.line:
            return region
        return region._replace(site=(self.path, shifted(region.site[1], lines)))

    def _forget(self, info: FunctionInfo) -> None:
        """Drop what was read from a function's old text."""
        assert self._session is not None
        self._session.forget(info)

    def _walk_again(self, info: FunctionInfo) -> bool:
        """Walk a function's activations, then the callers of those whose result changed; False if that goes too far."""
        session = self._session
        assert session is not None
        todo = [(key, a) for key, a in self._activations() if a.info is info]
        for _ in range(_ROUNDS):
            changed = set()
            for key, activation in todo:
                before = activation.value.key if activation.value is not None else None
                session.walk(activation)
                if key is not None and activation.value is not None and activation.value.key != before:
                    changed.add(key)
            if not changed:
                self._prune()
                return True
            if info in session.consulted:
                return False  # an attribute's value may hang on it
            todo = [(key, a) for key, a in self._activations() if changed & a.calls.keys()]
        return False

    def _prune(self) -> None:
        """Let go of activations that no root reaches any more, once there are many of them."""
        session = self._session
        assert session is not None
        if len(session.activations) > 2 * self._reached + 100:
            live = {id(a) for a, _, _ in reached(session.roots, session.activations)}
            session.activations = {k: a for k, a in session.activations.items() if id(a) in live}
            self._reached = len(session.activations)

    def _activations(self) -> Iterator[tuple[Hashable | None, Activation]]:
        assert self._session is not None
        yield from list(self._session.activations.items())
        for activation, _ in self._session.roots:
            yield None, activation


def _units(module: ModuleInfo, source: Source) -> Iterator[_Unit]:
    for info in (*module.functions.values(), *(m for c in module.classes.values() for m in c.methods.values())):
        node = info.node
        assert not isinstance(node, ast.Lambda)
        first = min((node.lineno, *(d.lineno for d in node.decorator_list)))
        last = node.end_lineno or node.lineno
        begin, end = source.lines.offset(first - 1, 0), source.lines.offset(last - 1, 1 << 30)
        text = source.text[begin:end]
        if text[: len(text) - len(text.lstrip())].strip() == "" and text.lstrip().startswith(("def ", "async ", "@")):
            yield _Unit(info, begin, end, first, last - first + 1, text)


def _is_seen_outside(text: str, info: FunctionInfo) -> bool:
    """Whether a function's text may do more than compute its result: then an edit of it may change anything."""
    me = info.parameters[0].arg if info.owner is not None and info.parameters else None
    for owner, name in _SETS.findall(text):
        # an attribute of the instance is read by other methods; any other counts where it could switch a flag on
        if owner == me or f".{name} = False" in info.module.source.text:
            return True
    return _REGISTERS.search(text) is not None or may_compile(text)


def _header(node: ast.AST) -> str:
    """What others see of a function: its name, parameters, decorators and annotations."""
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    parts: list[ast.AST] = [node.args, *node.decorator_list, *([node.returns] if node.returns is not None else [])]
    return f"{type(node).__name__} {node.name} " + " ".join(ast.dump(p) for p in parts)


def _parse(text: str, info: FunctionInfo) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The one function that a unit's text is; None where it does not parse, or is something else."""
    indented = text[:1] in (" ", "\t")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse("if 1:\n" + text if indented else text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if indented:
        outer = body[0]
        assert isinstance(outer, ast.If)
        body = outer.body if len(body) == 1 and not outer.orelse else []
    node = body[0] if len(body) == 1 else None
    return node if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else None


def _may_be_unfinished(text: str, unit: _Unit) -> bool:
    """Whether a text that is not one function is a function that is being typed, and not a changed boundary."""
    indented = text[:1] in (" ", "\t")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse("if 1:\n" + text if indented else text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    return False  # it parses, as something else than one function


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
