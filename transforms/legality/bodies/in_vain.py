"""Which calls `graphmend.runtime.select` may make in vain: those that draw, which it takes back, and those of modules
of which nothing in reach says that they leave something behind.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import NONE, UNKNOWN, Const, Container, Scalar, Static, Tensor, Value, options
from graphmend.analysis.program.entities import Function, Instance
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import stores
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.liveness import parameters, reads, writes
from graphmend.transforms.code.qualified_names import qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.bodies.arguments import UNSET, known_arguments
from graphmend.transforms.legality.bodies.layers import Does, Effect
from graphmend.transforms.legality.bodies.module_effects import of_function, of_module
from graphmend.transforms.legality.operations import flags
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.own_functions import is_still_named
from graphmend.transforms.legality.randomness.draws import is_draw
from graphmend.transforms.legality.rows.modules import is_only_one
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_DRAWN = Difference(
    "random",
    "by a backend that makes code of its own (inductor), random numbers are drawn for the side not taken, too",
)


@dataclass
class InVain:
    """Calls that are made for the side not taken, too."""

    calls: set[ast.expr] = field(default_factory=set)
    differences: list[Difference] = field(default_factory=list)
    draws: bool = False
    """Does one draw from torch's default generators?"""
    moving: list[ast.expr] = field(default_factory=list)
    """The modules whose running statistics move, or may."""
    modules: bool = False
    """Is one that of a module?"""
    unless: list[str] = field(default_factory=list)
    """What has to be None: names of arguments, such as that of a cache, of which what they hold would be changed, and
    tests under which more is called than is known.
    """


@answers("effects")
def in_vain(facts: FunctionFacts, *expressions: ast.expr) -> InVain:
    """The calls in code that do no more than draw, as far as the code in reach tells; the others are not in it."""
    found, tests = InVain(), set[_Test]()
    for node in (n for e in expressions for n in nodes_in(e) if isinstance(n, ast.Call)):
        does, unless = _does(facts, node), list[str]()
        if Effect.STAYS in does.effect:
            does, unless = _where_none(facts, node)
        test = _test_around(facts, node) if Effect.STAYS in does.effect else None
        if test is not None and (test.text, not test.holds) not in tests:
            tests.add(test)
            does, unless = Does(Effect.NOTHING), [f"{'' if test.holds else 'not '}({test.text}) or None"]
        if Effect.STAYS in does.effect:
            continue
        found.unless += [one for one in unless if one not in found.unless]
        found.calls.add(node)
        found.draws |= bool(does.effect & (Effect.DRAWS | Effect.UNKNOWN))
        found.moving += [node.func] if does.effect & (Effect.MOVES | Effect.UNKNOWN) else []
        found.modules |= not _is_function(facts, node)
        if Effect.SAYS in does.effect:
            says = f"what `{shortened(node)}` prints, logs or warns of appears for the side not taken, too"
            found.differences.append(Difference("output", says))
        if Effect.UNKNOWN in does.effect:
            says = f"what {does.part or 'code out of reach'} does besides computing"
            says = f"{says}, `{shortened(node)}` does for the side not taken, too"
            found.differences.append(Difference("state", says))
    if found.draws:
        found.differences.append(_DRAWN)
    return found


def _where_none(facts: FunctionFacts, node: ast.Call) -> tuple[Does, list[str]]:
    """What a call does where some of its arguments are None, and these: as few as will do."""
    given = [*node.args, *(k.value for k in node.keywords)]
    names = list(dict.fromkeys(n.id for n in given if isinstance(n, ast.Name) and _may_be_none(facts, n)))
    flags = {n.id for n in given if isinstance(n, ast.Name) and _is_flag(facts.value(n))}
    unset: dict[str, object] = {name: UNSET if name in flags else None for name in names}
    does = _does(facts, node, unset)
    for name in [*names] if Effect.STAYS not in does.effect else []:
        fewer = {n: value for n, value in unset.items() if n != name}
        if Effect.STAYS not in (found := _does(facts, node, fewer)).effect:
            does, unset = found, fewer
    return does, [f"{name} or None" if name in flags else name for name in unset]


class _Test(NamedTuple):
    """A test inside of the branch, and what it comes to where a call runs."""

    text: str
    holds: bool


def _test_around(facts: FunctionFacts, node: ast.Call) -> _Test | None:
    """A test inside of the branch, known while tracing, that keeps a call from running."""
    child: ast.AST = node
    for above in facts.ancestors(node):
        if above is facts.statement:
            return None
        if isinstance(above, ast.If) and child is not above.test and _is_known(facts, above.test):
            return _Test(ast.unparse(above.test), child in above.body)
        child = above
    return None


def _is_known(facts: FunctionFacts, test: ast.expr) -> bool:
    """Is a test made of names and attributes that the branch does not bind, and that hold no tensors?"""
    parts = [n for n in nodes_in(test) if isinstance(n, ast.expr)]
    plain = all(isinstance(n, (ast.Name, ast.Attribute, ast.BoolOp, ast.UnaryOp, ast.Constant)) for n in parts)
    values = (v for n in parts if isinstance(n, (ast.Name, ast.Attribute)) for v in options(facts.value(n)))
    plain = plain and not any(isinstance(v, (Tensor, Scalar)) for v in values)
    return plain and not reads(test) & writes(facts.statement)


def _may_be_none(facts: FunctionFacts, name: ast.Name) -> bool:
    """May a name be None in front of the branch, or a flag that is not set, and is it not bound in it?"""
    value = facts.value(name)
    held = [*options(value)]
    possible = not held or UNKNOWN in held or any(isinstance(v, Const) and v.value is None for v in held)
    return (possible or _is_flag(value)) and name.id not in writes(facts.statement)


def _is_flag(value: Value) -> bool:
    """Is it False, True or None, whose truth is all that is asked?"""
    return all(isinstance(v, Static) and (v.type == "bool" or v is NONE) for v in options(value))


def _does(facts: FunctionFacts, node: ast.Call, unset: Mapping[str, object] | None = None) -> Does:
    """What a call does where some names are None; `STAYS` too where it is not looked at here."""
    other = Does(Effect.STAYS)
    if _is_function(facts, node):
        return Does(Effect.DRAWS) if _draws_anew(facts, node) else other
    value, tree = facts.value(node.func), facts.source.tree
    known_before = facts.before(facts.statement).items()
    names = {n: v.value for n, v in known_before if isinstance(v, Const) and stores(facts, n) < 2}
    given = {*parameters(facts.function)}  # which of them are None is asked while tracing: callers may be out of sight
    plain = {n: v for n, v in names.items() if (v is None and n not in given) or isinstance(v, bool)}
    arguments = known_arguments(node, {**plain, **(unset or {})})
    if isinstance(value, Function):
        named = is_still_named(facts, node.func) and is_only_one(value.info.name, tree)
        if not named or not (value.bound is None or isinstance(value.bound, Instance)):
            return other
        owner = value.bound.info if value.bound is not None and not value.info.is_static else None
        does = of_function(value.info, owner, arguments)
        return does if does.effect <= Effect.DRAWS else other
    every = [*options(value)]
    if every and all(isinstance(v, (ExternalInstance, Instance, Container)) for v in every):
        modules = all(not isinstance(v, Container) or v.kind == "modules" for v in every)
        torchs = all(not isinstance(v, ExternalInstance) or v.cls.startswith("torch.nn.") for v in every)
        return of_module(value, tree, arguments) if modules and torchs else other
    return other


def _is_function(facts: FunctionFacts, node: ast.Call) -> bool:
    return (qualified(facts, node.func) or "").rpartition(".")[0] in known.FUNCTIONAL


def _draws_anew(facts: FunctionFacts, node: ast.Call) -> bool:
    """Does a function of torch draw from a default generator, and give a new tensor?"""
    last = (qualified(facts, node.func) or "").rpartition(".")[2]
    told = {k.arg for k in node.keywords} & {"generator", "out", "inplace", None}
    placed = any(isinstance(a, ast.Starred) for a in node.args) or len(node.args) > flags.INPLACE.get(last, 99)
    return is_draw(facts, node) and last in known.RANDOM and not told and not placed
