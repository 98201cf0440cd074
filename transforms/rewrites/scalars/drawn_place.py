"""Draw at which place of a list something stands instead of the thing itself, which is only compared.

Before:
    op = random.choice(["flip", "invert", "solar"])
    if op == "flip":
        return img.flip(-1)

After:
    op = random.choice([0, 1, 2])
    if op == 0:
        return img.flip(-1)

Legal when:
    the list is written out, of different texts, and what is drawn has a name that is compared with texts and nothing
    else. As many are to choose from, so that the generator gives the same one.

Differs in:
    nothing. It is written for the mends that draw numbers in the graph, and stays where they remove the break.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bindings
from graphmend.transforms.code.liveness import parameters
from graphmend.transforms.code.qualified_names import called
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.rewrites.answers import asks, prepare, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "drawn_place"
_DRAWS = ("random.choice", "numpy.random.choice")


@asks(any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    match facts.statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call) if called(facts, call, *_DRAWS):
            pass
        case _:
            return None
    match call:
        case ast.Call(args=[ast.List(elts=elements) | ast.Tuple(elts=elements) as listed], keywords=[]):
            texts = [e.value for e in elements if isinstance(e, ast.Constant) and isinstance(e.value, str)]
        case _:
            return None
    if len(texts) < len(elements) or len({*texts}) < len(texts):
        return None
    if len(bindings(facts).get(name, ())) != 1 or name in parameters(facts.function):
        return refuse(NAME, f"`{name}` is bound to something else, too")
    places = {text: str(place) for place, text in enumerate(texts)}
    edits: dict[ast.expr, str] = {listed: f"[{', '.join(places.values())}]"}
    for node in nodes_in(facts.function):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            return refuse(NAME, f"`{name}` is no local name")
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            compared = _compared(facts, node)
            if compared is None:
                return refuse(NAME, f"`{name}` is read otherwise than in comparisons with texts")
            edits |= {text: places.get(value, "-1") for text, value in compared.items()}

    def make() -> list[TextEdit]:
        return [replace_expression(facts.source, node, text) for node, text in edits.items()]

    return prepare(NAME, "draw the place in the list", facts, make)


def _compared(facts: FunctionFacts, name: ast.Name) -> dict[ast.expr, str] | None:
    """The texts that a name is compared with: `op == "flip"`, `op in ("flip", "invert")`."""
    match facts.parent(name):
        case (
            ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[ast.Constant(value=str(text)) as other])
            | ast.Compare(left=ast.Constant(value=str(text)) as other, ops=[ast.Eq() | ast.NotEq()], comparators=[left])
        ) if left is name:
            return {other: text}
        case ast.Compare(
            left=left,
            ops=[ast.In() | ast.NotIn()],
            comparators=[ast.List(elts=of) | ast.Tuple(elts=of) | ast.Set(elts=of)],
        ) if left is name:
            found: dict[ast.expr, str] = {
                e: e.value for e in of if isinstance(e, ast.Constant) and isinstance(e.value, str)
            }
            return found if len(found) == len(of) else None
    return None
