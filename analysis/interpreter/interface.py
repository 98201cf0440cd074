"""Interfaces between the parts of the interpreter, so that none imports another that imports it.

Evaluators get a `Walk`, the interpretation of one function body; the walk gets a `Host`, the analysis of the program.
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
    from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo, ModuleInfo
    from graphmend.analysis.program.entities import Function
    from graphmend.analysis.region.mode import Mode
    from graphmend.analysis.region.region import Region


class Frames(Depth, Protocol):
    """The part of the call stack that a walk sees."""

    traced: bool
    """Whether the code that is interpreted is traced by TorchDynamo."""


class Host(ProgramView, Protocol):
    """What a walk needs from the analysis of the program."""

    @property
    def stack(self) -> Frames: ...

    @property
    def region(self) -> Region:
        """The region that is analysed: why its code is traced."""

    @property
    def mode(self) -> Mode:
        """With which of TorchDynamo's options it is traced."""

    def within(self, mode: Mode) -> AbstractContextManager[None]:
        """Run the block in another tracing mode."""

    def listens(self, callee: str) -> bool:
        """Whether some rule wants the calls of `callee`."""

    def judge(self, w: Walk, kind: type[Event], node: ast.expr | ast.stmt, details: tuple[Any, ...]) -> None:
        """Make an event, ask the rules that subscribe to it, and keep the verdict."""

    def enter(self, function: Function, args: Arguments, keywords: Keywords, w: Walk, node: ast.AST) -> Value:
        """The value of a call of a function whose source is available."""

    def driven_attribute(self, info: ClassInfo, name: str, *, for_good: bool = False) -> Value:
        """What driver code made an attribute of the instances of a class, in traced code; UNKNOWN where it did not.
        With `for_good` a flag, name or None that it gives them all, and that nothing changes later."""

    def driven_variable(self, module: ModuleInfo, name: str) -> Value:
        """What driver code made a global, in traced code; UNKNOWN where it did not."""


class Walk(Protocol):
    """The interpretation of one function body, as transfer functions see it."""

    session: Host
    info: FunctionInfo
    module: ModuleInfo
    env: Environment
    closure: Mapping[str, Value] | None
    depth: int
    situation: Situation
    statement: ast.stmt | None
    """The current statement."""
    yields: list[Value]
    silent: int
    """Above zero, no events are emitted."""
    unrolled: int
    """How many enclosing comprehensions are evaluated item by item."""
    resumed: int
    """How many graph breaks the walk has passed."""
    path_ends: set[str]
    """The last names of all dotted paths that `env` may hold."""
    lazy: dict[str, list[ast.expr] | Value]
    """Locals that are evaluated on demand: the expressions that are assigned to them, or their value once it was asked
    for."""

    @property
    def always(self) -> bool:
        """Whether every run reaches the current statement."""

    def eval(self, node: ast.expr) -> Value:
        """The value of an expression."""

    def restoring(self) -> AbstractContextManager[None]:
        """A context manager that restores the situation at its end and, behind an exception, the environment."""

    def emit(self, kind: type[Event], node: ast.expr | ast.stmt, *details: Any) -> None:
        """Emit an event at `node` to the rules."""

    def resume(self, always: bool = True) -> None:
        """Continue behind a graph break: tensors become inputs of the next graph."""

    def apply(self, callee: Value, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """The value of `callee(*args, **keywords)`."""

    def external(self, name: str, receiver: Value | None, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """The value of a call of a function without available source."""
