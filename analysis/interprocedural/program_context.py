"""The program as one analysis sees it: the checked module, the project, the settings, and caches of lookups."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from graphmend.analysis.lattice.values import Value
from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo, ModuleInfo
from graphmend.analysis.program.project import Project
from graphmend.analysis.settings import Settings
from graphmend.analysis.syntax.nodes import FunctionNode
from graphmend.analysis.torch_facts import load


class ProgramContext:
    """The part of a session that does not depend on which function is analysed."""

    def __init__(self, module: ModuleInfo | None, project: Project, settings: Settings) -> None:
        self.module = module
        self.project = project
        self.settings = settings
        self.torch = load(settings.torch_version)
        self.module_classes: dict[ClassInfo, bool] = {}
        """Cache: whether classes derive from `torch.nn.Module`."""
        self.outside: dict[ClassInfo, list[str]] = {}
        """Cache: for each class, the qualified names of its bases without available source."""
        self.known_parameters: dict[tuple[FunctionInfo, str], Value] = {}
        """Cache: the declared values of parameters."""
        self.passes_arrays = False
        self.asked: dict[FunctionInfo, dict[Any, Hashable]] = {}
        """What was asked of functions' texts to find the roots, with the answers."""
        self._inner: dict[FunctionNode, FunctionInfo] = {}

    def inner_function(self, node: FunctionNode, outer: FunctionInfo) -> FunctionInfo:
        """The definition of a function inside another one."""
        found = self._inner.get(node)
        if found is None:
            found = self._inner[node] = FunctionInfo(node, outer.module, outer=outer)
        return found

    def forget_parameters(self, info: FunctionInfo) -> None:
        """Drop the declared values of a function whose header changed."""
        for name in (p.arg for p in (*info.parameters, *info.node.args.kwonlyargs)):
            self.known_parameters.pop((info, name), None)

    def close(self) -> None:
        """Drop all caches."""
        for kept in (self.module_classes, self.outside, self.known_parameters, self.asked, self._inner):
            kept.clear()
