"""Choose between two functions with `graphmend.runtime.select`: an `if` in plain Python, one graph while compiling.

Before:
    if y.sum() > 0:
        h = self.wide(y)
    else:
        h = self.narrow(y)

After:
    h = graphmend.runtime.select(y.sum() > 0, lambda: self.wide(y), lambda: self.narrow(y))

Legal when:
    both sides only bind names, store in tensors that they have made, or return, and have no other effect than to draw
    from torch's default generators, and to move running statistics of normalising layers: both are as before where
    the side is not taken. What a layer changes that it is given, such as a cache, has to be None while TorchDynamo
    traces; the graph breaks as before otherwise. Shapes, dtypes, strides, devices and `requires_grad` need no proof:
    `select` looks at them while TorchDynamo traces, and branches as before where they differ. In an unsafe mend the
    strides may, where they look as if they did. The mended program needs `graphmend-runtime`.

Differs in:
    nothing in plain Python. While compiled the side that is not taken is computed, too: it may raise, parameters that
    it alone uses get zeros for gradients, and what was an existing tensor is a copy of it. What a module in reach does
    that is not known is named; TorchInductor draws the random numbers of both sides.
"""

from __future__ import annotations

import ast
from collections.abc import Container as Held
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.external import ExternalInstance, ExternalName
from graphmend.analysis.lattice.values import (
    UNKNOWN,
    Const,
    Container,
    Static,
    Tensor,
    beginning,
    dtype_kind,
    options,
    tensor_in,
)
from graphmend.analysis.program.entities import Function, Instance
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import alive, reads, stored, surely_bound, writes
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import NUMBER_TYPES
from graphmend.transforms.code.text_edits import insert_before, replace_expression, replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.branch_statement import bound_first, is_detached, returns
from graphmend.transforms.if_conversion.not_taken import double_where
from graphmend.transforms.if_conversion.side_functions import (
    NotAFunctionError,
    Side,
    always_binds,
    bound_to,
    evaluated_by,
    may_not_hold,
    none_at_first,
    side_of,
)
from graphmend.transforms.if_conversion.sides.records import Given, record_differences, told_of_records
from graphmend.transforms.if_conversion.sides.unread import first_bound_in_loop, flag_of
from graphmend.transforms.if_conversion.sides.writer import RUNTIME, SelectWriter
from graphmend.transforms.if_conversion.tensor_predicates import NotATensorError, Predicates
from graphmend.transforms.if_conversion.value_tests import depends
from graphmend.transforms.legality.bodies.in_vain import in_vain
from graphmend.transforms.legality.gradients.sides import (
    EITHER_GRADIENT,
    carries,
    flow_pairs,
    gradient_differences,
    lost,
    mixed,
    recorded,
)
from graphmend.transforms.legality.in_place import laid_apart, laid_otherwise
from graphmend.transforms.legality.memory import changed_in_place, only_here, shares, written_to
from graphmend.transforms.legality.outside.identity import identified
from graphmend.transforms.legality.same_shape import ShapeInference, compare, is_sized_by_values, other_sizes
from graphmend.transforms.legality.speculation import speculate
from graphmend.transforms.rewrites.answers import asks, offer, refuse
from graphmend.transforms.rewrites.control_flow import where, where_expression

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "select"
_TITLE = "choose with graphmend.runtime.select: an if in plain Python, one graph while compiling"
_STRIDES = Difference("strides", "while compiled the result has strides of its own where those of the sides differ")


@asks("effects", "totality", "memory", "order", "dtypes", "numbers", "shapes", "gradients", "names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = facts.statement
    chosen = next((n for n in (facts.node, *facts.ancestors(facts.node)) if isinstance(n, ast.IfExp)), None)
    is_branch = isinstance(statement, ast.If) and _within(facts, statement.test)
    if not is_branch and (chosen is None or not _within(facts, chosen.test)):
        return None
    proven = (where if is_branch else where_expression).rewrite.decide(finding, facts)
    if isinstance(proven, Fix) and proven.applicability == "safe":
        return None  # torch.where says the same without a runtime
    imports = Imports(facts)
    try:
        if isinstance(statement, ast.If) and is_branch:
            fix = _of_branch(facts, statement, imports)
        else:
            assert chosen is not None
            fix = _of_expression(facts, chosen, imports)
    except (NotAFunctionError, NotATensorError) as error:
        return refuse(NAME, str(error))
    if isinstance(proven, Fix) and _of_gradients(fix) - _of_gradients(proven):
        return None  # the other form keeps operations away from singular points
    return fix


def _of_gradients(fix: Fix) -> set[Difference]:
    return {d for d in fix.differences if d.kind == "gradients"} - {EITHER_GRADIENT}


def _within(facts: FunctionFacts, test: ast.expr) -> bool:
    return isinstance(facts.node, ast.stmt) or any(n is facts.node for n in nodes_in(test))


# -- branches


def _of_branch(facts: FunctionFacts, statement: ast.If, imports: Imports) -> Fix:
    predicates = Predicates(facts, imports)
    bound = bound_first(statement.test)
    condition, swapped = predicates.condition(statement.test, bound)
    block = facts.body_of(statement)
    behind = block[block.index(statement) + 1 :]
    returning = any(isinstance(n, ast.Return) for n in nodes_in(statement))
    absorbed: list[ast.stmt] = []
    if returning:
        if not returns(statement.body) or not (returns(statement.orelse) or returns([*statement.orelse, *behind])):
            raise NotAFunctionError("what happens when the branch does not return is not written behind it")
        absorbed = [] if returns(statement.orelse) else behind
        if statement.orelse and absorbed:
            raise NotAFunctionError("the side that goes on has statements of its own")
    old = [statement, *absorbed]
    if not replaceable(facts, old):
        raise NotAFunctionError("the statement shares its line with another one")
    sides = [side_of(facts, statement.body), side_of(facts, [*statement.orelse, *absorbed])]
    flagged = {} if returning else _flagged(facts, statement, sides)
    results, differences = _given(facts, old, sides, flagged, returning)
    fronts = _fronts(facts, old[-1], sides, flagged)
    differences += [Difference("exception", f"`{n}` is None where it would not be bound") for n in fronts]
    differences = [*predicates.differences, *differences]
    either = bool(differences) and recorded(facts, statement)
    either = either and any(mixed(facts, *pair) for pair in flow_pairs(facts, statement))
    differences += [EITHER_GRADIENT] if either else []
    # what is safe keeps its strides
    selected = [name for name in results if name not in flagged]
    if differences and any(laid_apart(facts, a[0], b[0]) for _, a, b in _pairs(facts, statement, sides, selected)):
        differences.append(_STRIDES)
    options = f"{', mixed_grad=True' if either else ''}{_put_back(facts, sides)}"
    options += ", any_strides=True" if _STRIDES in differences else ""
    options += told_of_records([*_pairs(facts, statement, sides, selected)])
    writer = SelectWriter(facts, predicates, imports, options, flagged, [*fronts])
    writer.lines += [f"{name} = None" for name, front in fronts.items() if front is statement]
    if bound is not None:
        writer.lines.append(f"{bound.target.id} = {predicates.code.line(bound.value)}")
    text, kept = writer.written(statement, condition, sides[::-1] if swapped else sides, results)

    def make() -> list[TextEdit]:
        first = [insert_before(facts.source, f, f"{n} = None\n") for n, f in fronts.items() if f is not statement]
        return [*imports.edits(), *first, replace_statements(facts.source, old, text, *kept)]

    return offer(NAME, _TITLE, facts, make, differences)


def _given(
    facts: FunctionFacts, old: Sequence[ast.stmt], sides: Sequence[Side], flagged: Mapping[str, str], returning: bool
) -> tuple[list[str], list[Difference]]:
    """The names that the sides give, and how what they do differs while compiled."""
    results = _results(facts, old[-1], sides, flagged)
    if returning and results:
        raise NotAFunctionError(f"`{results[0]}` is read by another function, and would be bound in one side alone")
    if not returning and not results:
        raise NotAFunctionError("the branch binds nothing that is read behind it")
    statement = old[0]
    assert isinstance(statement, ast.If)
    selected = [name for name in results if name not in flagged]
    return results, [*_differences(facts, statement, statement.test, sides, selected)]


def _flagged(facts: FunctionFacts, statement: ast.If, sides: Sequence[Side]) -> dict[str, str]:
    """The results that are not known to be tensors, and that a flag alone has read, each with it."""
    found: dict[str, str] = {}
    for name in _alive(facts, statement, sides):
        if not all(isinstance(_gives(facts, statement, side, name)[1], Tensor) for side in sides):
            flag = flag_of(facts, name, statement)
            found |= {name: flag} if flag is not None else {}
    return found


def _fronts(facts: FunctionFacts, last: ast.stmt, sides: Sequence[Side], flagged: Iterable[str]) -> dict[str, ast.stmt]:
    """The names that may be given where they are not bound, and the statements in front of which they are None."""
    found: dict[str, ast.stmt] = {}
    for name in flagged:
        if name not in surely_bound(facts, last) and not all(always_binds(s.statements, name) for s in sides):
            front = first_bound_in_loop(facts, name, facts.statement)
            if front is None:
                raise NotAFunctionError(f"`{name}` may not be bound where a side does not bind it")
            found[name] = front
    return found


def _put_back(facts: FunctionFacts, sides: Sequence[Side]) -> str:
    """What `select` is told where a side draws random numbers, or moves the statistics of modules."""
    found = in_vain(facts, *(e for side in sides for e in evaluated_by(side.statements)))
    moving = list(dict.fromkeys(ast.unparse(module) for module in found.moving))
    if any(reads(module) & writes(*side.statements) for module in found.moving for side in sides):
        raise NotAFunctionError(f"`{moving[0]}` moves its running statistics, and is not there in front of the branch")
    told = f", moving=lambda: ({', '.join(moving)},)" if moving else ""
    told += f", unless=lambda: ({', '.join(found.unless)},)" if found.unless else ""
    return f"{', draws=True' if found.draws else ''}{told}"


def _alive(facts: FunctionFacts, last: ast.stmt, sides: Sequence[Side]) -> list[str]:
    """The names that the sides bind and that live on behind the last statement."""
    names = dict.fromkeys(name for side in sides for s in side.statements for name in sorted(writes(s)))
    return [name for name in names if alive(facts, name, last)]


def _results(facts: FunctionFacts, last: ast.stmt, sides: Sequence[Side], flagged: Held[str]) -> list[str]:
    """What the sides give; the `flagged` may not be bound."""
    names = dict.fromkeys(name for side in sides for s in side.statements for name in sorted(writes(s)))
    living = _alive(facts, last, sides)
    outside = {n for s in nodes_in(facts.function) if isinstance(s, (ast.Global, ast.Nonlocal)) for n in s.names}
    before, found = surely_bound(facts, last), list[str]()
    for name in names:
        if name in outside:
            raise NotAFunctionError(f"`{name}` is no local name")
        if name not in living:
            continue
        for side in sides if name not in flagged else ():
            if name not in before and not always_binds(side.statements, name):
                raise NotAFunctionError(f"`{name}` may not be bound where a side does not bind it")
        found.append(name)
    return found


def _differences(
    facts: FunctionFacts, statement: ast.stmt, test: ast.expr, sides: Sequence[Side], results: Sequence[str]
) -> Iterator[Difference]:
    """What is different while compiled; refuses where `select` would branch for certain."""
    evaluated = [evaluated_by(side.statements) for side in sides]
    found = speculate(facts, *evaluated[0], *evaluated[1], put_back=True)
    if found.blockers:
        raise NotAFunctionError(found.blockers[0])
    for node in (n for side in evaluated for e in side for n in nodes_in(e)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("super", "locals"):
            raise NotAFunctionError(f"`{node.func.id}()` means another function there")
        if (isinstance(node, ast.IfExp) and depends(facts, node.test)) or is_sized_by_values(facts, node):
            raise NotAFunctionError(f"`{shortened(node)}` inside the branch is mended first")
    yield from (Difference(d.kind, f"while compiled, {d.says}") for d in found.differences)
    yield from (d for side in sides for d in may_not_hold(side.statements))
    operand = double_where.decided_by(facts, test, [e for side in evaluated for e in side])
    if operand is not None and recorded(facts, statement):
        raise NotAFunctionError(f"gradients would become NaN where `{shortened(operand)}` does not take the side")
    yield from gradient_differences(facts, statement, evaluated)
    for values in _pairs(facts, statement, sides, results):
        if len(results) > 1 and values[1][1] is values[2][1] is UNKNOWN:
            raise NotAFunctionError(f"`{values[1][2]}` and `{values[2][2]}` are not known to be tensors")
        yield from _compared(facts, statement, *values)


def _pairs(
    facts: FunctionFacts, statement: ast.stmt, sides: Sequence[Side], results: Sequence[str]
) -> Iterator[tuple[str | None, Given, Given]]:
    """What both sides give for each result and its name: the expression where it is one, its value, and its text."""
    calls = (n for n in nodes_in(facts.function) if isinstance(n, ast.Call))
    functions = {n.func.id for n in calls if isinstance(n.func, ast.Name)}
    for name in results:
        given = [_gives(facts, statement, side, name) for side in sides]
        if name in functions:
            raise NotAFunctionError(f"`{name}` is called: what is called is not selected in a graph")
        for node, _, text in given:
            if identified(facts, name) and (node is None or not shares(facts, node).fresh):
                raise NotAFunctionError(f"which tensor `{name}` is asked for, and it would be a copy while compiled")
            # what an attribute holds is met again in the next call, behind whatever stands in front of the branch
            begin = None if "." in name or isinstance(node, ast.Attribute) else statement
            if changed_in_place(facts, name, behind=begin) and (node is None or not shares(facts, node).fresh):
                raise NotAFunctionError(f"`{text}` is changed in place later, and would be a copy while compiled")
        yield name, given[0], given[1]
    if not results:
        returned = [
            [n.value for s in side.statements for n in nodes_in(s) if isinstance(n, ast.Return)] for side in sides
        ]
        for one in returned[0]:
            for other in returned[1]:
                if one is not None and other is not None:
                    yield None, (one, facts.value(one), shortened(one)), (other, facts.value(other), shortened(other))


def _gives(facts: FunctionFacts, statement: ast.stmt, side: Side, name: str) -> Given:
    node = side.bound.get(name)
    if node is not None:
        return node, facts.value(node), shortened(node)
    if any(name in stored([s]) for s in side.statements):
        return None, bound_to(facts, side.statements, name), name
    return ast.Name(name, ast.Load()), facts.before(statement).get(name, UNKNOWN), name


def _compared(
    facts: FunctionFacts, statement: ast.stmt, name: str | None, one: Given, other: Given
) -> Iterator[Difference]:
    values = one[1], other[1]
    for value, given in zip(values, (one, other), strict=True):
        yield from record_differences(facts, name, given)
        if isinstance(value, (Instance, ExternalInstance, ExternalName, Function)) or (
            isinstance(value, Container) and value.kind == "modules"
        ):
            raise NotAFunctionError(f"`{given[2]}` is no tensor, so that it is not selected in a graph")
    if all(isinstance(v, Static) or (isinstance(v, Container) and isinstance(v.element, Static)) for v in values):
        if not (isinstance(one[1], Const) and repr(one[1]) == repr(other[1])):  # 0.0 and -0.0 are equal
            raise NotAFunctionError(f"`{one[2]}` and `{other[2]}` are Python values, which are not selected in a graph")
        return
    for given, (value, beside) in zip((one, other), (values, values[::-1]), strict=True):
        if isinstance(value, Const) and (isinstance(beside, Tensor) or beside is UNKNOWN):
            raise NotAFunctionError(f"`{given[2]}` is no tensor, so that it is not selected in a graph")
    begun = [beginning(v) if isinstance(v, Container) else {} for v in values]
    for pair in [(held, begun[1][index]) for index, held in begun[0].items() if index in begun[1]]:
        kinds = {Static if isinstance(v, Static) else Tensor if isinstance(v, Tensor) else None for v in pair}
        if kinds == {Static, Tensor} or (kinds == {Static} and repr(pair[0]) != repr(pair[1])):
            raise NotAFunctionError(f"`{one[2]}` and `{other[2]}` hold Python values, which no graph selects")
    plain = any(isinstance(o, Static) and (o is v or o.type in NUMBER_TYPES) for v in values for o in options(v))
    tensors = any(tensor_in(v) is not None for v in values)
    if tensors and (plain or none_at_first(facts, statement, *values)):
        raise NotAFunctionError(f"of `{one[2]}` and `{other[2]}` only one is a tensor")
    if plain and not tensors:
        raise NotAFunctionError(f"`{one[2]}` and `{other[2]}` may be numbers, which are not selected in a graph")
    dtypes = [dtype_kind(tensor.dtype) if (tensor := tensor_in(v)) is not None else None for v in values]
    if "bool" in dtypes and dtypes[0] != dtypes[1]:
        raise NotAFunctionError(f"`{one[2]}` and `{other[2]}` may have two dtypes, as one is bool")
    nodes = one[0], other[0]
    if laid_otherwise(facts, *nodes) != laid_otherwise(facts, *nodes[::-1]):
        yield _STRIDES
    if is_detached(nodes[0]) != is_detached(nodes[1]):
        raise NotAFunctionError(f"of `{one[2]}` and `{other[2]}` only one may ask for gradients")
    if nodes[0] is not None and nodes[1] is not None:
        inference = ShapeInference(facts)
        metas = inference.of(nodes[0]), inference.of(nodes[1])
        if metas[0] is not None and metas[1] is not None:
            blocker = compare(one[2], metas[0], other[2], metas[1]).blocker
            if blocker is not None and "dtypes" in blocker:
                raise NotAFunctionError(blocker)
        if other_sizes(facts, nodes[0], nodes[1]) or other_sizes(facts, nodes[1], nodes[0]):
            raise NotAFunctionError(f"`{one[2]}` and `{other[2]}` have different shapes")
        if isinstance(nodes[0], ast.Name) and ast.dump(nodes[0]) == ast.dump(nodes[1]):
            return  # one object, which `select` hands on
    if any(node is None or not shares(facts, node).fresh for node in nodes):
        if name is None or not only_here(facts, name, nodes, statement):
            yield Difference("aliasing", "while compiled the result is a copy where a side gives an existing tensor")
        yield from lost(facts, statement, "the tensor that is kept loses its gradient history")


def _identified(facts: FunctionFacts) -> bool:
    """Does the function ask which object a name is that the statement binds?"""
    return any(identified(facts, name) for name in stored([facts.statement]))


# -- conditional expressions


def _of_expression(facts: FunctionFacts, chosen: ast.IfExp, imports: Imports) -> Fix:
    predicates = Predicates(facts, imports)
    condition, swapped = predicates.condition(chosen.test)
    sides = [Side([ast.Return(side)], {}, True) for side in (chosen.body, chosen.orelse)]
    for side in (chosen.body, chosen.orelse):
        if not shares(facts, side).fresh and (written_to(facts, chosen) or _identified(facts)):
            raise NotAFunctionError(f"`{shortened(side)}` is changed in place or compared later, and would be a copy")
    differences = [*predicates.differences, *_differences(facts, facts.statement, chosen.test, sides, [])]
    bodies = [f"lambda: {predicates.code.argument(side)}" for side in (chosen.body, chosen.orelse)]
    first, second = bodies[::-1] if swapped else bodies
    either = mixed(facts, carries(facts, chosen.body), carries(facts, chosen.orelse))
    differences += [EITHER_GRADIENT] if either and differences and recorded(facts, facts.statement) else []
    if differences and laid_apart(facts, chosen.body, chosen.orelse):
        differences.append(_STRIDES)
    options = (", mixed_grad=True" if EITHER_GRADIENT in differences else "") + _put_back(facts, sides)
    options += ", any_strides=True" if _STRIDES in differences else ""
    options += told_of_records([*_pairs(facts, facts.statement, sides, [])])
    text = f"{imports.name(f'{RUNTIME}.select', RUNTIME)}({condition}, {first}, {second}{options})"

    def make() -> list[TextEdit]:
        return [*imports.edits(), replace_expression(facts.source, chosen, text)]

    return offer(NAME, _TITLE, facts, make, differences)
