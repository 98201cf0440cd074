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
from graphmend.analysis.report import shifted
from graphmend.analysis.session import Session
from graphmend.analysis.settings import Settings
from graphmend.analysis.source import Source
from graphmend.analysis.standing import Standing

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

    __slots__ = (
        "begin",
        "broken",
        "end",
        "first",
        "header",
        "indent",
        "info",
        "line",
        "lines",
        "parsed_lines",
        "seen_outside",
    )

    def __init__(self, info: FunctionInfo, begin: int, end: int, line: int, lines: int, text: str) -> None:
        self.info = info
        self.begin = begin
        self.end = end
        self.line = self.first = line
        self.lines = self.parsed_lines = lines
        self.broken = False
        self.header = _header(info.node)
        self.indent = _indent(text)
        self.seen_outside = _is_seen_outside(info.node, info, text)

    @property
    def grown(self) -> int:
        """By how many lines, since the whole text was parsed."""
        return self.lines - self.parsed_lines


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
        self._standing = Standing(path)
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
        self._kept, self._generalised = len(session.activations), session.generalised
        self._indexed = -1
        self._roots = {activation for activation, _ in session.roots}
        self._standing.start(session.roots)
        self._units = sorted(_units(module, source), key=lambda u: u.begin)
        return self._update()

    def _update(self) -> Update:
        broken = tuple((u.line, u.line + u.lines - 1) for u in self._units if u.broken)
        findings = self._standing.findings()
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

    def _move_the_rest(self, edited: _Unit, lines: int) -> None:
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
