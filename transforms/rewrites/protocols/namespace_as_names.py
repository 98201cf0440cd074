"""Keep the members of a `types.SimpleNamespace` under names of their own.

Before:
    options = types.SimpleNamespace(scale=x.size(-1) ** -0.5, cap=5.0)
    return torch.tanh(x * options.scale) * options.cap

After:
    options_scale, options_cap = x.size(-1) ** -0.5, 5.0
    return torch.tanh(x * options_scale) * options_cap

Legal when:
    the namespace is bound to a local name, once, is given its members by their names, and is used for these members
    alone, where it is surely bound: it is handed to nobody, and no function inside the function reads it.

Differs in:
    nothing.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bindings
from graphmend.transforms.code.expression_text import Code, shortened
from graphmend.transforms.code.liveness import fresh, parameters, surely_bound
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import called
from graphmend.transforms.code.text_edits import replace_expression, replace_statements
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "namespace_as_names"
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@asks("names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    match facts.statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(args=[]) as call) as statement if called(
            facts, call, "types.SimpleNamespace"
        ):
            pass
        case _:
            return None
    members = [k.arg for k in call.keywords if k.arg is not None]
    if not members or len(members) < len(call.keywords) or len(set(members)) < len(members):
        return refuse(NAME, "what the namespace holds is not written out")
    if any(member.startswith("__") for member in members):
        return refuse(NAME, "a member has another name inside of a class")
    if len(bindings(facts).get(name, [])) != 1 or name in parameters(facts.function):
        return refuse(NAME, f"`{name}` is bound anew")
    if not replaceable(facts, [statement]):
        return refuse(NAME, "the statement shares its line with another one")
    uses: list[ast.Attribute] = []
    for node in nodes_in(facts.function):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            return refuse(NAME, f"`{name}` is no local name")
        if not isinstance(node, ast.Name) or node.id != name or node is statement.targets[0]:
            continue
        use = facts.parent(node)
        if not isinstance(use, ast.Attribute) or use.attr not in members or isinstance(use.ctx, ast.Del):
            return refuse(NAME, f"`{shortened(use or node)}` uses all of it")
        if any(isinstance(a, _INNER) and a is not facts.function for a in facts.ancestors(node)):
            return refuse(NAME, f"a function inside reads `{name}`")
        if any(isinstance(a, ast.JoinedStr) for a in facts.ancestors(node)):
            return refuse(NAME, f"`{name}` is written into a text")  # before Python 3.12 its place is not known
        if name not in surely_bound(facts, use):
            return refuse(NAME, f"`{name}` may not be bound where it is read")
        uses.append(use)
    names: dict[str, str] = {}
    for member in members:
        names[member] = fresh(facts, f"{name}_{member}", names.values())
    code = Code(facts.source)
    values = ", ".join(code.argument(k.value) for k in call.keywords)

    def make() -> list[TextEdit]:
        bound = replace_statements(facts.source, [statement], f"{', '.join(names.values())} = {values}\n")
        return [bound, *(replace_expression(facts.source, use, names[use.attr]) for use in uses)]

    return offer(NAME, "keep its members under names of their own", facts, make)
