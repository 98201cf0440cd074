"""Numbers that Python's generator, or NumPy's, draws: torch draws them instead."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import reaching
from graphmend.transforms.code.expression_text import Code, bracketed
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.qualified_names import called, constant, number_type
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.legality.scalar_uses import ScalarUses
from graphmend.transforms.questions import answers
from graphmend.transforms.rewrites.torch_api.forms.form import Form, asked

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_OTHER = Difference("random", "the number comes from torch's generator instead of Python's")
_DRAWN_WIDE = Difference(
    "dtype", "while compiled the number is a double, which a tensor without dimensions becomes too"
)


def uniform(facts: FunctionFacts, code: Code, imports: Imports) -> Form | str | None:
    """`random.random()` is `random.uniform(0.0, 1.0)`, which Dynamo knows; in a test torch has to draw."""
    names = ("random.random", "random.uniform", "numpy.random.uniform", "numpy.random.rand", "numpy.random.random")
    inside = next(
        (c for n in nodes_in(facts.node) if isinstance(n, ast.expr) and (c := called(facts, n, *names))), None
    )
    if inside is None and isinstance(facts.node, ast.Compare):
        read = [reaching(facts, n) for n in (facts.node.left, *facts.node.comparators) if isinstance(n, ast.Name)]
        inside = next((c for value in read if value is not None and (c := called(facts, value, *names))), None)
    if inside is None:
        return None
    above = facts.parent(inside)
    tested = _is_tested(facts, inside)
    if isinstance(above, ast.Assign):
        tested = _is_compared_alone(facts, above, inside)
    if not tested and _is_branched_on(facts):
        return "the number is branched on later, which breaks the graph whoever draws it"
    limits = [constant(a) for a in inside.args]
    unit = limits in ([], [0, 1], [0.0, 1.0]) and not inside.keywords
    if tested:
        if not unit:
            return "only numbers between 0 and 1 are drawn by torch"
        return (
            inside,
            f"{imports.name('torch.rand')}(())",
            [_OTHER],
        )
    if called(facts, inside, "random.random") and isinstance(inside.func, ast.Attribute):
        return (
            inside,
            f"{code.text(inside.func.value)}.uniform(0.0, 1.0)",
            [Difference("random", "while compiled other random numbers are drawn"), _DRAWN_WIDE],
        )
    return None


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


_PARAMETERS = {"mu": "mean", "loc": "mean", "sigma": "deviation", "scale": "deviation"}
_NORMAL = ("random.gauss", "random.normalvariate", "numpy.random.normal", "numpy.random.randn")


def normal(facts: FunctionFacts, code: Code, imports: Imports) -> Form | str | None:
    """`random.gauss(mu, sigma)`, as a tensor without dimensions."""
    call = called(facts, asked(facts), *_NORMAL)
    if call is None:
        return None
    given = dict(zip(("mean", "deviation"), call.args, strict=False))
    given |= {_PARAMETERS[k.arg]: k.value for k in call.keywords if k.arg in _PARAMETERS}
    plain = called(facts, call, "numpy.random.randn") is not None
    if len(given) != len(call.args) + len(call.keywords) or (plain and given):
        return "only one number is drawn by torch"
    if effects(facts, *given.values()):
        return "what the number is drawn with does more than compute"
    uses = ScalarUses(facts, "float64")
    uses.follow(call)
    text = f"{imports.name('torch.randn')}((), dtype={imports.name('torch.float64')})"
    for what, sign, neutral in (("deviation", "*", 1.0), ("mean", "+", 0.0)):
        if what in given and constant(given[what]) != neutral:
            text = f"{text} {sign} {code.operand(given[what])}"
    return call, bracketed(text), [_OTHER, *uses.differences]


def beta(facts: FunctionFacts, code: Code, imports: Imports) -> Form | str | None:
    """`np.random.beta(a, b)`, as a tensor without dimensions."""
    call = called(facts, asked(facts), "numpy.random.beta", "random.betavariate")
    if call is None:
        return None
    if len(call.args) != 2 or call.keywords or not all(number_type(facts, a) for a in call.args):
        return "only one number is drawn by torch"
    uses = ScalarUses(facts, "float32")
    uses.follow(call)
    made = f"{imports.name('torch.distributions.Beta')}({', '.join(map(code.argument, call.args))})"
    return call, f"{made}.sample()", [_OTHER, *uses.differences]


_WHOLE = ("random.randint", "random.randrange", "numpy.random.randint")
_EMPTY = Difference("exception", "a range without numbers raises another exception")


def place(facts: FunctionFacts, code: Code, imports: Imports) -> Form | str | None:
    """`random.randint(a, b)` and its like, where what is drawn is an index or a bound, as a 0-d tensor."""
    inside = nodes_in(facts.node.slice if isinstance(facts.node, ast.Subscript) else facts.node)
    bound = (reaching(facts, n) if isinstance(n, ast.Name) else n for n in inside if isinstance(n, ast.expr))
    call = next((c for value in bound if value is not None and (c := called(facts, value, *_WHOLE))), None)
    if call is None:
        return None
    large = any(isinstance(n := constant(a), int) and abs(n) >= 2**62 for a in call.args)
    if large or not 1 <= len(call.args) <= 2 or call.keywords or any(number_type(facts, a) != "int" for a in call.args):
        return "only one number of a range is drawn by torch"
    uses = ScalarUses(facts, "int64", rewrites=True)
    uses.follow(call)
    if uses.also or uses.counterparts:
        return "the number stays one of Python's"
    first, *more = call.args
    last = more[0] if more else first
    end = code.argument(last)
    if called(facts, call, "random.randint"):  # its end is one of them
        known = constant(last)
        end = str(known + 1) if isinstance(known, int) else f"{code.operand(last)} + 1"
    begin = f"{code.argument(first)}, " if more else ""
    return call, f"{imports.name('torch.randint')}({begin}{end}, ())", [_OTHER, _EMPTY, *uses.differences]


_NEGATIVE = Difference("exception", "a number below zero raises")
_AS_TENSOR = ("torch.from_numpy", "torch.tensor", "torch.as_tensor", "torch.LongTensor")


def permutation(facts: FunctionFacts, code: Code, imports: Imports) -> Form | str | None:
    """`np.random.permutation(n)`, by the order of drawn numbers: Inductor 2.13 fails at `x[torch.randperm(n)]`."""
    call = called(facts, asked(facts), "numpy.random.permutation")
    if call is None:
        return None
    if len(call.args) != 1 or call.keywords or number_type(facts, call.args[0]) != "int":
        return "only the places from 0 to a number are drawn by torch"
    text = f"{imports.name('torch.rand')}({code.argument(call.args[0])}).argsort()"
    parent, differs = facts.parent(call), [_OTHER, _NEGATIVE]
    if isinstance(parent, ast.Call) and called(facts, parent, *_AS_TENSOR) and parent.args == [call]:
        return (parent, text, differs) if not parent.keywords else (call, text, differs)
    return call, f"{text}.numpy()", differs


@answers("order")
def _is_branched_on(facts: FunctionFacts) -> bool:
    """Whether a test in the function reads a name that the finding's statement assigns."""
    targets = facts.statement.targets if isinstance(facts.statement, ast.Assign) else []
    names = {n.id for target in targets for n in nodes_in(target) if isinstance(n, ast.Name)}
    tests = [n.test for n in nodes_in(facts.function) if isinstance(n, (ast.If, ast.IfExp, ast.While, ast.Assert))]
    return any(isinstance(n, ast.Name) and n.id in names for test in tests for n in nodes_in(test))


def sample(facts: FunctionFacts, code: Code, imports: Imports) -> Form | str | None:
    """One element of a list of numbers by `random.choice(xs)` or `random.sample(xs, 1)[0]`."""
    call = asked(facts)
    node: ast.expr | None = called(facts, call, "random.choice", "random.sample", "random.choices")
    if node is None or not isinstance(node, ast.Call):
        return None
    values = node.args[0]
    whole: ast.expr = node
    weights: ast.expr | None = None
    if not called(facts, node, "random.choice"):
        parent = facts.parent(node)
        several = called(facts, node, "random.choices")
        options = {k.arg: k.value for k in node.keywords}
        weights = options.pop("weights", None) if several else None
        if options or (several and len(node.args) != 1):
            return "only one element that is drawn has another form"
        if (
            (not several and (len(node.args) != 2 or constant(node.args[1]) != 1))
            or not isinstance(parent, ast.Subscript)
            or constant(parent.slice) != 0
        ):
            return "only one element that is drawn has another form"
        whole = parent
    if not isinstance(values, (ast.List, ast.Tuple)) or not all(
        isinstance(constant(e), (int, float)) for e in values.elts
    ):
        return "what is drawn from is no list of numbers"
    assert isinstance(node.func, ast.Attribute)
    uses = ScalarUses(facts, "int64")
    uses.follow(whole)
    tensor, drawn = imports.name("torch.tensor"), imports.name("torch.randint")
    place = f"{drawn}({len(values.elts)}, (1,))"
    if weights is not None:
        given = [constant(e) for e in weights.elts] if isinstance(weights, (ast.List, ast.Tuple)) else []
        if len(given) != len(values.elts) or not all(isinstance(w, (int, float)) and w > 0 for w in given):
            return "the weights are no list of as many positive numbers"
        as_double = f"{tensor}({code.argument(weights)}, dtype={imports.name('torch.float64')})"
        place = f"{imports.name('torch.multinomial')}({as_double}, 1)"
    text = f"{tensor}({code.argument(values)})[{place}].squeeze(0)"
    return whole, text, [_OTHER, *uses.differences]
