"""What resolving names, classes, annotations and attributes needs from the analysis that asks."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from graphmend.analysis.lattice.values import Value
    from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo, ModuleInfo
    from graphmend.analysis.program.entities import Function
    from graphmend.analysis.program.project import Project
    from graphmend.analysis.settings import Settings
    from graphmend.analysis.torch_facts import TorchFacts


class Evaluator(Protocol):
    """Evaluates single expressions without walking the function that they stand in."""

    def evaluate(self, module: ModuleInfo, node: ast.expr) -> Value:
        """The value of an expression at a module's top level."""

    def evaluate_in(self, module: ModuleInfo, scope: FunctionInfo | None, node: ast.expr) -> Value:
        """The value of an expression in a function, whose locals are evaluated on demand; at the top level for None."""

    def evaluate_for(self, method: FunctionInfo, receiver: Value, node: ast.expr) -> Value:
        """The value of an expression in a method that is called on `receiver`."""

    def examples(self, function: Function) -> tuple[Value, ...] | None:
        """What a module-level `example_inputs()` says that a function's arguments are; None without one that fits."""

    def defined(
        self, module: ModuleInfo, scope: FunctionInfo | None, node: ast.FunctionDef | ast.AsyncFunctionDef
    ) -> Function | None:
        """The function that a `def` makes, bound to an instance where it is a method."""


class Depth(Protocol):
    """Where the evaluation stands."""

    depth: int
    """How many calls deep it is."""


class ProgramView(Protocol):
    """The program as one analysis sees it: the module at hand, the project around it, and what is known of both."""

    module: ModuleInfo | None
    """The module that is checked."""
    project: Project
    settings: Settings
    torch: TorchFacts
    module_classes: dict[ClassInfo, bool]
    """Whether classes derive from `torch.nn.Module`, as far as asked."""
    outside: dict[ClassInfo, list[str]]
    """Of classes: the qualified names of the bases that are out of reach."""
    known_parameters: dict[tuple[FunctionInfo, str], Value]
    """What declarations of parameters say, as far as asked."""

    @property
    def stack(self) -> Depth: ...

    @property
    def reading(self) -> Evaluator: ...

    def note_attribute_read(self, info: ClassInfo, name: str) -> None:
        """Note that what is evaluated now depends on an attribute."""

    def decorated(self, info: FunctionInfo, bound: Value | None = None) -> Value:
        """What a definition's name stands for: what its decorators make of it."""

    def declared(self, module: ModuleInfo, node: ast.expr | None, name: str, where: str) -> Value:
        """The value that an annotation promises; UNKNOWN without one. `name` and `where` go into the evidence."""
