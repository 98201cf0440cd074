"""Give a number that differs from call to call to compiled code as a 0-d tensor.

Before:
    for i in range(steps):
        p = update(p, g, 0.1 / (i + 1))

After:
    for i in range(steps):
        p = update(p, g, torch.tensor(0.1 / (i + 1), dtype=torch.float64))

Legal when:
    every call in sight gives the number in the same file, as an argument, as an argument that a `functools.partial`
    binds, or in a variable around a function that is made just before; all are ints, or all are floats; and what is
    compiled only computes with it, in ways that a 0-d tensor does as well.

Differs in:
    where the number is computed from what the function around the call is given, code of another file may give another
    one: a tensor there is copied, without its history, to the dtype of the number. A 0-d tensor may promote a 0-d
    tensor that it meets, where a number does not; a quotient or a power may round in its last digit; whole numbers
    wrap around at 64 bits, and those that are made floats are 32 bits wide.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.facts.function_facts import above, parents_in
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code, shortened
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import fresh
from graphmend.transforms.code.positions import begins_line
from graphmend.transforms.code.text_edits import insert_before, replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.numbers.given import given_from_outside
from graphmend.transforms.legality.scalar_uses import NeedsPythonNumberError, ScalarUses
from graphmend.transforms.rewrites.answers import asks, offer, refuse
from graphmend.transforms.rewrites.varied_numbers import DTYPES, Kind, as_tensor, kind_of

if TYPE_CHECKING:
    from graphmend.analysis.driver.guards.variation import Variation
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "pass_tensor"
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class _Given(NamedTuple):
    """The expressions that give the number, and where what is compiled reads it."""

    expressions: list[tuple[ast.expr, _Function | None]]
    """Each with the function around it; None at the module's top level."""
    reads: list[ast.Name]
    kept: bool
    """Does one tensor serve several calls?"""
    around: ast.stmt | None = None
    """The statement that makes the function, where it reads the number from around it."""


class _Missing(Exception):
    """A proof is missing; the message says which."""


@asks("numbers", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    variation = facts.variation
    kind = kind_of(variation) if variation is not None else None
    if variation is None or kind is None or variation.target is None or variation.kind not in _FORMS:
        return None
    if variation.target.module.source.path != finding.path:
        return refuse(NAME, f"`{variation.name}` stands in another file")
    try:
        given = _FORMS[variation.kind](facts, variation)
        if given is None:
            return None
        uses = _followed(facts, given, kind)
    except (_Missing, NeedsPythonNumberError) as error:
        return refuse(NAME, str(error))
    subject = variation.subject

    def make() -> list[TextEdit]:
        return _captured(facts, given, subject, kind) if given.around is not None else _wrapped(facts, given, kind)

    differences = [*uses.differences, *_otherwise_given(facts, given, kind)]
    return offer(NAME, f"pass `{subject}` as a 0-d tensor", facts, make, differences)


def _followed(facts: FunctionFacts, given: _Given, kind: Kind) -> ScalarUses:
    """What differs where compiled code reads a tensor instead."""
    uses = ScalarUses(facts, DTYPES[kind])
    for read in given.reads:
        uses.follow(read)
    if uses.asks:
        raise NeedsPythonNumberError(f"`{shortened(uses.asks[0])}` asks for the number")
    return uses


def _otherwise_given(facts: FunctionFacts, given: _Given, kind: Kind) -> list[Difference]:
    """What differs where code of another file gives what the number is computed from."""
    outside = [given_from_outside(facts, node, function) for node, function in given.expressions]
    says = (
        f"`{{}}` is taken for {'an int' if kind == 'int' else 'a float'}: a tensor that another file gives is cut off"
    )
    return [
        Difference("gradients", f"{says.format(shortened(text))} from its history")
        for text in outside
        if text is not None
    ]


def _wrapped(facts: FunctionFacts, given: _Given, kind: Kind) -> list[TextEdit]:
    edits: list[TextEdit] = []
    for node, function in given.expressions:
        imports = Imports(facts.within(function) if function is not None else facts)
        text = as_tensor(imports, kind, node, Code(facts.source).argument(node))
        edits += [*imports.edits(), replace_expression(facts.source, node, text)]
    return edits


def _captured(facts: FunctionFacts, given: _Given, name: str, kind: Kind) -> list[TextEdit]:
    """Another variable in front of the function that is made, which it reads instead."""
    assert given.around is not None
    ((_, function),) = given.expressions
    scope = facts.within(function) if function is not None else facts
    imports, other = Imports(scope), fresh(scope, f"{name}_tensor")
    text = f"{other} = {as_tensor(imports, kind, None, name)}\n"
    edits = [insert_before(facts.source, given.around, text)]
    return [*imports.edits(), *edits, *(replace_expression(facts.source, read, other) for read in given.reads)]


# Who gives the number


def _argument(facts: FunctionFacts, variation: Variation) -> _Given | None:
    if len(variation.path) != 1:
        return None
    target = _target(facts, variation)
    for call, place in variation.at.items():
        if place.module.source.path != facts.source.path:
            raise _Missing("another file calls it too")
        if place.node is call:
            raise _Missing(f"`{ast.unparse(call)}` gives `{variation.subject}` in no argument of its own")
    expressions = [
        (place.node, place.function.node if place.function is not None else None) for place in variation.at.values()
    ]
    found = [(node, _definition(facts, function)) for node, function in expressions if isinstance(node, ast.expr)]
    return _Given(found, _reads(facts, target, variation.subject), False)


def _bound(facts: FunctionFacts, variation: Variation) -> _Given | None:
    """An argument that a `functools.partial` binds where it is compiled."""
    if variation.path[0][0] != "argument" or len(variation.path) != 2 or not isinstance(variation.path[1][1], str):
        return None
    name, target = variation.subject, _target(facts, variation)
    site = variation.site
    calls = [n for n in nodes_in(site.node) if isinstance(n, ast.Call)] if isinstance(site.node, ast.Call) else []
    found = [k.value for call in calls for k in call.keywords if k.arg == name and call is not site.node]
    if len(found) != 1 or site.module.source.path != facts.source.path:
        raise _Missing(f"where `{name}` is bound is not in sight")
    if any(isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load) for n in nodes_in(target)):
        raise _Missing(f"`{name}` is changed in place, for the next call too")
    function = site.function.node if site.function is not None else None
    return _Given([(found[0], _definition(facts, function))], _reads(facts, target, name), True)


def _around(facts: FunctionFacts, variation: Variation) -> _Given | None:
    """A variable around a function that is made anew."""
    target, name = _target(facts, variation), variation.subject
    if len(variation.path) != 1 or (variation.write is not None and variation.write.traced):
        return None
    tree = facts.source.tree
    assert tree is not None
    parents = parents_in(tree)
    outer = next((n for n in above(parents, target) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))), None)
    if outer is None:
        return None
    statement = next(n for n in (target, *above(parents, target)) if isinstance(n, ast.stmt))
    if not begins_line(facts.source, statement) or not isinstance(
        statement, (ast.Expr, ast.Assign, ast.Return, ast.FunctionDef)
    ):
        raise _Missing(f"nothing can be put in front of the statement that makes `{variation.name}`")
    loops = [n for n in above(parents, statement) if isinstance(n, (ast.For, ast.While))]
    for node in nodes_in(outer):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            raise _Missing(f"`{name}` is set by several functions")
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, (ast.Store, ast.Del)):
            within = [n for n in above(parents, node) if isinstance(n, (ast.For, ast.While))]
            own = bool(within) and isinstance(within[0], ast.For) and _is_target(within[0], node)
            before = (node.lineno, node.col_offset) < (statement.lineno, statement.col_offset)
            if not (before and all(loop in loops for loop in within) and (own or within == loops[-len(within) :])):
                raise _Missing(f"`{name}` may be set again once the function is made")
    return _Given([(ast.Name(name), outer)], _reads(facts, target, name), True, statement)


def _is_target(loop: ast.For, node: ast.AST) -> bool:
    return any(inner is node for inner in nodes_in(loop.target))


_FORMS = {"argument": _argument, "keyword": _bound, "closure": _around}


def _target(facts: FunctionFacts, variation: Variation) -> _Function | ast.Lambda:
    """What is compiled, as a node of the file."""
    assert variation.target is not None
    if isinstance(variation.target.node, ast.Lambda):
        return variation.target.node
    return facts.function


def _definition(facts: FunctionFacts, node: ast.AST | None) -> _Function | None:
    return node if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else None


def _reads(facts: FunctionFacts, target: _Function | ast.Lambda, name: str) -> list[ast.Name]:
    body: Iterable[ast.AST] = target.body if isinstance(target.body, list) else [target.body]
    found = [n for part in body for n in nodes_in(part) if isinstance(n, ast.Name) and n.id == name]
    for node in found:
        if not isinstance(node.ctx, ast.Load):
            raise _Missing(f"`{name}` is set again in `{getattr(target, 'name', 'the lambda')}`")
    for part in nodes_in(target):
        inner = part.args if isinstance(part, (ast.FunctionDef, ast.Lambda)) and part is not target else None
        if inner is not None and name in {a.arg for a in (*inner.posonlyargs, *inner.args, *inner.kwonlyargs)}:
            raise _Missing(f"a function inside has its own `{name}`")
    return [node for node in found if isinstance(node.ctx, ast.Load)]
