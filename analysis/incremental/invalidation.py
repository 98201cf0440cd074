"""Invalidation: which summaries an edit makes stale, and their re-analysis.

An edit may change the values of attributes and globals; functions that read one of those, or call a function whose
result changed, are stale too. Which globals a function reads is taken from the words of its text: a superset that needs
no bookkeeping. Which attributes it reads, its summary has recorded.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field

from graphmend.analysis.incremental.finding_store import FindingStore
from graphmend.analysis.incremental.sections import Section, Sections
from graphmend.analysis.interprocedural.decorators import DISABLED, OPAQUE
from graphmend.analysis.interprocedural.reachability import reached
from graphmend.analysis.interprocedural.session import AnalysisSession
from graphmend.analysis.interprocedural.summaries import FunctionSummary
from graphmend.analysis.lattice.dependence import declared_sources
from graphmend.analysis.lattice.values import Value
from graphmend.analysis.program.definitions import Attribute, ClassInfo, FunctionInfo, ModuleInfo
from graphmend.analysis.program.entities import Function
from graphmend.analysis.region.asked import answer_as_before
from graphmend.analysis.region.dynamo_config import says_what_is_traced
from graphmend.analysis.region.region import Root
from graphmend.analysis.resolution.annotations import record_fields
from graphmend.analysis.resolution.classes import mro
from graphmend.analysis.resolution.names import global_name
from graphmend.analysis.resolution.parameters import declared, parameters
from graphmend.analysis.syntax.nodes import DEFINITIONS, statements_of

#: a chain of what changes by what changed is followed this far; then everything is walked again
_ROUNDS = 6
#: what is looked up without being named
_IMPLICIT = frozenset({"forward", "setup_context", "example_inputs"})


@dataclass
class Change:
    """What an edit changes, collected before anything is re-analysed."""

    functions: set[FunctionInfo] = field(default_factory=set)
    """Functions all of whose summaries are stale."""
    signature_changed: set[FunctionInfo] = field(default_factory=set)
    """Functions whose parameters, or what these declare, changed."""
    walks: set[FunctionSummary] = field(default_factory=set)
    """Single summaries that are stale."""
    names: set[str] = field(default_factory=set)
    """Globals that are bound differently."""
    globals: set[str] = field(default_factory=set)
    """Globals that may have another value; compared when the change is applied."""
    providers_changed: set[Attribute] = field(default_factory=set)
    """Attributes that other methods set than before, in a class and those derived from it."""
    attributes: set[Attribute] = field(default_factory=set)
    """Attributes that may have another value; compared when the change is applied."""


class Invalidation:
    """Keeps the summaries of one file up to date. A method that returns a bool says whether a change was followed to
    everything that depends on it; where it was not, the whole text must be analysed."""

    def __init__(
        self, session: AnalysisSession, module: ModuleInfo, sections: Sections, finding_store: FindingStore
    ) -> None:
        self._session = session
        self._module = module
        self._sections = sections
        self._finding_store = finding_store
        self._roots: dict[FunctionSummary, Root] = {}
        self._of_function: dict[FunctionInfo, list[FunctionSummary]] = {}
        self._indexed = -1
        self._kept = 0
        self._generalised = 0

    def start(self, roots: Iterable[Root]) -> None:
        """Analyse all roots."""
        session = self._session
        for root in roots:
            known = len(session.summaries.roots)
            session.walk_root(root)
            self._roots.update((summary, root) for summary, _ in session.summaries.roots[known:])
        self._kept, self._generalised = len(session.summaries), session.summaries.generalised
        session.follows = True
        self._finding_store.rebuild(session.summaries.roots)

    def apply(self, change: Change, text: str) -> bool:
        """Re-analyse what depends on a change in `text`."""
        if not self._propagate(change, text):
            return False
        if not answer_as_before(self._session, change.functions | change.signature_changed):
            return False  # other roots, perhaps
        for info in change.signature_changed:
            if not self._invalidate_signature(info, change, text):
                return False
        if change.signature_changed:
            self._indexed = -1
        if not self._walk_again(change):
            return False
        if change.signature_changed:
            self._finding_store.rebuild(self._session.summaries.roots)
        return True

    # -- what reads what changed

    def _propagate(self, change: Change, text: str) -> bool:
        seen: set[str] = set()
        for _ in range(_ROUNDS):
            attributes = self._differing_attributes(change)
            if attributes and not self._read(attributes, change):
                return False
            names = (change.names | self._differing_globals(change)) - seen
            if not names and not change.attributes:
                return True
            if any(n == "example_inputs" or n.startswith("__") or not n.isascii() for n in names):
                return False
            if any(name.partition(".")[0] in names for name in self._session.settings.compiled):
                return False
            seen |= names
            for section in self._mentioning(names, text) if names else ():
                if section.merged or not self._reads(section, names, change, text):
                    return False
        return False

    def _differing_globals(self, change: Change) -> set[str]:
        """The globals of `change` that have another value now."""
        session, cache = self._session, self._module.value_cache
        before = {name: cache.pop(name) for name in change.globals if name in cache}
        change.globals.clear()
        return {name for name, old in before.items() if _key(global_name(session, self._module, name)) != _key(old)}

    def _differing_attributes(self, change: Change) -> set[Attribute]:
        """The attributes of `change` that have another value now, in every class where they were read."""
        given = self._of_classes(change.providers_changed)
        asked = given | self._of_classes(change.attributes)
        change.providers_changed.clear()
        change.attributes.clear()
        before = {(cls, name): cls.attribute_cache.pop(name) for cls, name in asked}
        return given | {
            (cls, name)
            for (cls, name), old in before.items()
            if _key(self._session.reading.attribute(cls, name)) != _key(old)
        }

    def _of_classes(self, attributes: Iterable[Attribute]) -> set[Attribute]:
        """The attributes in the classes where they were read: their own class, and those derived from it."""
        return {
            (cls, name)
            for owner, name in attributes
            for cls in self._classes()
            if name in cls.attribute_cache and owner in mro(cls, self._session)
        }

    def _read(self, attributes: set[Attribute], change: Change) -> bool:
        """Add to `change` what was computed from attributes that have another value."""
        reading = self._session.reading
        if not reading.unscoped_reads.isdisjoint(attributes):
            return False
        change.walks.update(a for a in self._all_summaries() if not a.reads.isdisjoint(attributes))
        for info, read in reading.read_in.items():
            if not read.isdisjoint(attributes):
                reading.forget(info)
                if info.owner is not None:
                    change.attributes |= {(info.owner, name) for name in given_by(info)}
        return True

    def _classes(self) -> Iterator[ClassInfo]:
        todo = list(self._module.classes.values())
        while todo:
            cls = todo.pop()
            todo += cls.classes.values()
            yield cls

    def attributes_named(self, names: Iterable[str]) -> set[Attribute]:
        """The attributes of these names that were read, in any class."""
        return {(cls, name) for name in names for cls in self._classes() if name in cls.attribute_cache}

    def _mentioning(self, names: Iterable[str], text: str) -> list[Section]:
        """The sections whose text has one of these words, and all that do not parse."""
        sections = self._sections
        found = {section.index for section in sections.all if section.broken}
        for name in names:
            at = text.find(name)
            while at >= 0:
                end = at + len(name)
                if _is_word(text[at - 1 : at]) or _is_word(text[end : end + 1]):
                    at = text.find(name, at + 1)
                else:
                    index = sections.at(at)
                    found.add(index)
                    at = text.find(name, max(sections.end(index), end))
        return [sections.all[index] for index in found]

    def _reads(self, section: Section, names: set[str], change: Change, text: str) -> bool:
        """Add to `change` what a section computes from the names that it reads."""
        if says_what_is_traced(text[self._sections.begin(section.index) : self._sections.end(section.index)]):
            return False
        if section.info is None:
            return all(self._stated(owner, s, names, change) for owner, s in section.outside)
        info = section.info
        if info.is_passthrough is not None or (info.name == "example_inputs" and info.owner is None):
            return False
        if names & {word for decorator in info.decorators for word in words(decorator)}:
            return False
        change.functions.add(info)
        if info.owner is not None:
            change.attributes |= {(info.owner, name) for name in given_by(info)}
        if not self.redeclare(info) or names & set(_signature_words(info)):
            change.signature_changed.add(info)
        return True

    def _stated(self, owner: ClassInfo | None, statement: ast.stmt, names: set[str], change: Change) -> bool:
        """Add to `change` what a statement between functions computes from the names that it reads."""
        if isinstance(statement, ast.ClassDef):
            return not names & set(words(*statement.bases, *statement.keywords, *statement.decorator_list))
        if not names & set(words(statement)):
            return True
        if any(isinstance(node, DEFINITIONS) for node in ast.walk(statement)):
            return False
        if owner is not None:
            return self.names_in_class(owner, [statement], change)
        change.globals |= self.bound(statement)
        return True

    def names_in_class(self, owner: ClassInfo, statements: Iterable[ast.stmt], change: Change) -> bool:
        """Add to `change` the attributes that statements of a class's body define."""
        bound = {name for statement in statements for name in self.bound(statement)}
        derived = (cls for cls in self._classes() if owner in mro(cls, self._session))
        if bound and any(record_fields(self._session, cls) is not None for cls in derived):
            return False  # every construction shows them
        change.attributes |= {(owner, name) for name in bound}
        return True

    def bound(self, statement: ast.stmt) -> set[str]:
        """The names that a statement between functions binds."""
        found: set[str] = set()
        for one in statements_of([statement]):
            if isinstance(one, (ast.Import, ast.ImportFrom)):
                found.update(self._module.imported(one))
            else:
                targets = one.targets if isinstance(one, ast.Assign) else [getattr(one, "target", None)]
                found.update(target.id for target in targets if isinstance(target, ast.Name))
        return found

    def redeclare(self, info: FunctionInfo) -> bool:
        """Evaluate the declarations of a function's parameters again: whether they are as before. Then the old values
        are kept, because the summaries hold these very objects."""
        session = self._session
        before = _declared(session, info)
        session.forget(info)
        info.uses = None
        after = _declared(session, info)
        if [(name, value.key) for name, value in before.items()] != [(n, value.key) for n, value in after.items()]:
            return False
        session.known_parameters.update(before)
        return True

    # -- what calls what changed

    def _invalidate_signature(self, info: FunctionInfo, change: Change, text: str) -> bool:
        """Drop the summaries of a function whose parameters changed, and add its callers to `change`."""
        session = self._session
        if info in session.summaries.results_memoised or info.is_abstract or info.is_passthrough is not None:
            return False
        if info.decorators and (_is_wrapped(session, info) or info.decorated_with(*DISABLED, *OPAQUE)):
            return False
        for summary, root in self._roots.items():
            if summary.info is info:
                if root.example_arguments is not None:
                    return False
                summary.env = dict(parameters(session, info, root.function.bound))
        session.summaries.drop(info)
        change.functions.add(info)
        change.walks.update(a for a in self._all_summaries() if any(called.info is info for called in a.calls))
        if info.name not in _IMPLICIT and not info.name.startswith("__"):
            for section in self._mentioning([info.name], text):
                if section.info is None or section.merged:
                    return False
                change.functions.add(section.info)
        return True

    def _walk_again(self, change: Change) -> bool:
        """Re-analyse stale summaries, then the callers of those whose result changed, for some rounds at most."""
        session = self._session
        todo = dict.fromkeys([a for info in change.functions for a in self._summaries_of(info)])
        todo.update(dict.fromkeys(change.walks))
        walked: set[FunctionSummary] = set()
        for _ in range(_ROUNDS):
            walked.update(todo)
            differing = {a for a in todo if self._gives_another(a)}
            if any(a in self._roots and self._roots[a].region.alone for a in differing):
                self._finding_store.rebuild(session.summaries.roots)  # its result says whether it counts
            changed = differing - self._roots.keys()  # nobody enters those
            if not changed:
                self._finding_store.after_reanalysis(change.functions, session.summaries.roots)
                self._prune()
                if self._finding_store.may_contradict(session.summaries.mixed_declarations):
                    return False
                return session.summaries.generalised == self._generalised and not any(map(_is_recursive, walked))
            if any(a.info in session.summaries.results_memoised for a in changed):
                return False  # an attribute's value may hang on it
            todo = dict.fromkeys(session.summaries.callers_of(changed))
        return False

    def _gives_another(self, summary: FunctionSummary) -> bool:
        """Re-analyse a summary: whether its result is another one for its callers."""
        self._finding_store.before_reanalysis(summary)
        before = _seen_by_callers(summary)
        self._session.walk(summary)
        return _seen_by_callers(summary) != before

    def _prune(self) -> None:
        """Drop the summaries that no root reaches any more, once there are many of them."""
        session = self._session
        if len(session.summaries) > 2 * self._kept + 100:
            session.summaries.keep_only(one.summary for one in reached(session.summaries.roots))
            self._kept = len(session.summaries)

    def _all_summaries(self) -> list[FunctionSummary]:
        return [*self._session.summaries, *self._roots]

    def _summaries_of(self, info: FunctionInfo) -> list[FunctionSummary]:
        """All summaries of a function. Except where parameters change, summaries are only added, or dropped many at
        once; so their number tells whether the index is up to date."""
        if self._indexed != len(self._session.summaries):
            self._indexed = len(self._session.summaries)
            self._of_function = {}
            for summary in self._all_summaries():
                self._of_function.setdefault(summary.info, []).append(summary)
        return self._of_function.get(info, [])


def _is_wrapped(session: AnalysisSession, info: FunctionInfo) -> bool:
    stands_for = session.decorated(info)
    return not isinstance(stands_for, Function) or stands_for.info is not info


def _is_recursive(summary: FunctionSummary) -> bool:
    """Whether a summary calls its own function, directly or not: its result depends on where iteration began."""
    seen, stack = {summary}, [summary]
    while stack:
        for called in stack.pop().calls:
            if called.info is summary.info:
                return True
            if called not in seen:
                seen.add(called)
                stack.append(called)
    return False


def given_by(info: FunctionInfo) -> set[str]:
    """The attributes that a method sets on instances of its class."""
    return {name for name, _, _ in (*info.assigns, *info.grows, *info.registers)}


def words(*nodes: ast.AST) -> Iterator[str]:
    """The names in some nodes, those in strings too."""
    for outer in nodes:
        for node in ast.walk(outer):
            if isinstance(node, ast.Name):
                yield node.id
            elif isinstance(node, ast.Attribute):
                yield node.attr
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from _words_of(node.value)
            elif isinstance(node, ast.alias):
                yield from _words_of(node.name)


def _words_of(text: str) -> list[str]:
    return "".join(c if _is_word(c) else " " for c in text).split()


def _signature_words(info: FunctionInfo) -> Iterator[str]:
    returns = getattr(info.node, "returns", None)
    return words(info.node.args, *([returns] if returns is not None else []))


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _key(value: Value | None) -> Hashable:
    return None if value is None else (value.key, declared_sources(value))


def _seen_by_callers(summary: FunctionSummary) -> tuple[Hashable, bool, bool]:
    """The part of a summary that its callers depend on."""
    return (_key(summary.value), summary.breaks, summary.always_breaks)


def _declared(session: AnalysisSession, info: FunctionInfo) -> dict[tuple[FunctionInfo, str], Value]:
    """The declared values of a function's parameters."""
    return {(info, p.arg): declared(session, info, p) for p in (*info.parameters, *info.node.args.kwonlyargs)}
