"""Make a tensor of numbers taken out of tensors from those tensors.

Before:
    sums = torch.tensor([x.sum().item() for x in xs])

After:
    sums = torch.stack([x.sum() for x in xs])

Legal when:
    `torch.tensor` is given a number that is taken out of a tensor, or a list of such: a display, a comprehension, or a
    name that is bound to `[]`, appended to and given to `torch.tensor`, and nothing else. What is appended is copied
    unless it is new: a number does not follow what is written into its tensor later.

Differs in:
    the new tensor has the dtype and device of those that it is made from, where no dtype is given. A list without
    elements raises.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.transforms.code.bindings import bindings
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import parameters
from graphmend.transforms.code.qualified_names import called
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.kept_scalars import Taken, conversion, taken
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "retensored"
_DTYPE = Difference("dtype", "the new tensor has the dtype and device of the one it is copied from")
_EMPTY = Difference("exception", "a list without elements raises")


class _Listed(NamedTuple):
    """What `torch.tensor` is given."""

    calls: list[ast.Call]
    numbers: list[ast.expr]
    """What is taken out of tensors."""
    later: bool = False
    """Is the tensor made some time after the numbers were taken?"""
    single: bool = False
    """Is it one number and no list?"""
    maybe_empty: bool = False


@asks("memory", "gradients", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    node = facts.node
    if not isinstance(node, ast.Call) or conversion(facts, node) is None:
        return None
    while isinstance(above := facts.parent(node), ast.Call) and conversion(facts, above) is not None:
        node = above
    listed = _given(facts, node)
    if listed is None:
        return None
    found = {number: taken(facts, number, detach=True) for number in listed.numbers}
    known = {number: one for number, one in found.items() if one is not None}
    if len(known) < len(found):
        text = ast.unparse(next(number for number, one in found.items() if one is None))
        return refuse(NAME, f"what `{text}` takes its number out of is not known to be a tensor")
    differences = [difference for one in known.values() for difference in one.differences]
    if len({one.dtype for one in known.values()}) > 1:
        differences.append(Difference("exception", "tensors of different dtypes are promoted, or cannot be stacked"))
    differences += [_EMPTY] if listed.maybe_empty else []
    differences.append(_DTYPE)

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        edits = _edits(facts, imports, listed, known)
        return [*imports.edits(), *edits]

    return offer(NAME, "copy the tensor itself" if listed.single else "stack the tensors", facts, make, differences)


def _edits(facts: FunctionFacts, imports: Imports, listed: _Listed, known: dict[ast.expr, Taken]) -> list[TextEdit]:
    code = Code(facts.source)
    texts = {number: one.captured() if listed.later else one.text for number, one in known.items()}
    edits = [replace_expression(facts.source, number, text) for number, text in texts.items() if listed.later]
    for call in listed.calls:
        cast = f".to({code.text(call.keywords[0].value)})" if call.keywords else ""
        if listed.single:
            made = f"{texts[listed.numbers[0]]}.clone()"
        else:
            made = f"{imports.name('torch.stack')}({code.argument(call.args[0], {} if listed.later else texts)})"
        edits.append(replace_expression(facts.source, call, made + cast))
    return edits


def _given(facts: FunctionFacts, node: ast.expr) -> _Listed | None:
    """How a number comes to `torch.tensor`."""
    above = facts.parent(node)
    if (call := _made(facts, node)) is not None:
        return _Listed([call], [node], single=True)
    match above:
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            call = _made(facts, above)
            return None if call is None else _Listed([call], elements)
        case ast.ListComp(elt=element) if element is node:
            call = _made(facts, above)
            return None if call is None else _Listed([call], [node], maybe_empty=True)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[_], keywords=[]):
            return _appended(facts, name)
    return None


def _made(facts: FunctionFacts, node: ast.AST) -> ast.Call | None:
    """`torch.tensor(node)`, at most with a dtype."""
    parent = facts.parent(node)
    if not (isinstance(parent, ast.Call) and called(facts, parent, "torch.tensor") and parent.args == [node]):
        return None
    return parent if [k.arg for k in parent.keywords] in ([], ["dtype"]) else None


def _made_of_itself(facts: FunctionFacts, name: str, values: list[ast.expr | None]) -> ast.stmt | None:
    """`xs = torch.tensor(xs)` as a statement of the function itself, behind which the name is a tensor."""
    match values:
        case [ast.Call(args=[ast.Name(id=given) as inner]) as call] if given == name and _made(facts, inner) is call:
            statement = facts.parent(call)
            own = isinstance(statement, ast.Assign) and facts.body_of(statement) is facts.function.body
            return statement if own and isinstance(statement, ast.Assign) else None
    return None


def _appended(facts: FunctionFacts, name: str) -> _Listed | None:
    """A list that begins empty, gets numbers out of tensors, and becomes a tensor."""
    bound = [one for one in bindings(facts).get(name, []) if one.value is not None]
    again = _made_of_itself(facts, name, [one.value for one in bound[1:]])
    if not bound or name in parameters(facts.function) or (len(bound) > 1 and again is None):
        return None
    match bound[0].value:
        case ast.List(elts=[]) | ast.Call(func=ast.Name(id="list"), args=[], keywords=[]):
            pass
        case _:
            return None
    calls: list[ast.Call] = []
    numbers: list[ast.expr] = []
    for node in ast.walk(facts.function):
        if not (isinstance(node, ast.Name) and node.id == name) or isinstance(node.ctx, ast.Store):
            continue
        if again is not None and node.lineno > (again.end_lineno or again.lineno):
            continue  # the tensor, which has the list's name now
        if (call := _made(facts, node)) is not None:
            calls.append(call)
            continue
        above = facts.parent(node)
        match facts.parent(above) if above is not None else None:
            case ast.Call(func=ast.Attribute(attr="append") as method, args=[number], keywords=[]) as call if (
                method is above and isinstance(facts.parent(call), ast.Expr) and conversion(facts, number) is not None
            ):
                numbers.append(number)
            case _:
                return None
    return _Listed(calls, numbers, later=True, maybe_empty=True) if calls and numbers else None
