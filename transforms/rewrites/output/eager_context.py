"""Enter a context that graphs have no use for in plain Python alone.

Before:
    with np.errstate(divide="ignore"):
        ratio = a / b

After:
    with contextlib.nullcontext() if torch.compiler.is_compiling() else np.errstate(divide="ignore"):
        ratio = a / b

Legal when:
    the context stands alone in its `with` and binds no name: `numpy.errstate` with what is ignored or warned of, or a
    lock of `threading` that a name of the module or an attribute of the object holds, and that its body does not use.

Differs in:
    a lock is not taken while compiled: neither while TorchDynamo traces, nor when the graph runs.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.qualified_names import called, constant
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "eager_context"
_LOCKS = frozenset(f"threading.{name}" for name in "Lock RLock Semaphore BoundedSemaphore".split())


@asks("names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    match facts.statement:
        case ast.With(items=[ast.withitem(context_expr=context, optional_vars=None)], body=body):
            pass
        case _:
            return None
    value = facts.value(context)
    locks = isinstance(value, ExternalInstance) and value.cls in _LOCKS
    errors = called(facts, context, "numpy.errstate")
    if not locks and errors is None:
        return None
    if errors is not None and not _only_warns(errors):
        return refuse(NAME, f"`{ast.unparse(errors)}` may raise")
    if locks and not isinstance(context, (ast.Name, ast.Attribute)):
        return refuse(NAME, "a lock of its own is taken by nobody else")
    if locks and any(isinstance(n, ast.expr) and ast.dump(n) == ast.dump(context) for s in body for n in nodes_in(s)):
        return refuse(NAME, f"`{ast.unparse(context)}` is used while it is taken")
    says = f"`{ast.unparse(context)}` is not taken while compiled"
    differences = [Difference("state", says)] if locks else []

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        compiling, none = (
            imports.name("torch.compiler.is_compiling"),
            imports.name("contextlib.nullcontext", "contextlib"),
        )
        text = f"{none}() if {compiling}() else {Code(facts.source).operand(context)}"
        return [*imports.edits(), replace_expression(facts.source, context, text)]

    return offer(NAME, "enter the context in plain Python alone", facts, make, differences)


def _only_warns(errors: ast.Call) -> bool:
    """Is nothing raised or called for what is asked of floats?"""
    return not errors.args and all(constant(k.value) in ("ignore", "warn") for k in errors.keywords)
