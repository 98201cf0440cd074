"""Write what a call takes from a generator that asks tensors, or a list that asks them, as the loop that it is.

Before:
    first = next((i for i, score in enumerate(scores) if score > 0.5), 0)

After:
    first = 0
    for i, score in enumerate(scores):
        if score > 0.5:
            first = i
            break

Legal when:
    `next` with a default, or `sum`, takes what one generator with one filter gives, or a list comprehension holds it,
    which the next statement may add up;
    and it is all that a name is bound to, or stands where nothing is evaluated in front of it that has an effect.
    Neither the filter nor what is given has one.

Differs in:
    nothing: the same is asked in the same order. It is written for the mends of loops, and stays where they remove the
    break.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code, shortened
from graphmend.transforms.code.liveness import fresh, reads, writes
from graphmend.transforms.code.positions import begins_line, is_elif, replaceable
from graphmend.transforms.code.qualified_names import called, is_tensor, number_type, qualified
from graphmend.transforms.code.text_edits import insert_before, replace_expression, replace_statements
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.value_tests import depends, effects_of_test
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.rewrites.answers import asks, prepare, refuse
from graphmend.transforms.rewrites.named_parts import late

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "as_loop"
_TITLE = "write the generator or the list as a loop"


class _Taken(NamedTuple):
    """What a call takes from a generator."""

    call: ast.expr
    of: str
    begin: str
    """The text of what it gives where nothing passes the filter."""
    element: ast.expr
    generator: ast.comprehension


@asks("effects", "names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    taken = _taken(facts)
    if taken is None:
        return None
    statement, generator = facts.statement, taken.generator
    held = taken.of == "sum" and not any(n is taken.call for n in nodes_in(statement))  # by a name, until it is summed
    named = isinstance(statement, ast.Assign) and statement.value is taken.call and _is_new(statement, taken.call)
    alone = begins_line(facts.source, statement) and replaceable(facts, [statement])
    if not alone or is_elif(facts.source, statement):
        return refuse(NAME, "the statement shares its line with another one, or is an `elif`")
    if found := [*effects_of_test(facts, generator.ifs[0]), *effects(facts, taken.element, generator.iter)]:
        return refuse(NAME, found[0])
    if taken.of == "sum" and not (is_tensor(facts, taken.element) or number_type(facts, taken.element) == "int"):
        return refuse(NAME, f"`sum` of numbers like `{shortened(taken.element)}` may round otherwise")
    if not named and not held and (reason := late(facts, taken.call)) is not None:
        return refuse(NAME, reason)
    code = Code(facts.source)
    result = code.text(statement.targets[0]) if isinstance(statement, ast.Assign) and named else fresh(facts, "found")
    own = _own_names(facts, taken, result)
    given = code.line(taken.element, own)
    lines = [
        f"{result} = {taken.begin}",
        f"for {code.text(generator.target, own)} in {code.line(generator.iter)}:",
        f"    if {code.line(generator.ifs[0], own)}:",
        *([f"        {result} = {given}", "        break"] if taken.of == "next" else []),
        *([f"        {result} = {result} + {code.operand(taken.element, own)}"] if taken.of == "sum" else []),
        *([f"        {result}.append({given})"] if taken.of == "list" else []),
    ]
    text = "\n".join(lines) + "\n"

    def make() -> list[TextEdit]:
        if held:
            return [
                replace_statements(facts.source, [statement], text),
                replace_expression(facts.source, taken.call, result),
            ]
        if named:
            return [replace_statements(facts.source, [statement], text)]
        return [insert_before(facts.source, statement, text), replace_expression(facts.source, taken.call, result)]

    return prepare(NAME, _TITLE, facts, make)


def _is_new(statement: ast.Assign, call: ast.expr) -> bool:
    """Is what is bound one name, which the call does not read?"""
    match statement.targets:
        case [ast.Name(id=name)]:
            return name not in reads(call)
    return False


def _taken(facts: FunctionFacts) -> _Taken | None:
    """The call around a finding that takes from a generator with a filter on tensors, or the list of what passes it."""
    for call in (facts.node, *facts.ancestors(facts.node)):
        if not isinstance(call, ast.Call) or call.keywords or not call.args:
            continue
        of = (qualified(facts, call.func) or "").removeprefix("builtins.")
        source, *rest = call.args
        if of not in ("next", "sum") or not isinstance(source, (ast.GeneratorExp, ast.ListComp)):
            continue
        if len(source.generators) != 1 or (of == "next" and (len(rest) != 1 or isinstance(source, ast.ListComp))):
            return None
        if any(isinstance(n, ast.Lambda) for n in nodes_in(source)):
            return None  # it has names of its own
        (generator,) = source.generators
        if len(generator.ifs) != 1 or generator.is_async or not depends(facts, generator.ifs[0]):
            return None
        begin = Code(facts.source).argument(rest[0]) if rest else "0"
        return None if rest and effects(facts, rest[0]) else _Taken(call, of, begin, source.elt, generator)
    for made in facts.ancestors(facts.node):
        match made:
            case ast.ListComp(elt=element, generators=[ast.comprehension(ifs=[test], is_async=0) as generator]):
                if not depends(facts, test) or any(isinstance(n, ast.Lambda) for n in nodes_in(made)):
                    return None
                taken = _Taken(made, "list", "[]", element, generator)
                return _summed(facts, taken) or taken
    return None


def _summed(facts: FunctionFacts, taken: _Taken) -> _Taken | None:
    """The same where a name holds the list, and all that is done with it is that the next statement adds it up."""
    statement, block = facts.statement, facts.body_of(facts.statement)
    behind = block[block.index(statement) + 1 :][:1]
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is taken.call and behind:
            pass
        case _:
            return None
    reads_of = [n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n.id == name]
    exprs = (n for n in nodes_in(behind[0]) if isinstance(n, ast.expr))
    sums = [c for n in exprs if (c := called(facts, n, "builtins.sum")) is not None and c.args and not c.keywords]
    calls = [c for c in sums if isinstance(c.args[0], ast.Name) and c.args[0].id == name]
    if len(reads_of) != 2 or len(calls) != 1 or late(facts, calls[0]) is not None:
        return None
    rest = calls[0].args[1:]
    begin = Code(facts.source).argument(rest[0]) if rest else "0"
    return None if rest and effects(facts, rest[0]) else taken._replace(call=calls[0], of="sum", begin=begin)


def _own_names(facts: FunctionFacts, taken: _Taken, result: str) -> dict[ast.expr, str]:
    """Other names for those of the generator that the function uses elsewhere."""
    inside = {n for part in (taken.generator, taken.element) for n in nodes_in(part)}
    names = writes(taken.generator.target)
    elsewhere = {n.id for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n not in inside}
    elsewhere |= {a.arg for a in nodes_in(facts.function) if isinstance(a, ast.arg)} | {result}
    iterable = {*nodes_in(taken.generator.iter)}
    new = {name: fresh(facts, name, [result]) for name in names if name in elsewhere}
    return {n: new[n.id] for n in inside if isinstance(n, ast.Name) and n.id in new and n not in iterable}
