"""Which binding of a name a read of it sees, so that two reads can be known to see the same value."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.transforms.code.liveness import writes

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Binding(NamedTuple):
    """What binds a name last in front of a read of it: a statement of the block around the read or of one further out,
    the head of a loop, or the function itself.
    """

    name: str
    by: ast.AST
    looped: bool = False
    """Is it what an earlier round of the loop, or the code in front of it, has left?"""

    @property
    def value(self) -> ast.expr | None:
        """What the name is bound to, where a plain assignment says so."""
        match self.by:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name == self.name and not self.looped:
                return value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if name == self.name:
                return None if self.looped else value
        return None


def binding(facts: FunctionFacts, node: ast.Name) -> Binding:
    """The binding that a read sees; changes in place are none."""
    child: ast.AST = node
    for above in facts.ancestors(node):
        if isinstance(above, SCOPES) and above is not facts.function:
            return Binding(node.id, above)
        for block in (getattr(above, part, ()) for part in ("body", "orelse", "finalbody")):
            if not (isinstance(block, list) and child in block):
                continue
            for statement in reversed(block[: block.index(child)]):
                if node.id in writes(statement) and not _augments(statement, node.id):
                    return Binding(node.id, statement)
        if isinstance(above, (*_LOOPS, ast.Try, ast.ExceptHandler)) and node.id in writes(above):
            return Binding(node.id, above, looped=True)
        if above is facts.function:
            break
        child = above
    return Binding(node.id, facts.function)


def _augments(statement: ast.stmt, name: str) -> bool:
    return (
        isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name) and statement.target.id == name
    )


def key(facts: FunctionFacts, node: ast.expr) -> str:
    """A text that two expressions share where they compute the same from the same bindings, changes in place aside."""
    return ast.dump(_Resolved(facts).visit(node))


class _Resolved(ast.NodeTransformer):
    """Names stand for what they are bound to."""

    def __init__(self, facts: FunctionFacts) -> None:
        self._facts = facts

    def visit(self, node: ast.AST) -> ast.AST:
        match node:
            case ast.Name(ctx=ast.Load()):
                bound = binding(self._facts, node)
                if bound.value is not None:
                    return self.visit(bound.value)
                return ast.Constant(f"{bound.name} of {id(bound.by)}{' before' if bound.looped else ''}")
            case ast.Constant() | ast.expr_context() | ast.operator() | ast.unaryop() | ast.cmpop():
                return node
        fields = {name: self._part(value) for name, value in ast.iter_fields(node)}
        return type(node)(**fields)

    def _part(self, value: object) -> object:
        if isinstance(value, list):
            return [self._part(v) for v in value]
        return self.visit(value) if isinstance(value, ast.AST) else value
