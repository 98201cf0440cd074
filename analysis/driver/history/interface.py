"""What the parts of the recording machine may ask of it."""

from __future__ import annotations

import ast
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from graphmend.analysis.driver.execution.interface import Machine
from graphmend.analysis.driver.execution.objects import Atom, Compiled, Object, Scope, Values

if TYPE_CHECKING:
    from graphmend.analysis.driver.guards.trace import Frame, Trace
    from graphmend.analysis.driver.guards.variation import Place, Variation

#: methods of containers that change how many they hold, or what they hold it by
CHANGING = frozenset(
    "add append appendleft clear discard extend insert pop popitem popleft remove setdefault update".split()
)
#: by this name a container's last change is noted; no attribute, variable or key has it
HELD = ""


class Recorder(Machine, Protocol):
    """The state of one history."""

    trace: Trace | None
    """The traced call that is executed now."""
    modes: dict[str, bool]
    frames: dict[object, Frame]
    variations: list[Variation]
    signal: str
    """"break", "continue" or "return" while a loop or function is left for certain."""
    choices: tuple[tuple[ast.AST, bool], ...]
    """The branches around, of conditions that are not known."""
    program_number: int
    draws: int
    """How many numbers were drawn at random since the generator was seeded."""
    in_place: dict[int, Compiled]
    """By identity, objects that compile their own calls."""

    def place(self, node: ast.expr | ast.stmt, scope: Scope) -> Place:
        """Where a node of a scope's code stands."""

    def write(self, owner: Atom | Scope, name: str) -> Place | None:
        """Where an attribute or a variable was set last."""

    def mode(self, name: str, value: bool) -> AbstractContextManager[None]:
        """Run the block in another mode."""

    def eager(
        self, owner: Object, arguments: list[Values], keywords: dict[str, Values], node: ast.expr, scope: Scope
    ) -> Values:
        """A call of an object of the program, whose code is executed."""
