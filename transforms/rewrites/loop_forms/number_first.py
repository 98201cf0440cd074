"""Hold a number in a 0-d tensor from before a loop on, where a branch in the loop changes it.

Before:
    n = 0
    for t in ids:
        if t != blank:
            out[n] = t
            n += 1

After:
    n = 0
    n = torch.tensor(n, dtype=torch.int64, device=ids.device)
    for t in ids:
        if t != blank:
            out[n] = t
            n += 1

Legal when:
    the name holds a Python number in front of the loop, and is read in the loop and behind it alone. Whatever binds it
    there gives a tensor of one element, computes with the number itself, or stands in a branch on tensors, which is
    mended next. Each use takes a 0-d tensor, or has a form that does. Where the branch's own mends need no such tensor,
    it is not offered.

Differs in:
    a number that is returned is a tensor; what meets it may be promoted, and is computed in the tensor's precision. It
    is written for the mends of branches, and stays where they remove the break.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, TypeGuard

from graphmend.analysis.lattice.values import Static, Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import locals_of, reads, stored, writes
from graphmend.transforms.code.positions import begins_line
from graphmend.transforms.code.text_edits import insert_before, replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.kept_scalars import written
from graphmend.transforms.if_conversion.value_tests import depends
from graphmend.transforms.legality.numbers.as_tensors import PRECISION, PROMOTES
from graphmend.transforms.legality.numbers.counterparts import Counterpart
from graphmend.transforms.legality.scalar_uses import NeedsPythonNumberError, ScalarUses
from graphmend.transforms.rewrites.answers import asks, prepare, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "number_first"
_DTYPES = {"bool": "bool", "int": "int64", "float": "float64"}
_LOOPS = (ast.For, ast.While)


@asks("numbers", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    branch = facts.statement
    if not isinstance(branch, ast.If) or not depends(facts, branch.test):
        return None
    held = {n: loop for n in sorted(stored([branch])) if (loop := _loop(facts, branch, n)) is not None}
    if not held or not any(_needs_a_tensor(facts, name, loop) for name, loop in held.items()):
        return None
    if outside := next((n for n in held if n not in locals_of(facts.function)), None):
        return refuse(NAME, f"`{outside}` is no local name")
    imports, lines, differences = Imports(facts), dict[ast.stmt, str](), list[Difference]()
    texts: dict[ast.expr, str] = {}
    try:
        for name, loop in held.items():
            dtype, uses = _followed(facts, name, _DTYPES[_type(facts, name, loop) or "int"])
            differences += uses.differences
            forms = uses.counterparts
            if not all(_stays_tensor(facts, n) for n in nodes_in(loop) if _binds(n, name)):
                forms = {node: _of_any(node, form, dtype) for node, form in forms.items()}
            texts |= written(facts, imports, {}, forms)
            made = f"{imports.name('torch.tensor')}({name}, dtype={imports.name(f'torch.{dtype}')}"
            lines[loop] = lines.get(loop, "") + f"{name} = {made}{_device(facts, branch, loop)})\n"
    except NeedsPythonNumberError as error:
        return refuse(NAME, str(error))
    if not all(begins_line(facts.source, loop) for loop in lines):
        return refuse(NAME, "the loop shares its line with another statement")

    def make() -> list[TextEdit]:
        return [
            *imports.edits(),
            *(insert_before(facts.source, loop, text) for loop, text in lines.items()),
            *(replace_expression(facts.source, node, text) for node, text in texts.items()),
        ]

    title = f"hold {', '.join(f'`{n}`' for n in held)} in a tensor from before the loop on"
    return prepare(NAME, title, facts, make, differences)


def _loop(facts: FunctionFacts, branch: ast.If, name: str) -> ast.For | ast.While | None:
    """The outermost loop around a branch in front of which a name holds a number, that nothing but the loop binds."""
    loops = [a for a in facts.ancestors(branch) if isinstance(a, _LOOPS)]
    return next((loop for loop in reversed(loops) if _begins_in_front(facts, name, loop)), None)


def _begins_in_front(facts: FunctionFacts, name: str, loop: ast.For | ast.While) -> bool:
    if _type(facts, name, loop) is None or (isinstance(loop, ast.For) and name in writes(loop.target)):
        return False
    begin, inside = (loop.lineno, loop.col_offset), {*nodes_in(loop)}
    for node in nodes_in(facts.function):
        if not isinstance(node, ast.Name) or node.id != name:
            continue
        in_front = (node.lineno, node.col_offset) < begin
        if in_front != isinstance(node.ctx, ast.Store) and node not in inside:
            return False
        if node in inside and isinstance(node.ctx, ast.Store) and not _keeps_tensor(facts, node, loop):
            return False
    return True


def _binds(node: ast.AST, name: str) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)


def _type(facts: FunctionFacts, name: str, loop: ast.stmt) -> str | None:
    """The type of the number that a name holds in front of a loop."""
    value = facts.before(loop).get(name)
    return value.type if isinstance(value, Static) and value.type in _DTYPES else None


def _keeps_tensor(facts: FunctionFacts, target: ast.Name, loop: ast.stmt) -> bool:
    """Is a name a tensor still where the loop binds it, or is it selected?"""
    if _stays_tensor(facts, target):
        return True
    given = _given(facts, target)
    return given is not None and any(depends(facts, above.test) for above in _branches(facts, target, loop))


def _stays_tensor(facts: FunctionFacts, target: ast.Name) -> bool:
    """Is a name a tensor still where the loop binds it, before the branch around that is mended?"""
    if (given := _given(facts, target)) is None:
        return isinstance(facts.parent(target), ast.AugAssign)
    value = facts.value(given)
    return target.id in reads(given) or (isinstance(value, Tensor) and value.rank == 0)


def _given(facts: FunctionFacts, target: ast.Name) -> ast.expr | None:
    """What an assignment binds a name to, alone or as one of several."""
    match statement := facts.parent(target):
        case ast.Assign(targets=[one], value=given) if one is target:
            return given
        case ast.Tuple(elts=targets):
            match facts.parent(statement):
                case ast.Assign(targets=[_], value=ast.Tuple(elts=values)) if len(values) == len(targets):
                    return values[targets.index(target)]
    return None


def _of_any(node: ast.expr, form: Counterpart, dtype: str) -> Counterpart:
    """A use that is right for a Python number as well, which the branch binds the name to until it is mended."""
    if form.filled is not None:
        return form
    if dtype == "float64" or form.formula or form.said or form.function not in ("", "as_tensor"):
        raise NeedsPythonNumberError(f"`{shortened(node)}` would be given a Python number until the branch is mended")
    return replace(form, function="as_tensor")


def _branches(facts: FunctionFacts, target: ast.Name, loop: ast.stmt) -> Iterator[ast.If]:
    for above in facts.ancestors(target):
        if above is loop:
            return
        if isinstance(above, ast.If):
            yield above


def _needs_a_tensor(facts: FunctionFacts, name: str, loop: ast.stmt) -> bool:
    """Does a number that is selected in the loop have a use that takes a tensor only where it always is one? One that a
    tensor takes the place of is not selected as what it is in between.
    """
    if not isinstance(facts.before(facts.statement).get(name), Static):
        return True
    uses = ScalarUses(facts, _DTYPES[_type(facts, name, loop) or "int"], says=True)
    try:
        uses.name(name)
    except NeedsPythonNumberError:
        return True
    return False


def _followed(facts: FunctionFacts, name: str, dtype: str) -> tuple[str, ScalarUses]:
    """As wide as Python's number, but for where it would make doubles of other tensors."""
    for tried in (dtype, *(("float32",) if dtype == "float64" else ())):
        uses = ScalarUses(facts, tried, rewrites=True, restates=True)
        uses.name(name)
        if PROMOTES not in uses.differences:
            break
    uses.exactly()
    if uses.also:
        raise NeedsPythonNumberError(f"`{ast.unparse(uses.also[0])}` stays a Python number")
    if tried != dtype:
        uses.differences.append(PRECISION)
    return tried, uses


def _device(facts: FunctionFacts, branch: ast.If, loop: ast.stmt) -> str:
    """The device of a tensor that the branch asks, as far as one exists in front of the loop."""
    before = facts.before(loop)
    read = [*sorted(reads(branch.test)), *sorted(reads(loop))]
    tensor = next((n for n in read if isinstance(before.get(n), Tensor)), None)
    return f", device={tensor}.device" if tensor is not None else ""
