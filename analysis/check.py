"""The pure check: a source in, findings out."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cached_property

from graphmend.analysis.definitions import FunctionInfo
from graphmend.analysis.facts import FunctionFacts, Recording
from graphmend.analysis.finding import Finding
from graphmend.analysis.project import Project
from graphmend.analysis.region import roots
from graphmend.analysis.session import Session
from graphmend.analysis.settings import Settings
from graphmend.analysis.source import Source
from graphmend.analysis.torch_facts import load

Definition = ast.FunctionDef | ast.AsyncFunctionDef


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
    _recording: Recording | None = field(default=None, repr=False)

    def facts(self, finding: Finding) -> FunctionFacts:
        """What the walk knows about the function that `finding` stands in.

        The first call walks the module's roots once more, with a record of every function that has a finding.
        """
        if self._again is None or finding.key not in self._places:
            raise LookupError(f"{finding.code} is no finding of this result")
        project, settings = self._again
        node, info = self._places[finding.key]
        if self._recording is None:
            functions = {self._definitions[n] for n, _ in self._places.values() if n in self._definitions}
            self._recording = Recording(functions)
            session = Session(info.module, project, settings)
            session.recording = self._recording
            _walk(session)
        assert isinstance(node, (ast.expr, ast.stmt))
        version = load(settings.torch_version).minor
        return self._recording.facts(self.source, self._definitions[node], node, dict(info.module.imports), version)

    @cached_property
    def _definitions(self) -> dict[ast.AST, Definition]:
        """The innermost `def` around each node of the source that has a finding."""
        wanted = {node for node, _ in self._places.values()}
        found: dict[ast.AST, Definition] = {}
        assert self.source.tree is not None
        stack: list[tuple[ast.AST, Definition | None]] = [(self.source.tree, None)]
        while stack:
            node, around = stack.pop()
            if node in wanted and around is not None:
                found[node] = around
            inner = node if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else around
            stack.extend((child, inner) for child in ast.iter_child_nodes(node))
        return found


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
