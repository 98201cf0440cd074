"""Facts about one function: the abstract values in it, by which rewrites decide whether they are legal."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from graphmend.analysis.lattice.dependence import alike
from graphmend.analysis.lattice.values import UNKNOWN, Value
from graphmend.analysis.syntax.traversal import nodes_in

if TYPE_CHECKING:
    from graphmend.analysis.driver.guards.variation import Variation
    from graphmend.analysis.syntax.source import Source


Gradients = Literal["off", "unknown"]


class FunctionFacts:
    """Facts about `function`, the definition that a finding stands in.

    `node` is the expression or statement that the finding is about, `statement` the statement around it, `names` the
    qualified name of everything that the module imports or defines at its top level (`{"F": "torch.nn.functional"}`).
    Where the finding says that something is compiled anew, `variation` is what varies, and `function` and `node` are
    what is compiled, or the function that calls it where that is not of the same file.
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
        variation: Variation | None = None,
    ) -> None:
        self.source = source
        self.function = function
        self.node = node
        self.names = names
        self.torch_version = torch_version
        self.variation = variation
        self.any_callers: Iterable[Callable[[], FunctionFacts | None]] = ()
        """Make the same facts as they are for more callers than those of the calls in sight."""
        self.calls: Callable[[], Iterable[FunctionFacts]] = tuple
        """Makes the facts at each call of the function in traced code, as far as there are such in sight."""
        self._values = values
        self._environments = environments
        self._gradients_off = gradients_off
        self._parents = parents if parents is not None else parents_in(function)
        self.statement = next(n for n in (node, *self.ancestors(node)) if isinstance(n, ast.stmt))

    @cached_property
    def of_any_callers(self) -> list[FunctionFacts]:
        """The same facts as they are for more callers than those of the calls in sight."""
        return [facts for make in self.any_callers if (facts := make()) is not None]

    def recall(self) -> None:
        """Makes what is only made on first asking, while the texts are those that it is about."""
        _ = self.of_any_callers

    @cached_property
    def owner(self) -> ast.ClassDef | None:
        """The class of the file that the function is a method of."""
        classes = (n for n in nodes_in(self.source.tree) if isinstance(n, ast.ClassDef)) if self.source.tree else ()
        return next((c for c in classes if self.function in c.body), None)

    def within(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> FunctionFacts:
        """The facts of another function of the file, from the same recording."""
        seen = (self._values, self._environments, self._gradients_off)
        return FunctionFacts(self.source, function, function, self.names, *seen, self.torch_version)

    def about(self, statement: ast.stmt) -> FunctionFacts:
        """The same facts about another statement of the function: what holds where that one is reached."""
        seen = (self._values, self._environments, self._gradients_off)
        found = FunctionFacts(
            self.source, self.function, statement, self.names, *seen, self.torch_version, self._parents, self.variation
        )
        found.any_callers, found.calls = self.any_callers, self.calls
        return found

    def is_traced(self, statement: ast.stmt) -> bool:
        """Whether a walk came to a statement."""
        return statement in self._environments

    def same_walk(self, other: FunctionFacts) -> bool:
        """Whether both are facts about one function from one recording; they may be about different places in it."""
        return self._values is other._values and self.function is other.function

    def are_those_of(self, other: FunctionFacts) -> bool:
        """Whether every expression of the function has the same value in another recording."""
        nodes = [node for node in nodes_in(self.function) if isinstance(node, (ast.expr, ast.stmt))]
        return all(
            alike(self.value(node), other.value(node))
            if isinstance(node, ast.expr)
            else self.gradients(node) == other.gradients(node) and self.is_traced(node) == other.is_traced(node)
            for node in nodes
        )

    def value(self, expression: ast.expr) -> Value:
        """The join of the values that an expression had; UNKNOWN where it was never traced."""
        return self._values.get(expression, UNKNOWN)

    def before(self, statement: ast.stmt) -> Mapping[str, Value]:
        """The local names bound before a statement on some path at least, with their values."""
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


def parents_in(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    """The node around each node of a tree."""
    return {child: parent for parent in nodes_in(tree) for child in ast.iter_child_nodes(parent)}


def above(parents: Mapping[ast.AST, ast.AST], node: ast.AST) -> Iterator[ast.AST]:
    """The nodes around a node, innermost first."""
    while (around := parents.get(node)) is not None:
        yield around
        node = around
