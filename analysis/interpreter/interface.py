"""The one interface through which the parts of the interpreter call each other back.

Evaluators are given a `Walk`, the walk of one function; the walk is given a `Host`, the analysis that it is a part of.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from graphmend.analysis.resolution.interface import Depth, ProgramView

if TYPE_CHECKING:
    from graphmend.analysis.interpreter.events import Event, Situation
    from graphmend.analysis.lattice.arguments import Arguments, Keywords
    from graphmend.analysis.lattice.environment import Environment
    from graphmend.analysis.lattice.values import Value
    from graphmend.analysis.program.definitions import FunctionInfo, ModuleInfo
    from graphmend.analysis.program.entities import Function
    from graphmend.analysis.region.mode import Mode
    from graphmend.analysis.region.roots import Region
    from graphmend.analysis.syntax.nodes import FunctionNode


class Frames(Depth, Protocol):
    """Which walks are under way."""

    traced: bool
    """Whether what is walked lies in a region that is compiled."""


class Host(ProgramView, Protocol):
    """What a walk needs from the analysis that it is a part of."""

    @property
    def stack(self) -> Frames: ...

    @property
    def region(self) -> Region:
        """Why what is walked is traced."""

    @property
    def mode(self) -> Mode:
        """With which of Dynamo's switches it is traced."""

    def within(self, mode: Mode) -> AbstractContextManager[None]:
        """Walk what follows as it is traced in another mode."""

    def listens(self, callee: str) -> bool:
        """Whether a rule cares for calls of `callee`."""

    def judge(self, w: Walk, kind: type[Event], node: ast.expr | ast.stmt, details: tuple[Any, ...]) -> None:
        """Ask the rules that subscribe to an event, and keep what they find."""

    def enter(self, function: Function, args: Arguments, keywords: Keywords, w: Walk, node: ast.AST) -> Value:
        """The value of a call of a function in reach."""

    def inner_function(self, node: FunctionNode, outer: FunctionInfo) -> FunctionInfo:
        """The definition of a function inside another one."""


class Walk(Protocol):
    """The walk of one function, as evaluators of expressions and statements see it."""

    session: Host
    info: FunctionInfo
    module: ModuleInfo
    env: Environment
    closure: Mapping[str, Value] | None
    depth: int
    situation: Situation
    statement: ast.stmt | None
    """The statement that is walked."""
    yields: list[Value]
    silent: int
    """Above zero, events are not told to the rules."""
    unrolled: int
    """How many comprehensions around this place are evaluated for each item."""
    resumed: int
    """How often the walk went on behind a graph break."""
    path_ends: set[str]
    """The last names of all dotted paths that `env` may hold."""
    lazy: dict[str, ast.expr | Value]
    """Locals that are evaluated on demand; what they were found to be."""

    @property
    def always(self) -> bool:
        """Whether every run gets to where the walk stands."""

    def eval(self, node: ast.expr) -> Value:
        """The value of an expression."""

    def restoring(self) -> AbstractContextManager[None]:
        """A context at whose end the situation is what it was; behind an exception, the names are too."""

    def emit(self, kind: type[Event], node: ast.expr | ast.stmt, *details: Any) -> None:
        """Tell the rules of an event at `node`."""

    def resume(self, always: bool = True) -> None:
        """Go on behind a graph break."""

    def apply(self, callee: Value, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """The value of `callee(*args, **keywords)`."""

    def external(self, name: str, receiver: Value | None, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """The value of a call that ends outside the code in reach."""
