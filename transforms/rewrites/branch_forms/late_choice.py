"""Choose where Python values are used instead of between the values.

Before:
    mode = "loud" if x.abs().max() > 1 else "quiet"
    if mode == "quiet":
        x = x + 1
    return x * SCALES[mode]

After:
    condition = x.abs().max() > 1
    if not condition:
        x = x + 1
    return x * (SCALES["loud"] if condition else SCALES["quiet"])

Legal when:
    a branch on tensors, or a conditional expression, binds names to literals, functions, modules or tuples of them, and
    they are only read behind that in its block; or what is chosen is called at once. What is chosen stays what it is
    until then. A tensor that its test gives up (`if m.all(): m = None`) is then only read where it is not None. A
    comparison of literals is decided for each side. Where a branch does more than that, the rest stays in it. The
    choice between the results is mended next.

Differs in:
    nothing: the same values are used in the same order. It is written for the mends of branches and of conditional
    expressions, and stays where they remove the break. Tests that `elif` asked are always asked.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code, is_bracketed, shortened
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.positions import begins_line, is_elif, replaceable
from graphmend.transforms.code.text_edits import HOLE, delete, replace_expression, replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.selection import NotSelectableError
from graphmend.transforms.if_conversion.tensor_predicates import NotATensorError, Predicates
from graphmend.transforms.if_conversion.value_tests import effects_of_test
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.legality.raising.tensors import truth
from graphmend.transforms.rewrites.answers import asks, prepare, refuse
from graphmend.transforms.rewrites.asked_again import Asked, named
from graphmend.transforms.rewrites.chosen_values import (
    Fork,
    Leaf,
    NotLateError,
    Part,
    Tree,
    Use,
    bound_by,
    check_kept,
    check_python,
    chosen,
    forks,
    leaves,
    uses,
    whole_of,
)
from graphmend.transforms.rewrites.respelled import inlined

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "late_choice"
_TITLE = "choose where the values are used"


@asks("effects", "totality", "memory", "numbers", "gradients", "names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = facts.statement
    expression = next((n for n in (facts.node, *facts.ancestors(facts.node)) if isinstance(n, ast.IfExp)), None)
    try:
        match statement:
            case ast.If() if _within(facts, statement.test):
                while isinstance(above := facts.parent(statement), ast.If) and above.orelse == [statement]:
                    statement = above
                tree, bound = bound_by(facts, statement)
                return _named(facts, statement, tree, bound)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.IfExp() as value) if expression is value:
                tree = chosen(facts, value, name)
                check_python(facts, tree)
                return _named(facts, statement, tree, {statement})
            case _ if expression is not None and _within(facts, expression.test):
                return _at_once(facts, expression)
    except (NotLateError, NotSelectableError, NotATensorError) as error:
        return refuse(NAME, str(error))
    return None


def _within(facts: FunctionFacts, test: ast.expr) -> bool:
    return isinstance(facts.node, ast.stmt) or any(n is facts.node for n in nodes_in(test))


def _at_once(facts: FunctionFacts, expression: ast.IfExp) -> Fix | Refusal:
    """`table["a" if test else "b"]`, `(relu if test else tanh)(x)`."""
    tree = chosen(facts, expression, "")
    check_python(facts, tree)
    whole = whole_of(facts, expression)
    others = [n for n in ast.iter_child_nodes(whole) if expression not in nodes_in(n)]
    if found := effects(facts, *others):
        raise NotLateError(f"{found[0]}, and the test would be asked before it")
    code = Code(facts.source)
    text = _chosen(tree, lambda leaf: _used(facts, whole, {expression: leaf.values[""]}), code)
    return prepare(NAME, _TITLE, facts, lambda: [replace_expression(facts.source, whole, text)])


def _chosen(tree: Tree, text: Callable[[Leaf], str], code: Code) -> str:
    """A conditional expression with the tests as they are written."""
    if isinstance(tree, Leaf):
        return text(tree)
    then, otherwise = (_chosen(side, text, code) for side in (tree.then, tree.otherwise))
    return f"({then} if {code.operand(tree.test)} else {otherwise})"


def _named(facts: FunctionFacts, statement: ast.stmt, tree: Tree, bound: set[ast.stmt]) -> Fix | Refusal | None:
    """Names that a statement binds, and that are used behind it."""
    if not any(leaf.values for leaf in leaves(tree)):
        return None
    block = facts.body_of(statement)
    behind = block[block.index(statement) + 1 :]
    found = uses(facts, statement, behind, tree)
    last = max((i for i, s in enumerate(behind) if any(use.whole in nodes_in(s) for use in found)), default=-1)
    check_kept(facts, behind[: last + 1], tree, found)
    if (
        not replaceable(facts, [statement])
        or not begins_line(facts.source, statement)
        or is_elif(facts.source, statement)
    ):
        return refuse(NAME, "the statement shares its line with another one")
    imports = Imports(facts)
    predicates = Predicates(facts, imports)
    asked = _asked(predicates, tree, [statement, *behind])
    late = [fork.test for fork in forks(tree) if truth(facts, fork.test) is not None]
    differences = [
        *predicates.differences,
        *(Difference("exception", f"`{shortened(t)}` raises later, or not at all") for t in late),
    ]
    lines = [line for one in asked.values() for line in one.lines]
    kept: list[list[ast.stmt]] = []
    rest = _rest(statement, tree, bound, asked, kept) if isinstance(statement, ast.If) else []
    texts = {use.whole: _text(facts, use, tree, asked) for use in found}

    def make() -> list[TextEdit]:
        instead = "\n".join([*lines, *rest]) + "\n"
        edits = [
            replace_statements(facts.source, [statement], instead, *kept)
            if lines or rest
            else delete(facts.source, statement)
        ]
        edits += [replace_expression(facts.source, whole, text) for whole, text in texts.items()]
        return [*imports.edits(), *edits]

    return prepare(NAME, _TITLE, facts, make, differences)


def _asked(predicates: Predicates, tree: Tree, behind: Sequence[ast.stmt]) -> dict[Fork, Asked]:
    """A name for each test, all of which are asked where the first one was."""
    found: dict[Fork, Asked] = {}
    for fork in forks(tree):
        if found:
            if blockers := effects_of_test(predicates.facts, fork.test):
                raise NotLateError(blockers[0])
            predicates.always([fork.test])
        found[fork] = named(predicates, fork.test, behind)
        if found[fork].static:
            raise NotLateError("the test is not about tensors alone")
    return found


def _rest(
    statement: ast.If, tree: Tree, bound: set[ast.stmt], asked: dict[Fork, Asked], kept: list[list[ast.stmt]]
) -> list[str]:
    """What a branch does besides binding the names, as lines with holes for the statements that are `kept`."""
    assert isinstance(tree, Fork)
    sides: list[list[str]] = []
    for body, inner in ((statement.body, tree.then), (statement.orelse, tree.otherwise)):
        if isinstance(inner, Fork):
            (nested,) = body
            assert isinstance(nested, ast.If)
            sides.append(_rest(nested, inner, bound, asked, kept))
        elif others := [s for s in body if s not in bound]:
            sides.append([HOLE.format(len(kept))])
            kept.append(others)
        else:
            sides.append([])
    lines: list[str] = []
    for side, test in zip(sides, (asked[tree].holds, asked[tree].fails), strict=True):
        if side:
            lines += ["else:" if lines else f"if {test}:", *(f"    {line}" for line in side)]
    return lines


def _given(part: Part, leaf: Leaf) -> ast.expr:
    return leaf.values[part.name] if part.decided is None else ast.Constant(part.decided[leaf])


def _used(facts: FunctionFacts, whole: ast.expr, values: Mapping[ast.expr, ast.expr]) -> str:
    """The text of an expression with values in the place of expressions inside it."""
    code = Code(facts.source)
    if isinstance(whole, ast.Call) and whole.func in values and (text := inlined(facts, values[whole.func], whole)):
        return text
    texts = {}
    for place, value in values.items():
        if isinstance(value, ast.Constant) and isinstance(value.value, bool):
            texts[place] = str(value.value)
        elif isinstance(value, ast.Name):
            texts[place] = value.id
        else:
            texts[place] = code.argument(value) if _stands_alone(facts, place) else code.operand(value)
    return code.text(whole, texts)


def _stands_alone(facts: FunctionFacts, place: ast.expr) -> bool:
    """Does an expression stand between brackets and commas, or behind a `=`?"""
    above = facts.parent(place)
    if isinstance(above, (ast.Call, ast.Subscript)):
        return place not in (getattr(above, "func", None), getattr(above, "value", None))
    return isinstance(above, (ast.keyword, ast.Return, ast.Assign, ast.If))


def _text(facts: FunctionFacts, use: Use, tree: Tree, asked: dict[Fork, Asked]) -> str:
    """What takes the place of an expression that uses what is chosen."""

    def text(tree: Tree) -> str | None:
        if isinstance(tree, Leaf):
            if tree not in use.possible:
                return None
            if use.decided is not None:
                return str(use.decided[tree])
            return _used(facts, use.whole, {part.node: _given(part, tree) for part in use.parts})
        then, otherwise = text(tree.then), text(tree.otherwise)
        if then is None or otherwise is None or then == otherwise:
            return then or otherwise
        return _either(asked[tree], then, otherwise)

    found = text(tree)
    assert found is not None
    bare = is_bracketed(found) and not _is(found, ast.Tuple) and _stands_alone(facts, use.whole)
    return found[1:-1] if bare else found


def _either(asked: Asked, then: str, otherwise: str) -> str:
    """A choice between two texts, shorter where they are what a test gives."""
    loose = (ast.IfExp, ast.BoolOp, ast.Tuple, ast.Lambda, ast.NamedExpr)
    then, otherwise = (f"({t})" if _is(t, *loose) and not is_bracketed(t) else t for t in (then, otherwise))
    match then, otherwise:
        case "True", "False":
            return asked.holds if asked.holds.isidentifier() else f"({asked.holds})"
        case "False", "True":
            return asked.fails if asked.fails.isidentifier() else f"({asked.fails})"
        case "True", _:
            return f"({asked.holds} or {otherwise})"
        case _, "True":
            return f"({asked.fails} or {then})"
        case "False", _:
            return f"({asked.fails} and {otherwise})"
        case _, "False":
            return f"({asked.holds} and {then})"
    return f"({then} if {asked.holds} else {otherwise})"


def _is(text: str, *kinds: type[ast.expr]) -> bool:
    """Is the text of an expression of one of some kinds?"""
    return isinstance(ast.parse(f"({text})", mode="eval").body, kinds)
