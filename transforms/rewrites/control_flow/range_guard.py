"""Ask first whether a number that is drawn can fall into a range at all: where it cannot, the graph does not break.

Before:
    p = torch.rand([])
    if self.training and p < self.layerdrop:
        continue

After:
    p = torch.rand([])
    assert p >= 0  # read here, so that it is drawn while compiled, too
    if self.training and self.layerdrop > 0 and p < self.layerdrop:
        continue

Legal when:
    the test compares one number that is drawn from 0 to 1 (`torch.rand`, `random.uniform(0, 1)`)
    with a value that is known while tracing and has no effect. The draw stays where it is; one that stands in the test
    itself gets a line of its own in front of it, where nothing else is evaluated before. Where nothing else reads what
    torch draws, an assertion that never fails does: a graph keeps it, and with it the draw. A number that is taken out
    of what was drawn (`p = torch.rand(1).item()`), and compared in one test alone, is taken where it is compared.

Differs in:
    nothing: a number that is drawn is never below 0. The break stays where the range is not empty. Where there is no
    line for the assertion, a backend that drops dead code (aot_eager, inductor) does not draw with an empty range.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Const, Scalar, tensor_in
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bindings
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.liveness import fresh, locals_of, parameters, writes
from graphmend.transforms.code.positions import begins_line, is_elif, replaceable
from graphmend.transforms.code.qualified_names import constant, qualified
from graphmend.transforms.code.text_edits import insert_after, insert_before, replace_expression
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.legality.memory import changed_in_place
from graphmend.transforms.legality.randomness.draws import draws, from_torch
from graphmend.transforms.legality.randomness.kept_draws import unread
from graphmend.transforms.questions import answers
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "range_guard"
_TITLE = "ask first whether what is drawn can fall into the range; where it can, the break stays"
#: what draws one number from 0 to 1, without arguments
_DRAWS = ("random.random",)
_UNIFORM = ("random.uniform",)
#: how a drawn number `u` is compared with `c`: when the answer is known without it, and how that is joined
_GUARDS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("> 0", "and"),
    ast.LtE: (">= 0", "and"),
    ast.GtE: ("<= 0", "or"),
    ast.Gt: ("< 0", "or"),
}
_TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE}


#: nothing else reads the number where the range is empty, and a graph drops what nothing reads
_READ = "assert {} >= 0  # read here, so that it is drawn while compiled, too\n"


class _Range(NamedTuple):
    """A comparison of a number that is drawn."""

    compare: ast.Compare
    drawn: ast.expr
    """The name of the number, or the call that draws it."""
    bound: ast.expr
    guard: str
    """How the bound is asked first: `> 0`."""
    word: str


@asks("effects", "random", "memory", "order", "names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    code = Code(facts.source)
    root = _asked(facts)
    if root is None:
        return _of_number(facts, code)
    found = _ranges(facts, root, code)
    if not found:
        found = [
            r for value in _behind(facts, root) for r in _ranges(facts, value, code) if isinstance(r.drawn, ast.Name)
        ]
    if not found:
        return None
    drawing = [r for r in found if isinstance(r.drawn, ast.Call)]
    statement = facts.statement
    asked_before = _asked_before(facts, drawing[0]) if drawing else []
    if drawing and (len(drawing) > 1 or len(found) > 1 or asked_before is None):
        return refuse(NAME, "the number is drawn where something else may be evaluated first")
    if drawing and (is_elif(facts.source, statement) or not begins_line(facts.source, statement)):
        return refuse(NAME, "there is no line in front of the test for what draws the number")

    forgotten = unread(facts, *(r.compare for r in found))
    drawn = _statements(facts, found) if forgotten else []
    kept = all(isinstance(s, ast.Assign) and replaceable(facts, [s]) and begins_line(facts.source, s) for s in drawn)

    def make() -> list[TextEdit]:
        edits: list[TextEdit] = []
        for draw in drawn if kept else ():
            assert isinstance(draw, ast.Assign)
            edits.append(insert_after(facts.source, draw, _READ.format(ast.unparse(draw.targets[0]))))
        for each in found:
            replace: dict[ast.expr, str] = {}
            if isinstance(each.drawn, ast.Call):
                name = fresh(facts, "drawn")
                replace[each.drawn] = name
                lines = [f"{name} = {code.line(each.drawn)}\n"]
                if from_torch(facts, each.drawn):
                    lines.append(_READ.format(name))
                head = " and ".join(code.operand(v) for v in asked_before or ())
                new = f"if {head}:\n" + "".join(f"    {line}" for line in lines) if head else "".join(lines)
                edits.append(insert_before(facts.source, statement, new))
            edits.append(_guarded(facts, code, each, replace))
        return edits

    return offer(NAME, _TITLE, facts, make, () if kept else forgotten, narrows=True)


def _guarded(facts: FunctionFacts, code: Code, one: _Range, replace: dict[ast.expr, str]) -> TextEdit:
    """The bound is asked first; parts of the comparison are written otherwise."""
    text = f"{code.operand(one.bound)} {one.guard} {one.word} {code.text(one.compare, replace)}"
    above = facts.parent(one.compare)
    joined = ast.And if one.word == "and" else ast.Or
    whole = isinstance(above, (ast.stmt, ast.IfExp))
    bare = whole or (isinstance(above, ast.BoolOp) and isinstance(above.op, joined))
    return replace_expression(facts.source, one.compare, text if bare else f"({text})")


def _of_number(facts: FunctionFacts, code: Code) -> Fix | None:
    """The same for `u = torch.rand(1).item()`: the tensor is kept, and the number taken where it is compared."""
    statement = facts.statement
    match statement:
        case ast.Assign(
            targets=[ast.Name(id=name)],
            value=ast.Call(func=ast.Attribute(value=ast.Call() as draw, attr="item"), args=[], keywords=[]) as number,
        ) if _draws(facts, draw) and len(bindings(facts).get(name, [])) == 1:
            pass
        case _:
            return None
    reading = [
        n
        for n in nodes_in(facts.function)
        if isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Store)
    ]
    asking = _asking(facts, reading[0]) if len(reading) == 1 else None
    if name in parameters(facts.function) or name not in locals_of(facts.function):
        return None
    if asking is None or _is_guarded(facts, asking, code):
        return None
    if not (replaceable(facts, [statement]) and begins_line(facts.source, statement)):
        return None

    def make() -> list[TextEdit]:
        kept = replace_expression(facts.source, number, code.text(draw))
        read = insert_after(facts.source, statement, _READ.format(name))
        return [kept, read, _guarded(facts, code, asking, {reading[0]: f"{name}.item()"})]

    return offer(NAME, _TITLE, facts, make, narrows=True)


def _asking(facts: FunctionFacts, node: ast.Name) -> _Range | None:
    """The comparison of a drawn number in a test, of which only the truth counts."""
    compare = facts.parent(node)
    if not isinstance(compare, ast.Compare):
        return None
    for above in facts.ancestors(node):
        if isinstance(above, (ast.If, ast.While, ast.IfExp)):
            return _range(facts, compare) if _decides(facts, compare, above.test) else None
        if isinstance(above, (ast.stmt, ast.Lambda, ast.comprehension)):
            return None
    return None


def _statements(facts: FunctionFacts, found: Sequence[_Range]) -> list[ast.stmt]:
    """The statements that draw, with torch, what is compared."""
    names = {r.drawn.id for r in found if isinstance(r.drawn, ast.Name)}
    simple = (ast.Assign, ast.AnnAssign, ast.Expr)
    statements = [s for s in nodes_in(facts.function) if isinstance(s, simple) and writes(s) & names]
    return [s for s in statements if any(from_torch(facts, call) for call in draws(facts, s))]


def _ranges(facts: FunctionFacts, root: ast.expr, code: Code) -> list[_Range]:
    """The comparisons in a test that may be guarded and are not yet."""
    found = [r for n in nodes_in(root) if isinstance(n, ast.Compare) and (r := _range(facts, n)) is not None]
    return [r for r in found if not _is_guarded(facts, r, code) and _decides(facts, r.compare, root)]


def _behind(facts: FunctionFacts, root: ast.expr) -> list[ast.expr]:
    """What names in a test are bound to, of whose values only the truth counts anywhere."""
    names = {n.id for n in nodes_in(root) if isinstance(n, ast.Name) and _decides(facts, n, root)}
    found: list[ast.expr] = []
    for name in sorted(names - {*parameters(facts.function)}):
        bound = bindings(facts).get(name, [])
        if len(bound) == 1 and bound[0].value is not None and not bound[0].part and _only_asked(facts, name):
            found.append(bound[0].value)
    return found


@answers("order")
def _only_asked(facts: FunctionFacts, name: str) -> bool:
    """Does each use of a name ask for its truth alone?"""
    for node in nodes_in(facts.function):
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Store):
            child: ast.AST = node
            above = facts.parent(node)
            while isinstance(above, ast.BoolOp) or (isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.Not)):
                child, above = above, facts.parent(above)
            if not isinstance(above, (ast.If, ast.While, ast.IfExp)) or above.test is not child:
                return False
    return True


def _asked(facts: FunctionFacts) -> ast.expr | None:
    """The test around the finding, of which only the truth counts."""
    for node in (facts.node, *facts.ancestors(facts.node)):
        match node:
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                inside = facts.node is node or any(n is facts.node for n in nodes_in(test))
                return test if inside else None
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                return value if _only_asked(facts, name) else None
            case ast.stmt():
                return None
    return None


def _decides(facts: FunctionFacts, compare: ast.expr, root: ast.expr) -> bool:
    """Does only the truth of a comparison count, up to the whole test?"""
    node: ast.AST | None = compare
    while node is not root:
        node = facts.parent(node) if node is not None else None
        if not isinstance(node, ast.BoolOp) and not (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
            return False
    return True


def _range(facts: FunctionFacts, compare: ast.Compare) -> _Range | None:
    if len(compare.ops) != 1 or type(compare.ops[0]) not in _GUARDS:
        return None
    left, right, operator = compare.left, compare.comparators[0], type(compare.ops[0])
    for drawn, bound, sign in ((left, right, operator), (right, left, _TURNED[operator])):
        source = _drawn(facts, drawn)
        if source is not None and _is_bound(facts, bound):
            return _Range(compare, source, bound, *_GUARDS[sign])
    return None


def _drawn(facts: FunctionFacts, node: ast.expr) -> ast.expr | None:
    """The name of a number that is drawn from 0 to 1, or the call that draws it; None for anything else."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[], keywords=[]):
            return _drawn(facts, inner)
        case ast.Name(id=name):
            bound = bindings(facts).get(name, [])
            draws = all(b.value is not None and not b.part and _draws(facts, b.value) for b in bound)
            kept = bound and draws and name not in parameters(facts.function) and not changed_in_place(facts, name)
            return node if kept else None
    return node if isinstance(node, ast.Call) and _draws(facts, node) else None


def _draws(facts: FunctionFacts, node: ast.expr) -> bool:
    """Does a call draw one number that is never below 0?"""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not node.args:
        return _draws(facts, node.func.value)
    name = qualified(facts, node.func)
    if name in _DRAWS:
        return not node.args and not node.keywords
    if name in _UNIFORM:
        limits = [constant(a) for a in node.args]
        numbers = [x for x in limits if isinstance(x, (int, float))]
        return not node.keywords and len(numbers) == len(limits) == 2 and 0 <= numbers[0] <= numbers[1]
    if name == "torch.rand" and len(node.args) == 1:
        options = {k.arg for k in node.keywords} <= {"device", "dtype", "generator"}
        size = node.args[0]
        single = constant(size) == 1 and not isinstance(constant(size), bool)
        if isinstance(size, (ast.Tuple, ast.List)):
            single = all(constant(e) == 1 for e in size.elts)
        return options and single
    return False


def _is_bound(facts: FunctionFacts, node: ast.expr) -> bool:
    """May a value be asked twice, and is it known while tracing, but not here?"""
    inner = node
    while isinstance(inner, ast.Attribute):
        inner = inner.value
    value = facts.value(node)
    if not isinstance(inner, ast.Name) or isinstance(value, (Const, Scalar)) or tensor_in(value) is not None:
        return False
    return not effects(facts, node)


def _is_guarded(facts: FunctionFacts, one: _Range, code: Code) -> bool:
    """Does the test ask about the bound first already?"""
    above = facts.parent(one.compare)
    if not isinstance(above, ast.BoolOp):
        return False
    wanted = ast.dump(ast.parse(f"{code.operand(one.bound)} {one.guard}", mode="eval").body)
    before = above.values[: above.values.index(one.compare)]
    return any(ast.dump(ast.parse(ast.unparse(v), mode="eval").body) == wanted for v in before)


def _asked_before(facts: FunctionFacts, one: _Range) -> list[ast.expr] | None:
    """What the test of an `if` asks before it draws a number: conjuncts that may be asked twice. None where something
    else is evaluated first.
    """
    statement = facts.statement
    if not isinstance(statement, ast.If):
        return None
    first, before = statement.test, list[ast.expr]()
    if isinstance(first, ast.BoolOp) and isinstance(first.op, ast.And):
        at = next((i for i, v in enumerate(first.values) if any(n is one.compare for n in nodes_in(v))), 0)
        before, first = first.values[:at], first.values[at]
    while isinstance(first, (ast.BoolOp, ast.UnaryOp)):
        first = first.values[0] if isinstance(first, ast.BoolOp) else first.operand
    asked = all(tensor_in(facts.value(n)) is None for v in before for n in nodes_in(v) if isinstance(n, ast.expr))
    return before if first is one.compare and asked and not effects(facts, *before) else None
