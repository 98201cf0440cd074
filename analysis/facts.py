"""What the walk saw in one function, for whoever must decide whether a rewrite is right.

Made on request by walking the function once more with a record of every expression's value; a check alone keeps no such
record.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from graphmend.analysis.environment import Environment
from graphmend.analysis.flow import Walker
from graphmend.analysis.values import UNKNOWN, Value, join

if TYPE_CHECKING:
    from graphmend.analysis.definitions import FunctionInfo
    from graphmend.analysis.interpreter_interface import Host
    from graphmend.analysis.source import Source

Gradients = Literal["off", "unknown"]


class FunctionFacts:
    """Facts about `function`, the definition that a finding stands in.

    `node` is the expression or statement that the finding is about, `statement` the statement around it, `names` the
    qualified name of everything that the module imports or defines at its top level (`{"F": "torch.nn.functional"}`).
    """

    def __init__(
        self,
        source: Source,
        function: ast.FunctionDef | ast.AsyncFunctionDef,
        node: ast.expr | ast.stmt,
        names: Mapping[str, str],
        values: Mapping[ast.AST, Value],
        environments: Mapping[ast.stmt, Mapping[str, Value]],
        gradients_off: frozenset[ast.stmt],
        torch_version: str,
        parents: Mapping[ast.AST, ast.AST] | None = None,
    ) -> None:
        self.source = source
        self.function = function
        self.node = node
        self.names = names
        self.torch_version = torch_version
        self._values = values
        self._environments = environments
        self._gradients_off = gradients_off
        self._parents = parents if parents is not None else parents_in(function)
        self.statement = next(n for n in (node, *self.ancestors(node)) if isinstance(n, ast.stmt))

    def same_walk(self, other: FunctionFacts) -> bool:
        """Are these facts about another place, from one and the same walk?"""
        return self._values is other._values and self.function is other.function

    def value(self, expression: ast.expr) -> Value:
        """The join of the values that an expression had; UNKNOWN where it was never traced."""
        return self._values.get(expression, UNKNOWN)

    def before(self, statement: ast.stmt) -> Mapping[str, Value]:
        """The local names bound before a statement, with their values; names that may be unbound are absent."""
        return self._environments.get(statement, {})

    def gradients(self, statement: ast.stmt) -> Gradients:
        """`off` where a statement provably runs under `no_grad` or `inference_mode`."""
        return "off" if statement in self._gradients_off else "unknown"

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self._parents.get(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around `node`, innermost first, up to and with the function."""
        while (above := self._parents.get(node)) is not None:
            yield above
            node = above

    def body_of(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statement list that a statement stands in."""
        parent = self._parents[statement]
        for name in ("body", "orelse", "finalbody"):
            block = getattr(parent, name, None)
            if isinstance(block, list) and statement in block:
                return block
        raise LookupError(f"{type(statement).__name__} stands in no block of {type(parent).__name__}")


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Recording:
    """What was seen while walking some definitions, in all of their activations."""

    def __init__(self, functions: set[ast.FunctionDef | ast.AsyncFunctionDef]) -> None:
        self.values: dict[ast.AST, Value] = {}
        self.environments: dict[ast.stmt, Environment] = {}
        self.gradients_on: set[ast.stmt] = set()
        self.gradients_off: set[ast.stmt] = set()
        self._parents: dict[ast.AST, dict[ast.AST, ast.AST]] = {}
        self._inner = {n for f in functions for n in ast.walk(f) if isinstance(n, _FUNCTIONS)}

    def wants(self, info: FunctionInfo) -> bool:
        """Whether a function is one of those asked about, or stands inside one."""
        return info.node in self._inner

    def walker(
        self, session: Host, info: FunctionInfo, env: Environment, closure: Mapping[str, Value] | None, depth: int
    ) -> Walker:
        walker = _RecordingWalker(session, info, env, closure, depth)
        walker.recording = self
        return walker

    def facts(
        self,
        source: Source,
        function: ast.FunctionDef | ast.AsyncFunctionDef,
        node: ast.expr | ast.stmt,
        names: Mapping[str, str],
        torch_version: str,
    ) -> FunctionFacts:
        off = frozenset(self.gradients_off - self.gradients_on)
        parents = self._parents.get(function)
        if parents is None:
            parents = self._parents[function] = parents_in(function)
        seen = (self.values, self.environments, off)
        return FunctionFacts(source, function, node, names, *seen, torch_version, parents)


def parents_in(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    """The node around each node of a tree."""
    return {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}


class _RecordingWalker(Walker):
    """A walk that remembers every expression's value and every statement's environment."""

    recording: Recording

    def eval(self, node: ast.expr) -> Value:
        value = super().eval(node)
        seen = self.recording.values.get(node)
        self.recording.values[node] = value if seen is None else join(seen, value)
        return value

    def step(self, statement: ast.stmt) -> bool:
        record = self.recording
        seen = record.environments.get(statement)
        if seen is None:
            record.environments[statement] = dict(self.env)
        else:
            record.environments[statement] = {k: join(v, self.env[k]) for k, v in seen.items() if k in self.env}
        (record.gradients_off if self.situation.gradients_off else record.gradients_on).add(statement)
        return super().step(statement)
