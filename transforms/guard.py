"""Leave the statement out while compiled: what it does is then lost, and the title says so.

Before:
    logger.debug("y %s", y)

After:
    if not torch.compiler.is_compiling():
        logger.debug("y %s", y)

Legal when:
    the statement is a call whose result is not used, or an assignment outside every local name, and nothing later in the function
    can read what it did.

Differs in:
    nothing happens while compiled; plain Python stays as it is.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.values import Container, Tensor, tensor_in
from graphmend.transforms.edits import HOLE, replace, replaceable
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.imports import Imports
from graphmend.transforms.names import qualified
from graphmend.transforms.offer import offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "is_compiling"
_OUTPUT = ("GM201", "GM202", "GM203", "GM204")


def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = facts.statement
    reason = _needed(facts, statement)
    if reason is not None:
        return refuse(NAME, reason) if reason else None
    if not replaceable(facts, [statement]):
        return refuse(NAME, "the statement shares its line with another one")

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        test = imports.name("torch.compiler.is_compiling")
        new = f"if not {test}():\n    {HOLE.format(0)}\n"
        return [*imports.edits(), replace(facts.source, [statement], new, [statement])]

    silences = finding.code in _OUTPUT
    title, difference = "skip it while compiled", "nothing happens here while compiled"
    if silences:
        title, difference = "skip it while compiled (silences it there)", "nothing is written while compiled"
    return offer(NAME, title, facts, make, [difference], silences=silences)


def _needed(facts: FunctionFacts, statement: ast.stmt) -> str | None:
    """Why a statement cannot be left out; "" where that would not be sensible to say, None where it can be."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return _reads_back(facts, statement.value)
    if isinstance(statement, ast.Assign) and all(
        isinstance(t, (ast.Attribute, ast.Subscript)) for t in statement.targets
    ):
        outside = all(
            (qualified(facts, _root(t)) or "").partition(".")[0] in ("os", "sys", "environ") for t in statement.targets
        )
        return None if outside else "the code that follows may read what is assigned"
    return ""


def _reads_back(facts: FunctionFacts, call: ast.Call) -> str | None:
    """A call on a tensor, module or container changes what the region goes on with."""
    name = qualified(facts, call.func) or ""
    if name.startswith(
        (
            "torch.Tensor.",
            "torch.nn.",
            "torch.optim.",
            "torch.autograd.",
            "random.",
            "numpy.random.",
            "torch.manual_seed",
        )
    ):
        return f"`{name}` changes what the region goes on with"
    if name.startswith("torch."):
        return f"`{name}` may change what the region goes on with"
    if isinstance(call.func, ast.Attribute):
        receiver = facts.value(call.func.value)
        if isinstance(receiver, (Tensor, Container)):
            return "the call changes its receiver, which the region goes on with"
    changed = [a for a in call.args if isinstance(facts.value(a), Container)]
    if changed and not name.startswith(("builtins.print", "logging.", "warnings.")):
        return "the call may change its arguments, which the region goes on with"
    if (
        any(tensor_in(facts.value(a)) for a in call.args)
        and name.startswith("numpy.")
        and not name.startswith("numpy.save")
    ):
        return "the call may change its arguments, which the region goes on with"
    return None


def _root(node: ast.expr) -> ast.expr:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node
