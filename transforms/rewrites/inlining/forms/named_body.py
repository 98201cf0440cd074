"""The names that a body gets where it stands in the place of a call."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Set
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.liveness import fresh, locals_of, parameters, stored, surely_bound, writes
from graphmend.transforms.rewrites.inlining.forms.calls import Call, NotInlinedError, body_of

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


class NamedBody(NamedTuple):
    """What a body's parameters and local names become."""

    lines: list[str]
    """What binds arguments to names, in front of the body."""
    replace: dict[ast.expr, str]
    """The texts that stand for names in the body."""


def named_body(
    call: Call, taken: list[str], changing: Set[str] = frozenset(), given: Set[str] = frozenset()
) -> NamedBody:
    """`taken` are names that other calls need, to which those of this one are added. Arguments that are names stand for
    parameters but for those that are `changing` while the body runs; names of the body that are `given` stay.
    """
    facts, definition = call.facts, call.definition
    code, body = Code(facts.source), body_of(definition)
    nodes = [n for statement in body for n in nodes_in(statement)]
    bound = stored(body)
    own = {*locals_of(facts.function), *parameters(facts.function)} - changing  # which a function cannot bind anew
    own &= surely_bound(facts, call.node)
    lines: list[str] = []
    names: dict[str, str] = {}
    for name, argument in _arguments(call):
        plain = isinstance(argument, ast.Constant) or (isinstance(argument, ast.Name) and argument.id in own)
        if plain and name not in bound:
            names[name] = code.operand(argument)
        else:
            taken.append(_unused(facts, name, taken))
            names[name] = taken[-1]
            lines.append(f"{names[name]} = {code.line(argument)}\n")
    for name in sorted(bound - names.keys() - given):
        taken.append(_unused(facts, name, taken))
        names[name] = taken[-1]
    return NamedBody(lines, {n: names[n.id] for n in nodes if isinstance(n, ast.Name) and n.id in names})


def _unused(facts: FunctionFacts, name: str, taken: list[str]) -> str:
    """A name as it is, where nothing in the function, the module or Python has it."""
    tree = facts.source.tree
    here = {n.id for n in nodes_in(facts.function) if isinstance(n, ast.Name)} | {*parameters(facts.function), *taken}
    here |= {n for s in nodes_in(facts.function) if isinstance(s, (ast.Global, ast.Nonlocal)) for n in s.names}
    outer = {*facts.names, *dir(builtins), *(writes(*tree.body) if tree is not None else ())}
    return name if name not in here | outer else fresh(facts, name, taken)


def _arguments(call: Call) -> list[tuple[str, ast.expr]]:
    """The parameters with what they are given, in the order in which that is evaluated."""
    node, arguments = call.node, call.definition.args
    by_name = {a.arg for a in (*arguments.args, *arguments.kwonlyargs)}
    starred = any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg not in by_name for k in node.keywords)
    if arguments.vararg or arguments.kwarg or starred:
        raise NotInlinedError(f"`{call.definition.name}` is given arguments otherwise")
    plain = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    given: list[tuple[str, ast.expr]] = []
    if call.function.bound is not None and isinstance(node.func, ast.Attribute):
        given.append((plain.pop(0), node.func.value))
    given += zip(plain, node.args, strict=False)
    given += [(k.arg or "", k.value) for k in node.keywords]
    defaults: dict[str, ast.expr | None] = dict(
        zip(plain[len(plain) - len(arguments.defaults) :], arguments.defaults, strict=False)
    )
    defaults |= {a.arg: d for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)}
    known = {name for name, _ in given}
    for name in (*plain, *(a.arg for a in arguments.kwonlyargs)):
        if name not in known:
            default = defaults.get(name)
            if not isinstance(default, ast.Constant):
                raise NotInlinedError(f"`{name}` of `{call.definition.name}` has a default that is made once")
            given.append((name, default))
    if len({name for name, _ in given}) != len(given) or len(node.args) > len(plain):
        raise NotInlinedError(f"`{call.definition.name}` is given arguments otherwise")
    return given
