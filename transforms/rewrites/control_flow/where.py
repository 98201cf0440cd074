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
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import alive, fresh, stored
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import is_tensor
from graphmend.transforms.code.text_edits import HOLE, replace_expression, replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.blocks import Block
from graphmend.transforms.if_conversion.branch_statement import bound_first, branch, may_return, returns
from graphmend.transforms.if_conversion.kept_scalars import written
from graphmend.transforms.if_conversion.selection import (
    RETURN,
    NothingError,
    NotSelectableError,
    SideValue,
    aliasing,
    incoming,
    select,
)
from graphmend.transforms.if_conversion.stores import TAKEN
from graphmend.transforms.if_conversion.tensor_predicates import NotATensorError, Predicates
from graphmend.transforms.if_conversion.value_tests import split
from graphmend.transforms.legality.gradients.sides import carries, gradient_differences, recorded, selected
from graphmend.transforms.legality.in_place import writable, written_on_both_sides
from graphmend.transforms.questions import kept
from graphmend.transforms.rewrites.answers import asks, offer, refuse
from graphmend.transforms.rewrites.asked_again import keeps
from graphmend.transforms.rewrites.write_order import changed_alone, in_order, one_order, written_late

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding
    from graphmend.transforms.if_conversion.stores import Change

NAME = "where"
#: a test of more characters than this gets a line and a name of its own
_LONG = 40


class Converted(NamedTuple):
    """Statements, what takes their place, and the old ones that live on in it."""

    old: list[ast.stmt]
    new: str
    kept: list[list[ast.stmt]]


@asks("effects", "totality", "memory", "order", "dtypes", "numbers", "shapes", "gradients", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = branch(facts)
    return _rewritten(_Branch(facts, statement)) if statement is not None else None


class _Branch(NamedTuple):
    """A branch, equal to itself whichever finding in it was asked about: a chain of forty has forty findings."""

    facts: FunctionFacts
    statement: ast.If

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Branch) and self.statement is other.statement and self.facts.same_walk(other.facts)

    def __hash__(self) -> int:
        return hash(self.statement)


@kept
def _rewritten(branch: _Branch) -> Fix | Refusal:
    facts, statement = branch
    imports = Imports(facts)
    try:
        converted, predicates = _converted(facts, statement, imports)
        elsewhere = _elsewhere(facts, converted, predicates)
    except (NotSelectableError, NotATensorError) as error:
        return refuse(NAME, str(error))
    if not replaceable(facts, converted.old):
        return refuse(NAME, "the statement shares its line with another one")

    def make() -> list[TextEdit]:
        edits = [replace_statements(facts.source, converted.old, converted.new, *converted.kept)]
        edits += [replace_expression(facts.source, node, text) for node, text in elsewhere.items()]
        return [*imports.edits(), *sorted(edits, key=lambda edit: edit.span)]

    return offer(NAME, "compute both sides and select with torch.where", facts, make, predicates.differences)


def _elsewhere(facts: FunctionFacts, converted: Converted, predicates: Predicates) -> dict[ast.expr, str]:
    """What is written otherwise as numbers are selected, which output or messages elsewhere take out again."""
    forms = predicates.elsewhere or {}
    inside = {n for statement in converted.old for n in nodes_in(statement)}
    if not forms.keys().isdisjoint(inside):
        raise NotSelectableError("a number that the branch selects is written inside it")
    return written(facts, predicates.imports, {}, forms)


def _converted(facts: FunctionFacts, statement: ast.If, imports: Imports) -> tuple[Converted, Predicates]:
    """What takes the place of the statement, and what was found on the way."""
    behind = _behind(facts, statement)
    partly = may_return(statement) and not (returns(statement.body) and returns(statement.orelse))
    if partly and not returns(behind):
        raise NotSelectableError("what happens when the branch does not return is not written behind it")
    for absorbed in [behind] if partly else [[], behind]:
        predicates = Predicates(facts, imports, elsewhere={})
        try:
            return _absorbing(facts, statement, absorbed, predicates), predicates
        except NothingError:  # a name that is None on one side only: what follows says what that means
            if absorbed or not returns(behind):
                raise
    raise AssertionError("an attempt returns or raises")


def _absorbing(facts: FunctionFacts, statement: ast.If, absorbed: list[ast.stmt], predicates: Predicates) -> Converted:
    """The conversion of a statement, and of those behind it that belong to both or one of its sides."""
    static, tests = split(facts, statement.test)
    if not tests:
        raise NotATensorError("the test is not known to look at a tensor")
    predicates.converts = None if static else statement
    body, orelse = ([*side, *([] if returns(side) else absorbed)] for side in (statement.body, statement.orelse))
    bound = bound_first(tests[0])
    test = predicates.all_of(tests, {bound: bound.target.id} if bound else None)
    last = absorbed[-1] if absorbed else statement
    condition = _Condition(facts, test, predicates, own=keeps(facts, tests, test))
    lines = _select(facts, statement, (body, orelse), last, condition, predicates)
    if bound:
        lines.insert(0, f"{bound.target.id} = {predicates.code.line(bound.value)}")
    kept: list[list[ast.stmt]] = []
    if static:
        head = " and ".join(
            predicates.code.operand(s) if isinstance(s, (ast.IfExp, ast.Lambda)) else _conjunct(predicates, s)
            for s in static
        )
        lines = [f"if {head}:", *(f"    {line}" for line in lines)]
        if statement.orelse:
            kept.append(statement.orelse)
            lines += ["else:", f"    {HOLE.format(0)}"]
        if absorbed and not returns(statement.orelse):
            lines.append(HOLE.format(len(kept)))
            kept.append(absorbed)
    return Converted([statement, *absorbed], "\n".join(lines) + "\n", kept)


def _conjunct(predicates: Predicates, node: ast.expr) -> str:
    text = predicates.code.line(node)
    return f"({text})" if isinstance(node, ast.BoolOp) and not text.startswith("(") else text


def _behind(facts: FunctionFacts, statement: ast.If) -> list[ast.stmt]:
    """The statements behind one in its block."""
    block = facts.body_of(statement)
    return block[block.index(statement) + 1 :]


class _Condition:
    """The test of a branch: written where it is used once, else bound to a name."""

    def __init__(self, facts: FunctionFacts, test: str, predicates: Predicates, *, own: bool) -> None:
        """`own`: it is a tensor that nothing else shares memory with."""
        self._facts, self._test, self._predicates, self._own = facts, test, predicates, own
        self._name = test if test.isidentifier() else fresh(facts, "condition", predicates.taken)
        self.named = test.isidentifier()

    def keep(self) -> None:
        """What is written before it is asked last does not change it."""
        if self._own:
            self.name()
            return
        self._name = fresh(self._facts, "condition", self._predicates.taken) if self._name == self._test else self._name
        self._test, self._own = f"{self._test}.clone()", True
        self._predicates.taken.append(self._name)
        self.named = True

    def holds(self) -> str:
        self.name()
        return self._name

    def fails(self) -> str:
        return f"~{self.holds()}"

    def name(self) -> str:
        """The name, which the prelude must bind from now on."""
        if not self.named:
            self._predicates.taken.append(self._name)
            self.named = True
        return self._name

    @property
    def text(self) -> str:
        return self._name if self.named else self._test

    @property
    def prelude(self) -> list[str]:
        return [f"{self._name} = {self._test}"] if self.named and self._name != self._test else []


def _select(
    facts: FunctionFacts,
    statement: ast.If,
    sides: tuple[list[ast.stmt], list[ast.stmt]],
    last: ast.stmt,
    condition: _Condition,
    predicates: Predicates,
) -> list[str]:
    """The statements that compute both sides and select."""
    body, orelse = sides
    if last is statement and (call := _same_call(facts, body, orelse, condition.text, predicates)):
        return [call]
    then = Block(facts, predicates, "then", statement, last, condition.holds, stored(orelse))
    other = Block(facts, predicates, "else", statement, last, condition.fails, stored(body))
    then.run(body)
    other.run(orelse)
    if (RETURN in then.values) != (RETURN in other.values):
        raise NotSelectableError("only one side returns")
    pairs = _pairs(facts, statement, then, other)
    changed_alone(pairs, then, other)
    for name, (a, b) in pairs.items():
        predicates.differences += aliasing(facts, name, a, b, statement)
    evaluated = [[*side.evaluated, *side.inner] for side in (then, other)]
    predicates.differences += gradient_differences(facts, statement, evaluated, then.protected | other.protected)
    changes = one_order(list(then.changes), list(other.changes))
    late = written_late(then, other)
    if not pairs and not changes:
        raise NotSelectableError("the branch has no effect that lives on")
    masked = any(c.how == "mask" for side in (then, other) for c in side.changes.values())
    if len(pairs) + len(changes) > 1 or len(condition.text) > _LONG or masked:
        condition.name()
    if len(changes) > 1 or late:
        condition.keep()
    texts = {
        n: select(predicates, condition.text, a, b, lambda uses, n=n: uses.result() if n == RETURN else uses.name(n))  # type: ignore[misc]
        for n, (a, b) in pairs.items()
    }
    writes: list[str] = []
    for target in changes:
        change = _change(facts, statement, target, then, other, condition)
        if isinstance(change, _Store):
            texts[target] = change.value
        else:
            writes.append(change.text)
    lines = [*condition.prelude, *dict.fromkeys([*then.prelude, *other.prelude])]
    returned = texts.get(RETURN)
    if returned is not None and (len(texts) > 1 or writes):
        returned = fresh(facts, "result", predicates.taken)
        predicates.taken.append(returned)
        texts = {returned if place == RETURN else place: text for place, text in texts.items()}
        late = {returned if place == RETURN else place for place in late}
    else:
        texts.pop(RETURN, None)
    lines += in_order(facts, predicates, texts, writes, late)
    if not any(condition.text in line for line in [*lines, returned or ""]):
        raise NotSelectableError("both sides give the same: nothing would ask the test, which may raise")
    if returned is None:
        return lines
    if lines and lines[-1] == f"{returned} = {texts.get(returned)}":
        return [*lines[:-1], f"return {texts[returned]}"]
    return [*lines, f"return {returned}"]


class _Write(NamedTuple):
    """A write into memory."""

    text: str


class _Store(NamedTuple):
    """An attribute or a key that is bound again."""

    value: str


def _pairs(
    facts: FunctionFacts, statement: ast.If, then: Block, other: Block
) -> dict[str, tuple[SideValue, SideValue]]:
    """What each side gives a name that lives on; where both return, what they return, and what others read."""
    names = list(dict.fromkeys([*then.values, *other.values]))
    if RETURN in then.values:
        names = [RETURN, *(n for n in names if n != RETURN and alive(facts, n, then.last))]
    return {
        name: (
            then.values.get(name) or incoming(facts, statement, name),
            other.values.get(name) or incoming(facts, statement, name),
        )
        for name in names
    }


def _change(
    facts: FunctionFacts, statement: ast.If, target: str, then: Block, other: Block, condition: _Condition
) -> _Write | _Store:
    """What changes a place of which one side or both do."""
    predicates = then.predicates
    one, two = then.changes.get(target), other.changes.get(target)
    change = one or two
    assert change is not None
    if one and two and (one.how, one.mask) != (two.how, two.mask):
        raise NotSelectableError(f"`{change.root}` is changed in two ways")
    for side in (one, two):
        predicates.differences += side.differences if side else ()
    if change.how == "store":
        a, b = (c.choice if c else change.before for c in (one, two))
        if a is None or b is None:
            raise NotSelectableError(f"`{target}` is not known to be a tensor or a number before the branch")
        predicates.differences += aliasing(facts, target, a, b, statement)
        if not (one and two):
            predicates.differences.append(Difference("state", f"`{target}` is stored to on both sides"))
        return _Store(select(predicates, condition.text, a, b, lambda uses: uses.place(target)))
    kept = recorded(facts, statement) and not _only_changed(statement, change.root, one, two)
    if kept or not ((one and two) or writable(facts, statement, change.root)):
        predicates.differences.append(written_on_both_sides(change.root))
    if recorded(facts, statement):
        before = carries(facts, ast.Name(change.root, ast.Load()))
        paths = [before | carries(facts, c.choice.node) if c else before for c in (one, two)]
        if (differs := selected(*paths)) is not None:
            predicates.differences.append(differs)
    if change.how == "mask":
        if one and two:
            raise NotSelectableError(f"`{target}` is stored to under a mask on both sides")
        taken = condition.holds() if one else condition.fails()
        return _Write(f"{change.mask.replace(TAKEN, taken)} = {change.choice.text}")
    a_text, b_text = (c.choice.text if c else target for c in (one, two))
    chosen = f"{predicates.imports.name('torch.where')}({condition.text}, {a_text}, {b_text})"
    return _Write(f"{target} = {chosen}" if change.how == "element" else f"{target}.copy_({chosen})")


def _only_changed(statement: ast.If, root: str, *changes: Change | None) -> bool:
    """Does a branch mention a name only as what it changes? What it reads may be needed by backward."""
    nodes = [n for s in (*statement.body, *statement.orelse) for n in nodes_in(s)]
    mentions = sum(isinstance(n, ast.Name) and n.id == root for n in nodes)
    return mentions == sum(change is not None for change in changes)


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
            changes[a] = select(predicates, test, left, right)
            predicates.differences += aliasing(facts, None, left, right, facts.statement)
    block.run([])
    predicates.differences += gradient_differences(
        facts, facts.statement, [[a for a, _ in arguments], [b for _, b in arguments]]
    )
    return predicates.code.text(one, changes)
