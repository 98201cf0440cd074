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
from graphmend.transforms.code.qualified_names import called, constant, qualified
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.operations import names as known
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
    if locks and (used := _used_otherwise(facts, context)) is not None:
        return refuse(NAME, f"`{used}` is more than taken")
    calls = [n for s in body for n in nodes_in(s) if isinstance(n, ast.Call)]
    if not locks and (asking := next((c for c in calls if not _only_computes(facts, c)), None)) is not None:
        return refuse(NAME, f"`{ast.unparse(asking)}` may ask what is done about errors")
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


def _used_otherwise(facts: FunctionFacts, lock: ast.expr) -> str | None:
    """Where the file does something else with a lock, or one of its name, than to take it in a `with`."""
    name = lock.attr if isinstance(lock, ast.Attribute) else lock.id if isinstance(lock, ast.Name) else ""
    tree = facts.source.tree
    taken = {i.context_expr for n in nodes_in(tree) if isinstance(n, ast.With) for i in n.items} if tree else set()
    for node in nodes_in(tree) if tree is not None else ():
        said = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None
        is_stored = isinstance(getattr(node, "ctx", None), ast.Store)
        if said == name and isinstance(node, ast.expr) and node not in taken and not is_stored:
            return ast.unparse(node)
    return None


def _only_computes(facts: FunctionFacts, call: ast.Call) -> bool:
    name = qualified(facts, call.func) or ""
    folder, _, last = name.rpartition(".")
    asks = last in ("geterr", "seterr", "geterrcall", "seterrcall", "errstate")
    return not asks and (name.startswith(("numpy.", "math.", "builtins.")) or folder in known.FUNCTIONAL)


def _only_warns(errors: ast.Call) -> bool:
    """Is nothing raised or called for what is asked of floats?"""
    return not errors.args and all(constant(k.value) in ("ignore", "warn") for k in errors.keywords)
