"""Use a mask also where it masks nothing, instead of leaving it out then.

Before:
    mask = None if keep.all() else keep[:, None, None, :]
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

After:
    mask = keep[:, None, None, :]
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

Legal when:
    the test says of every element of the mask, or of what it is computed from, that it masks nothing (`all` of bools
    that let through, `any` of those that mask, zeros that are added); and all that is done with it (in functions that
    it is given to or returned to as well) is to give it to attention, which takes None for such a mask, or to ask for
    None in order to mask. What is computed for the mask only computes. Other parts of the test stay.

Differs in:
    attention under a mask may round otherwise. What is masked is a copy, and a mask of another shape or dtype raises,
    or broadcasts, where it masks nothing as well; one that asks for gradients gets them. It holds for the callers in
    sight.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code, shortened
from graphmend.transforms.code.liveness import alive, always_leaves
from graphmend.transforms.code.positions import is_elif, replaceable
from graphmend.transforms.code.text_edits import HOLE, deletion, replace_expression, replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.value_tests import depends, effects_of_test
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.legality.memory import shares
from graphmend.transforms.legality.neutral.binding import binding
from graphmend.transforms.legality.neutral.elements import Element
from graphmend.transforms.legality.neutral.places import Places
from graphmend.transforms.legality.neutral.takers import TellsError
from graphmend.transforms.legality.neutral.uniform import Uniform
from graphmend.transforms.legality.totality import may_raise
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "always_masked"


class _Choice(NamedTuple):
    """None where a test of tensors holds (or does not), and a mask otherwise."""

    whole: ast.If | ast.IfExp
    test: ast.expr
    none_if: bool
    """Is it None where the test holds?"""
    name: str | None
    """The name that is bound, None for an expression or what is returned."""
    value: ast.expr | None
    """The mask, of an expression."""
    statements: Sequence[ast.stmt] = ()
    """What computes the mask of a name, if it is not what that was bound to before; what computes and returns it."""


@asks("effects", "totality", "memory", "order", "domain")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    test, named = _test(facts)
    choice = _choice(facts, test) if test is not None else None
    if choice is None:
        return None
    asked, static = _parts(facts, choice)
    if asked is None:
        return None
    try:
        differences = [d for part in asked for d in _proven(facts, choice, part)]
    except TellsError as error:
        return refuse(NAME, str(error))
    if found := effects_of_test(facts, choice.test):
        return refuse(NAME, found[0])
    own = [s for s in choice.statements if not _fills(facts, s, choice.statements)]
    if (more := next((s for s in own if not _only_binds(s)), None)) is not None:
        return refuse(NAME, f"`{shortened(more)}` does more than compute a mask")
    left = [n for n in _binds(choice.statements) if n != choice.name and alive(facts, n, _last(choice))]
    if choice.name is not None and left:
        return refuse(NAME, f"`{left[0]}` is bound as well where there is a mask")
    if found := effects(facts, *own, *([choice.value] if choice.value is not None else [])):
        return refuse(NAME, found[0])
    whole = choice.whole
    if isinstance(whole, ast.If) and (is_elif(facts.source, whole) or not replaceable(facts, [whole])):
        return refuse(NAME, "the statement shares its line with another one")
    for node in (n for s in choice.statements for n in nodes_in(s) if isinstance(n, ast.Assign)):
        differences += may_raise(facts, node.value)
    if choice.value is not None and not choice.statements:
        differences += may_raise(facts, choice.value)
    if may_raise(facts, *asked):
        differences.append(Difference("exception", f"`{shortened(choice.test)}` raises no more"))

    def make() -> list[TextEdit]:
        edits = _edits(facts, choice, static)
        return [*edits, *([deletion(facts, named)] if named is not None else [])]

    return offer(NAME, "use the mask where it masks nothing too", facts, make, differences)


def _test(facts: FunctionFacts) -> tuple[ast.expr | None, ast.stmt | None]:
    """The test that the finding is about, and the statement that gives it a name, if that is read there alone."""
    for node in (facts.node, *facts.ancestors(facts.node)):
        above = facts.parent(node)
        if isinstance(above, (ast.If, ast.IfExp)) and above.test is node:
            return above.test, None
        match above:
            case ast.Assign(targets=[ast.Name(id=name)]) if not isinstance(node, ast.stmt):
                found = [n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n.id == name]
                loads = [n for n in found if isinstance(n.ctx, ast.Load)]
                if len(found) != 2 or len(loads) != 1 or binding(facts, loads[0]).by is not above:
                    return None, None
                for around in (loads[0], *facts.ancestors(loads[0])):
                    outer = facts.parent(around)
                    if isinstance(outer, (ast.If, ast.IfExp)) and outer.test is around:
                        return outer.test, above
    return None, None


def _choice(facts: FunctionFacts, test: ast.expr) -> _Choice | None:
    whole = facts.parent(test)
    match whole:
        case ast.IfExp(body=ast.Constant(value=None), orelse=value):
            return _Choice(whole, test, True, None, value)
        case ast.IfExp(body=value, orelse=ast.Constant(value=None)):
            return _Choice(whole, test, False, None, value)
        case ast.If(body=body, orelse=orelse):
            for none_if, none, other in ((True, body, orelse), (False, orelse, body)):
                match none:
                    case [ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=None))]:
                        if not other or name in _binds(other):
                            return _Choice(whole, test, none_if, name, None, other)
                    case [ast.Return(value=None | ast.Constant(value=None))]:
                        block = facts.body_of(whole)
                        ends = not other and block is facts.function.body
                        other = other or block[block.index(whole) + 1 :]
                        if ends or always_leaves(other):
                            return _Choice(whole, test, none_if, None, None, other)
                    case []:
                        if (before := _named_before(facts, whole, other)) is not None:
                            return _Choice(whole, test, none_if, before, None, other)
    return None


def _binds(statements: Sequence[ast.stmt]) -> list[str]:
    """The names that plain assignments among statements bind, the last first."""
    found = []
    for statement in reversed(statements):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]):
                found.append(name)
    return found


def _last(choice: _Choice) -> ast.stmt:
    assert isinstance(choice.whole, ast.If)
    return choice.whole


def _only_binds(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assign(targets=[ast.Name()]) | ast.Return() | ast.Pass():
            return True
        case ast.If(body=body, orelse=orelse):
            return all(map(_only_binds, (*body, *orelse)))
    return False


def _fills(facts: FunctionFacts, statement: ast.stmt, statements: Sequence[ast.stmt]) -> bool:
    """Does a statement only change a tensor that the same statements have made?"""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name() as filled, attr="masked_fill_"), args=args)):
            found = not effects(facts, *args)
        case ast.Assign(targets=[ast.Subscript(value=ast.Name() as filled, slice=index)], value=value):
            found = not effects(facts, index, value)
        case _:
            return False
    by = binding(facts, filled)
    return found and by.by in statements and by.value is not None and shares(facts, by.value).fresh


def _named_before(facts: FunctionFacts, whole: ast.If, statements: Sequence[ast.stmt]) -> str | None:
    """The name of `m = None` in front of a branch that binds it."""
    block = facts.body_of(whole)
    for name in _binds(statements):
        for earlier in reversed(block[: block.index(whole)]):
            match earlier:
                case ast.Assign(targets=[ast.Name(id=own)], value=ast.Constant(value=None)) if own == name:
                    return name
            if any(isinstance(n, ast.Name) and n.id == name for n in nodes_in(earlier)):
                break
    return None


def _parts(facts: FunctionFacts, choice: _Choice) -> tuple[list[ast.expr] | None, list[ast.expr]]:
    """The parts of a test that ask tensors, each of which decides for None, and those that stay; None for all of them
    where it takes several to decide.
    """
    match choice.test:
        case ast.BoolOp(op=op, values=values):
            static = [v for v in values if not depends(facts, v)]
            asked = [v for v in values if v not in static]
            if isinstance(op, ast.Or) == choice.none_if:
                return asked or None, static
            return ([choice.test] if asked else None), []
    return [choice.test], []


def _proven(facts: FunctionFacts, choice: _Choice, part: ast.expr) -> list[Difference]:
    """What differs where a part of the test decides for None, and the mask is used all the same."""
    told = Uniform(facts)
    told.learn(part, choice.none_if)
    places = Places(facts)
    whole = choice.whole
    if choice.name is not None:
        element = told.left(choice.name, choice.statements) if choice.statements else told.mask(_before(choice))
        if element is None:
            raise TellsError(f"`{choice.name}` is not known to mask nothing")
        places.named(choice.name, whole, element)
    elif choice.value is not None:
        assert isinstance(whole, ast.IfExp)
        places.follow(whole, _element(told, choice.value))
    else:
        found = _returned(told, choice.statements)
        for element in dict.fromkeys(found):
            places.returned(element)
    return [*places.differences, *told.taken]


def _before(choice: _Choice) -> ast.expr:
    """The name as it was in front of the test, as an expression that the test reads."""
    for node in nodes_in(choice.test):
        if isinstance(node, ast.Name) and node.id == choice.name:
            return node
    raise TellsError(f"`{shortened(choice.test)}` does not ask `{choice.name}`")


def _element(told: Uniform, value: ast.expr) -> Element:
    element = told.mask(value)
    if element is None:
        raise TellsError(f"`{shortened(value)}` is not known to mask nothing")
    return element


def _returned(told: Uniform, statements: Sequence[ast.stmt]) -> list[Element]:
    """What every `return` of statements gives, which only bind names."""
    found: list[Element] = []
    for statement in statements:
        match statement:
            case ast.Return(value=ast.expr() as value):
                if not (isinstance(value, ast.Constant) and value.value is None):
                    found.append(_element(told, value))
            case ast.If(body=body, orelse=orelse):
                found += [*_returned(told, body), *_returned(told, orelse)]
    if not found:
        raise TellsError("no mask is returned")
    return found


def _edits(facts: FunctionFacts, choice: _Choice, static: list[ast.expr]) -> list[TextEdit]:
    code, whole = Code(facts.source), choice.whole
    if static:
        sign = " or " if choice.none_if else " and "
        parts = [code.operand(s) if isinstance(s, _LOOSE) else code.text(s) for s in static]
        return [replace_expression(facts.source, choice.test, sign.join(parts))]
    if isinstance(whole, ast.IfExp):
        assert choice.value is not None
        match facts.parent(whole), choice.value:
            case ast.Assign(targets=[ast.Name(id=name)]) as statement, ast.Name(id=own) if own == name:
                return [deletion(facts, statement)]
        return [replace_expression(facts.source, whole, code.argument(choice.value))]
    other = whole.orelse if choice.none_if else whole.body
    if not other:
        return [deletion(facts, whole)]
    return [replace_statements(facts.source, [whole], HOLE.format(0) + "\n", other)]


_LOOSE = (ast.BoolOp, ast.IfExp, ast.Lambda, ast.NamedExpr)
