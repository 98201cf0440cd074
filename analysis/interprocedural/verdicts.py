"""Verdicts: the answers of rules about single places."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphmend.analysis.finding import Finding
    from graphmend.analysis.program.definitions import FunctionInfo
    from graphmend.analysis.region.region import Region
    from graphmend.analysis.rules.rule import Break, Rule


class Verdict:
    """A rule's answer that the graph breaks at a place, as far as it does not depend on the callers of the function."""

    __slots__ = ("breaks", "callee", "conditional", "info", "loses_frame", "made", "node", "raises", "rule")

    def __init__(
        self,
        rule: Rule,
        breaks: Break,
        node: ast.expr | ast.stmt,
        info: FunctionInfo,
        conditional: bool,
        loses_frame: bool,
        callee: str | None,
        raises: bool,
    ) -> None:
        self.rule = rule
        self.breaks = breaks
        self.node = node
        self.info = info
        self.conditional = conditional
        self.loses_frame = loses_frame
        self.callee = callee
        self.raises = raises
        self.made: tuple[Region, bool, int, Finding] | None = None
        """The last finding made from it, with region, certainty and line shift."""
