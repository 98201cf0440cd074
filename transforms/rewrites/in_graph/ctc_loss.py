"""Call the CTC loss as one node of the graph.

Before:
    with torch.backends.cudnn.flags(enabled=False):
        loss = F.ctc_loss(log_probs, targets, lengths, sizes)

After:
    loss = ctc_loss(log_probs, targets, lengths, sizes, cudnn=False)

Legal when:
    what is called is torch's function, or a module that is a `torch.nn.CTCLoss` in a file that gives no module hooks or
    another `forward`; a context around it switches cuDNN off for nothing else.

Differs in:
    nothing: the same kernels compute it, forward and backward. On a GPU, where cuDNN is on, and under autocast the
    graph breaks as ever.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import called, constant
from graphmend.transforms.code.text_edits import replace_expression, replace_statements
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.legality.rows.modules import has_hooks
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "ctc_loss"
#: `torch.ctc_loss` has other parameters
_FUNCTIONS = ("torch.nn.functional.ctc_loss",)
_CONTEXT = "torch.backends.cudnn.flags"


@asks("effects", "names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    around = _around(facts)
    call = _call(facts, around if around is not None else facts.node)
    if call is None:
        return None
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return refuse(NAME, "its arguments are not written one by one")
    if around is not None and (not _is_off(facts, around) or getattr(around.body[-1], "value", None) is not call):
        return refuse(NAME, f"`{ast.unparse(around.items[0].context_expr)}` is about more than the loss")
    if around is not None and any(isinstance(n, ast.Call) and n is not call for n in nodes_in(call)):
        return refuse(NAME, "what the loss is given is computed in the context, too")
    if around is not None and not replaceable(facts, [around]):
        return refuse(NAME, "the statement shares its line with another one")
    options = _options(facts, call)
    if options is None:
        return None
    if options and (has_hooks(facts.source.tree) or _gives_forward(facts)):
        return refuse(NAME, "the file gives modules hooks, or another `forward`")
    if options and (does := effects(facts, call.func)):  # it is read once for each option
        return refuse(NAME, does[0])
    code, imports = Code(facts.source), Imports(facts)
    name = imports.name("graphmend.runtime.ctc_loss", "graphmend.runtime")
    given = [*map(code.argument, call.args), *(f"{k.arg}={code.argument(k.value)}" for k in call.keywords), *options]
    if around is not None:
        given.append("cudnn=False")

    def make() -> list[TextEdit]:
        text = f"{name}({', '.join(given)})"
        if around is None:
            return [*imports.edits(), replace_expression(facts.source, call, text)]
        line = code.text(around.body[0], {call: text})
        return [*imports.edits(), replace_statements(facts.source, [around], f"{line}\n")]

    return offer(NAME, "call the loss as one node of the graph (graphmend.runtime)", facts, make)


def _gives_forward(facts: FunctionFacts) -> bool:
    """Does the file bind the `forward` of an object?"""
    tree = facts.source.tree
    stores = (n for n in nodes_in(tree) if isinstance(n, (ast.Attribute, ast.Constant))) if tree is not None else ()
    return any(
        n.value == "forward" if isinstance(n, ast.Constant) else n.attr == "forward" and isinstance(n.ctx, ast.Store)
        for n in stores
    )


def _around(facts: FunctionFacts) -> ast.With | None:
    """The context around the finding, or that it is about, which switches cuDNN."""
    for node in (facts.node, *facts.ancestors(facts.node)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return None
        if isinstance(node, ast.With) and any(called(facts, item.context_expr, _CONTEXT) for item in node.items):
            return node
    return None


def _is_off(facts: FunctionFacts, around: ast.With) -> bool:
    """Does a context switch cuDNN off, and nothing else, for one statement?"""
    match around:
        case ast.With(
            items=[ast.withitem(ast.Call(args=[], keywords=[ast.keyword("enabled", value)]), None)], body=[_]
        ):
            return constant(value) is False
    return False


def _call(facts: FunctionFacts, inside: ast.AST) -> ast.Call | None:
    """The one call of the loss there."""
    calls = [n for n in nodes_in(inside) if isinstance(n, ast.Call) and _options(facts, n) is not None]
    return calls[0] if len(calls) == 1 else None


def _options(facts: FunctionFacts, call: ast.Call) -> list[str] | None:
    """What a module that is called holds besides the arguments; None where it is no call of the loss."""
    if called(facts, call, *_FUNCTIONS):
        return []
    value, owner = facts.value(call.func), call.func
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    if not isinstance(value, ExternalInstance) or value.cls != "torch.nn.CTCLoss" or not isinstance(owner, ast.Name):
        return None
    text = ast.unparse(call.func)
    return [f"{name}={text}.{name}" for name in ("blank", "reduction", "zero_infinity")]
