"""Call the rest of a function of NumPy from inside the graph, behind what it draws in the graph.

Before:
    def spans(shape, rate):
        count, length = shape
        extra = np.random.rand(1).item()
        mask = np.zeros((count, length), dtype=bool)
        for row in range(count):
            mask[row, np.random.choice(length, int(rate * length + extra), replace=False)] = True
        return mask

After:
    def spans(shape, rate):
        count, length = shape
        extra = np.random.rand(1)

        def rest(rate, count, length, extra):
            extra = extra.item()
            mask = np.zeros((count, length), dtype=bool)
            for row in range(count):
                mask[row, np.random.choice(length, int(rate * length + extra), replace=False)] = True
            return mask

        return on_host((count, length), torch.bool, rest, rate, count, length, extra)

Legal when:
    the function is as `on_host` needs it; the first that it draws is an array that TorchDynamo draws from torch's
    generator (2.13), of which it then reads the number, which breaks the graph; the other draws it does not trace; what
    the rest reads is bound for certain, and the size is known before it.

Differs in:
    nothing: all numbers come from the generators that they came from, in plain Python and compiled.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import fresh, reads, writes
from graphmend.transforms.code.positions import begins_line
from graphmend.transforms.code.qualified_names import constant, qualified
from graphmend.transforms.code.text_edits import HOLE, replace_expression, replace_statements
from graphmend.transforms.fix import Fix, TextEdit
from graphmend.transforms.legality.outside.host_bodies import does_more
from graphmend.transforms.legality.outside.host_functions import Array, array_made, function_around, traced_draws
from graphmend.transforms.rewrites.answers import asks, offer

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "rest_on_host"
#: they look names up when they are called
_LATE = (ast.Lambda, ast.GeneratorExp, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
#: what draws an array where it is given a size, and the number of its arguments in front of that
_ARRAYS = {
    "numpy.random.rand": 0,
    "numpy.random.randn": 0,
    "numpy.random.random": 0,
    "numpy.random.random_sample": 0,
    "numpy.random.uniform": 2,
    "numpy.random.normal": 2,
}


@asks("names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | None:
    function = function_around(facts)
    made = array_made(facts, function) if function is not None else None
    if function is None or made is None:
        return None
    drawn = _drawn(facts, function)
    if drawn is None:
        return None
    statement, call = drawn
    at = function.body.index(statement)
    head, rest = function.body[: at + 1], function.body[at + 1 :]
    bound = _bound(function, head)
    target = ast.unparse(statement.targets[0])
    needed = [n for n in bound if n == target or n in reads(*rest)]
    if (
        not (rest and begins_line(facts.source, rest[0]) and begins_line(facts.source, statement))
        or writes(*head).intersection(reads(*rest)).difference(bound)
        or not _is_known(made, set(bound) - writes(*rest))
        or any(isinstance(n, _LATE) for s in head for n in nodes_in(s))
        or does_more(facts, function, bound) is not None
    ):
        return None
    imports, code, name = Imports(facts.within(function)), Code(facts.source), fresh(facts.within(function), "rest")
    host = imports.name("graphmend.runtime.on_host", "graphmend.runtime")
    of = imports.name(f"torch.{made.dtype}")

    def make() -> list[TextEdit]:
        given = ", ".join([ast.unparse(made.size), of, name, *needed])
        text = f"def {name}({', '.join(needed)}):\n"
        text += f"    {target} = {code.text(statement.value, {call: target})}\n    {HOLE.format(0)}\n"
        return [
            *imports.edits(),
            replace_expression(facts.source, statement.value, code.text(call)),
            replace_statements(facts.source, rest, f"{text}return {host}({given})\n", rest),
        ]

    return offer(NAME, "call the rest of the function from the graph (graphmend.runtime)", facts, make)


def _drawn(facts: FunctionFacts, function: ast.FunctionDef) -> tuple[ast.Assign, ast.Call] | None:
    """The statement that reads a number from an array that TorchDynamo draws, and the draw: the first and only one."""
    traced = traced_draws(facts, function)
    for statement in function.body:
        match statement:
            case ast.Assign(
                targets=[ast.Name()],
                value=ast.Call(func=ast.Attribute(value=ast.Call() as call, attr="item"), args=[], keywords=[]),
            ) if [call.func] == traced and _is_array(facts, call):
                return statement, call
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.Expr() | ast.If() | ast.Raise() | ast.Assert():
                if _draws(facts, statement):
                    return None
            case _:
                return None  # a break in a loop, `try` or `with` would leave all of the frame to Python
    return None


def _draws(facts: FunctionFacts, statement: ast.stmt) -> bool:
    names = (qualified(facts, n) or "" for n in nodes_in(statement) if isinstance(n, (ast.Attribute, ast.Name)))
    return any(name.startswith(("numpy.random.", "random.")) for name in names)


def _is_array(facts: FunctionFacts, call: ast.Call) -> bool:
    """Does a call draw an array of one element, of a size that is written?"""
    before = _ARRAYS.get(qualified(facts, call.func) or "")
    if before is None or not all(isinstance(constant(a), (int, float)) for a in call.args[:before]):
        return False
    sizes = [*call.args[before:], *(k.value for k in call.keywords if k.arg == "size")]
    options = {k.arg for k in call.keywords} - {"size"}
    return bool(sizes) and not options and all(constant(a) == 1 for a in sizes)


def _bound(function: ast.FunctionDef, head: list[ast.stmt]) -> list[str]:
    """The names that are bound for certain behind the first statements of a function, in order."""
    arguments = function.args
    found = [p.arg for p in (*arguments.args, *arguments.kwonlyargs)]
    for statement in head:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        found += [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name) and n.id not in found]
    return found


def _is_known(made: Array, names: set[str]) -> bool:
    """Is the size of an array told by some names alone, so that it raises nothing?"""
    parts = made.size.elts if isinstance(made.size, ast.Tuple) else [made.size]
    return all(isinstance(p, ast.Constant) or (isinstance(p, ast.Name) and p.id in names) for p in parts)
