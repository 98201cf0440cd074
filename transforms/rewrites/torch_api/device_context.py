"""Name the device in each call that makes a tensor instead of in a context around them.

Before:
    with torch.device("cpu"):
        return x + torch.ones(4)

After:
    return x + torch.ones(4, device="cpu")

Legal when:
    the context stands alone in its `with`, its device is a literal or a name that is not rebound inside, and
    every call inside is a torch function or a method of a tensor.

Differs in:
    nothing.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.liveness import reads, writes
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import called, qualified
from graphmend.transforms.code.text_edits import HOLE, replace_expression, replace_statements
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.rewrites.answers import offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "device_context"
_FACTORIES = frozenset(
    f"torch.{n}"
    for n in [
        "ones",
        "zeros",
        "empty",
        "full",
        "rand",
        "randn",
        "randint",
        "randperm",
        "arange",
        "linspace",
        "logspace",
        "eye",
        "tensor",
        "as_tensor",
        "tril_indices",
        "triu_indices",
    ]
)


def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = next((n for n in (facts.node, *facts.ancestors(facts.node)) if isinstance(n, ast.With)), None)
    if statement is None or len(statement.items) != 1:
        return None
    context = called(facts, statement.items[0].context_expr, "torch.device")
    if context is None or len(context.args) != 1 or context.keywords:
        return None
    if statement.items[0].optional_vars is not None or reads(context.args[0]) & writes(*statement.body):
        return refuse(NAME, "the device may change inside the context")
    calls = [n for s in statement.body for n in ast.walk(s) if isinstance(n, ast.Call)]
    for call in calls:
        if not (qualified(facts, call.func) or "").startswith("torch.") or (
            qualified(facts, call.func) or ""
        ).startswith("torch.nn.M"):
            return refuse(NAME, f"`{ast.unparse(call.func)}` may make tensors on the context's device")
    if not replaceable(facts, [statement]):
        return refuse(NAME, "the statement shares its line with another one")
    open_calls = [
        c
        for c in calls
        if qualified(facts, c.func) in _FACTORIES and all(k.arg not in ("device", None) for k in c.keywords)
    ]

    def make() -> list[TextEdit]:
        code = Code(facts.source)
        if not open_calls:
            return [replace_statements(facts.source, [statement], f"{HOLE.format(0)}\n", statement.body)]
        device = code.argument(context.args[0])
        edits = []
        for call in open_calls:
            text = code.text(call)
            inside = text[:-1].rstrip().rstrip(",")
            edits.append(
                replace_expression(
                    facts.source, call, f"{inside}{', ' if call.args or call.keywords else ''}device={device})"
                )
            )
        return edits

    return offer(NAME, "name the device in each call", facts, make)
