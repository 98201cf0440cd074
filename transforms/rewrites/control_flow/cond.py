"""Choose between two functions inside the graph with `torch.cond`: a pattern to follow, never applied by itself.

Before:
    if h.abs().mean() > 0.3:
        h = self.large(h)
    else:
        h = self.small(h)

After:
    def taken(h):
        h = self.large(h)
        return h.clone()

    def otherwise(h):
        h = self.small(h)
        return h.clone()

    h = torch.cond(h.abs().mean() > 0.3, taken, otherwise, (h,))

Legal when:
    the sides only bind names, and one of them calls code of which nothing is known, so that computing both sides is
    no choice. Whether both sides give tensors of one dtype and layout, and leave everything else alone, is for the
    reader to see.

Differs in:
    an illegal side (a side effect, a tensor changed in place, another dtype or stride) is an error, in plain Python
    too, where each call costs milliseconds (torch 2.13).
"""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import alive, fresh, reads, writes
from graphmend.transforms.code.positions import is_elif, replaceable
from graphmend.transforms.code.qualified_names import qualified
from graphmend.transforms.code.text_edits import HOLE, replace_statements
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.branch_statement import branch
from graphmend.transforms.if_conversion.tensor_predicates import NotATensorError, Predicates
from graphmend.transforms.if_conversion.value_tests import split
from graphmend.transforms.questions import answers
from graphmend.transforms.rewrites.answers import asks, show

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "cond"
_REASON = (
    "a side with a side effect, a tensor changed in place, or another dtype or layout is an error under torch.cond, "
    "in plain Python too"
)


@asks("effects", "totality", "memory", "order", "numbers", "gradients", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = branch(facts)
    if statement is None or is_elif(facts.source, statement) or not replaceable(facts, [statement]):
        return None
    static, tests = split(facts, statement.test)
    sides = (statement.body, statement.orelse)
    if static or not tests or not all(_binds(s) for side in sides for s in side) or not _calls_unknown(facts, sides):
        return None
    imports = Imports(facts)
    predicates = Predicates(facts, imports)
    try:
        test = predicates.all_of(tests)
    except NotATensorError:
        return None
    before = facts.before(statement)
    bound = list(dict.fromkeys(n for side in sides for s in side for n in sorted(writes(s))))
    results = [n for n in bound if alive(facts, n, statement)]
    read = reads(*statement.body, *statement.orelse) | {*results}
    operands = [n for n in sorted(read) if isinstance(before.get(n), Tensor)]
    if not results or not all(n in before or _bound_by_both(n, sides) for n in results):
        return None
    text = _text(facts, sides, test, results, operands, imports.name("torch.cond"))

    def make() -> list[TextEdit]:
        return [
            *imports.edits(),
            replace_statements(facts.source, [statement], text, *(side for side in sides if side)),
        ]

    return show(NAME, "choose inside the graph with torch.cond", facts, make, _REASON)


def _binds(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and all(isinstance(t, ast.Name) for t in statement.targets)


@answers("effects")
def _calls_unknown(facts: FunctionFacts, sides: tuple[list[ast.stmt], list[ast.stmt]]) -> bool:
    """Does a side call anything but functions of torch and Python?"""
    calls = [n for side in sides for s in side for n in nodes_in(s) if isinstance(n, ast.Call)]
    return not all(_known(qualified(facts, c.func) or "") for c in calls)


def _known(name: str) -> bool:
    folder, _, last = name.rpartition(".")
    return name.startswith(("torch.", "math.")) or (folder == "builtins" and hasattr(builtins, last))


def _bound_by_both(name: str, sides: tuple[list[ast.stmt], list[ast.stmt]]) -> bool:
    return all(any(name in writes(s) for s in side) for side in sides)


def _text(
    facts: FunctionFacts,
    sides: tuple[list[ast.stmt], list[ast.stmt]],
    test: str,
    results: list[str],
    operands: list[str],
    cond: str,
) -> str:
    lines: list[str] = []
    names = [fresh(facts, "taken"), fresh(facts, "otherwise")]
    given = ", ".join(f"{r}.clone()" for r in results)  # an operand that is handed on would be an alias
    hole = 0
    for name, side in zip(names, sides, strict=True):
        lines += [f"def {name}({', '.join(operands)}):"]
        if side:
            lines.append(f"    {HOLE.format(hole)}")
            hole += 1
        lines.append(f"    return {given}")
    comma = "," if len(operands) == 1 else ""
    arguments = ", ".join([test, *names, f"({', '.join(operands)}{comma})"])
    lines.append(f"{', '.join(results)} = {cond}({arguments})")
    return "\n".join(lines) + "\n"
