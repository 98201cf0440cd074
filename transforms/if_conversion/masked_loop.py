"""Loops that are left early, run to their end: what an iteration binds is selected by whether the loop was left."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeGuard

from graphmend.analysis.lattice.values import Static, Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.certain import place_of
from graphmend.transforms.code.expression_text import Code, is_atom
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import fresh, reads, writes
from graphmend.transforms.code.text_edits import (
    HOLE,
    insert_after,
    insert_before,
    replace_else,
    replace_expression,
    replace_statements,
)
from graphmend.transforms.fix import Difference, TextEdit
from graphmend.transforms.if_conversion.loop_ends import conjuncts, counter, disjuncts, runs_again
from graphmend.transforms.if_conversion.masked_names import AskWhileTracingError, MaskedNames
from graphmend.transforms.if_conversion.not_taken.index_inside import keep_inside
from graphmend.transforms.if_conversion.selection import NotSelectableError
from graphmend.transforms.if_conversion.tensor_predicates import NotATensorError
from graphmend.transforms.if_conversion.value_tests import depends, effects_of_test, split
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.legality.gradients.sides import gradient_differences, recorded
from graphmend.transforms.legality.numbers.said import is_said
from graphmend.transforms.legality.speculation import speculate
from graphmend.transforms.legality.totality import kept_from_raising, may_raise

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_LEAVES = (ast.Break, ast.Continue, ast.Return)


def leaves(statement: ast.stmt) -> TypeGuard[ast.If]:
    """`if test:` with assignments and `break`, `continue`, or `return value`."""
    match statement:
        case ast.If(body=[*before, ast.Break() | ast.Continue() | ast.Return(value=ast.expr())], orelse=[]):
            return not any(isinstance(n, _LEAVES) for s in before for n in nodes_in(s))
    return False


def masked(facts: FunctionFacts, loop: ast.For | ast.While, imports: Imports) -> MaskedLoop:
    """A loop under a mask; raises NotSelectableError and NotATensorError where it can't be."""
    try:
        return MaskedLoop(facts, loop, imports)
    except AskWhileTracingError:
        return MaskedLoop(facts, loop, imports, while_tracing=True)


class MaskedLoop(MaskedNames):
    """One loop, its statements under a mask."""

    def __init__(
        self, facts: FunctionFacts, loop: ast.For | ast.While, imports: Imports, *, while_tracing: bool = False
    ) -> None:
        super().__init__(facts, loop, imports, while_tracing=while_tracing)
        self.skipped = fresh(facts, "skipped")
        self._device = ""
        self._counts: ast.stmt | None = None
        self._skips = ""
        """The mask of this iteration alone, once a `continue` was met."""
        self._around = facts.about(loop)
        """What holds in every iteration: a skipped one computes with what none that ran has asked anything of."""
        self._evaluated: list[ast.expr] = []
        self._protected: set[ast.expr] = set()
        """Operations among them whose indices are kept inside of what they index."""
        self._head = ""
        """What the loop's own test makes of the mask."""
        self._check_ends()
        mask = self._enter()
        self._block(loop.body, mask)
        found = speculate(facts, *self._evaluated, protected=self._protected)
        if found.blockers:
            raise NotSelectableError(found.blockers[0])
        self.differences = [
            *self.predicates.differences,
            *may_raise(self._around, *self._evaluated, protected=self._protected),
            *gradient_differences(facts, loop, [self._evaluated]),
            Difference("evaluation", "all iterations run, the skipped ones in vain"),
        ]
        if recorded(facts, loop):
            self.differences.append(
                Difference(
                    "zero-gradients", "inputs that only skipped iterations use get zeros for gradients instead of None"
                )
            )

    # The loop

    def _check_ends(self) -> None:
        facts, loop = self.facts, self.loop
        ends = [n for s in _inside(loop.body) if leaves(s) and depends(facts, s.test) for n in s.body[-1:]]
        returned = [n.value for n in ends if isinstance(n, ast.Return)]
        self._returned = returned[0] if returned else None
        self._breaks = isinstance(loop, ast.While) or any(isinstance(n, (ast.Break, ast.Return)) for n in ends)
        if returned and (len([n for n in ends if not isinstance(n, ast.Continue)]) > 1 or self._test_stops()):
            raise NotSelectableError("the loop is left in several ways")
        left = sum(isinstance(n, ast.Break) for n in _in_loop(loop.body))
        if loop.orelse and (self._test_stops() or left > sum(isinstance(n, ast.Break) for n in ends)):
            raise NotSelectableError("whether the loop's `else` runs is not decided by tensors alone")
        if loop.orelse and not self._breaks:
            raise NotSelectableError("the loop's `else` always runs")
        if isinstance(loop, ast.For):
            if self._breaks:
                # behind the loop the variable holds its last value, not the one with which the loop was left
                for name in sorted(writes(loop.target)):
                    self._reach(name)
            if not runs_again(facts, loop.iter):
                raise NotSelectableError(f"`{ast.unparse(loop.iter)}` may be used up by all iterations")
            return
        counted = counter(facts, loop)
        if counted is None:
            raise NotSelectableError("the loop has no fixed number of iterations")
        self._reach_count(counted.name)
        self._counts = counted.statement

    def _test_stops(self) -> bool:
        """Does the loop's own test ask a tensor?"""
        return isinstance(self.loop, ast.While) and any(depends(self.facts, p) for p in conjuncts(self.loop.test))

    def _enter(self) -> str:
        """The mask that holds where an iteration begins."""
        if not isinstance(self.loop, ast.While):
            return self.stopped if self._breaks else ""
        parts = conjuncts(self.loop.test)
        if found := effects(self.facts, *(p for p in parts if not depends(self.facts, p))):
            raise NotSelectableError(found[0])
        tests = [p for p in parts if depends(self.facts, p)]
        static = [p for p in parts if p not in tests]
        if not tests:
            return self.stopped
        if not all(isinstance(self.facts.value(s), Static) for s in static) or writes(self.loop.test):
            raise NotATensorError("the test is not about tensors and a counter alone")
        asked = self._test(self.stopped, [], tests, self.loop.test)
        self._head = f"{self._leaves}{self.stopped} = {self.stopped} | ~{asked}\n"
        self.values.append((self.loop.test, _all(self.code, static)))
        return self.stopped

    # Statements

    def _block(self, statements: Sequence[ast.stmt], mask: str) -> str:
        for statement in statements:
            mask = self._take(statement, mask)
        return mask

    def _take(self, statement: ast.stmt, mask: str) -> str:
        """One statement of the body; returns the mask that holds behind it."""
        if statement is self._counts:
            return mask
        if leaves(statement):
            if depends(self.facts, statement.test):
                return self._leave(statement, mask)
            if isinstance(statement.body[0], ast.Break) and isinstance(self.facts.value(statement.test), Static):
                return mask  # nothing changes any more once the loop was left
        if not mask and not any(isinstance(n, _LEAVES) for n in nodes_in(statement)):
            return mask  # every iteration does it as before
        match statement:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return mask
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                self._evaluates(value, mask)
                self._assign(name, value, mask)
                return mask
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(
                values
            ) and all(isinstance(t, ast.Name) for t in targets):
                for target, value in zip(targets, values, strict=True):
                    assert isinstance(target, ast.Name)
                    self._evaluates(value, mask)
                    self._assign(target.id, value, mask)
                return mask
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value) if mask and all(
                isinstance(t, ast.Name) for t in targets
            ):
                self._evaluates(value, mask)
                self._several([ast.unparse(target) for target in targets], value, mask)
                return mask
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                self._evaluates(value, mask)
                self._change(name, statement, mask)
                return mask
            case ast.If(test=test, body=body, orelse=orelse) if isinstance(
                self.facts.value(test), Static
            ) and not depends(self.facts, test):
                self._evaluates(test, mask)
                masks = {self._block(body, mask), self._block(orelse, mask)}
                if masks == {mask} or masks == {self._mask()}:
                    return masks.pop()
                raise NotSelectableError("the `continue` is nested")
        if mask and _happens_or_not(self.facts, statement):
            self.changes.append(
                (statement, f"if not {mask if is_atom(mask) else f'({mask})'}:\n    {HOLE.format(0)}\n")
            )
            return mask
        if isinstance(statement, ast.If) and (left := [n for n in nodes_in(statement) if isinstance(n, _LEAVES)]):
            raise NotSelectableError(f"the `{ast.unparse(left[0]).split()[0]}` is nested")
        raise NotSelectableError(f"`{ast.unparse(statement).splitlines()[0]}` in the loop does more than bind a name")

    def _mask(self) -> str:
        if self._skips:
            return f"{self.skipped} | {self.stopped}" if self._breaks else self.skipped
        return self.stopped if self._breaks else ""

    def _leave(self, statement: ast.If, mask: str) -> str:
        known = [p for p in disjuncts(statement.test) if isinstance(self.facts.value(p), Static) and not self._asks(p)]
        if known and self.loop.orelse:
            raise NotSelectableError("whether the loop's `else` runs is not decided by tensors alone")
        if known and isinstance(statement.body[0], ast.Break):
            return self._leave_or_end(statement, known, mask)
        static, tests = split(self.facts, statement.test)
        if not tests or not all(isinstance(self.facts.value(s), Static) for s in static):
            raise NotATensorError("the test is not about tensors alone")
        if static and self._while_tracing and isinstance(statement.body[-1], ast.Continue):
            # where it does not hold no tensor is asked, and where shapes or gradients differ `select` would ask one
            raise NotSelectableError(f"`{ast.unparse(static[0])}` may say that nothing is skipped")
        test = self._test(mask, static, tests, statement.test)
        lines: list[str] = []
        if len(statement.body) > 1:
            name = fresh(self.facts, "leaving", self.predicates.taken)
            self.predicates.taken.append(name)
            lines.append(f"{name} = {test}\n")
            test = name
            lines += self._before_leaving(statement.body[:-1], f"{mask} | ~{name}" if mask else f"~{name}")
        if isinstance(statement.body[-1], ast.Continue):
            self._skips = self.skipped
            lines.append(f"{self.skipped} = {mask + ' | ' if mask else ''}{test}\n")
            self.changes.append((statement, "".join(lines)))
            return self.skipped
        # what a `continue` has skipped in this iteration is not asked whether it leaves the loop
        asked = f"(~{self.skipped} & {test})" if self._skips else test
        lines.append(f"{self._leaves}{self.stopped} = {self.stopped} | {asked}\n")
        if known:  # a `while` may have no other end
            lines.append(f"if {self._any_of(known)}:\n    break\n")
        self.changes.append((statement, "".join(lines)))
        return f"{self.skipped} | {self.stopped}" if self._skips else self.stopped

    def _any_of(self, known: Sequence[ast.expr]) -> str:
        return self.code.line(known[0]) if len(known) == 1 else " or ".join(map(self.code.operand, known))

    def _asks(self, test: ast.expr) -> bool:
        return depends(self.facts, test)

    def _leave_or_end(self, statement: ast.If, known: list[ast.expr], mask: str) -> str:
        """`if test or i == n: break`: what is known while tracing ends the loop as before."""
        asked = [part for part in disjuncts(statement.test) if part not in known]
        whole = asked[0] if len(asked) == 1 else ast.copy_location(ast.BoolOp(ast.Or(), asked), statement.test)
        test = self._test(mask, [], [whole], whole)
        found = f"(~{self.skipped} & {test})" if self._skips else test
        lines = f"{self._leaves}{self.stopped} = {self.stopped} | {found}\nif {self._any_of(known)}:\n    break\n"
        self.changes.append((statement, lines))
        return f"{self.skipped} | {self.stopped}" if self._skips else self.stopped

    def _before_leaving(self, statements: Sequence[ast.stmt], mask: str) -> list[str]:
        """What a branch does before it leaves the loop, as lines."""
        lines = []
        for statement in statements:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._evaluates(value, mask)
                    text = self._selected(name, value, mask)
                    lines.append(f"{name} = {text if text is not None else self.code.line(value, self._replace)}\n")
                case ast.AugAssign(target=ast.Name(id=name), value=value) if (
                    line := self._counted(name, statement, mask)
                ) is not None:
                    self._evaluated.append(value)
                    lines.append(line)
                case ast.Pass() | ast.Expr(value=ast.Constant()):
                    continue
                case _ if _happens_or_not(self.facts, statement):
                    lines.append(f"if not ({mask}):\n    {self.code.text(statement)}\n")
                case _:
                    raise NotSelectableError(
                        f"`{ast.unparse(statement).splitlines()[0]}` in the loop does more than bind a name"
                    )
        return lines

    def _evaluates(self, value: ast.expr, mask: str) -> None:
        """A value that is computed in iterations that are skipped, too: there it is read at 0, wherever that may be."""
        if not mask:
            return
        self._evaluated.append(value)
        at, inside = place_of(self.facts), partial(self._unless, mask)
        keep_inside(self.facts, value, at, inside, None, self._replace, self._protected)

    def _test(self, mask: str, static: list[ast.expr], tests: list[ast.expr], whole: ast.expr) -> str:
        """The text of a test that leaves the loop or an iteration."""
        if mask:  # else every iteration asks it as before
            if blockers := effects_of_test(self.facts, whole):
                raise NotATensorError(blockers[0])
            if kept := kept_from_raising(self.facts, whole):
                raise NotSelectableError(kept[0])
            self.predicates.differences += may_raise(self._around, whole)
        test = self.predicates.all_of([*static, *tests])
        test = test if is_atom(test) else f"({test})"
        if not self._device:
            # a mask without dimensions goes with tensors of any device, so any tensor that the loop computes with does
            before = self.facts.before(self.loop)
            read = [*sorted(reads(whole)), *sorted(reads(*self.loop.body))]
            names = [n for n in read if isinstance(before.get(n), Tensor)]
            if not names and self._breaks and not self._while_tracing:
                raise AskWhileTracingError("no tensor of the loop exists before it")
            self._device = f"{names[0]}.device" if names else ""
        return test

    # Text

    def edits(self) -> list[TextEdit]:
        source = self.facts.source
        edits = [replace_statements(source, [s], text, [s]) for s, text in self.changes] + [
            replace_expression(source, v, text) for v, text in self.values
        ]
        kept = [n for n, _ in self.values] + [s for s, _ in self.changes]
        inside = {n for node in kept for n in nodes_in(node)}
        edits += [replace_expression(source, n, text) for n, text in self._replace.items() if n not in inside]
        device = f", device={self._device}" if self._device else ""
        first = [line.replace("{device}", device) for line in self._first]
        if self._breaks and self._while_tracing:
            first.append(f"{self.stopped} = False\n")
        elif self._breaks:
            zeros, dtype = self.imports.name("torch.zeros"), self.imports.name("torch.bool")
            first.append(f"{self.stopped} = {zeros}((), dtype={dtype}, device={self._device})\n")
        if first:
            edits.append(insert_before(source, self.loop, "".join(first)))
        if head := "".join(self._reached) + self._head:
            edits.append(insert_before(source, self.loop.body[0], head))
        if self.loop.orelse:  # it runs where the loop was not left
            edits.append(replace_else(source, self.loop, f"if not {self.stopped}:"))
        behind = self._leaves
        if self._returned is not None:  # what it returns is what the names were when it was left
            returned = self.code.line(self._returned, self._replace)
            behind += f"if {self.stopped}:\n    return {returned}\n"
        return [*edits, insert_after(source, self.loop, behind)] if behind else edits


def _happens_or_not(facts: FunctionFacts, statement: ast.stmt) -> bool:
    """Does a statement only write into a tensor, bind an attribute, or say something? Whether the loop was left is
    asked in front of it, for the mends of branches.
    """
    match statement:
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
            return True
        case ast.AugAssign(target=ast.Subscript() | ast.Attribute()):
            return True
        case ast.Expr(value=ast.Call() as call) if is_said(facts, call):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=attr))):
            return attr.endswith("_") and not attr.endswith("__")
    return False


def _all(code: Code, tests: Sequence[ast.expr]) -> str:
    return code.line(tests[0]) if len(tests) == 1 else " and ".join(code.operand(t) for t in tests) or "True"


def _in_loop(statements: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a loop's body, without those of loops and functions inside."""
    for statement in statements:
        yield statement
        if isinstance(statement, (ast.For, ast.AsyncFor, ast.While)):
            yield from _in_loop(statement.orelse)
        elif not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inner = [c for c in ast.iter_child_nodes(statement) if not isinstance(c, ast.expr)]
            blocks = [c.body if isinstance(c, (ast.ExceptHandler, ast.match_case)) else [c] for c in inner]
            yield from _in_loop([s for block in blocks for s in block if isinstance(s, ast.stmt)])


def _inside(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Statements, and those of branches among them."""
    found = list(statements)
    for statement in statements:
        if isinstance(statement, ast.If):
            found += _inside([*statement.body, *statement.orelse])
    return found
