"""Writes a branch as a call of `graphmend.runtime.select`: each side becomes a function of no arguments."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import fresh, live_into, surely_bound, writes
from graphmend.transforms.code.text_edits import HOLE
from graphmend.transforms.if_conversion.side_functions import NotAFunctionError, Side
from graphmend.transforms.if_conversion.tensor_predicates import Predicates
from graphmend.transforms.legality.speculation import repeatable

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

RUNTIME = "graphmend.runtime"


class SelectWriter:
    """Writes one call. `flagged` are the results that a flag alone has read, each with it; `unbound` those of them that
    may not be bound in front of the branch.
    """

    def __init__(
        self,
        facts: FunctionFacts,
        predicates: Predicates,
        imports: Imports,
        options: str,
        flagged: Mapping[str, str],
        unbound: Sequence[str],
    ) -> None:
        self.facts, self.predicates, self.options = facts, predicates, options
        self.flagged, self.unbound = flagged, unbound
        self.function = imports.name(f"{RUNTIME}.select", RUNTIME)
        self.lines: list[str] = []
        self.kept: list[list[ast.stmt]] = []

    def written(
        self, statement: ast.If, condition: str, sides: Sequence[Side], results: Sequence[str]
    ) -> tuple[str, list[list[ast.stmt]]]:
        """The new text, and the statements that live on in it."""
        texts = [self._function(side, name, results) for side, name in zip(sides, ("then", "otherwise"), strict=True)]
        head = "return" if not results else f"{', '.join(results)} ="
        line = f"{head} {self.function}({condition}, {texts[0]}, {texts[1]}{self.options})"
        return "\n".join([*self.lines, line]) + "\n", self.kept

    def _in_order(self, side: Side, results: Sequence[str]) -> bool:
        """Does a tuple of the results evaluate all that a side does, and in its order, as far as that is seen?"""
        matters = [name for name, value in side.bound.items() if not repeatable(self.facts, value)]
        return matters == [name for name in results if name in matters]

    def _function(self, side: Side, wanted: str, results: Sequence[str]) -> str:
        """A function of no arguments that runs a side."""
        code = self.predicates.code
        if side.simple and self._in_order(side, results):
            values = [self._given(n, code.argument(side.bound[n]) if n in side.bound else n) for n in results]
            if not results:
                values = [code.argument(s.value) for s in side.statements if isinstance(s, ast.Return) and s.value][:1]
            text = values[0] if len(values) == 1 else f"({', '.join(values)})"
            if "\n" not in text:
                return f"lambda: {text}"
        name = fresh(self.facts, wanted, self.predicates.taken)
        self.predicates.taken.append(name)
        given = ast.Return(ast.Tuple([ast.Name(n, ast.Load()) for n in results], ast.Load()))
        needed = sorted(live_into([*side.statements, given]) & writes(*side.statements))
        bound = surely_bound(self.facts, self.facts.statement).union(self.unbound)
        unbound = [n for n in needed if n not in bound]
        if unbound:
            raise NotAFunctionError(f"`{unbound[0]}` may not be bound before the branch")
        self.lines.append(f"def {name}({', '.join(f'{n}={n}' for n in needed)}):")
        self.lines.append(f"    {HOLE.format(len(self.kept))}")
        self.kept.append(side.statements)
        if results:
            self.lines.append(f"    return {', '.join(self._given(n, n) for n in results)}")
        return name

    def _given(self, name: str, value: str) -> str:
        """What a side gives for a result: None where nothing will read it."""
        return f"{value} if {self.flagged[name]} else None" if name in self.flagged else value
