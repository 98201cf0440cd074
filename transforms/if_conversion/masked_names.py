"""What a loop under a mask binds: each name is what it was where the loop was left, and what the iteration computes
elsewhere.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Const, Container, Static, Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import alive, fresh, reads, stored
from graphmend.transforms.code.qualified_names import number_type, qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.if_conversion.kept_scalars import written
from graphmend.transforms.if_conversion.loop_ends import copied
from graphmend.transforms.if_conversion.selection import NotSelectableError, as_tensor, incoming
from graphmend.transforms.if_conversion.tensor_predicates import Predicates
from graphmend.transforms.if_conversion.value_tests import depends
from graphmend.transforms.legality.dtypes import casts_into, kind
from graphmend.transforms.legality.gradients.sides import EITHER_GRADIENT, carries, mixed, recorded
from graphmend.transforms.legality.in_place import intact, linear_operator, writable, written_on_both_sides
from graphmend.transforms.legality.same_shape import ShapeInference, compare
from graphmend.transforms.legality.scalar_uses import ScalarUses
from graphmend.transforms.legality.totality import may_raise

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_RUNTIME = "graphmend.runtime"
_DTYPES = {"bool": "bool", "int": "int64", "float": "float64"}


class AskWhileTracingError(Exception):
    """What `torch.where` needs is not known before TorchDynamo traces; the message says what."""


class MaskedNames:
    """Values of names under a mask, and the edits that give them."""

    def __init__(
        self, facts: FunctionFacts, loop: ast.For | ast.While, imports: Imports, *, while_tracing: bool = False
    ) -> None:
        """`while_tracing`: shapes are compared there, by `graphmend.runtime.select`, which also takes False."""
        self.facts, self.loop, self.imports = facts, loop, imports
        self.predicates = Predicates(facts, imports)
        self.code = Code(facts.source)
        self.where = imports.name("torch.where")
        self.stopped = fresh(facts, "stopped")
        """The name of the mask that is set once the loop was left."""
        self.changes: list[tuple[ast.stmt, str]] = []
        self.values: list[tuple[ast.expr, str]] = []
        self._while_tracing = while_tracing
        self._returned: ast.expr | None = None
        """What the loop returns where it is left."""
        self._first: list[str] = []
        """What stands in front of the loop."""
        self._numbers: set[str] = set()
        """Names of Python numbers that become 0-d tensors."""
        self._replace: dict[ast.expr, str] = {}
        self._leaves = ""
        """What keeps the count of iterations, as a line: in front of each place where the loop is left, and behind."""
        self._reached: list[str] = []
        """What stands in front of the loop's body: with which values of its variables it was left."""

    def _assign(self, name: str, value: ast.expr, mask: str) -> None:
        text = self._selected(name, value, mask)
        if text is not None:
            self.values.append((value, text))

    def _several(self, names: list[str], value: ast.expr, mask: str) -> None:
        """`a, b = function()`: what it gives is compared with what the names have while tracing."""
        lives = [name for name in names if self._lives(name)]
        if not lives:
            return
        given = self.facts.value(value)
        parts = given.items if isinstance(given, Container) and given.kind == "tuple" else None
        for number, name in enumerate(names):
            before = self.facts.before(self.loop).get(name)
            # with a mask that is False at first nothing is read before it is bound once
            made = parts[number] if parts is not None and number < len(parts) and mask == self.stopped else None
            if not isinstance(made if before is None else before, Tensor):
                raise NotSelectableError(f"`{name}` is not known to be a tensor before the loop")
        if not self._while_tracing:
            raise AskWhileTracingError(f"what `{self.code.text(value)}` gives is not known")
        for name in names:
            self._copied(name)
        if recorded(self.facts, self.loop):
            self.predicates.differences.append(EITHER_GRADIENT)
        select = self.imports.name(f"{_RUNTIME}.select", _RUNTIME)
        text, kept = self.code.argument(value, self._replace), ", ".join(names)
        if isinstance(value, ast.Call) and (qualified(self.facts, value.func) or "").startswith("torch."):
            text = f"(*{text},)"  # functions of torch give tuples of classes of their own
        options = ", mixed_grad=True" if recorded(self.facts, self.loop) else ""
        self.values.append((value, f"{select}({mask}, lambda: ({kept}), lambda: {text}{options})"))

    def _lives(self, name: str) -> bool:
        return self._is_read_behind(name) or name in self.facts.before(self.loop)

    def _is_read_behind(self, name: str) -> bool:
        read = self._returned is not None and name in reads(self._returned)
        return read or alive(self.facts, name, self.loop)

    def _selected(self, name: str, value: ast.expr, mask: str) -> str | None:
        """The text of a value under a mask; None where nobody reads it once the loop was left."""
        if not mask or not self._lives(name):
            return None
        before = self.facts.before(self.loop).get(name)
        if isinstance(before, Static) and before.type in _DTYPES:
            if isinstance(self.facts.value(value), Tensor) and mask == self.stopped and not self._is_read_behind(name):
                return None  # what it is once the loop was left changes nothing
            return self._number(name, before.type, value, mask)
        if before is None:
            return self._only_here(name, value, mask)
        if isinstance(before, Const) and before.value is None:
            return self._first_here(name, value, mask)
        old = incoming(self.facts, self.loop, name)
        likeness = compare(name, old.meta, self.code.text(value), ShapeInference(self.facts).of(value))
        known = isinstance(self.facts.value(value), Tensor)
        if likeness.blocker and not ("shapes" in likeness.blocker and known):
            raise NotSelectableError(likeness.blocker)
        if likeness.blocker and not self._while_tracing:
            raise AskWhileTracingError(likeness.blocker)
        self.predicates.differences += () if self._while_tracing else likeness.differences
        self._copied(name)
        return self._chosen(name, mask, self.code.argument(value, self._replace), value)

    def _copied(self, name: str) -> None:
        self.predicates.differences += copied(self.facts, self.loop, name, "the loop leaves it as it was")

    def _chosen(self, name: str, mask: str, text: str, value: ast.expr | None = None) -> str:
        if self._while_tracing:  # shapes are known there, and what differs in them is branched on as before
            select = self.imports.name(f"{_RUNTIME}.select", _RUNTIME)
            return f"{select}({mask}, lambda: {name}, lambda: {text}{self._gradients(name, value)})"
        return f"{self.where}({mask}, {name}, {text})"

    def _unless(self, mask: str, text: str, other: str) -> str:
        """An index, and another one under the mask."""
        if not self._while_tracing:
            return f"{self.where}({mask}, {other}, {text})"
        other = f"{self.imports.name('torch.zeros_like')}({text})"
        return f"{self.imports.name(f'{_RUNTIME}.select', _RUNTIME)}({mask}, lambda: {other}, lambda: {text})"

    def _gradients(self, name: str, value: ast.expr | None) -> str:
        """What `select` is told about gradients, which layers ask for and what a name was before need not."""
        facts = self.facts
        if value is None or not recorded(facts, self.loop):
            return ""
        if not mixed(facts, carries(facts, ast.Name(name, ast.Load())), carries(facts, value)):
            return ""
        self.predicates.differences.append(EITHER_GRADIENT)
        return ", mixed_grad=True"

    def _only_here(self, name: str, value: ast.expr, mask: str) -> str:
        """A name that only the loop binds: there is nothing to keep before it is bound once."""
        if not isinstance(self.facts.value(value), Tensor):
            raise NotSelectableError(f"`{self.code.text(value)}` is not known to be a tensor")
        if not self._while_tracing:
            raise AskWhileTracingError(f"`{name}` may not be bound before the loop")
        self._copied(name)
        text = self.code.argument(value, self._replace)
        if mask == self.stopped:  # False at first, when nothing is read
            return self._chosen(name, mask, text, value)
        first = f"{name} = None\n"
        if first not in self._first:
            self._first.append(first)
            self.predicates.differences.append(
                Difference("exception", f"`{name}` has a value where nothing in the loop bound it, and raised")
            )
        return f"{text} if {name} is None else {self._chosen(name, mask, text, value)}"

    def _first_here(self, name: str, value: ast.expr, mask: str) -> str:
        """A name that is None until the loop binds it: nothing is left, or skipped, before it does."""
        if mask != self.stopped or not isinstance(self.facts.value(value), Tensor):
            raise NotSelectableError(f"`{name}` is None before the branch, which cannot be selected")
        ends = (n for n in nodes_in(self.loop) if isinstance(n, (ast.Break, ast.Continue, ast.Return)))
        asks = isinstance(self.loop, ast.While) and depends(self.facts, self.loop.test)
        if asks or any(n.lineno < value.lineno for n in ends):
            raise NotSelectableError(f"`{name}` is None where the loop is left before it is bound")
        if not self._while_tracing:
            raise AskWhileTracingError(f"`{name}` is None before the loop")
        self._copied(name)
        text = self.code.argument(value, self._replace)
        return f"{text} if {name} is None else {self._chosen(name, mask, text, value)}"

    def _reach(self, name: str) -> None:
        """Keeps the value of the loop's variable with which the loop was left, for who reads it behind the loop."""
        behind = self._read_behind(name)
        if not behind:
            return
        if name in self.facts.before(self.loop) or name in stored(self.loop.body):
            raise NotSelectableError(f"`{name}` is read behind the loop, which is not the only one to bind it")
        value = self.facts.before(self.loop.body[0]).get(name)
        if not (isinstance(value, Static) and value.type == "int"):
            raise NotSelectableError("the loop's variable is read behind it")
        self._reached.append(self._reached_as(name, behind))
        self.predicates.differences.append(
            Difference("exception", f"`{name}` has a value where the loop has nothing to run over, and raised")
        )

    def _reach_count(self, name: str) -> None:
        """Keeps the value that what counts the iterations has where the loop is left, for who reads it behind."""
        behind = self._read_behind(name)
        if behind:
            self._leaves = self._reached_as(name, behind)

    def _read_behind(self, name: str) -> list[ast.expr]:
        """The reads of a name behind the loop, with those in what the loop returns where it is left."""
        facts = self.facts
        returned = [] if self._returned is None else [*nodes_in(self._returned)]
        if not alive(facts, name, self.loop) and not any(isinstance(n, ast.Name) and n.id == name for n in returned):
            return []
        own = {*nodes_in(self.loop)} - {*returned}
        end = (self.loop.end_lineno or 0, self.loop.end_col_offset or 0)
        every = [n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n.id == name and n not in own]
        behind = [n for n in every if n in returned or (n.lineno, n.col_offset) >= end]
        if not all(isinstance(n.ctx, ast.Load) for n in behind):
            raise NotSelectableError(f"`{name}` is bound again behind the loop")
        again = any(isinstance(a, (ast.For, ast.AsyncFor, ast.While)) for a in facts.ancestors(self.loop))
        if again and len(every) > len(behind):
            raise NotSelectableError(f"`{name}` is read in front of the loop, which runs again")
        return [*behind]

    def _reached_as(self, name: str, behind: list[ast.expr]) -> str:
        """The line that keeps a number where the loop was left, in a 0-d tensor that is read behind the loop."""
        kept = fresh(self.facts, f"{name}_reached", self.predicates.taken)
        self.predicates.taken.append(kept)

        def asked(uses: ScalarUses) -> None:
            for node in behind:
                uses.follow(node)

        _, uses = as_tensor(self.facts, "int64", asked, rewrites=True)
        if uses.also:
            raise NotSelectableError(f"`{self.code.text(uses.also[0])}` stays a Python number")
        self.predicates.differences += uses.differences
        self._replace |= written(self.facts, self.imports, dict.fromkeys(behind, kept), uses.counterparts)
        zeros, dtype = self.imports.name("torch.zeros"), self.imports.name("torch.int64")
        self._first.append(f"{kept} = {zeros}((), dtype={dtype}{{device}})\n")
        text = f"{self.imports.name('torch.full_like')}({kept}, {name})" if self._while_tracing else name
        return f"{kept} = {self._chosen(kept, self.stopped, text)}\n"

    def _number(self, name: str, of: str, value: ast.expr, mask: str) -> str:
        """A Python number that the loop computes becomes a 0-d tensor."""
        self._becomes_tensor(name, of, number_type(self.facts, value), value)
        text = self.code.argument(value, self._replace)
        if self._while_tracing and not reads(value) & stored(self.loop.body):  # `select` looks for two tensors
            text = f"{self.imports.name('torch.full_like')}({name}, {text})"
        return self._chosen(name, mask, text)

    def _becomes_tensor(self, name: str, of: str, given: str | None, value: ast.expr) -> None:
        counted = self.facts.value(value)
        met = isinstance(counted, Tensor) and counted.rank == 0 and counted.dtype == _DTYPES[of]
        if given != of and not met:  # a mend inside the loop has made a tensor of it
            raise NotSelectableError(f"`{name}` and `{self.code.text(value)}` are not known to be numbers of one type")
        if name in self._numbers:
            return
        self._numbers.add(name)
        made, uses = as_tensor(self.facts, _DTYPES[of], lambda uses: uses.name(name), rewrites=True)
        if uses.also:
            raise NotSelectableError(f"`{self.code.text(uses.also[0])}` stays a Python number")
        if met and made != _DTYPES[of]:
            raise NotSelectableError(f"`{name}` and `{self.code.text(value)}` would have different dtypes")
        self.predicates.differences += uses.differences
        self._replace |= written(self.facts, self.imports, {}, uses.counterparts)
        tensor, dtype = self.imports.name("torch.tensor"), self.imports.name(f"torch.{made}")
        self._first.append(f"{name} = {tensor}({name}, dtype={dtype}{{device}})\n")

    def _change(self, name: str, statement: ast.AugAssign, mask: str) -> None:
        """`x += v`: the tensor itself is changed, to what it is where the loop was left."""
        if mask and (line := self._counted(name, statement, mask)) is not None:
            self.changes.append((statement, line))
            return
        if not isinstance(self.facts.before(statement).get(name), Tensor):
            raise NotSelectableError(f"`{name}` is not known to be a tensor that is changed in place")
        if not mask:
            return
        node = ast.Name(name, ast.Load())
        fits = casts_into(self.facts, node, statement.value)
        if isinstance(statement.op, ast.Div):
            fits = True if kind(self.facts, node) in ("float", "complex") else None
        if fits is False:
            raise NotSelectableError(f"`{ast.unparse(statement)}` raises for the dtype of `{name}`")
        if fits is None:
            self.predicates.differences.append(
                Difference("dtype", f"where `{ast.unparse(statement)}` raised for the dtype of `{name}`, it is rounded")
            )
        self.predicates.differences += may_raise(
            self.facts, ast.copy_location(ast.BinOp(node, statement.op, statement.value), statement)
        )
        if not writable(self.facts, self.loop, name):
            self.predicates.differences.append(written_on_both_sides(name))
        read = intact(self.facts, statement, name, linear=linear_operator(self.facts, statement.op, statement.value))
        sign = self._operator(name, statement)
        value = f"{read} {sign} {self.code.operand(statement.value, self._replace)}"
        self.changes.append((statement, f"{name}.copy_({self._chosen(name, mask, value)})\n"))

    def _counted(self, name: str, statement: ast.AugAssign, mask: str) -> str | None:
        """`n += 1` of a number, as a line; None where `n` is none."""
        before = self.facts.before(self.loop).get(name)
        if not (isinstance(before, Static) and before.type in _DTYPES):
            return None
        given = number_type(self.facts, statement.value)
        if isinstance(statement.op, (ast.Div, ast.Pow)) and before.type != "float":
            given = None
        self._becomes_tensor(name, before.type, given, statement.value)
        value = self.code.operand(statement.value, self._replace)
        return f"{name} = {self._chosen(name, mask, f'{name} {self._operator(name, statement)} {value}')}\n"

    def _operator(self, name: str, statement: ast.AugAssign) -> str:
        return self.code.text(statement)[len(name) :].strip().partition("=")[0]
