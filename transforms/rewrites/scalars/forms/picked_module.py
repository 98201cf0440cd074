"""A module that a computed index picks from a list: all are called, and one result is selected."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Container, Value
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import stores
from graphmend.transforms.code.expression_text import Code, shortened
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import fresh
from graphmend.transforms.code.qualified_names import is_tensor
from graphmend.transforms.code.text_edits import deletion, replace_expression
from graphmend.transforms.fix import Difference, Fix, TextEdit
from graphmend.transforms.legality.bodies.layers import Effect
from graphmend.transforms.legality.bodies.module_effects import of_module
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.rewrites.answers import offer

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

NAME = "computed_index"


def is_module_list(value: Value) -> bool:
    if isinstance(value, Container):
        return value.kind == "modules"
    return isinstance(value, ExternalInstance) and value.cls == "torch.nn.ModuleList"


def module_called(facts: FunctionFacts, picked: ast.Subscript) -> ast.Call | None:
    """The one call of a module that is picked: as it stands, or by a local name, as all of the statement behind."""
    match parent := facts.parent(picked):
        case ast.Call(func=function) if function is picked:
            return parent
        case ast.Assign(targets=[ast.Name(id=name)]) if stores(facts, name) == 1:
            reads = [n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n.id == name]
            shared = (n for n in nodes_in(facts.function) if isinstance(n, (ast.Global, ast.Nonlocal)))
            call = facts.parent(reads[-1]) if len(reads) == 2 and not any(name in n.names for n in shared) else None
            if isinstance(call, ast.Call) and call.func is reads[-1] and _follows(facts, parent, call):
                return call
    return None


def _follows(facts: FunctionFacts, statement: ast.stmt, call: ast.Call) -> bool:
    """Is a call all that the statement behind another evaluates?"""
    around = facts.parent(statement)
    blocks = [block for part in ("body", "orelse") if statement in (block := getattr(around, part, []))]
    behind = blocks[0][blocks[0].index(statement) + 1 :][:1] if blocks else []
    return bool(behind) and isinstance(behind[0], (ast.Assign, ast.Expr, ast.Return)) and behind[0].value is call


def blocker(facts: FunctionFacts, picked: ast.Subscript, call: ast.Call) -> str | None:
    """Why not all modules can be called: with what each is given, one after the other."""
    given = [*call.args, *(k.value for k in call.keywords)]
    if found := effects(facts, *given):
        return found[0]
    if not is_tensor(facts, call):
        return f"`{shortened(call)}` is not known to give a tensor"
    value, tree = facts.value(picked.value), facts.source.tree
    inside = value.items or (value.of,) if isinstance(value, Container) else ()
    for one in inside:
        if one is not None and (does := of_module(one, tree, {})).effect & Effect.STAYS:
            return f"{does.part or 'a module'} may change what the next one is given"
    return None


def picked_module(
    facts: FunctionFacts, picked: ast.Subscript, call: ast.Call, index: str, differences: Sequence[Difference]
) -> Fix:
    """`layers[i](x)`, or `layer = layers[i]` and `layer(x)` behind it."""
    code, layer = Code(facts.source), fresh(facts, "layer")

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        every = f"[{code.text(call, {call.func: layer})} for {layer} in {code.operand(picked.value)}]"
        text = f"{imports.name('torch.stack')}({every})[{index}].squeeze(0)"
        named = [deletion(facts, facts.statement)] if call.func is not picked else []
        return [*imports.edits(), *named, replace_expression(facts.source, call, text)]

    every = [
        *differences,
        Difference("evaluation", "all modules of the list are called"),
        Difference("exception", "the results of the modules must have equal shapes"),
        Difference("dtype", "if the dtypes of the results differ, the result has the promoted one"),
        Difference("state", "modules not chosen change their buffers, and what else they keep"),
        Difference("random", "modules not chosen draw their random numbers"),
        Difference("aliasing", "a module's result that is its input, or part of it, is a copy"),
        Difference("zero-gradients", "parameters of the modules not chosen get zeros for gradients instead of None"),
        leaked("a module"),
    ]
    return offer(NAME, "call all modules and select a result", facts, make, every)


def leaked(of: str) -> Difference:
    says = f"gradients may become NaN where the derivative of {of} that is not chosen is not finite"
    return Difference("gradients", says)
