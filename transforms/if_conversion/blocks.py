"""If-conversion: what a block of statements would bind, change and return, as values that can be selected afterwards.

A block qualifies when it only computes: assignments to names, in-place methods of tensors, stores (see `stores`),
`pass`, nested `if`s, and `return` at the end of its paths. Whatever else stands in it is a reason to refuse.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.external import ExternalName
from graphmend.analysis.lattice.values import Const, Static, Tensor, may_be_none
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import is_atom, shortened
from graphmend.transforms.code.liveness import alive, fresh, reads, stored
from graphmend.transforms.code.qualified_names import number_type
from graphmend.transforms.if_conversion.branch_statement import asks_for_none, may_return, returns
from graphmend.transforms.if_conversion.not_taken import double_where
from graphmend.transforms.if_conversion.not_taken.index_inside import keep_inside
from graphmend.transforms.if_conversion.places.read_again import may_read
from graphmend.transforms.if_conversion.selection import RETURN, NotSelectableError, SideValue, incoming, select
from graphmend.transforms.if_conversion.stores import Change, added, augmented, change_of, store_of
from graphmend.transforms.if_conversion.tensor_predicates import Predicates
from graphmend.transforms.if_conversion.value_tests import depends
from graphmend.transforms.legality.gradients.sides import recorded
from graphmend.transforms.legality.same_shape import ShapeInference, TensorType
from graphmend.transforms.legality.speculation import speculate

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_LONG = 60  # a selection of more characters gets a name of its own before it becomes a part of another


@dataclass
class Block:
    """What a block does, seen from its entry."""

    facts: FunctionFacts
    predicates: Predicates
    suffix: str
    """What temporary names of this block end in."""
    whole: ast.stmt
    """The statement that is converted."""
    last: ast.stmt
    """The last statement that is converted: names that live behind it are outputs."""
    taken: Callable[[], str] | None = None
    """The text of a 0-d bool tensor that says whether this block is taken."""
    others: set[str] = field(default_factory=set)
    """Names that other paths bind."""
    wanted: set[str] = field(default_factory=set)
    """Names that are read behind this block, inside what is converted."""
    prelude: list[str] = field(default_factory=list)
    values: dict[str, SideValue] = field(default_factory=dict)
    changes: dict[str, Change] = field(default_factory=dict)
    evaluated: list[ast.expr] = field(default_factory=list)
    protected: set[ast.expr] = field(default_factory=set)
    """Operations that are kept away from singular points while the block is not taken."""
    replace: dict[ast.expr, str] = field(default_factory=dict)
    bound: dict[str, TensorType] = field(default_factory=dict)
    numbers: dict[str, SideValue] = field(default_factory=dict)
    """Python numbers that the block has bound so far."""
    nothing: dict[str, bool] = field(default_factory=dict)
    """Names that the block has bound so far to None, or to something that is not None for certain."""
    now: dict[str, SideValue] = field(default_factory=dict)
    """Names that the block has bound so far, with their values."""
    late: set[str] = field(default_factory=set)
    """What gets its value behind a write into memory: names, places that are bound again, what is returned."""
    wrote: bool = False
    """Has what stands in front of this block written into memory?"""
    inner: list[ast.expr] = field(default_factory=list)
    """What nested blocks evaluate."""

    def run(self, statements: Sequence[ast.stmt]) -> Block:
        """Takes in the statements of a block, in order."""
        self._steps(statements)
        found = speculate(self.facts, *self.evaluated, protected=self.protected)
        if found.blockers:
            raise NotSelectableError(found.blockers[0])
        self.predicates.differences += found.differences
        return self

    def _steps(self, statements: Sequence[ast.stmt]) -> None:
        for i, statement in enumerate(statements):
            if RETURN in self.values:
                raise NotSelectableError("code stands behind a `return`")
            rest = statements[i + 1 :]
            if not isinstance(statement, ast.If):
                self._step(statement, rest)
                continue
            decided = self._decided(statement.test)
            if decided is not None:  # what follows belongs to the side that is known
                side = statement.body if decided else statement.orelse
                return self._steps([*side, *([] if returns(side) else rest)])
            if may_return(statement):
                if not (returns(statement.body) and returns(statement.orelse)):
                    return self._paths(statement, rest)
                if rest:
                    raise NotSelectableError("code stands behind a `return`")
            self._nested(statement, rest)
        return None

    def _step(self, statement: ast.stmt, rest: Sequence[ast.stmt]) -> None:
        match statement:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._bind(name, self.choice(value), rest)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self._bind(name, self.choice(value), rest)
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(
                values
            ):
                names = [t.id for t in targets if isinstance(t, ast.Name)]
                if len(names) < len(targets) or any(isinstance(v, ast.Starred) for v in values):
                    raise NotSelectableError(f"`{shortened(statement)}` assigns to more than names")
                choices = [self.choice(v) for v in values]
                for name, choice in zip(names, choices, strict=True):
                    self._bind(name, choice, rest)
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                self._augmented(name, value, statement, rest)
            case ast.AugAssign(target=ast.Attribute() | ast.Subscript() as target, value=value):
                self._change(augmented(self, target, value, statement), rest)
            case ast.Assign(targets=[ast.Subscript() | ast.Attribute() as target], value=value):
                self._change(store_of(self, target, self.choice(value)), rest)
            case ast.Expr(value=ast.Call(func=ast.Attribute()) as call):
                self._change(change_of(self, call), rest)
            case ast.Return(value=ast.expr() as value):
                self._give(RETURN, self.choice(value))
            case ast.Return():
                raise NotSelectableError("one side returns None")
            case _:
                raise NotSelectableError(f"`{shortened(statement)}` does more than compute a value")

    def _bind(self, name: str, choice: SideValue, rest: Sequence[ast.stmt]) -> None:
        """Gives a name a value: at once where the code behind needs it, else when both sides are selected from."""
        self._know(name, choice)
        before = name in self.facts.before(self.whole)
        output = alive(self.facts, name, self.last) or name in self.wanted
        needed = name in reads(*rest) or any(name in stored([s]) for s in rest)
        if not output and not needed:
            return
        if needed and not self.nothing.get(name):
            local = not before and not output and name not in self.others
            kept = name if local else fresh(self.facts, f"{name}_{self.suffix}", self.predicates.taken)
            self.predicates.taken.append(kept)
            self._compute_first(kept, choice)
            choice = replace(choice, text=kept, items=None)
        for later in rest:
            for node in nodes_in(later):
                if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                    self.replace[node] = choice.text
        self.bound.pop(name, None)
        self.numbers.pop(name, None)
        self.now[name] = choice
        if choice.meta is not None:
            self.bound[name] = choice.meta
        elif choice.number:
            self.numbers[name] = choice
        if output:
            self._give(name, choice)

    def _give(self, name: str, choice: SideValue) -> None:
        """The value that a name has behind the block, or what the block returns."""
        self.values[name] = choice
        if self._has_written():
            self.late.add(name)

    def _has_written(self) -> bool:
        return self.wrote or any(change.how != "store" for change in self.changes.values())

    def _compute_first(self, name: str, choice: SideValue) -> None:
        """Gives a temporary name a value in front of whatever the branch writes."""
        names = (n for node in choice.nodes for n in nodes_in(node) if isinstance(n, ast.Name))
        if self._has_written() and any(map(self._may_be_tensor, names)):
            written = next((f"`{target}`" for target in self.changes), "something")
            raise NotSelectableError(f"what is computed after {written} is changed may read the same memory")
        self.prelude.append(f"{name} = {choice.text}")

    def _know(self, name: str, choice: SideValue) -> None:
        """Remembers whether a name that is bound here is None now."""
        self.now[name] = choice
        self.nothing.pop(name, None)
        if isinstance(choice.node, ast.Constant) and choice.node.value is None:
            self.nothing[name] = True
        elif (choice.meta is not None or choice.number) and not may_be_none(self.facts.value(choice.node)):
            self.nothing[name] = False

    def choice(self, node: ast.expr) -> SideValue:
        """What an expression gives here."""
        code = self.predicates.code
        if isinstance(node, ast.IfExp) and (decided := self._decided(node.test)) is not None:
            return self.choice(node.body if decided else node.orelse)
        if isinstance(node, ast.Tuple) and not any(isinstance(e, ast.Starred) for e in node.elts):
            parts = tuple(self.choice(e) for e in node.elts)
            return SideValue(code.argument(node, self.replace), node, None, parts)
        self.evaluated.append(node)
        if isinstance(node, ast.IfExp) and depends(self.facts, node.test):
            raise NotSelectableError(f"`{shortened(node)}` branches on a tensor itself")
        text = self.text(node)
        if isinstance(node, ast.Name) and node.id in self.numbers:
            return self.numbers[node.id]
        if isinstance(node, ast.Name) and self.nothing.get(node.id):
            return SideValue(text, ast.Constant(None), None)
        numbers = {name: value.number for name, value in self.numbers.items()}
        meta = ShapeInference(self.facts, self.bound, numbers).of(node)
        return SideValue(text, node, meta, None, None if meta else number_type(self.facts, node))

    def text(self, node: ast.expr) -> str:
        """The text of an expression here, kept away from singular points and from indices out of range."""
        self.protect(node)
        return self.predicates.code.argument(node, self.replace)

    def protect(self, node: ast.expr) -> list[ast.expr]:
        """Keeps an expression from what happens only because it is evaluated where the block is not taken; the indices
        in it that have another text now.
        """
        if (taken := self.taken) is None:
            return []
        name = self.predicates.imports.name

        def inside(index: str, other: str) -> str:
            return f"{name('torch.where')}({taken()}, {index}, {other})"

        kept = keep_inside(
            self.facts, node, self.whole, inside, partial(name, "torch.zeros_like"), self.replace, self.protected
        )
        if recorded(self.facts, self.whole):
            double_where.protect(self.facts, node, taken, partial(name, "torch.where"), self.replace, self.protected)
        return kept

    def place(self, target: ast.expr) -> str:
        """The text of a place that is stored to, of which each index that is kept inside has a name."""
        for index in self.protect(target):
            name = fresh(self.facts, "place", self.predicates.taken)
            self.predicates.taken.append(name)
            self.prelude.append(f"{name} = {self.replace[index]}")
            self.replace[index] = name
        return self.predicates.code.text(target, self.replace)

    def operand(self, node: ast.expr) -> str:
        """The same for a place next to an operator."""
        self.text(node)
        return self.predicates.code.operand(node, self.replace)

    def _augmented(self, name: str, value: ast.expr, statement: ast.AugAssign, rest: Sequence[ast.stmt]) -> None:
        """`x += v`: of a tensor a change in place, of a number a new one."""
        code = self.predicates.code
        sign = code.source.segment(code.source.span(statement))
        operator = sign[len(name) :].strip().partition("=")[0]
        node = ast.BinOp(ast.Name(name, ast.Load()), statement.op, value)
        now = self.numbers.get(name) or (incoming(self.facts, self.whole, name) if name not in self.bound else None)
        if now is not None and now.number:
            if number_type(self.facts, value) != now.number or isinstance(statement.op, (ast.Div, ast.Pow)):
                raise NotSelectableError(f"`{shortened(statement)}` may change the type of a number")
            left = now.text if is_atom(now.text) else f"({now.text})"
            text = f"{left} {operator} {code.operand(value, self.replace)}"
            return self._bind(name, SideValue(text, node, None, None, now.number), rest)
        if not isinstance(self.facts.before(self.whole).get(name), Tensor) or name in self.bound:
            raise NotSelectableError(
                f"`{name}` is not known to be a tensor that `{shortened(statement)}` changes in place"
            )
        assert isinstance(statement.target, ast.Name)
        return self._change(added(self, statement.target, value, statement), rest)

    def _change(self, change: Change, rest: Sequence[ast.stmt]) -> None:
        target, root = change.target, change.root
        apart = change.apart  # other attributes and keys are not concerned
        for other in self.changes.values():
            if target == other.target or (root == other.root and not (apart and other.apart)):
                raise NotSelectableError(f"`{root}` is changed twice")
        if root in self.now:
            raise NotSelectableError(f"`{root}` is bound and changed")
        if any(root in reads(c.node) for c in self.values.values()):
            raise NotSelectableError(f"`{target}` is used before it is changed")
        # all texts are about the entry
        if change.how == "store" and any(may_read(self.facts, s, target, root) for s in rest):
            raise NotSelectableError(f"`{target}` is used again after it is bound")
        if change.how == "store" and self._has_written():
            self.late.add(target)
        self.changes[target] = change

    def _may_be_tensor(self, node: ast.Name) -> bool:
        return isinstance(node.ctx, ast.Load) and not isinstance(self.facts.value(node), (Static, ExternalName))

    def _decided(self, test: ast.expr) -> bool | None:
        """The answer to `name is None`, where this block knows it."""
        asked = asks_for_none(test)
        if asked is None:
            return None
        nothing, value = self.nothing.get(asked[0]), self.facts.before(self.whole).get(asked[0])
        if nothing is None and isinstance(value, Tensor):
            nothing = False
        elif nothing is None and isinstance(value, Const) and value.value is None:
            nothing = True
        return None if nothing is None else nothing == asked[1]

    # Nested branches

    def _sides(self, statement: ast.If, rest: Sequence[ast.stmt], test: str | None) -> tuple[Block, Block]:
        """Both sides of an `if` inside the block; `test` is its test where that is a tensor."""
        sides = []
        others = stored(rest) | self.others
        for number, (body, other) in enumerate(
            ((statement.body, statement.orelse), (statement.orelse, statement.body))
        ):
            side = replace(
                self,
                others=others | stored(other),
                wanted=self.wanted | reads(*rest),
                taken=self._both_taken(test, negated=bool(number)),
                values={},
                changes={},
                late=set(),
                wrote=self._has_written(),
                evaluated=[],
                inner=[],
                protected=set(self.protected),
                now=dict(self.now),
                replace=dict(self.replace),
                bound=dict(self.bound),
                numbers=dict(self.numbers),
                nothing=dict(self.nothing),
            )
            sides.append(side.run([*body, *([] if returns(body) else rest)]))
        one, two = sides
        for side in sides:
            self.inner += [*side.evaluated, *side.inner]
            self.protected |= side.protected
        if one.changes or two.changes or (RETURN in one.values) != (RETURN in two.values):
            raise NotSelectableError(f"`if {shortened(statement.test)}` inside the branch does more than bind names")
        return one, two

    def _both_taken(self, test: str | None, *, negated: bool) -> Callable[[], str] | None:
        outer = self.taken
        if test is None or outer is None:
            return outer
        inner = f"~({test})" if negated else f"({test})"
        return lambda: f"{outer()} & {inner}"

    def _tested(self, statement: ast.If) -> tuple[str, bool]:
        """The text of a nested test, and whether it is a tensor."""
        tensor = depends(self.facts, statement.test)
        self.evaluated += [] if tensor else [statement.test]
        if tensor:
            self.predicates.always([statement.test])
            return self.predicates.of(statement.test, self.replace), True
        return self.predicates.code.operand(statement.test, self.replace), False

    def _paths(self, statement: ast.If, rest: Sequence[ast.stmt]) -> None:
        """An `if` of which one path returns: what follows belongs to the other."""
        if not returns(rest):
            raise NotSelectableError(f"`if {shortened(statement.test)}` inside the branch returns on some paths only")
        test, tensor = self._tested(statement)
        one, two = self._sides(statement, rest, test if tensor else None)
        self._merge(RETURN, test, one.values[RETURN], two.values[RETURN], [], tensor=tensor)

    def _nested(self, statement: ast.If, rest: Sequence[ast.stmt]) -> None:
        """An `if` inside the block: of its two sides one value each."""
        test, tensor = self._tested(statement)
        one, two = self._sides_alone(statement, rest, test if tensor else None)
        for name in dict.fromkeys([*one.values, *two.values]):
            a, b = one.values.get(name) or self._now(name), two.values.get(name) or self._now(name)
            self._merge(name, test, a, b, rest, tensor=tensor)

    def _sides_alone(self, statement: ast.If, rest: Sequence[ast.stmt], test: str | None) -> tuple[Block, Block]:
        outer = replace(self, wanted=self.wanted | reads(*rest), others=self.others | stored(rest))
        return outer._sides(statement, [], test)

    def _merge(
        self, name: str, test: str, a: SideValue, b: SideValue, rest: Sequence[ast.stmt], *, tensor: bool
    ) -> None:
        asked = None if name == RETURN else lambda uses: uses.name(name)
        text = select(self.predicates, test, a, b, asked) if tensor else f"({a.text} if {test} else {b.text})"
        meta = a.meta.or_else(b.meta) if a.meta and b.meta else None if name == RETURN else a.meta
        items = None if tensor else a.items
        number = a.number if a.number == b.number else None
        chosen = SideValue(text, a.node, meta, items, number, (*a.instead, *b.nodes))
        if name == RETURN:
            if len(text) > _LONG and "torch" in text and a.items is None:
                chosen = self._named("result", chosen)
            self._give(RETURN, chosen)
        else:
            if len(text) > _LONG:
                chosen = self._named(name, chosen)
            self._bind(name, chosen, rest)

    def _named(self, name: str, choice: SideValue) -> SideValue:
        kept = fresh(self.facts, f"{name}_{self.suffix}", self.predicates.taken)
        self.predicates.taken.append(kept)
        self._compute_first(kept, choice)
        return replace(choice, text=kept)

    def _now(self, name: str) -> SideValue:
        """The value that a name has at this place of the block."""
        return self.now.get(name) or incoming(self.facts, self.whole, name)
