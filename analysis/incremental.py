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
from graphmend.analysis.binding import declared
from graphmend.analysis.definitions import FunctionInfo, ModuleInfo, is_stub
from graphmend.analysis.finding import Finding
from graphmend.analysis.project import Project
from graphmend.analysis.region import Region, may_compile, roots
from graphmend.analysis.report import report, shifted
from graphmend.analysis.session import Session
from graphmend.analysis.settings import Settings
from graphmend.analysis.source import Source

_LINE_END = re.compile(r"\r\n|\r|\n")
#: calls by which a function adds members to an object
_REGISTERS = frozenset({"register_buffer", "register_parameter", "add_module", "register_module", "setattr", "delattr"})
#: a chain of callers whose results keep changing is followed this far; then everything is walked again
_ROUNDS = 6
#: makes the text of a method a text of its own
_BEFORE_INDENT = "if 1:\n"
#: a text that parses, but as something else than one function
_ANOTHER = object()


class Update(NamedTuple):
    """What is known after a change.

    `findings` are those of all functions that parse. Evidence in a function that was not walked again may still tell of
    its caller's text as it was; a `check` of the whole text tells it anew. `broken` are the ranges of lines (from 1) of
    which nothing new is known because they do not parse: what was shown there before stands, moved with the edits.
    `notice` says it where that is because the text is of a newer Python.
    """

    findings: tuple[Finding, ...]
    broken: tuple[tuple[int, int], ...] = ()
    notice: str | None = None


class _Unit:
    """A function's place in the text. Offsets count characters, lines from 1."""

    __slots__ = ("begin", "broken", "end", "header", "indent", "info", "line", "lines", "seen_outside")

    def __init__(self, info: FunctionInfo, begin: int, end: int, line: int, lines: int, text: str) -> None:
        self.info = info
        self.begin = begin
        self.end = end
        self.line = line
        self.lines = lines
        self.broken = False
        self.header = _header(info.node)
        self.indent = _indent(text)
        self.seen_outside = _is_seen_outside(info.node, info, text)


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
        self._generalised = 0

    def update(self, text: str) -> Update:
        """What is known of the text as it is now."""
        if self._text is None or self._session is None:
            return self._from_scratch(text)
        unit = self._edited(text)
        if unit is None:
            return self._from_scratch(text)
        return self._within(unit, text)

    def _from_scratch(self, text: str) -> Update:
        """Parse and walk everything. Of a text that does not parse nothing is known."""
        source = Source(text, self.path)
        self._text, self._session, self._units, self._last = text, None, [], None
        if "torch" not in text:
            return Update(())
        if source.tree is None:
            problem = source.problem
            notice = f"line {problem.line}: {problem.message}" if problem is not None and problem.newer else None
            return Update((), ((1, len(source.lines)),), notice)
        self.project.forget(self.path)
        module = self.project.alone(source)
        assert module is not None
        self._session = session = Session(module, self.project, self.settings)
        for root in roots(session, module):
            session.walk_root(root)
        self._reached, self._generalised = len(session.activations), session.generalised
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
        if _leaves_unit(new, unit.indent, text[unit.begin + len(new) : unit.begin + len(new) + 1]):
            return self._from_scratch(text)
        node = _parse(new)
        if isinstance(node, ast.AST):
            header = _header(node)
            if unit.seen_outside or header != unit.header or _is_seen_outside(node, unit.info, new):
                return self._from_scratch(text)
        elif node is _ANOTHER:
            return self._from_scratch(text)
        self._text, self._last = text, unit
        moved = lines - unit.lines
        unit.end += grown
        unit.lines = lines
        if grown or moved:
            self._move(unit, grown, moved)
        unit.broken = node is None
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not self._replace(unit, node, new):
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

    def _replace(self, unit: _Unit, node: ast.FunctionDef | ast.AsyncFunctionDef, text: str) -> bool:
        """Take a function's new text and walk it. False where what follows from it reaches too far."""
        session, info = self._session, unit.info
        assert session is not None
        before = _declared(session, info)
        info.replaced(node, Source(_BEFORE_INDENT + text if unit.indent else text, self.path))
        info.moved(unit.line - (2 if unit.indent else 1))
        session.forget(info)
        # how a parameter without annotation is used tells what it is
        return _declared(session, info) == before and self._walk_again(info)

    def _walk_again(self, info: FunctionInfo) -> bool:
        """Walk a function's activations, then the callers of those whose result changed; False if that goes too far."""
        session = self._session
        assert session is not None
        todo = [(key, a) for key, a in self._activations() if a.info is info]
        for _ in range(_ROUNDS):
            changed = set()
            for key, activation in todo:
                before = _seen_by_callers(activation)
                session.walk(activation)
                if key is not None and _seen_by_callers(activation) != before:
                    changed.add(key)
            if not changed:
                self._prune()
                return session.generalised == self._generalised
            if info in session.consulted or any(_info_of(key) in session.consulted for key in changed):
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


def _seen_by_callers(activation: Activation) -> tuple[Hashable, bool]:
    """What a walk gives to the walks that entered it."""
    return (None if activation.value is None else activation.value.key, activation.breaks)


def _units(module: ModuleInfo, source: Source) -> Iterator[_Unit]:
    for info in (*module.functions.values(), *(m for c in module.classes.values() for m in c.methods.values())):
        node = info.node
        assert not isinstance(node, ast.Lambda)
        first = min((node.lineno, *(d.lineno for d in node.decorator_list)))
        last = node.end_lineno or node.lineno
        begin, end = source.lines.offset(first - 1, 0), source.lines.offset(last - 1, 1 << 30)
        text = source.text[begin:end]
        if "\f" not in _indent(text) and text.lstrip().startswith(("def ", "async ", "@")):
            yield _Unit(info, begin, end, first, last - first + 1, text)


def _is_seen_outside(node: ast.AST, info: FunctionInfo, text: str) -> bool:
    """Whether a function may do more than compute its result, or tells what others get: an edit may change anything."""
    if may_compile(text) or (info.name == "example_inputs" and info.owner is None) or info.transparent is not None:
        return True
    me = info.parameters[0].arg if info.owner is not None and info.parameters else None
    for inner in ast.walk(node):
        if isinstance(inner, ast.Global):
            return True
        if isinstance(inner, ast.Attribute) and not isinstance(inner.ctx, ast.Load):
            # an attribute of the instance is read by other methods; any other counts where it could switch a flag on
            own = isinstance(inner.value, ast.Name) and inner.value.id == me
            if own or f".{inner.attr} = False" in info.module.source.text:
                return True
        if isinstance(inner, ast.Call):
            name = inner.func.attr if isinstance(inner.func, ast.Attribute) else getattr(inner.func, "id", "")
            if name in _REGISTERS or name in info.module.idle or name.startswith("register_"):
                return True
    return False


def _header(node: ast.AST) -> str:
    """What others see of a function: its name, parameters, decorators and annotations."""
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    parts: list[ast.AST] = [node.args, *node.decorator_list, *([node.returns] if node.returns is not None else [])]
    stub = " stub " if is_stub(node) else " "
    return f"{type(node).__name__} {node.name}{stub}" + " ".join(ast.dump(p) for p in parts)


def _indent(text: str) -> str:
    return text[: len(text) - len(text.lstrip())]


def _leaves_unit(text: str, indent: str, following: str) -> bool:
    """Whether a unit's text reaches into what stands around it: another indentation, a line that goes on."""
    if _indent(text) != indent or text.rstrip(" \t").endswith("\\"):
        return True
    return text.endswith("\r") and following == "\n"


def _parse(text: str) -> ast.FunctionDef | ast.AsyncFunctionDef | object | None:
    """The one function that a unit's text is; None where it does not parse; `_ANOTHER` where it is something else."""
    indented = bool(_indent(text))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse(_BEFORE_INDENT + text if indented else text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if indented:
        outer = body[0]
        assert isinstance(outer, ast.If)
        body = outer.body if len(body) == 1 and not outer.orelse else []
    node = body[0] if len(body) == 1 else None
    return node if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else _ANOTHER


def _declared(session: Session, info: FunctionInfo) -> list[object]:
    """What is known of the parameters of a function without any call."""
    return [declared(session, info, p).key for p in (*info.parameters, *info.node.args.kwonlyargs)]


def _info_of(key: Hashable) -> object:
    """The function of an activation's key."""
    return key[0] if isinstance(key, tuple) else None


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
