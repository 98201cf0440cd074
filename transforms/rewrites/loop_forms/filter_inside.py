"""Ask inside a loop what the comprehension asks that it runs over.

Before:
    for t in [t for t in xs if t.norm() > 1]:
        out = out + t

After:
    for t in xs:
        if t.norm() > 1:
            out = out + t

Legal when:
    the loop runs over a list that only filters another one, by tests on tensors without effects, or over a name that
    holds such a list for the loop alone. The body, and what stands between, binds nothing that the filter or the list
    reads, stores to tensors alone and changes no memory that they may read; the filter calls no function of which that
    is not known. The loop is not left early, and its variable is not read behind it.

Differs in:
    a filter that raises does so when some iterations have run. It is written for the mends of branches, and stays where
    they remove the break.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code, shortened
from graphmend.transforms.code.liveness import alive, fresh, locals_of, reads, stored, writes
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import is_tensor, qualified
from graphmend.transforms.code.text_edits import HOLE, deletion, replace_statements
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.loop_ends import runs_again
from graphmend.transforms.if_conversion.value_tests import depends, effects_of_test
from graphmend.transforms.legality.effects import effects, is_layer
from graphmend.transforms.legality.memory import may_share
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.totality import may_raise
from graphmend.transforms.rewrites.answers import asks, prepare, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "filter_inside"
_LEAVES = (ast.Return, ast.Break, ast.Continue)


class _Filtered(NamedTuple):
    """A loop over a list that is filtered."""

    loop: ast.For
    comprehension: ast.ListComp | ast.GeneratorExp
    held: ast.Assign | None = None
    """What binds the list to a name that the loop alone reads."""

    @property
    def element(self) -> str | None:
        """The name in the comprehension of what the loop binds to a name; None where either is no name."""
        elt, bound = self.comprehension.elt, writes(self.generator.target)
        named = isinstance(elt, ast.Name) and isinstance(self.loop.target, ast.Name)
        return elt.id if named and isinstance(elt, ast.Name) and elt.id in bound else None

    @property
    def is_unpacked(self) -> bool:
        """Does the loop unpack tuples that have as many items as it binds names?"""
        each = self.generator.iter
        name = each.func.id if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) else ""
        given = {"zip": len(each.args), "enumerate": 2}.get(name) if isinstance(each, ast.Call) else None
        whole = isinstance(self.comprehension.elt, ast.Name) and isinstance(self.generator.target, ast.Name)
        return whole and isinstance(self.loop.target, ast.Tuple) and len(self.loop.target.elts) == given

    @property
    def generator(self) -> ast.comprehension:
        return self.comprehension.generators[0]


@asks("effects", "totality", "memory", "order", "names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    found = _filtered(facts)
    if found is None or not any(depends(facts, test) for test in found.generator.ifs):
        return None
    loop, values, tests = found.loop, found.generator.iter, found.generator.ifs
    if reason := _why_not(facts, found):
        return refuse(NAME, reason)
    if not runs_again(facts, values):
        return refuse(NAME, f"`{ast.unparse(values)}` may be used up by the loop")
    code, own = Code(facts.source), _own_names(facts, found)
    several = len(tests) > 1
    texts = [
        code.operand(t, own) if several and isinstance(t, (ast.BoolOp, ast.IfExp)) else code.line(t, own) for t in tests
    ]
    target = code.text(found.generator.target, own)
    bound = f"{code.text(loop.target)} = {code.line(found.comprehension.elt, own)}\n" if found.element is None else ""
    first, then = (f"    {bound}", "") if found.is_unpacked else ("", f"        {bound}" if bound else "")
    asks_it = f"    if {' and '.join(texts)}:\n"
    lines = f"for {target} in {code.line(values)}:\n{first}{asks_it}{then}        {HOLE.format(0)}\n"
    eager = isinstance(found.comprehension, ast.ListComp)

    def make() -> list[TextEdit]:
        away = [deletion(facts, found.held)] if found.held is not None else []
        return [*away, replace_statements(facts.source, [loop], lines, loop.body)]

    differences = may_raise(facts, *tests) if eager else []
    return prepare(NAME, "ask inside the loop what filters its list", facts, make, differences)


def _filtered(facts: FunctionFacts) -> _Filtered | None:
    """The loop that a finding's filter is about: over it, or over a name that holds it until then."""
    statement, held = facts.statement, None
    made: ast.expr
    if isinstance(statement, ast.Assign):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.ListComp() | ast.GeneratorExp() as listed):
                made, held, block = listed, statement, facts.body_of(statement)
                behind = block[block.index(statement) + 1 :]
                loop = next((s for s in behind if isinstance(s, ast.For) and _runs_over(s, name)), None)
                uses = [n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n.id == name]
                if loop is None or len(uses) != 2 or name not in locals_of(facts.function):
                    return None
            case _:
                return None
    elif isinstance(statement, ast.For) and isinstance(statement.iter, (ast.ListComp, ast.GeneratorExp)):
        loop, made = statement, statement.iter
    else:
        return None
    match made:
        case ast.ListComp(generators=[generator]) | ast.GeneratorExp(generators=[generator]) if (
            not generator.is_async and _binds_names(loop.target)
        ):
            return _Filtered(loop, made, held)
    return None


def _runs_over(loop: ast.For, name: str) -> bool:
    return isinstance(loop.iter, ast.Name) and loop.iter.id == name


def _own_names(facts: FunctionFacts, found: _Filtered) -> dict[ast.expr, str]:
    """The loop's name for the elements, and others for names of the comprehension that the function uses elsewhere."""
    inside = {*nodes_in(found.comprehension)} - {*nodes_in(found.generator.iter)}
    outside = (n for n in nodes_in(facts.function) if n not in inside)
    elsewhere = {n.id if isinstance(n, ast.Name) else n.arg for n in outside if isinstance(n, (ast.Name, ast.arg))}
    elsewhere |= {n for s in nodes_in(facts.function) if isinstance(s, (ast.Global, ast.Nonlocal)) for n in s.names}
    names = {name: fresh(facts, name) for name in writes(found.generator.target) if name in elsewhere}
    if found.element is not None:
        names[found.element] = ast.unparse(found.loop.target)
    return {n: names[n.id] for n in inside if isinstance(n, ast.Name) and n.id in names}


def _why_not(facts: FunctionFacts, found: _Filtered) -> str | None:
    """Why tests cannot be asked one by one, between the iterations of a loop."""
    loop, tests, values = found.loop, found.generator.ifs, found.generator.iter
    own = writes(found.generator.target)
    asked = tests if found.element is not None else [*tests, found.comprehension.elt]
    if any(isinstance(n, ast.Lambda) for n in nodes_in(found.comprehension)):
        return "a function in the list has names of its own"
    if loop.orelse or any(isinstance(n, _LEAVES) for s in loop.body for n in nodes_in(s)):
        return "the loop is left early"
    if not replaceable(facts, [loop, *([found.held] if found.held is not None else [])]):
        return "the statement shares its line with another one"
    bound = writes(loop.target)
    for name in sorted(bound):
        if alive(facts, name, loop):
            return f"`{name}` is read behind the loop"
        if name in reads(values, *asked) - own or (found.element is not None and name in own - {found.element}):
            return f"`{name}` is something else in the filter"
    done = [one for test in asked for one in effects_of_test(facts, test)]
    if done:
        return done[0]
    if unknown := next((n for test in asked for n in nodes_in(test) if _is_unknown(facts, n)), None):
        return f"`{shortened(unknown)}` may read what the loop changes"
    read = (reads(values, *asked) - own) | reads(values) | (bound if found.element is not None else set())
    block, between = facts.body_of(loop), list[ast.stmt]()
    if found.held is not None:
        between = block[block.index(found.held) + 1 : block.index(loop)]
    if stored([*between, *loop.body]) & read or any(writes(test) for test in asked):
        return "the loop binds what its filter reads"
    for statement in (n for s in (*between, *loop.body) for n in nodes_in(s) if isinstance(n, ast.stmt)):
        if reason := _changes(facts, statement, read):
            return reason
    return None


def _is_unknown(facts: FunctionFacts, node: ast.AST) -> bool:
    """Does a node call a function of which nothing says what it reads?"""
    if not isinstance(node, ast.Call) or is_layer(facts, node.func):
        return False
    folder = (qualified(facts, node.func) or "").rpartition(".")[0]
    return folder not in (*known.FUNCTIONAL, "builtins", "math")


def _changes(facts: FunctionFacts, statement: ast.stmt, read: set[str]) -> str | None:
    """Why a statement of the loop may change what its filter reads, or the list."""
    match statement:
        case ast.AugAssign(target=ast.Name() as target, value=value):
            if any(may_share(facts, target, ast.Name(n, ast.Load())) for n in sorted(read)):
                return f"`{ast.unparse(statement)}` may change what the filter reads"
            return next(iter(effects(facts, value)), None)
        case ast.Assign(targets=targets, value=value) if all(_binds_names(t) for t in targets):
            return next(iter(effects(facts, value)), None)
        case ast.Assign(targets=[ast.Subscript(value=ast.Name() as tensor, slice=index)], value=value) if is_tensor(
            facts, tensor
        ):
            if any(may_share(facts, tensor, ast.Name(n, ast.Load())) for n in sorted(read)):
                return f"`{shortened(statement)}` may change what the filter reads"
            return next(iter(effects(facts, index, value)), None)
        case ast.If(test=test):
            return next(iter(effects_of_test(facts, test)), None)
        case ast.Pass():
            return None
    return f"`{ast.unparse(statement).splitlines()[0]}` may change what the filter reads"


def _binds_names(target: ast.expr) -> bool:
    """Does a target bind names alone, and store nowhere?"""
    if isinstance(target, (ast.Tuple, ast.List)):
        return all(_binds_names(part) for part in target.elts)
    return isinstance(target, ast.Name)
