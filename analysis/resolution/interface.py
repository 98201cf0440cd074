"""Interfaces through which resolution calls back the analysis that uses it."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from graphmend.analysis.lattice.values import Value
    from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo, ModuleInfo
    from graphmend.analysis.program.entities import Function
    from graphmend.analysis.program.project import Project
    from graphmend.analysis.settings import Settings
    from graphmend.analysis.syntax.nodes import FunctionNode
    from graphmend.analysis.torch_facts import TorchFacts


class Evaluator(Protocol):
    """Evaluates single expressions without walking the function around them."""

    def evaluate(self, module: ModuleInfo, node: ast.expr) -> Value:
        """The value of an expression at a module's top level."""

    def evaluate_in(self, module: ModuleInfo, scope: FunctionInfo | None, node: ast.expr) -> Value:
        """The value of an expression in a function, whose locals are evaluated on demand; at the top level for None."""

    def evaluate_for(self, method: FunctionInfo, receiver: Value, node: ast.expr) -> Value:
        """The value of an expression in a method that is called on `receiver`."""

    def examples(self, function: Function) -> tuple[Value, ...] | None:
        """The arguments of a function by the module's `example_inputs()`; None without one that fits."""

    def locals_of(self, info: FunctionInfo) -> Mapping[str, Value]:
        """The parameters and inner functions of a function, as far as its text alone says what they are."""


class Depth(Protocol):
    """The part of the call stack that bounds evaluation."""

    depth: int
    """How deep calls are nested."""


class ProgramView(Protocol):
    """The program as one analysis sees it: the checked module, the project, and caches of lookups."""

    module: ModuleInfo | None
    """The module that is checked."""
    project: Project
    settings: Settings
    torch: TorchFacts
    module_classes: dict[ClassInfo, bool]
    """Cache: whether classes derive from `torch.nn.Module`."""
    outside: dict[ClassInfo, list[str]]
    """Cache: for each class, the qualified names of its bases without available source."""
    known_parameters: dict[tuple[FunctionInfo, str], Value]
    """Cache: the declared values of parameters."""
    passes_arrays: bool
    """Whether callers are thought of that pass NumPy's arrays where these can be used as tensors are."""
    asked: dict[FunctionInfo, dict[Any, Hashable]]
    """What was asked of functions' texts to find the roots, with the answers."""

    @property
    def stack(self) -> Depth: ...

    @property
    def reading(self) -> Evaluator: ...

    def note_attribute_read(self, info: ClassInfo, name: str) -> None:
        """Record that the current evaluation depends on an attribute."""

    def inner_function(self, node: FunctionNode, outer: FunctionInfo) -> FunctionInfo:
        """The definition of a function inside another one."""

    def decorated(self, info: FunctionInfo, bound: Value | None = None) -> Value:
        """The function that the name of a definition stands for, after its decorators."""

    def declared(self, module: ModuleInfo, node: ast.expr | None, name: str, where: str) -> Value:
        """The value that an annotation declares; UNKNOWN without one. `name` and `where` go into the evidence."""
