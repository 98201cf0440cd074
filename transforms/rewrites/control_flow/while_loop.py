"""Loop inside the graph with `torch.while_loop`.

Before:
    while x.sum() < 10:
        x = x * 2

After:
    def loop_test(x):
        return x.sum() < 10

    def loop_body(x):
        x = x * 2
        return (x,)

    (x,) = torch.while_loop(loop_test, loop_body, (x,))

Legal when:
    the body only assigns names; each name that it carries from one iteration to the next is a tensor that keeps
    its shape and dtype, and is not changed in place where it may be another's; what else it reads does not change, and
    asks for no gradients. A number that is stepped once in each iteration is carried as a tensor, where all that reads
    it takes one, and a whole one where it is not read behind the loop. The same for `for _ in range(n)` with a tensor
    `n`, whose variable is not used, and for `while True` with `if test: break` at its end, after a first time.

Differs in:
    plain Python goes through torch's own loop operator too, which is slower there, and raises exceptions of its own. A
    tensor that no iteration changes is a copy. Where gradients flow through the loop, the aot_eager and inductor
    backends of torch 2.13 give up.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Scalar, Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code, shortened
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import alive, fresh, reads, writes
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import called, constant, is_tensor
from graphmend.transforms.code.text_edits import HOLE, replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.kept_scalars import Kept, conversion, tensor_text
from graphmend.transforms.if_conversion.loop_ends import copied
from graphmend.transforms.if_conversion.selection import NotSelectableError, incoming
from graphmend.transforms.if_conversion.tensor_predicates import NotATensorError, Predicates
from graphmend.transforms.if_conversion.value_tests import effects_of_test, split
from graphmend.transforms.legality.dtypes import kinds
from graphmend.transforms.legality.effects import is_layer
from graphmend.transforms.legality.gradients.sides import carries, recorded
from graphmend.transforms.legality.memory import may_share, shares
from graphmend.transforms.legality.same_shape import ShapeInference, compare
from graphmend.transforms.legality.speculation import speculate
from graphmend.transforms.rewrites.answers import asks, offer, refuse
from graphmend.transforms.rewrites.control_flow.forms.stepped_numbers import Counter, as_counter, stepped_numbers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "while_loop"


@asks("effects", "totality", "memory", "order", "dtypes", "numbers", "shapes", "gradients", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    found = _loop_of(facts)
    if found is None:
        return None
    loop, body = found
    imports = Imports(facts)
    predicates = Predicates(facts, imports)
    stepped = stepped_numbers(facts, loop, body)
    try:
        carried, temporaries = _carried(facts, loop, [s for s in body if s not in stepped], predicates)
        if isinstance(loop, ast.For):
            text = _count(facts, loop, predicates, carried)
        elif body is loop.body:
            text = _while(facts, loop, predicates, carried, stepped)
        else:
            text = _until(facts, predicates, carried)
    except (NotSelectableError, NotATensorError) as error:
        return refuse(NAME, str(error))
    if text is None:
        return None
    if temporaries:
        return refuse(NAME, f"`{temporaries[0]}` is read behind the loop and not bound before it")
    if not replaceable(facts, [loop]):
        return refuse(NAME, "the loop shares its lines with other statements")

    def make() -> list[TextEdit]:
        return [*imports.edits(), replace_statements(facts.source, [loop], text, *_around(body, stepped))]

    differences = [
        *predicates.differences,
        Difference("evaluation", "plain Python goes through torch's loop operator too, which is slower there"),
        Difference("exception", "torch's loop operator raises for what it cannot trace, in plain Python as well"),
    ]
    return offer(NAME, "loop inside the graph with torch.while_loop", facts, make, differences)


def _loop_of(facts: FunctionFacts) -> tuple[ast.While | ast.For, list[ast.stmt]] | None:
    """The loop that the finding is about, and what it does each time: a `while True:` may end in `if test: break`."""
    loop = facts.statement
    if isinstance(loop, (ast.While, ast.For)):
        return (loop, loop.body) if facts.node in (loop, *nodes_in(_head(loop))) else None
    around = facts.parent(loop)
    match loop:
        case ast.If(body=[ast.Break()], orelse=[]) if (
            isinstance(around, ast.While) and constant(around.test) is True and around.body[-1] is loop
        ):
            return around, around.body[:-1]
    return None


def _around(body: list[ast.stmt], counted: Collection[ast.stmt]) -> list[list[ast.stmt]]:
    """What stands in front of and behind the statement that counts."""
    places = [i for i, s in enumerate(body) if s in counted]
    parts = [body[: places[0]], body[places[0] + 1 :]] if places else [body]
    return [part for part in parts if part]


def _head(loop: ast.While | ast.For) -> ast.expr:
    return loop.test if isinstance(loop, ast.While) else loop.iter


def _carried(
    facts: FunctionFacts, loop: ast.While | ast.For, body: list[ast.stmt], predicates: Predicates
) -> tuple[list[str], list[str]]:
    """The names that go from one iteration to the next, and those that would only leave the last one."""
    if loop.orelse:
        raise NotSelectableError("the loop has an `else`")
    evaluated: list[ast.expr] = []
    metas = ShapeInference(facts)
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                evaluated.append(value)
                if name in facts.before(loop):
                    old = incoming(facts, loop, name)
                    likeness = compare(name, old.meta, ast.unparse(value), metas.of(value))
                    if likeness.blocker:
                        raise NotSelectableError(likeness.blocker)
                    predicates.differences += [_kept(name, d) for d in likeness.differences]
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                continue
            case _:
                raise NotSelectableError(
                    f"`{ast.unparse(statement).splitlines()[0]}` in the loop does more than bind a name"
                )
    found = speculate(facts, *evaluated)
    if found.blockers:
        raise NotSelectableError(found.blockers[0])
    if found.differences:
        predicates.differences.append(
            Difference("exception", "what an iteration raises comes from the loop operator, as another exception")
        )
    _check_gradients(facts, loop, evaluated, predicates)
    bound = list(dict.fromkeys(n for s in body for n in sorted(writes(s))))
    return [n for n in bound if n in facts.before(loop)], [
        n for n in bound if n not in facts.before(loop) and alive(facts, n, loop)
    ]


def _kept(name: str, difference: Difference) -> Difference:
    """The same for a loop, whose operator raises where a tensor is not of the same kind each time."""
    if difference.kind in ("dtype", "shape"):
        of = "dtype" if difference.kind == "dtype" else "shape"
        return Difference("exception", f"it raises where an iteration changes the {of} of `{name}`")
    return difference


def _check_gradients(
    facts: FunctionFacts, loop: ast.While | ast.For, evaluated: list[ast.expr], predicates: Predicates
) -> None:
    """What the loop only reads gets no gradient from `torch.while_loop` (torch 2.13)."""
    if not recorded(facts, loop):
        return
    bound = writes(*loop.body)
    read = sorted({path for e in evaluated for path in carries(facts, e)} - bound)
    layers = [n for e in evaluated for n in nodes_in(e) if isinstance(n, ast.Call) and is_layer(facts, n.func)]
    if read or layers:
        name = read[0] if read else ast.unparse(layers[0].func)
        raise NotSelectableError(f"`{name}` may ask for gradients, which the loop operator does not give it")
    if any(kinds(facts, e) & {"float", "complex"} for e in evaluated):
        predicates.differences += [
            Difference("exception", "the aot_eager and inductor backends raise where gradients flow through the loop"),
            Difference("gradients", "where no iteration runs, gradients are those of one, or raise (torch 2.13)"),
            Difference("gradients", "all that the loop gives requires gradients where one part of it does"),
        ]


def _started(facts: FunctionFacts, carried: list[str], name: str) -> str:
    """A name as the loop takes it: two that may be one tensor must not go in as such."""
    node = ast.Name(name, ast.Load())
    others = [n for n in [*carried, *sorted(_tensors_read(facts))] if n != name]
    shared = any(may_share(facts, node, ast.Name(n, ast.Load())) for n in others)
    return f"{name}.clone()" if shared else name


def _tensors_read(facts: FunctionFacts) -> set[str]:
    loop = facts.statement if isinstance(facts.statement, (ast.While, ast.For)) else facts.parent(facts.statement)
    assert isinstance(loop, (ast.While, ast.For))
    read = reads(*loop.body, _head(loop)) - writes(*loop.body)
    before = facts.before(loop)
    return {n for n in read if isinstance(before.get(n), Tensor)}


def _given_back(facts: FunctionFacts, body: list[ast.stmt], name: str) -> str:
    """A name as an iteration gives it back: not as the very tensor that went in."""
    values = [s.value for s in body if isinstance(s, ast.Assign) and name in writes(s)]
    return name if all(_is_new(facts, v) for v in values) else f"{name}.clone()"


def _is_new(facts: FunctionFacts, node: ast.expr) -> bool:
    return shares(facts, node).fresh


def _while(
    facts: FunctionFacts,
    loop: ast.While,
    predicates: Predicates,
    carried: list[str],
    counted: Mapping[ast.stmt, str],
) -> str:
    static, tests = split(facts, loop.test)
    if static or not tests:
        raise NotATensorError("the test is not about tensors alone")
    if writes(loop.test) or effects_of_test(facts, loop.test):
        raise NotATensorError(f"`{shortened(loop.test)}` does more than ask")
    if not (carried or counted):
        raise NotSelectableError("nothing changes from one iteration to the next")
    counters = [as_counter(facts, loop, predicates, statement, name) for statement, name in counted.items()]
    return _loop(facts, predicates, carried, counters, f"return {predicates.all_of(tests)}", [])


def _until(facts: FunctionFacts, predicates: Predicates, carried: list[str]) -> str:
    """`while True:` with `if test: break` at its end: once, and then while the test does not hold."""
    assert isinstance(facts.statement, ast.If)
    if not carried:
        raise NotSelectableError("nothing changes from one iteration to the next")
    static, tests = split(facts, facts.statement.test)
    if static or len(tests) != 1:
        raise NotATensorError("the test is not about one tensor alone")
    return _loop(facts, predicates, carried, [], f"return {predicates.negated(tests[0])}", [HOLE.format(0)])


def _count(facts: FunctionFacts, loop: ast.For, predicates: Predicates, carried: list[str]) -> str | None:
    """`for _ in range(n)`."""
    call = called(facts, loop.iter, "builtins.range")
    if call is None or len(call.args) != 1 or not isinstance(loop.target, ast.Name):
        return None
    if loop.target.id in reads(*loop.body) or alive(facts, loop.target.id, loop):
        raise NotSelectableError("the loop's variable is used, and would be a tensor")
    count, kept = call.args[0], Kept()
    if conversion(facts, count) is not None and isinstance(facts.value(count), (Scalar, Tensor)):
        found = tensor_text(facts, count, kept, detach=False)
        if found is None:
            raise NotATensorError(f"`{ast.unparse(count)}` is not known to be a tensor")
        text = found
    elif is_tensor(facts, count):
        text = Code(facts.source).operand(count)
    else:
        return None
    tensor = _taken_from(count)
    if not kinds(facts, tensor) <= {"int", "uint8"}:
        predicates.differences.append(
            Difference("exception", "a number of iterations that is no whole number raises no more")
        )
    predicates.differences += kept.differences
    step, count_name = fresh(facts, "step"), fresh(facts, "count")
    lines = [f"{count_name} = {text}"]
    return _loop(
        facts,
        predicates,
        carried,
        [Counter(step, f"{predicates.imports.name('torch.zeros_like')}({count_name})", f"{step} + 1")],
        f"return {step} < {count_name}",
        lines,
    )


def _taken_from(count: ast.expr) -> ast.expr:
    """`n` in `n.item()` and `int(n)`."""
    match count:
        case ast.Call(func=ast.Attribute(value=value, attr="item"), args=[]):
            return value
        case ast.Call(func=ast.Name(id="int"), args=[value]):
            return value
    return count


def _unused(facts: FunctionFacts, loop: ast.While | ast.For) -> str:
    """A name for what nobody reads: `_`, where it means nothing else in the function."""
    own = {*nodes_in(loop.target)} if isinstance(loop, ast.For) else set()
    others = (n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n not in own)
    return fresh(facts, "counted") if any(n.id == "_" for n in others) else "_"


def _loop(
    facts: FunctionFacts,
    predicates: Predicates,
    carried: list[str],
    counters: list[Counter],
    test: str,
    lines: list[str],
) -> str:
    """The two functions and the call."""
    names = [counter.name for counter in counters] + carried
    test_name, body_name = fresh(facts, "loop_test"), fresh(facts, "loop_body")
    comma = "," if len(names) == 1 else ""
    loop = facts.statement if isinstance(facts.statement, (ast.While, ast.For)) else facts.parent(facts.statement)
    assert isinstance(loop, (ast.While, ast.For))
    for name in carried:
        predicates.differences += copied(facts, loop, name, "no iteration changes it")
    after = [counter.next for counter in counters] + [_given_back(facts, loop.body, n) for n in carried]
    start = [counter.start for counter in counters] + [_started(facts, carried, n) for n in carried]
    counting = stepped_numbers(facts, loop, loop.body)
    parts = len(_around(loop.body, counting)) if counting else 1
    targets = [counter.target or _unused(facts, loop) for counter in counters] + carried
    return "\n".join(
        [
            *lines,
            f"def {test_name}({', '.join(names)}):",
            f"    {test}",
            f"def {body_name}({', '.join(names)}):",
            *(f"    {HOLE.format(part)}" for part in range(parts)),
            f"    return ({', '.join(after)}{comma})",
            f"({', '.join(targets)}{comma}) = {predicates.imports.name('torch.while_loop')}"
            f"({test_name}, {body_name}, ({', '.join(start)}{comma}))",
            "",
        ]
    )
