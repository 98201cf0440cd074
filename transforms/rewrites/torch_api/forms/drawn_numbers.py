"""Numbers that Python's generator, or NumPy's, draws: the graph calls the function that draws them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.analysis.torch_facts import draws
from graphmend.transforms.code.bindings import display_of, reaching
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.qualified_names import called, constant, number_type, qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.legality.gradients.sides import recorded
from graphmend.transforms.legality.scalar_uses import ScalarUses
from graphmend.transforms.legality.speculation import repeatable
from graphmend.transforms.questions import answers
from graphmend.transforms.rewrites.torch_api.forms.form import Form, asked

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

#: what Dynamo traces of `random` it calls before the graph (torch 2.13)
_EARLIER = Difference("random", "what TorchDynamo draws itself (`random.uniform`, `random.randint`) is drawn first")
_AGAIN = Difference(
    "gradients", "under activation checkpointing backward takes the number that is drawn when it computes again"
)
_WIDE = Difference("dtype", "while compiled the number is a double, which a tensor without dimensions becomes too")


_CHOICES = ("random.choice", "random.choices", "random.sample")
_LARGEST = 2**62


def number(facts: FunctionFacts, code: Code, imports: Imports) -> Form | str | None:
    """`random.gauss(mu, sigma)` and its like, as a tensor without dimensions."""
    call = _draw(facts)
    if call is None:
        return None
    name = qualified(facts, call.func) or ""
    whole: ast.expr = call
    if name in _CHOICES:
        kind, whole = _chosen(facts, call, name)
        if kind is None:
            return "what is drawn is not known to be one of a list of numbers of one type"
    else:
        kind = draws.kind_drawn(name, len(call.args), [k.arg or "" for k in call.keywords])
        if kind is None or not _are_numbers(facts, call):
            return "only one number that is drawn with numbers has another form"
    if effects(facts, *call.args, *(k.value for k in call.keywords)):
        return "what the number is drawn with does more than compute"
    uses = ScalarUses(facts, f"{kind}64", rewrites=True)
    uses.follow(whole)
    if uses.also or uses.counterparts:
        return "the number stays one of Python's"
    given = [code.argument(a) for a in call.args]
    given += [f"{k.arg}={code.text(k.value)}" for k in call.keywords]
    host, dtype = imports.name("graphmend.runtime.number_on_host", "graphmend.runtime"), imports.name(f"torch.{kind}64")
    text = ", ".join([code.text(call.func), *given])
    if isinstance(whole, ast.Subscript):  # one of those that are drawn
        later = imports.name("graphmend.runtime.later", "graphmend.runtime")
        text = f"{imports.name('operator.getitem', 'operator')}, {later}({text}), {code.text(whole.slice)}"
    differences = [_EARLIER] if name.startswith("random.") else []
    differences += [_AGAIN] if recorded(facts, facts.statement) else []
    return whole, f"{host}({dtype}, {text})", [*differences, *uses.differences]


def _draw(facts: FunctionFacts) -> ast.Call | None:
    """The call that draws a number that the finding is about, or where a name in it was bound."""
    names = (*draws.NAMES, *_CHOICES)
    inside = nodes_in(facts.node.slice if isinstance(facts.node, ast.Subscript) else facts.node)
    read = [n for n in inside if isinstance(n, ast.expr)]
    bound = [reaching(facts, n) if isinstance(n, ast.Name) else n for n in read]
    calls = [found for value in bound if value is not None and (found := called(facts, value, *names))]
    if isinstance(facts.node, ast.Subscript) and not calls:
        calls = [found for found in (called(facts, facts.node.value, *names),) if found]
    return calls[0] if calls else None


def _are_numbers(facts: FunctionFacts, call: ast.Call) -> bool:
    """Are the arguments numbers that are known while tracing, and not too large for what is drawn with them?"""
    given = [*call.args, *(k.value for k in call.keywords)]
    large = any(isinstance(n := constant(a), int) and abs(n) >= _LARGEST for a in given)
    return not large and all(k.arg for k in call.keywords) and all(number_type(facts, a) for a in given)


def _chosen(facts: FunctionFacts, call: ast.Call, name: str) -> tuple[str | None, ast.expr]:
    """The type of the number that is chosen, None where it is not one of a list of numbers; the expression it is."""
    options = {k.arg: k.value for k in call.keywords}
    listed = [constant(e) for e in _elements(facts, call.args[0])] if call.args else []
    kinds = {type(e).__name__ if isinstance(e, (int, float)) and abs(e) < _LARGEST else "" for e in listed}
    whole: ast.expr = call
    if name in ("random.choices", "random.sample"):
        several = options.pop("k", call.args[-1] if len(call.args) > 1 and name == "random.sample" else None)
        above = facts.parent(call)
        if not isinstance(above, ast.Subscript) or above.value is not call or not isinstance(above.ctx, ast.Load):
            return None, call
        count, place = 1 if several is None else constant(several), constant(above.slice)
        if not isinstance(count, int) or not isinstance(place, int) or not -count <= place < count:
            return None, call
        whole = above
    weights = [constant(e) for e in _elements(facts, options.pop("weights"))] if "weights" in options else []
    weighed = all(isinstance(w, (int, float)) for w in weights)
    if options or len(call.args) > (2 if name == "random.sample" else 1) or not weighed or len(kinds) != 1:
        return None, whole
    (kind,) = kinds
    return (kind if kind in ("int", "float") else None), whole


def _elements(facts: FunctionFacts, node: ast.expr) -> list[ast.expr]:
    """The elements of a list that is written out; one that is no constant where it is not."""
    display = display_of(facts, node)
    return display.elts if isinstance(display, (ast.List, ast.Tuple)) else [node]


def uniform(facts: FunctionFacts, code: Code, imports: Imports) -> Form | str | None:
    """`random.random()` is `random.uniform(0.0, 1.0)`, which Dynamo knows, where no test asks for it."""
    inside = next(
        (c for n in nodes_in(facts.node) if isinstance(n, ast.expr) and (c := called(facts, n, "random.random"))), None
    )
    if inside is None or not isinstance(inside.func, ast.Attribute):
        return None
    above = facts.parent(inside)
    tested = _is_compared_alone(facts, above, inside) if isinstance(above, ast.Assign) else _is_tested(facts, inside)
    if tested or _is_branched_on(facts):
        return None
    drawn = Difference("random", "while compiled other random numbers are drawn")
    return inside, f"{code.text(inside.func.value)}.uniform(0.0, 1.0)", [drawn, _WIDE]


def _is_compared_alone(facts: FunctionFacts, statement: ast.Assign, value: ast.expr) -> bool:
    """Is a name that a draw is bound to read in comparisons only?"""
    match statement.targets:
        case [ast.Name(id=name)]:
            loads = [n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n.id == name]
            reads = [n for n in loads if isinstance(n.ctx, ast.Load)]
            shared = any(isinstance(n, ast.Nonlocal) and name in n.names for n in nodes_in(facts.function))
            return (
                bool(reads) and not shared and all(_is_tested(facts, n) and reaching(facts, n) is value for n in reads)
            )
    return False


def _is_tested(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is a number compared, and does the answer, or a name that is bound to it, decide which way to go, and no more?"""
    answer = facts.parent(node)
    if not isinstance(answer, ast.Compare) or any(
        isinstance(o, (ast.In, ast.NotIn, ast.Is, ast.IsNot)) for o in answer.ops
    ):
        return False
    if _decides(facts, answer):
        return True
    match facts.parent(answer):
        case ast.Assign(targets=[ast.Name(id=name)]):
            mentions = [n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n.id == name]
            return all(not isinstance(n.ctx, ast.Load) or _decides(facts, n) for n in mentions)
    return False


def _decides(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is an expression asked for its truth alone?"""
    match above := facts.parent(node):
        case ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
            return _decides(facts, above)
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) | ast.Assert(test=test):
            return test is node
    return False


def permutation(facts: FunctionFacts, code: Code, imports: Imports) -> Form | str | None:
    """`np.random.permutation(n)`, an array of n whole numbers."""
    call = called(facts, asked(facts), "numpy.random.permutation")
    if call is None:
        return None
    if len(call.args) != 1 or call.keywords or number_type(facts, call.args[0]) != "int":
        return "only the places from 0 to a number have a size that is known"
    if not repeatable(facts, call.args[0]):
        return f"`{code.text(call.args[0])}` would be evaluated twice"
    host, size = imports.name("graphmend.runtime.on_host", "graphmend.runtime"), code.argument(call.args[0])
    return call, f"{host}({size}, {imports.name('torch.int64')}, {code.text(call.func)}, {size})", []


@answers("order")
def _is_branched_on(facts: FunctionFacts) -> bool:
    """Whether a test in the function reads a name that the finding's statement assigns."""
    targets = facts.statement.targets if isinstance(facts.statement, ast.Assign) else []
    names = {n.id for target in targets for n in nodes_in(target) if isinstance(n, ast.Name)}
    tests = [n.test for n in nodes_in(facts.function) if isinstance(n, (ast.If, ast.IfExp, ast.While, ast.Assert))]
    return any(isinstance(n, ast.Name) and n.id in names for test in tests for n in nodes_in(test))
