"""Compute both sides of a branch and select with `torch.where`.

Before:
    if x.sum() > 0:
        y = x + 1
    else:
        y = x * 3

After:
    y = torch.where(x.sum() > 0, x + 1, x * 3)

Legal when:
    the test is one element of a tensor; conjuncts in front of it that are known while tracing stay a Python
    `if`. Both sides only compute: they bind names, change tensors in place by methods that have an out-of-place
    form, or return. What they bind are tensors of one shape; a name that only one side binds has a value
    before. No random numbers, no calls with side effects.

Differs in:
    both sides are computed: an exception of the side not taken appears, its NaN derivatives may reach
    gradients, and what only it uses gets zeros for gradients. A name that keeps its value is bound to a copy of
    it. Where none of this can be seen, the mend is safe.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.transforms.bindings import fresh, reads
from graphmend.transforms.branches import (
    RETURN,
    Block,
    Choice,
    NotSelectableError,
    gradient_differences,
    incoming,
    select,
)
from graphmend.transforms.code import folded
from graphmend.transforms.edits import replace, replaceable
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.imports import Imports
from graphmend.transforms.legality import changed_in_place, escapes
from graphmend.transforms.names import is_tensor
from graphmend.transforms.offer import offer, refuse
from graphmend.transforms.predicate import NotATensorError, Predicates, depends, split

if TYPE_CHECKING:
    from graphmend.analysis.facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "where"
#: lines of more characters than this are folded
_WIDTH = 119
#: a test of more characters than this gets a line and a name of its own
_LONG = 40


def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = branch(facts)
    if statement is None:
        return None
    imports = Imports(facts)
    try:
        old, new, differences = _converted(facts, statement, imports)
    except (NotSelectableError, NotATensorError) as error:
        return refuse(NAME, str(error))
    if not replaceable(facts, old):
        return refuse(NAME, "the statement shares its line with another one")

    def make() -> list[TextEdit]:
        return [*imports.edits(), replace(facts.source, old, new)]

    return offer(NAME, "compute both sides and select with torch.where", facts, make, differences)


def branch(facts: FunctionFacts) -> ast.If | None:
    """The `if` statement whose test the finding is in; of nested ones on tensors the outermost."""
    statement: ast.AST | None = facts.statement
    if not isinstance(statement, ast.If) or not _inside(facts, statement.test):
        return None
    if any(isinstance(s, (ast.Break, ast.Continue)) for s in statement.body):
        return None
    while isinstance(parent := facts.parent(statement), ast.If) and depends(facts, parent.test):
        statement = parent
    assert isinstance(statement, ast.If)
    return statement


def _inside(facts: FunctionFacts, test: ast.expr) -> bool:
    return facts.node is test or facts.node in (*ast.walk(test),) or isinstance(facts.node, ast.stmt)


def _converted(facts: FunctionFacts, statement: ast.If, imports: Imports) -> tuple[list[ast.stmt], str, list[str]]:
    """The statements to replace, the new ones, and the differences."""
    static, tests = split(facts, statement.test)
    if not tests:
        raise NotATensorError("the test is not known to look at a tensor")
    old: list[ast.stmt] = [statement]
    orelse = list(statement.orelse)
    if not orelse and _returns(statement.body):
        orelse = _rest(facts, statement)
        old += orelse
    if static and orelse and not (len(orelse) == 1 and isinstance(orelse[0], ast.Return)):
        raise NotSelectableError(
            "the other side would have to be written twice, for the test that is known while tracing"
        )
    predicates = Predicates(facts, imports)
    test = " & ".join(predicates.operand(t) for t in tests) if len(tests) > 1 else predicates.of(tests[0])
    room = _WIDTH - statement.col_offset - 4 * bool(static)
    selected = _select(facts, statement, orelse, test, predicates)
    lines = [part for line in selected for part in folded(line, room).split("\n")]
    differences = list(predicates.differences)
    if static:
        head = " and ".join(
            predicates.code.operand(s) if isinstance(s, (ast.IfExp, ast.Lambda)) else _conjunct(predicates, s)
            for s in static
        )
        lines = [f"if {head}:", *(f"    {line}" for line in lines)]
        if orelse:
            lines.append(predicates.code.text(orelse[0]))
    return old, "\n".join(lines) + "\n", differences


def _conjunct(predicates: Predicates, node: ast.expr) -> str:
    text = predicates.code.line(node)
    return f"({text})" if isinstance(node, ast.BoolOp) and not text.startswith("(") else text


def _returns(statements: list[ast.stmt]) -> bool:
    """Does a block return on every path?"""
    last = statements[-1] if statements else None
    if isinstance(last, ast.If):
        return _returns(last.body) and _returns(last.orelse)
    return isinstance(last, ast.Return)


def _rest(facts: FunctionFacts, statement: ast.If) -> list[ast.stmt]:
    """The statements behind one that returns early, which are its other side."""
    block = facts.body_of(statement)
    rest = block[block.index(statement) + 1 :]
    if not rest or not isinstance(rest[-1], ast.Return):
        raise NotSelectableError("what happens when the branch does not return is not written behind it")
    return rest


def _select(
    facts: FunctionFacts, statement: ast.If, orelse: list[ast.stmt], test: str, predicates: Predicates
) -> list[str]:
    """The statements that compute both sides and select."""
    if call := _same_call(facts, statement.body, orelse, test, predicates):
        return [call]
    last = orelse[-1] if orelse and not statement.orelse else statement
    then = Block(facts, predicates, "then", statement, last, _stored(orelse))
    other = Block(facts, predicates, "else", statement, last, _stored(statement.body))
    then.run(statement.body)
    other.run(orelse)
    returns = [RETURN in side.values for side in (then, other)]
    if any(returns) and not all(returns):
        raise NotSelectableError("only one side returns")
    names = list(dict.fromkeys([*then.values, *other.values]))
    pairs: dict[str, tuple[Choice, Choice]] = {}
    for name in names:
        if returns[0] and name != RETURN:
            continue
        pairs[name] = (
            then.values.get(name) or _before(facts, statement, name),
            other.values.get(name) or _before(facts, statement, name),
        )
    for name, (a, b) in pairs.items():
        predicates.differences += _aliasing(facts, name, a, b, statement)
    sides = [then.evaluated, other.evaluated]
    predicates.differences += gradient_differences(facts, statement, sides)
    changes = dict.fromkeys([*then.changes, *other.changes])
    if not pairs and not changes:
        raise NotSelectableError("the branch has no effect that lives on")
    condition = test
    prelude: list[str] = []
    if len(pairs) + len(changes) > 1 or len(test) > _LONG:
        condition = fresh(facts, "condition", predicates.taken)
        prelude.append(f"{condition} = {test}")
    lines = [*prelude, *dict.fromkeys([*then.prelude, *other.prelude])]
    texts = {n: select(then, condition, a, b) for n, (a, b) in pairs.items()}
    if returns[0]:
        return [*lines, f"return {texts[RETURN]}"]
    lines += _assignments(texts)
    where = predicates.imports.name("torch.where")
    for target in changes:
        one, two = (side.changes[target].text if target in side.changes else target for side in (then, other))
        lines.append(f"{target}.copy_({where}({condition}, {one}, {two}))")
    return lines


def _before(facts: FunctionFacts, statement: ast.If, name: str) -> Choice:
    return incoming(facts, statement, name)


def _assignments(texts: dict[str, str]) -> list[str]:
    """One assignment for each name, or one for all where a later one reads a name that an earlier one rebinds."""
    names = list(texts)
    for i, name in enumerate(names):
        if any(name in reads(ast.parse(texts[later], mode="eval")) for later in names[i + 1 :]):
            return [f"{', '.join(names)} = {', '.join(texts.values())}"]
    return [f"{name} = {text}" for name, text in texts.items()]


def _aliasing(facts: FunctionFacts, name: str, a: Choice, b: Choice, statement: ast.If) -> list[str]:
    """A side that hands an existing tensor on hands on a copy now."""
    if a.items is not None and b.items is not None and len(a.items) == len(b.items):
        parts = zip(a.items, b.items, strict=True)
        return [d for x, y in parts for d in _aliasing(facts, name, x, y, statement)]
    if a.text == b.text or not any(isinstance(c.node, (ast.Name, ast.Attribute, ast.Subscript)) for c in (a, b)):
        return []
    found = []
    if name == RETURN:
        found.append("the result is a copy where a side returns an existing tensor")
    elif changed_in_place(facts, name):
        raise NotSelectableError(f"`{name}` is changed in place, and would be a copy of the tensor that it is now")
    elif escapes(facts, name):
        found.append(f"`{name}` is bound to a copy where a side keeps an existing tensor")
    if facts.gradients(statement) == "off":
        found.append("under no_grad the tensor that is kept loses its gradient history")
    return found


def _same_call(
    facts: FunctionFacts, body: list[ast.stmt], orelse: list[ast.stmt], test: str, predicates: Predicates
) -> str | None:
    """`f(where(c, a, b))` for `f(a)` on one side and `f(b)` on the other."""
    calls = []
    for side in (body, orelse):
        if len(side) != 1 or not isinstance(side[0], ast.Expr) or not isinstance(side[0].value, ast.Call):
            return None
        calls.append(side[0].value)
    one, two = calls
    in_place = isinstance(one.func, ast.Attribute) and one.func.attr.endswith("_") and is_tensor(facts, one.func.value)
    same = ast.unparse(one.func) == ast.unparse(two.func) and len(one.args) == len(two.args)
    same = same and [k.arg for k in one.keywords] == [k.arg for k in two.keywords]
    if not same or in_place:
        return None
    block = Block(facts, predicates, "then", facts.statement, facts.statement)
    changes: dict[ast.expr, str] = {}
    arguments = [(a, b) for a, b in zip(one.args, two.args, strict=True)]
    arguments += [(a.value, b.value) for a, b in zip(one.keywords, two.keywords, strict=True)]
    for a, b in arguments:
        if ast.unparse(a) != ast.unparse(b):
            left, right = block.choice(a), block.choice(b)
            changes[a] = select(block, test, left, right)
    block.run([])
    predicates.differences += gradient_differences(
        facts, facts.statement, [[a for a, _ in arguments], [b for _, b in arguments]]
    )
    return predicates.code.text(one, changes)


def _stored(statements: list[ast.stmt]) -> set[str]:
    return {n.id for s in statements for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _bare(text: str) -> str:
    return text
