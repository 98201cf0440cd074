"""Events: what the interpreter reports to the rules, one for each operation that may break the graph."""

from __future__ import annotations

import ast
from typing import Literal

from graphmend.analysis.driver.guards.variation import Variation
from graphmend.analysis.lattice.arguments import Arguments, Keywords
from graphmend.analysis.lattice.values import Value
from graphmend.analysis.resolution.custom_operators import Operator

BranchKind = Literal["if", "while", "ternary", "and", "or", "not", "assert", "raise", "match", "filter", "boolean"]


class Situation:
    """The context of a statement, as far as it changes the effect or certainty of a break."""

    __slots__ = ("blocks", "conditional", "gradients_off")

    def __init__(self) -> None:
        self.blocks: list[str] = []
        """Enclosing "for", "while", "try", "except", "with" (of a context that Dynamo can't resume), innermost last."""
        self.conditional = 0
        """How many enclosing branches have a condition that is known while tracing, but not to the analysis."""
        self.gradients_off = False
        """Whether gradients are off for certain: the innermost context that has a say decides."""


class Event:
    """Base. `node` is the expression or statement that a finding would mark; `statement` the one around it."""

    __slots__ = ("node", "situation", "statement")

    def __init__(self, node: ast.expr | ast.stmt, statement: ast.stmt, situation: Situation) -> None:
        self.node = node
        self.statement = statement
        self.situation = situation


class Branch(Event):
    """The truth value of `value` is needed."""

    __slots__ = ("kind", "message", "value")

    def __init__(
        self,
        node: ast.expr,
        statement: ast.stmt,
        situation: Situation,
        value: Value,
        kind: BranchKind,
        message: Value | None = None,
    ) -> None:
        super().__init__(node, statement, situation)
        self.value = value
        self.kind = kind
        self.message = message
        """The message of an `assert`; None without one."""


class Call(Event):
    """A call of a function without available source. `callee` is its qualified name, such as `torch.Tensor.item`."""

    __slots__ = ("answer", "arguments", "callee", "keywords", "receiver")
    node: ast.expr

    def __init__(
        self,
        node: ast.expr,
        statement: ast.stmt,
        situation: Situation,
        callee: str,
        receiver: Value | None,
        arguments: Arguments,
        keywords: Keywords,
        answer: Value | None = None,
    ) -> None:
        super().__init__(node, statement, situation)
        self.callee = callee
        self.receiver = receiver
        self.arguments = arguments
        self.keywords = keywords
        self.answer = answer
        """What the predicate or key function among the arguments returns for an element; FALSE of `requires_grad_`,
        where nothing that the graph returns has a history."""

    def argument(self, position: int, keyword: str = "") -> Value | None:
        """An argument by position or keyword; None where the call does not pass it."""
        if position < len(self.arguments):
            return self.arguments[position]
        return self.keywords.get(keyword)


class CustomCall(Event):
    """A call of an operator that the program registers with `torch.library`."""

    __slots__ = ("arguments", "operator")

    def __init__(
        self,
        node: ast.expr | ast.stmt,
        statement: ast.stmt,
        situation: Situation,
        operator: Operator,
        arguments: Arguments,
    ) -> None:
        super().__init__(node, statement, situation)
        self.operator = operator
        self.arguments = arguments


class Subscript(Event):
    """`value[index]`, read (or written, with `store`)."""

    __slots__ = ("index", "store", "value")
    node: ast.Subscript

    def __init__(
        self, node: ast.Subscript, statement: ast.stmt, situation: Situation, value: Value, index: Value, store: bool
    ) -> None:
        super().__init__(node, statement, situation)
        self.value = value
        self.index = index
        self.store = store


class Load(Event):
    """An object of a class that Dynamo does not take in is read from a name, an attribute or an element."""

    __slots__ = ("value",)
    node: ast.expr

    def __init__(self, node: ast.expr, statement: ast.stmt, situation: Situation, value: Value) -> None:
        super().__init__(node, statement, situation)
        self.value = value


class Contains(Event):
    """`item in container`, or another comparison that goes through a container's elements."""

    __slots__ = ("container", "item")

    def __init__(
        self, node: ast.expr, statement: ast.stmt, situation: Situation, item: Value, container: Value
    ) -> None:
        super().__init__(node, statement, situation)
        self.item = item
        self.container = container


class SetAttribute(Event):
    """`owner.name = value`."""

    __slots__ = ("augmented", "name", "owner", "value")

    def __init__(
        self,
        node: ast.expr,
        statement: ast.stmt,
        situation: Situation,
        owner: Value,
        name: str,
        value: Value,
        augmented: bool,
    ) -> None:
        super().__init__(node, statement, situation)
        self.owner = owner
        self.name = name
        self.value = value
        self.augmented = augmented


class Recompiles(Event):
    """Compiled code is compiled anew, because something differs between two calls in sight."""

    __slots__ = ("variation",)

    def __init__(self, node: ast.expr | ast.stmt, situation: Situation, variation: Variation) -> None:
        super().__init__(node, node if isinstance(node, ast.stmt) else ast.Expr(node), situation)
        self.variation = variation


class Operation(Event):
    """Something is done with an object whose class TorchDynamo may model only in part.

    `name` is an operator (`+`, `*=`, `==`, `neg`), a builtin (`len`, `str`), or "iterate", "subscript", "store",
    "contains", "hash", "delete", "return".
    """

    __slots__ = ("name", "value")

    def __init__(
        self, node: ast.expr | ast.stmt, statement: ast.stmt, situation: Situation, name: str, value: Value
    ) -> None:
        super().__init__(node, statement, situation)
        self.name = name
        self.value = value


class Bodies(Event):
    """A call of an operator that traces functions into the graph: `torch.cond` and its kind.

    `operands` are what the functions are called with, and `results` what each of them returns.
    """

    __slots__ = ("functions", "operands", "operator", "results")

    def __init__(
        self,
        node: ast.expr | ast.stmt,
        statement: ast.stmt,
        situation: Situation,
        operator: str,
        functions: tuple[Value, ...],
        operands: tuple[Value, ...],
        results: tuple[Value, ...],
    ) -> None:
        super().__init__(node, statement, situation)
        self.operator = operator
        self.functions = functions
        self.operands = operands
        self.results = results


class OutsideChange(Event):
    """A function that such an operator traces changes a container that is not its own."""

    __slots__ = ("operator",)

    def __init__(self, node: ast.expr | ast.stmt, statement: ast.stmt, situation: Situation, operator: str) -> None:
        super().__init__(node, statement, situation)
        self.operator = operator


class With(Event):
    """A context manager is entered: `callee` is the function that returned it, or `value` the manager."""

    __slots__ = ("callee", "value")

    def __init__(
        self, node: ast.expr, statement: ast.stmt, situation: Situation, callee: str | None, value: Value
    ) -> None:
        super().__init__(node, statement, situation)
        self.callee = callee
        self.value = value


class Raise(Event):
    """An exception leaves the traced function on every run that gets here."""

    __slots__ = ()


class Error(Event):
    """An operation that raises on every run that gets here, because of what the program says: an unbound name,
    arguments that do not fit. `gb_id` is the break that TorchDynamo makes of it, `what` says what is wrong."""

    __slots__ = ("gb_id", "what")

    def __init__(
        self, node: ast.expr | ast.stmt, statement: ast.stmt, situation: Situation, gb_id: str, what: str
    ) -> None:
        super().__init__(node, statement, situation)
        self.gb_id = gb_id
        self.what = what


class Define(Event):
    """A class statement inside traced code."""

    __slots__ = ()


class Generator(Event):
    """A root is a generator function."""

    __slots__ = ()


#: enclosing blocks out of which Dynamo can't resume (torch 2.13): it gives the whole frame up
_LOSES_FRAME = frozenset({"for", "while", "try", "except", "with"})


def loses_frame(situation: Situation) -> bool:
    """Whether a break here costs the whole frame instead of splitting the graph."""
    return any(b in _LOSES_FRAME for b in situation.blocks)


def only_some_rounds(situation: Situation) -> bool:
    """Whether a place within loops is not reached in every iteration."""
    return situation.conditional > sum(block in ("for", "while") for block in situation.blocks)
