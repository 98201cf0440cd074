"""Interfaces between the parts of the interprocedural analysis."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from graphmend.analysis.interpreter.interface import Host, Walk

if TYPE_CHECKING:
    from graphmend.analysis.interpreter.walk.statements import Walker
    from graphmend.analysis.interprocedural.call_stack import CallStack
    from graphmend.analysis.interprocedural.summary_table import SummaryTable
    from graphmend.analysis.lattice.environment import Environment
    from graphmend.analysis.lattice.values import Value
    from graphmend.analysis.program.definitions import FunctionInfo


class Analysis(Host, Protocol):
    """The analysis of one file's functions."""

    @property
    def stack(self) -> CallStack: ...

    @property
    def summaries(self) -> SummaryTable: ...

    def isolated(self) -> AbstractContextManager[None]:
        """Run what follows with an empty call stack, no variant counts and a private summary table, so that its result
        does not depend on the caller."""

    def walk_body(
        self,
        info: FunctionInfo,
        env: Environment,
        closure: Mapping[str, Value] | None,
        silent: int,
        caller: Walk | None,
    ) -> Value:
        """Walk a function's body and return the value of the call. A closure is walked as a part of `caller`."""


class Recorder(Protocol):
    """Records what walks of some functions compute."""

    def wants(self, info: FunctionInfo) -> bool:
        """Whether a function is one of those asked about, or stands inside one."""

    def walker(
        self, session: Host, info: FunctionInfo, env: Environment, closure: Mapping[str, Value] | None, depth: int
    ) -> Walker:
        """A walker that records."""

    def called(self, info: FunctionInfo, w: Walk, node: ast.AST) -> None:
        """Note that traced code calls a function at a node."""
