"""Entry point of the analysis: the findings of one source."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from graphmend.analysis.driver.guards.variation import Variation
from graphmend.analysis.driver.near import may_drive
from graphmend.analysis.facts.function_facts import FunctionFacts
from graphmend.analysis.facts.recording import Recording
from graphmend.analysis.finding import Finding
from graphmend.analysis.findings.recompilations import merged, recompilations
from graphmend.analysis.findings.report import report
from graphmend.analysis.interprocedural.session import AnalysisSession
from graphmend.analysis.program.definitions import FunctionInfo, ModuleInfo
from graphmend.analysis.program.project import Project
from graphmend.analysis.region.calls_in_sight import Callers
from graphmend.analysis.region.other_callers import called_by_others, for_any_caller
from graphmend.analysis.region.roots import roots
from graphmend.analysis.settings import Settings
from graphmend.analysis.syntax.source import Source
from graphmend.analysis.syntax.traversal import nodes_in, statements
from graphmend.analysis.torch_facts import load

Definition = ast.FunctionDef | ast.AsyncFunctionDef
_Others = Literal["others"]
"""Those in other files, of which nothing is known."""
Place = tuple[ast.expr | ast.stmt, FunctionInfo | None]


@dataclass
class Result:
    """The findings of one file, in the order of its text, and what a rewrite may ask about each.

    `elsewhere` holds findings in other files that tracing reaches from this one, by path: they belong to the results
    of those files.
    """

    source: Source
    findings: tuple[Finding, ...] = ()
    elsewhere: dict[str, tuple[Finding, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    _places: dict[tuple[str, str], Place] = field(default_factory=dict, repr=False)
    _variations: dict[tuple[str, str], Variation] = field(default_factory=dict, repr=False)
    _again: tuple[Project, Settings, ModuleInfo] | None = field(default=None, repr=False)
    _roots: frozenset[FunctionInfo] = field(default=frozenset(), repr=False)
    _recordings: dict[Callers | _Others, Recording] = field(default_factory=dict, repr=False)

    def facts(self, finding: Finding) -> FunctionFacts | None:
        """The facts about the function that `finding`, of this file or of `elsewhere`, stands in; None for a lambda at
        a module's top level, and for what stands outside of every function.

        The first call analyses the module's roots once more and records the functions that have a finding, those that
        call them, and those that they call. In compiled code the facts are those of the calls in sight, and have those
        of any caller beside them.
        """
        if (finding.path, finding.key) in self._variations:
            return self._facts(finding, "varying")
        is_compiled = finding.region == "compiled"
        facts = self._facts(finding, "known" if is_compiled else "anyone")
        if facts is not None:
            wider: list[Callers | _Others] = ["anyone"] if is_compiled else []
            wider += ["others"] if self._has_others(self._places[finding.path, finding.key][1]) else []
            facts.any_callers = [partial(self._facts, finding, callers) for callers in wider]
        return facts

    def _has_others(self, info: FunctionInfo | None) -> bool:
        """May other files call a function, with what nothing here says? A root is judged by what its kind is given. A
        private method may be called by a subclass elsewhere, and a function in a function by whoever gets it.
        """
        assert self._again is not None
        outer = info
        while outer is not None and outer not in self._roots:
            outer = outer.outer
        if info is None or outer is not None:
            return False
        is_private = info.outer is None and info.owner is None and info.name.startswith("_")
        return info.module is not self._again[2] or not is_private

    def _facts(self, finding: Finding, callers: Callers | _Others) -> FunctionFacts | None:
        place = self._places.get((finding.path, finding.key))
        if self._again is None or place is None:
            raise LookupError(f"{finding.code} is no finding of this result")
        settings = self._again[1]
        variation = self._variations.get((finding.path, finding.key))
        node, info = place
        definition = _definition(info) if info is not None else None
        target = variation.target if variation is not None else None
        compiled = _definition(target) if target is not None else None
        if target is not None and compiled is not None and target.module.source.path == finding.path:
            node, info, definition = compiled, target, compiled
        if definition is None or info is None:
            return None
        version = load(settings.torch_version).minor
        names = dict(info.module.imports)
        return self._recorded(callers).facts(info.module.source, definition, node, names, version, variation)

    def _recorded(self, callers: Callers | _Others) -> Recording:
        """What the walks of all roots, or of the compiled ones where those are called in sight, see in the functions
        that have a finding; where something varies between calls, in all of the module's. For `others`, what is seen in
        those that other files may call, whatever is passed to them.
        """
        if callers not in self._recordings:
            self._recordings[callers] = recording = Recording(self._recorded_functions(callers))
            session = self._session(recording)
            if callers == "others":
                session.drive("anyone")
                session.passes_arrays = True
                session.known_parameters.clear()
                for info in dict.fromkeys(info for _, info in self._places.values()):
                    if info is not None and self._has_others(info):
                        session.walk_root(for_any_caller(info))
            else:
                _walk(session, callers, compiled=callers != "anyone")
        return self._recordings[callers]

    def _recorded_functions(self, callers: Callers | _Others) -> set[Definition]:
        assert self._again is not None
        tree = self._again[2].source.tree
        if callers != "varying":
            around = (_definition(info) for _, info in self._places.values() if info is not None)
            functions = {definition for definition in around if definition is not None}
            found = _with_callers(functions, tree)
            return found | _called(found, tree)
        return {n for n in statements(tree) if isinstance(n, Definition)} if tree is not None else set()

    def _session(self, recording: Recording) -> AnalysisSession:
        assert self._again is not None
        project, settings, module = self._again
        session = AnalysisSession(module, project, settings)
        session.recording = recording
        return session

    def close(self) -> None:
        """Release the definitions that facts are made from; `facts` has no answers any more."""
        self._places, self._variations, self._recordings = {}, {}, {}
        if self._again is not None:
            project, _, module = self._again
            project.release(module)
            self._again = None


def _with_callers(functions: set[Definition], tree: ast.AST | None) -> set[Definition]:
    """Functions, and those of a file that may call one of them, or one that does: what becomes of a result is up to
    them.
    """
    if tree is None:
        return {*functions}
    objects = _objects(tree)
    found, names = {*functions}, {name for function in functions for name in objects.get(function, {function.name})}
    others = {n: _called_names(n) for n in statements(tree) if isinstance(n, Definition)}
    while more := {function for function, called in others.items() if function not in found and called & names}:
        found |= more
        names |= {name for function in more for name in objects.get(function, {function.name})}
    return found


def _objects(tree: ast.AST) -> dict[Definition, set[str]]:
    """For each method of a file that runs where its object is called, the names that such objects are given."""
    methods = {
        cls.name: [m for m in cls.body if isinstance(m, Definition) and m.name in ("forward", "__call__")]
        for cls in statements(tree)
        if isinstance(cls, ast.ClassDef)
    }
    found: dict[Definition, set[str]] = {}
    for statement in statements(tree):
        if isinstance(statement, ast.Assign):
            made = {n.id for n in nodes_in(statement.value) if isinstance(n, ast.Name)} & methods.keys()
            targets = {t.id if isinstance(t, ast.Name) else getattr(t, "attr", "") for t in statement.targets}
            for method in (method for name in made for method in methods[name]):
                found.setdefault(method, {method.name}).update(targets)
    return found


def _called(functions: set[Definition], tree: ast.AST | None) -> set[Definition]:
    """The functions and methods of a file that some functions may call: what is given to them, or kept in an object,
    goes through them.
    """
    calls = [n.func for f in functions for n in nodes_in(f) if isinstance(n, ast.Call)]
    names = {n.id if isinstance(n, ast.Name) else n.attr for n in calls if isinstance(n, (ast.Name, ast.Attribute))}
    return {n for n in statements(tree) if isinstance(n, Definition) and n.name in names} if tree is not None else set()


def _called_names(function: Definition) -> set[str]:
    """The names of what a function may call: a property is called by its name alone."""
    nodes = nodes_in(function)
    called = {n.func.id for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    return called | {n.attr for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)}


def _definition(info: FunctionInfo) -> Definition | None:
    """The innermost `def` around a finding of this function: for a lambda, the function that holds it."""
    around: FunctionInfo | None = info
    while around is not None and isinstance(around.node, ast.Lambda):
        around = around.outer
    return around.node if around is not None and not isinstance(around.node, ast.Lambda) else None


def check(
    source: Source, project: Project | None = None, settings: Settings | None = None, *, recorded: bool = False
) -> Result:
    """Findings of one file. A text that does not parse has none; `source.problem` says why.

    `project` gives the definitions of other modules; without one, every import from outside torch and the standard
    library is unknown. With `recorded`, facts are kept while the findings are made, where that gives the same ones:
    they are asked for next.
    """
    project = project or Project()
    settings = settings or Settings()
    if not may_drive(project, source):
        return Result(source)
    module = project.read(source)
    if module is None:
        return Result(source)
    session = AnalysisSession(module, project, settings)
    recordings = _walk(session, record=recorded)
    everything = report(session.summaries.roots)
    again = recompilations(session.driven, session.judging)
    places: dict[tuple[str, str], Place] = {
        (path, one.finding.key): (one.node, one.info) for path, found in everything.items() for one in found
    }
    places.update({(one.finding.path, one.finding.key): (one.node, one.info) for one in again})
    variations = {(one.finding.path, one.finding.key): one.variation for one in again}
    driven_here = frozenset(summary.info for summary, _ in session.summaries.roots)
    by_path = merged(session.driven, everything, again, settings)
    own = by_path.pop(source.path, ())
    session.close()
    return Result(
        source,
        own,
        by_path,
        tuple(session.notes),
        places,
        variations,
        (project, settings, module),
        driven_here,
        recordings,
    )


def _walk(
    session: AnalysisSession, callers: Callers = "known", *, compiled: bool = False, record: bool = False
) -> dict[Callers | _Others, Recording]:
    """Walks the roots; with `compiled`, those alone for which a compile site is in sight. With `record`, and where none
    is in sight, all that is walked is recorded: it is walked as for any caller then."""
    assert session.module is not None
    driven = session.drive(callers)
    recordings: dict[Callers | _Others, Recording] = {}
    if record and driven is None:
        recordings["anyone"] = session.recording = Recording()
    for root in roots(session, session.module, driven):
        if not compiled or root.region.kind == "compiled":
            session.walk_root(root)
    if callers == "anyone":
        traced = [
            summary.info for summary in (*session.summaries, *(summary for summary, _ in session.summaries.roots))
        ]
        for root in called_by_others(session, session.module, traced):
            session.walk_root(root)
    return recordings
