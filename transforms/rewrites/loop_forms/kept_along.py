"""Append to a list always, and keep along with it which of its tensors count, instead of appending under a branch.

Before:
    losses = []
    for c in range(4):
        hit = labels == c
        if hit.any():
            losses.append((p[:, c] * hit).sum())
    return torch.stack(losses).mean()

After:
    losses = []
    kept = []
    for c in range(4):
        hit = labels == c
        kept.append(hit.any())
        losses.append((p[:, c] * hit).sum())
    return torch.stack(losses)[torch.stack(kept)].mean()

Legal when:
    the branch, or what a `continue` under it skips, appends tensors to lists, once to each, by `append` or `+=`, and
    else binds names that nothing reads behind it, without effects. The lists begin empty, nothing else is appended to
    them, and they are only stacked, made a tensor of, added up, counted, and asked whether they are empty: then those
    that count are picked, which is mended next, and counted.

Differs in:
    what is appended is always computed; it may raise, must have one shape, and may reach gradients. Where nothing
    counts, stacking and divisions raise no more, and a sum is a tensor; where the loop does not run at all, counting
    raises. It is written for the mends of masks, and stays where they remove the break.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Tensor, dtype_kind
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bindings, has_own_names, stores
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import alive, fresh, locals_of, writes
from graphmend.transforms.code.positions import begins_line, is_elif, replaceable
from graphmend.transforms.code.qualified_names import called, is_tensor
from graphmend.transforms.code.text_edits import HOLE, insert_after, replace_expression, replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.kept_scalars import written
from graphmend.transforms.if_conversion.tensor_predicates import NotATensorError, Predicates
from graphmend.transforms.if_conversion.value_tests import depends
from graphmend.transforms.legality.gradients.sides import gradient_differences
from graphmend.transforms.legality.scalar_uses import NeedsPythonNumberError, ScalarUses
from graphmend.transforms.legality.speculation import speculate
from graphmend.transforms.rewrites.answers import asks, prepare, refuse
from graphmend.transforms.rewrites.asked_again import keeps

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "kept_along"
_SHAPES = Difference("exception", "what is appended must have one shape each time, that which does not count too")
_EMPTY = Difference("exception", "a list that nothing was ever appended to raises where it is counted or added up")
_NOTHING = Difference("exception", "where nothing counts, stacking and a division by how many count raise no more")
_DTYPE = Difference("dtype", "what does not count is promoted with, and whole numbers are added up as int64")
_SUM = Difference("rounding", "a sum is made in another order")
_LAID = Difference("strides", "a sum lies in memory in order, however what was appended does")
_ZERO = Difference("dtype", "a sum of nothing is a tensor of zeros, not the number 0")


_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class _Refused(Exception):
    """The message is the sentence to refuse with."""


class _Guarded(NamedTuple):
    """What runs under a branch."""

    statements: list[ast.stmt]
    negated: bool
    """Does it run where the test does not hold, as a `continue` skips it?"""


@asks("effects", "totality", "memory", "order", "numbers", "gradients", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    branch = facts.statement
    if not isinstance(branch, ast.If) or not depends(facts, branch.test):
        return None
    guarded = _guarded(facts, branch)
    if guarded is None:
        return None
    imports = Imports(facts)
    predicates = Predicates(facts, imports)
    try:
        appended = _appended(facts, guarded.statements)
        if not appended:
            return None
        test = predicates.negated(branch.test) if guarded.negated else predicates.of(branch.test)
        if not guarded.negated and not keeps(facts, [branch.test], test):
            test = f"{test}.clone()"  # as it is now, whatever changes it before the lists are read
        begins = [_begins(facts, name) for name in appended]
        if len({facts.parent(statement) for statement in begins}) > 1:
            raise _Refused("the lists begin in different places")
        kept = fresh(facts, "kept")
        reads = _Reads(facts, imports, kept, _growing(facts, branch, begins))
        for name in appended:
            reads.take(name)
    except (_Refused, NotATensorError, NeedsPythonNumberError) as error:
        return refuse(NAME, str(error))
    if not replaceable(facts, [branch]) or is_elif(facts.source, branch) or not begins_line(facts.source, begins[0]):
        return refuse(NAME, "the statement shares its line with another one")
    values = [n.value for n in guarded.statements if isinstance(n, (ast.Assign, ast.AnnAssign)) and n.value is not None]
    found = speculate(facts, *values, *appended.values())
    if found.blockers:
        return refuse(NAME, found.blockers[0])
    differences = [*predicates.differences, *found.differences, *reads.differences, _SHAPES, _NOTHING]
    differences += [] if _have_one_dtype(facts, appended.values()) else [_DTYPE]
    differences += gradient_differences(facts, branch, [[*values, *appended.values()]])

    def make() -> list[TextEdit]:
        line = f"{kept}.append({test})\n"
        inside = [] if guarded.negated else [branch.body]
        text = line + "".join(f"{HOLE.format(place)}\n" for place in range(len(inside)))
        return [
            *imports.edits(),
            insert_after(facts.source, begins[0], f"{kept} = []\n"),
            replace_statements(facts.source, [branch], text, *inside),
            *(replace_expression(facts.source, node, new) for node, new in reads.texts().items()),
        ]

    return prepare(NAME, "append always, and keep which of them count", facts, make, differences)


def _guarded(facts: FunctionFacts, branch: ast.If) -> _Guarded | None:
    """What a branch without another side guards: its body, or the rest of a loop's body behind `continue`."""
    if branch.orelse:
        return None
    if not isinstance(branch.body[0], ast.Continue):
        return _Guarded(branch.body, False)
    loop = facts.parent(branch)
    if not isinstance(loop, (ast.For, ast.While)) or branch not in loop.body:
        return None
    return _Guarded(loop.body[loop.body.index(branch) + 1 :], True)


def _appended(facts: FunctionFacts, statements: list[ast.stmt]) -> dict[str, ast.expr]:
    """What statements append, by the name of the list. They do nothing else that anything sees behind them."""
    found: dict[str, ast.expr] = {}
    for statement in statements:
        match statement:
            case ast.Expr(
                value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[value], keywords=[])
            ):
                _appends(found, name, value)
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=ast.List(elts=[value])):
                _appends(found, name, value)
            case ast.Assign(targets=targets) if all(map(_binds_names, targets)):
                pass
            case ast.AnnAssign(target=ast.Name()):
                pass
            case _:
                raise _Refused(f"`{ast.unparse(statement).splitlines()[0]}` does more than append and bind names")
    for name in sorted(writes(*statements) - found.keys()):
        if alive(facts, name, statements[-1]):
            raise _Refused(f"`{name}` is read behind the branch")
    for name, value in found.items():
        if not is_tensor(facts, value):
            raise _Refused(f"what is appended to `{name}` is not known to be a tensor")
    return found


def _appends(found: dict[str, ast.expr], name: str, value: ast.expr) -> None:
    if name in found or isinstance(value, ast.Starred):
        raise _Refused(f"`{name}` is appended to more than once")
    found[name] = value


def _have_one_dtype(facts: FunctionFacts, values: Iterable[ast.expr]) -> bool:
    """Has each of some values always the same dtype, of floating-point numbers?"""
    known = [facts.value(value) for value in values]
    return all(isinstance(v, Tensor) and isinstance(v.dtype, str) and dtype_kind(v.dtype) == "float" for v in known)


def _binds_names(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) or (isinstance(target, ast.Tuple) and all(map(_binds_names, target.elts)))


def _begins(facts: FunctionFacts, name: str) -> ast.stmt:
    """The statement in which a list is made, empty."""
    bound = bindings(facts).get(name, [])
    only = bound[0].value if len(bound) == 1 and not bound[0].part else None
    empty = (isinstance(only, ast.List) and not only.elts) or (
        isinstance(only, ast.Call) and not only.args and called(facts, only, "builtins.list")
    )
    if (
        only is None
        or not empty
        or name not in locals_of(facts.function)
        or stores(facts, name) != 1 + _added(facts, name)
    ):
        raise _Refused(f"`{name}` is not known to be a list that begins empty")
    return next(above for above in facts.ancestors(only) if isinstance(above, ast.stmt))


def _added(facts: FunctionFacts, name: str) -> int:
    """How often something is added to a list by `+=`."""
    targets = [n.target for n in nodes_in(facts.function) if isinstance(n, ast.AugAssign)]
    return sum(isinstance(t, ast.Name) and t.id == name for t in targets)


def _growing(facts: FunctionFacts, branch: ast.If, begins: list[ast.stmt]) -> set[ast.AST]:
    """The loops in which lists grow that are made in front of them."""
    around = {above for statement in begins for above in facts.ancestors(statement)}
    return {above for above in facts.ancestors(branch) if isinstance(above, _LOOPS) and above not in around}


class _Reads:
    """What is written where lists are read of which some elements count."""

    def __init__(self, facts: FunctionFacts, imports: Imports, kept: str, grow: set[ast.AST]) -> None:
        """`grow` are the loops in which something is appended."""
        self._facts, self._imports, self._grow = facts, imports, grow
        self._stack = imports.name("torch.stack")
        self._kept = f"{self._stack}({kept})"
        self._texts: dict[ast.expr, str] = {}
        self._uses: list[ScalarUses] = []
        self.differences: list[Difference] = []

    def take(self, name: str) -> None:
        """Every read of a list but the one that is appended to."""
        appends = _added(self._facts, name)
        for node in nodes_in(self._facts.function):
            if not (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)):
                continue
            above = self._facts.parent(node)
            if isinstance(above, ast.Attribute) and above.attr == "append":
                appends += 1
            elif has_own_names(self._facts, node) or self._inside(node):
                raise _Refused(f"`{name}` is read while it grows, or by a function of its own")
            else:
                self._read(node, above)
        if appends != 1:
            raise _Refused(f"`{name}` is appended to elsewhere")

    def _inside(self, node: ast.Name) -> bool:
        above = [a for a in self._facts.ancestors(node) if a is not self._facts.function]
        return any(a in self._grow or isinstance(a, _FUNCTIONS) for a in above)

    def _read(self, node: ast.Name, above: ast.AST | None) -> None:
        match above:
            case ast.Call(args=[first], keywords=[]) if first is node and called(self._facts, above, "torch.stack"):
                self._texts[above] = f"{self._stack}({node.id})[{self._kept}]"
            case ast.Call(args=[first]) if first is node and called(
                self._facts, above, "torch.tensor", "torch.as_tensor"
            ):
                self._texts[above] = f"{Code(self._facts.source).text(above)}[{self._kept}]"
            case ast.Call(args=[first], keywords=[]) if first is node and called(self._facts, above, "builtins.len"):
                self._count(above)
            case ast.Call(args=[first], keywords=[]) if first is node and called(self._facts, above, "builtins.sum"):
                value = self._facts.value(above)
                if isinstance(value, Tensor) and dtype_kind(value.dtype) not in ("float", None):
                    raise _Refused(f"`{ast.unparse(above)}` adds whole numbers")
                dim = "" if isinstance(value, Tensor) and value.rank == 0 else "0"
                self._texts[above] = f"{self._stack}({node.id})[{self._kept}].sum({dim})"
                self.differences += [_SUM, _LAID, _ZERO, _EMPTY]
            case ast.If(test=test) | ast.IfExp(test=test) if test is node:
                self._texts[node] = f"{self._kept}.any()"
                self.differences.append(_EMPTY)
            case ast.UnaryOp(op=ast.Not()) if self._is_test(above):
                self._texts[above] = f"~{self._kept}.any()"
                self.differences.append(_EMPTY)
            case _:
                text = ast.unparse(above) if isinstance(above, ast.expr) else node.id
                raise _Refused(f"`{text}` reads the list otherwise")

    def _is_test(self, node: ast.expr) -> bool:
        around = self._facts.parent(node)
        return isinstance(around, (ast.If, ast.IfExp)) and around.test is node

    def _count(self, call: ast.Call) -> None:
        """How many count, as a 0-d tensor."""
        uses = ScalarUses(self._facts, "int64", rewrites=True)
        uses.follow(call)
        if uses.also:
            raise _Refused(f"`{ast.unparse(uses.also[0])}` stays a Python number")
        self._texts[call] = f"{self._kept}.sum()"
        self._uses.append(uses)
        self.differences += [*uses.differences, _EMPTY]

    def texts(self) -> dict[ast.expr, str]:
        """The outermost expressions that change, and what they become."""
        forms = {node: form for uses in self._uses for node, form in uses.counterparts.items()}
        return written(self._facts, self._imports, self._texts, forms)
