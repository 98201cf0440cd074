"""Run a loop to its end with a mask instead of leaving it early.

Before:
    for i in range(5):
        x = x * 2
        if x.sum() > 10:
            break

After:
    stopped = torch.zeros((), dtype=torch.bool, device=x.device)
    for i in range(5):
        x = torch.where(stopped, x, x * 2)
        stopped = stopped | (x.sum() > 10)

Legal when:
    the loop runs over something known while tracing that is not used up by it, and has no `else`; its body only
    assigns names, besides `if test:` and `break`, `continue` or one `return`, which moves behind the loop; what the
    body computes, its tests too, has no effect; each name that lives on is a tensor that keeps its shape and dtype
    (where a shape is not known, `graphmend.runtime.select` compares them while tracing), and is not changed in place
    where it may be another's; the loop's own variable is read neither behind it nor by the `return`.

Differs in:
    the loop does all its iterations; what the skipped ones compute may raise, and its NaN derivatives may reach
    gradients; a tensor that the loop leaves as it was is a copy.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeGuard

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Container, Static, Tensor
from graphmend.transforms.code.expression_text import Code, is_atom
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import alive, fresh, reads, writes
from graphmend.transforms.code.positions import begins_line, replaceable
from graphmend.transforms.code.qualified_names import qualified
from graphmend.transforms.code.text_edits import insert_after, insert_before, replace_expression, replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.selection import NotSelectableError, incoming
from graphmend.transforms.if_conversion.tensor_predicates import NotATensorError, Predicates, effects_of_test, split
from graphmend.transforms.legality.dtypes import casts_into, kind
from graphmend.transforms.legality.gradients import gradient_differences, recorded
from graphmend.transforms.legality.in_place import intact, linear_operator
from graphmend.transforms.legality.memory import changed_in_place, seen_elsewhere
from graphmend.transforms.legality.same_shape import ShapeInference, compare
from graphmend.transforms.legality.speculation import speculate
from graphmend.transforms.legality.totality import may_raise
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "stop_mask"
_RUNTIME = "graphmend.runtime"


@asks("effects", "totality", "memory", "order", "dtypes", "numbers", "shapes", "gradients", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    leaving = facts.statement
    if not _leaves(leaving):
        return None
    loop = next(
        (node for node in facts.ancestors(leaving) if isinstance(node, (ast.For, ast.AsyncFor, ast.While))), None
    )
    if loop is None:
        return None
    if not isinstance(loop, ast.For):
        return refuse(NAME, "the loop has no fixed number of iterations")
    if facts.parent(leaving) is not loop:
        return refuse(NAME, f"the `{ast.unparse(leaving.body[0]).split()[0]}` is nested")
    imports = Imports(facts)
    try:
        masked = _Masked(facts, loop, imports)
    except (NotSelectableError, NotATensorError) as error:
        return refuse(NAME, str(error))
    if not begins_line(facts.source, loop) or not all(replaceable(facts, [s]) for s in loop.body):
        return refuse(NAME, "the loop shares its lines with other statements")
    return offer(
        NAME, "do all iterations under a mask", facts, lambda: [*imports.edits(), *masked.edits()], masked.differences
    )


def _leaves(statement: ast.stmt) -> TypeGuard[ast.If]:
    """`if test: break`, `if test: continue`, or `if test: return value`."""
    match statement:
        case ast.If(body=[ast.Break() | ast.Continue() | ast.Return(value=ast.expr())], orelse=[]):
            return True
    return False


def _runs_again(facts: FunctionFacts, node: ast.expr) -> bool:
    """Does a loop over a value leave it as it was, for certain?"""
    if isinstance(node, ast.Call):
        name = qualified(facts, node.func) or ""
        if name in ("builtins.range", "builtins.len"):
            return True
        if name in _THROUGH:
            return all(_runs_again(facts, a) for a in node.args)
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("items", "keys", "values", "children"):
            return not node.args and _is_kept(facts, node.func.value)
        return False
    if isinstance(node, ast.GeneratorExp):
        return False
    return isinstance(node, (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp)) or _is_kept(facts, node)


def _is_kept(facts: FunctionFacts, node: ast.expr) -> bool:
    value = facts.value(node)
    if isinstance(value, ExternalInstance):
        return value.cls in _MODULES
    return (
        (isinstance(value, Container) and value.kind not in ("generator", "iterator"))
        or isinstance(value, Tensor)
        or (isinstance(value, Static) and value.type in ("str", "range", "tuple", "list", "Size"))
    )


#: they make an iterator of their own, which nothing else sees
_THROUGH = frozenset(f"builtins.{name}" for name in ("enumerate", "zip", "reversed", "iter", "sorted"))
_MODULES = frozenset(f"torch.nn.{name}" for name in ("ModuleList", "ModuleDict", "Sequential", "ParameterList"))


class _Masked:
    """One loop, its statements under a mask."""

    def __init__(self, facts: FunctionFacts, loop: ast.For, imports: Imports) -> None:
        self.facts, self.loop, self.imports = facts, loop, imports
        self.predicates = Predicates(facts, imports)
        self.code = Code(facts.source)
        self.where = imports.name("torch.where")
        self.stopped = fresh(facts, "stopped")
        self.skipped = fresh(facts, "skipped")
        self._device = ""
        ends = [
            s.body[0] for s in loop.body if isinstance(s, ast.If) and isinstance(s.body[0], (ast.Break, ast.Return))
        ]
        self._breaks = bool(ends)
        self._returned = next((s.value for s in ends if isinstance(s, ast.Return)), None)
        if self._returned is not None and len(ends) > 1:
            raise NotSelectableError("the loop is left in several ways")
        if loop.orelse:
            raise NotSelectableError("the loop has an `else`")
        if any(alive(facts, n, loop) for n in writes(loop.target)):
            raise NotSelectableError("the loop's variable is read behind it")
        if self._returned is not None and writes(loop.target) & reads(self._returned):
            # behind the loop the variable holds its last value, not the one with which the loop was left
            raise NotSelectableError("the loop's variable is read by what the loop returns")
        if not _runs_again(facts, loop.iter):
            raise NotSelectableError(f"`{ast.unparse(loop.iter)}` may be used up by all iterations")
        self.changes: list[tuple[ast.stmt, str]] = []
        self.values: list[tuple[ast.expr, str]] = []
        self._skips = ""
        """The mask of this iteration alone, once a `continue` was met."""
        mask = self.stopped if self._breaks else ""
        evaluated: list[ast.expr] = []
        for statement in loop.body:
            mask = self._take(statement, mask, evaluated)
        found = speculate(facts, *evaluated)
        if found.blockers:
            raise NotSelectableError(found.blockers[0])
        self.differences = [
            *self.predicates.differences,
            *found.differences,
            *gradient_differences(facts, loop, [evaluated]),
        ]
        self.differences.append(Difference("evaluation", "all iterations run, the skipped ones in vain"))
        if recorded(facts, loop):
            self.differences.append(
                Difference(
                    "zero-gradients", "inputs that only skipped iterations use get zeros for gradients instead of None"
                )
            )

    def _take(self, statement: ast.stmt, mask: str, evaluated: list[ast.expr]) -> str:
        """One statement of the body; returns the mask that holds behind it."""
        if _leaves(statement):
            assert isinstance(statement, ast.If)
            return self._leave(statement, mask)
        match statement:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return mask
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                evaluated += [value] if mask else []
                self._assign(name, value, mask)
                return mask
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                evaluated += [value] if mask else []
                self._change(name, statement, mask)
                return mask
        raise NotSelectableError(f"`{ast.unparse(statement).splitlines()[0]}` in the loop does more than bind a name")

    def _leave(self, statement: ast.If, mask: str) -> str:
        static, tests = split(self.facts, statement.test)
        if not tests or not all(isinstance(self.facts.value(s), Static) for s in static):
            raise NotATensorError("the test is not about tensors alone")
        if mask:  # else every iteration asks it as before
            if blockers := effects_of_test(self.facts, statement.test):
                raise NotATensorError(blockers[0])
            self.predicates.differences += may_raise(self.facts, statement.test)
        test = self.predicates.all_of([*static, *tests])
        test = test if is_atom(test) else f"({test})"
        if not self._device:
            # a mask without dimensions goes with tensors of any device, so any tensor that the loop computes with does
            before = self.facts.before(self.loop)
            read = [*sorted(reads(statement.test)), *sorted(reads(*self.loop.body))]
            names = [n for n in read if isinstance(before.get(n), Tensor)]
            if not names and self._breaks:
                raise NotATensorError("no tensor of the loop exists before it")
            self._device = f"{names[0]}.device" if names else ""
        if isinstance(statement.body[0], ast.Continue):
            self._skips = self.skipped
            self.changes.append((statement, f"{self.skipped} = {mask + ' | ' if mask else ''}{test}\n"))
            return self.skipped
        # what a `continue` has skipped in this iteration is not asked whether it leaves the loop
        asked = f"(~{self.skipped} & {test})" if self._skips else test
        self.changes.append((statement, f"{self.stopped} = {self.stopped} | {asked}\n"))
        return f"{self.skipped} | {self.stopped}" if self._skips else self.stopped

    def _assign(self, name: str, value: ast.expr, mask: str) -> None:
        known = name in self.facts.before(self.loop)
        read = self._returned is not None and name in reads(self._returned)
        if not mask or not (known or read or alive(self.facts, name, self.loop)):
            return
        old = incoming(self.facts, self.loop, name)
        likeness = compare(name, old.meta, self.code.text(value), ShapeInference(self.facts).of(value))
        known = old.meta is not None and old.meta.proven and isinstance(self.facts.value(value), Tensor)
        asked_while_tracing = likeness.blocker is not None and "shapes" in likeness.blocker and known
        if likeness.blocker and not asked_while_tracing:
            raise NotSelectableError(likeness.blocker)
        self.predicates.differences += likeness.differences
        if seen_elsewhere(self.facts, ast.Name(name, ast.Load()), rebound=name):
            if changed_in_place(self.facts, name, behind=self.loop):
                raise NotSelectableError(f"`{name}` may be another tensor, and is changed in place")
            self.predicates.differences.append(
                Difference("aliasing", f"`{name}` is a copy where the loop leaves it as it was")
            )
        text = self.code.argument(value)
        if asked_while_tracing:  # shapes are known there, and what differs in them is branched on as before
            select = self.imports.name(f"{_RUNTIME}.select", _RUNTIME)
            self.values.append((value, f"{select}({mask}, lambda: {name}, lambda: {text})"))
        else:
            self.values.append((value, f"{self.where}({mask}, {name}, {text})"))

    def _change(self, name: str, statement: ast.AugAssign, mask: str) -> None:
        """`x += v`: the tensor itself is changed, to what it is where the loop was left."""
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
        sign = self.code.text(statement)[len(name) :].strip().partition("=")[0]
        read = intact(self.facts, statement, name, linear=linear_operator(self.facts, statement.op, statement.value))
        value = f"{read} {sign} {self.code.operand(statement.value)}"
        self.changes.append((statement, f"{name}.copy_({self.where}({mask}, {name}, {value}))\n"))

    def edits(self) -> list[TextEdit]:
        source = self.facts.source
        edits = [replace_statements(source, [s], text) for s, text in self.changes] + [
            replace_expression(source, v, text) for v, text in self.values
        ]
        if self._breaks:
            zeros, dtype = self.imports.name("torch.zeros"), self.imports.name("torch.bool")
            made = f"{zeros}((), dtype={dtype}, device={self._device})"
            edits.append(insert_before(source, self.loop, f"{self.stopped} = {made}\n"))
        if self._returned is not None:  # what it returns is what the names were when it was left
            edits.append(
                insert_after(source, self.loop, f"if {self.stopped}:\n    return {self.code.line(self._returned)}\n")
            )
        return edits
