"""The pure check: a source in, findings out."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from graphmend.analysis.definitions import FunctionInfo
from graphmend.analysis.facts import FunctionFacts, Recording
from graphmend.analysis.finding import Finding
from graphmend.analysis.project import Project
from graphmend.analysis.region import roots
from graphmend.analysis.session import Session
from graphmend.analysis.settings import Settings
from graphmend.analysis.source import Source


@dataclass
class Result:
    """The findings of one file, in the order of its text, and what a rewrite may ask about each.

    `elsewhere` holds what the walk found in other files on its way, by path: it belongs to their results.
    """

    source: Source
    findings: tuple[Finding, ...] = ()
    elsewhere: dict[str, tuple[Finding, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    _places: dict[str, tuple[ast.AST, FunctionInfo]] = field(default_factory=dict, repr=False)
    _again: tuple[Project, Settings] | None = field(default=None, repr=False)
    _recorded: dict[ast.AST, Recording] = field(default_factory=dict, repr=False)

    def facts(self, finding: Finding) -> FunctionFacts:
        """What the walk knows about the function that `finding` stands in. Walks the module's roots again, with a record."""
        if self._again is None or finding.key not in self._places:
            raise LookupError(f"{finding.code} is no finding of this result")
        project, settings = self._again
        node, info = self._places[finding.key]
        assert isinstance(node, (ast.expr, ast.stmt))
        function = _definition(self.source, node)
        recording = self._recorded.get(function)
        session = Session(info.module, project, settings)
        if recording is None:
            recording = self._recorded[function] = session.recording = Recording(function)
            _walk(session)
        names = dict(info.module.imports)
        return recording.facts(self.source, node, names, session.torch.minor)


def check(source: Source, project: Project | None = None, settings: Settings | None = None) -> Result:
    """Findings of one file. A text that does not parse has none; `source.problem` says why.

    `project` gives the definitions of other modules; without one, every import from outside torch and the standard library is unknown.
    """
    project = project or Project()
    settings = settings or Settings()
    if "torch" not in source.text:
        return Result(source)
    module = project.read(source)
    if module is None:
        return Result(source)
    session = Session(module, project, settings)
    _walk(session)
    found = session.report.of(source.path)
    places = {finding.key: (node, info) for finding, node, info in found}
    elsewhere = session.report.elsewhere(source.path)
    return Result(
        source, tuple(f for f, _, _ in found), elsewhere, tuple(session.report.notes), places, (project, settings)
    )


def _walk(session: Session) -> None:
    assert session.module is not None
    for root in roots(session, session.module):
        session.walk_root(root.function, root.region, root.given)


def _definition(source: Source, node: ast.expr | ast.stmt) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """The innermost `def` around a node."""
    assert source.tree is not None
    best: ast.FunctionDef | ast.AsyncFunctionDef | None = None
    for candidate in ast.walk(source.tree):
        if isinstance(candidate, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(
            n is node for n in ast.walk(candidate)
        ):
            best = candidate  # ast.walk goes outside in, so the last one is the innermost
    if best is None:
        raise LookupError("the finding stands in no function")
    return best
