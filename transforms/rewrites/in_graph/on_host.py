"""Call a function of NumPy from inside the graph.

Before:
    def spans(shape, rate):
        count, length = shape
        mask = np.zeros((count, length), dtype=bool)
        for row in range(count):
            mask[row, np.random.choice(length, int(rate * length), replace=False)] = True
        return mask

    mask = spans((count, length), rate=0.5)

After:
    mask = on_host((count, length), torch.bool, spans, (count, length), rate=0.5)

Legal when:
    the function is of the module's top level, and gives nothing but one array that `np.zeros` or the like makes in it,
    of a size that its parameters say; it calls NumPy, Python's own functions and methods that read tensors, and changes
    nothing but what it makes. The file calls it by its name, with arguments that say the size twice as well as once.

Differs in:
    nothing in plain Python, which calls the function as before. A graph calls it each time it runs, and what it draws
    comes from the generators of NumPy and Python then. What TorchDynamo traces of it, as `np.random.rand(3)` and not
    `np.random.choice`, it draws from torch's (2.13): where there is such a draw, `graphmend run`, which leaves alone
    what a compiled program answers, makes the mend with `--accept random` only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.span import Span
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import locals_of
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.outside.host_bodies import does_more
from graphmend.transforms.legality.outside.host_functions import array_made, function_around, size_of, traced_draws
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "on_host"
_REDRAWN = "once compiled, its random numbers are those of plain Python, and no longer drawn from torch's generator"


@asks("names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    function = function_around(facts)
    made = array_made(facts, function) if function is not None else None
    if function is None or made is None:
        return None
    size = size_of(function, made.size)
    if size is None:
        return refuse(NAME, f"the size of `{made.name}` is not known from the parameters of `{function.name}`")
    if (reason := does_more(facts, function)) is not None:
        return refuse(NAME, reason)
    calls = list(_calls(facts, function.name))
    sizes = [_at_call(facts, function, call, size) for _, call in calls]
    if not calls or None in sizes:
        return refuse(NAME, f"not every call of `{function.name}` says the size of its result by names and numbers")

    spelled: list[tuple[Imports, str, str]] = []
    for caller, _ in calls:
        imports = Imports(facts.within(caller))
        host = imports.name("graphmend.runtime.on_host", "graphmend.runtime")
        spelled.append((imports, host, imports.name(f"torch.{made.dtype}")))

    def make() -> list[TextEdit]:
        edits: list[TextEdit] = []
        for (_, call), at, (imports, host, of) in zip(calls, sizes, spelled, strict=True):
            first = _first(facts, call)
            edits.append(replace_expression(facts.source, call.func, host))
            place = Span(first.line, first.column, first.line, first.column)
            edits += [TextEdit(place, f"{at}, {of}, {function.name}, "), *imports.edits()]
        return list(dict.fromkeys(edits))

    redraws = bool(traced_draws(facts, function))
    differences = [Difference("random", _REDRAWN)] if redraws else []
    fix = offer(NAME, "call the function from the graph (graphmend.runtime)", facts, make, differences)
    return replace(fix, redraws=redraws)


def _calls(facts: FunctionFacts, name: str) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, ast.Call]]:
    """The calls of a function of the top level by its name, and the functions that they stand in."""
    tree = facts.source.tree
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef)
    inner = (
        {n for f in nodes_in(tree) if isinstance(f, definitions) for n in nodes_in(f) if n is not f} if tree else set()
    )
    for caller in nodes_in(tree) if tree is not None else ():
        if isinstance(caller, definitions) and caller not in inner and name not in locals_of(caller):
            for call in nodes_in(caller):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == name:
                    yield caller, call


def _first(facts: FunctionFacts, call: ast.Call) -> Span:
    """The first argument of a call."""
    parts: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    return min(map(facts.source.span, parts))


def _at_call(facts: FunctionFacts, function: ast.FunctionDef, call: ast.Call, size: ast.expr) -> str | None:
    """The size at a call; None where its text would be evaluated twice, or may raise before the function is called."""
    names = [p.arg for p in function.args.args]
    given = dict(zip(names, call.args, strict=False)) | {k.arg or "": k.value for k in call.keywords}
    if "" in given or any(isinstance(a, ast.Starred) for a in call.args) or len(call.args) > len(names):
        return None
    head = facts.source.segment(facts.source.span(call)).partition("(")
    if head[0].strip() != function.name or (
        head[2][:1] == "(" and not isinstance((*call.args, *call.keywords)[0], ast.Tuple)
    ):
        return None
    parts = size.elts if isinstance(size, ast.Tuple) else [size]
    texts = []
    for part in parts:
        found: ast.expr | None = part
        match part:
            case ast.Name(id=name):
                found = given.get(name, _default(function, name))
            case ast.Subscript(ast.Name(id=name), ast.Constant(value=int(place))):
                of = given.get(name)
                found = of.elts[place] if isinstance(of, ast.Tuple) and 0 <= place < len(of.elts) else None
        plain = (ast.Name, ast.Attribute, ast.Constant, ast.Tuple, ast.Subscript, ast.Load)
        if found is None or not all(isinstance(n, plain) for n in ast.walk(found)):
            return None
        texts.append(ast.unparse(found))
    return texts[0] if isinstance(size, ast.Name) else f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"


def _default(function: ast.FunctionDef, name: str) -> ast.expr | None:
    """The default of a parameter, where it is a constant."""
    names = [p.arg for p in function.args.args][len(function.args.args) - len(function.args.defaults) :]
    default = dict(zip(names, function.args.defaults, strict=True)).get(name)
    return default if isinstance(default, ast.Constant) else None
