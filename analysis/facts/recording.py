"""Records the value of every expression, and the environment before every statement, while functions are walked.
Rewrites ask for it; a check alone records nothing."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from graphmend.analysis.facts.function_facts import FunctionFacts, parents_in
from graphmend.analysis.facts.seen import SeenEnvironments, SeenValues
from graphmend.analysis.interpreter.walk.statements import Walker
from graphmend.analysis.lattice.environment import Environment
from graphmend.analysis.lattice.values import Value
from graphmend.analysis.syntax.traversal import nodes_in

if TYPE_CHECKING:
    from graphmend.analysis.driver.guards.variation import Variation
    from graphmend.analysis.interpreter.interface import Host, Walk
    from graphmend.analysis.program.definitions import FunctionInfo
    from graphmend.analysis.syntax.source import Source


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Recording:
    """What was computed while walking some definitions, or all where none are named: the join over all their
    summaries."""

    def __init__(self, functions: set[ast.FunctionDef | ast.AsyncFunctionDef] | None = None) -> None:
        self.values = SeenValues()
        self.environments = SeenEnvironments()
        self.gradients_on: set[ast.stmt] = set()
        self.gradients_off: set[ast.stmt] = set()
        self._parents: dict[ast.AST, dict[ast.AST, ast.AST]] = {}
        self._calls: dict[ast.AST, dict[ast.expr | ast.stmt, FunctionInfo]] = {}
        """The calls of each function in traced code, each with the function that it stands in."""
        self._inner: set[ast.AST] | None = None
        if functions is not None:
            self._inner = {n for f in functions for n in nodes_in(f) if isinstance(n, _FUNCTIONS)}

    def wants(self, info: FunctionInfo) -> bool:
        """Whether a function is one of those asked about, or stands inside one."""
        return self._inner is None or info.node in self._inner

    def walker(
        self, session: Host, info: FunctionInfo, env: Environment, closure: Mapping[str, Value] | None, depth: int
    ) -> Walker:
        walker = _RecordingWalker(session, info, env, closure, depth)
        walker.recording = self
        return walker

    def called(self, info: FunctionInfo, w: Walk, node: ast.AST) -> None:
        if isinstance(node, (ast.expr, ast.stmt)):
            self._calls.setdefault(info.node, {})[node] = w.info

    def facts(
        self,
        source: Source,
        function: ast.FunctionDef | ast.AsyncFunctionDef,
        node: ast.expr | ast.stmt,
        names: Mapping[str, str],
        torch_version: str,
        variation: Variation | None = None,
    ) -> FunctionFacts:
        off = frozenset(self.gradients_off - self.gradients_on)
        parents = self._parents.get(function)
        if parents is None:
            parents = self._parents[function] = parents_in(function)
        seen = (self.values, self.environments, off)
        facts = FunctionFacts(source, function, node, names, *seen, torch_version, parents, variation)
        facts.calls = partial(self._facts_at_calls, function, torch_version)
        return facts

    def _facts_at_calls(self, function: ast.AST, torch_version: str) -> list[FunctionFacts]:
        """The facts at each call of a function in sight; of a function that is not recorded no value is known."""
        found = []
        for node, info in self._calls.get(function, {}).items():
            around = info.node
            if not isinstance(around, ast.Lambda):
                names = dict(info.module.imports)
                found.append(self.facts(info.module.source, around, node, names, torch_version))
        return found


class _RecordingWalker(Walker):
    """A walk that remembers every expression's value and every statement's environment."""

    recording: Recording

    def eval(self, node: ast.expr) -> Value:
        value = super().eval(node)
        self.recording.values.record(node, value)
        return value

    def step(self, statement: ast.stmt) -> bool:
        record = self.recording
        record.environments.record(statement, self.env)
        (record.gradients_off if self.situation.gradients_off else record.gradients_on).add(statement)
        return super().step(statement)
