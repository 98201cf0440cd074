"""How many places a tensor is not zero at: expressions that ask places, in any of their forms, for their number."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Literal, NamedTuple

from graphmend.analysis.lattice.external import ExternalName
from graphmend.analysis.lattice.values import Tensor
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.qualified_names import constant
from graphmend.transforms.legality.rows.masked_elements import nonzero_of
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

Asked = Literal["rows", "elements"]


class Places(NamedTuple):
    """The places of a mask, as one tensor."""

    mask: ast.expr
    form: Literal["table", "line", "flat"]
    """A row for each place, with a column for each dimension; one number for each place; or all numbers in one line."""
    column: int | None = None
    """Which dimension of the mask a line is of; None where it is the only one."""

    def there(self, facts: FunctionFacts) -> bool:
        """Does the mask have the dimension for certain? Where it does not, to ask for its places raises."""
        value = facts.value(self.mask)
        rank = value.rank if isinstance(value, Tensor) else None
        return self.column is None or (rank is not None and -rank <= self.column < rank)

    def times(self, facts: FunctionFacts, asked: Asked) -> str:
        """How many there are for each place, as text behind a count: nothing where it is one."""
        if self.form == "line" or (self.form == "table" and asked == "rows"):
            return ""
        value = facts.value(self.mask)
        rank = value.rank if isinstance(value, Tensor) else None
        if rank is None:
            return f" * {Code(facts.source).operand(self.mask)}.dim()"
        return "" if rank == 1 else f" * {rank}"


@answers("domain")
def places(facts: FunctionFacts, node: ast.AST) -> Places | None:
    """`m.nonzero()`, `torch.where(m)[0]`, `torch.nonzero(m).flatten()`, `torch.argwhere(m)[:, 0]`."""
    if (found := nonzero_of(facts, node)) is not None:
        return None if found.as_tuple else Places(found.mask, "table")
    match node:
        case ast.Subscript(value=inner, slice=index):
            found = nonzero_of(facts, inner)
            if found is None:
                return None
            if found.as_tuple:
                column = constant(index)
                return Places(found.mask, "line", column) if isinstance(column, int) else None
            match index:
                case ast.Tuple(elts=[ast.Slice(lower=None, upper=None, step=None), column]) if (
                    type(place := constant(column)) is int
                ):
                    return Places(found.mask, "line", place)
        case ast.Call(func=ast.Attribute(value=inner, attr=attr), args=args, keywords=[]):
            found, given = nonzero_of(facts, inner), [constant(a) for a in args]
            if found is None or found.as_tuple:
                return None
            if (attr, given) in (("flatten", []), ("view", [-1]), ("reshape", [-1])):
                return Places(found.mask, "flat")
            if (attr, given) in (("squeeze", [1]), ("squeeze", [-1])):
                value = facts.value(found.mask)
                return Places(found.mask, "line" if isinstance(value, Tensor) and value.rank == 1 else "table")
    return None


def asks_length(facts: FunctionFacts, node: ast.AST | None) -> bool:
    """Is it a call of the builtin `len`, and not of a function that the module calls so?"""
    value = facts.value(node.func) if isinstance(node, ast.Call) else None
    return isinstance(value, ExternalName) and value.name == "builtins.len"


def asked_for(facts: FunctionFacts, node: ast.AST | None) -> tuple[ast.expr, Asked] | None:
    """What is asked for its size by `t.shape[0]`, `t.size(0)`, `len(t)`, `t.numel()`, and for which."""
    match node:
        case ast.Subscript(value=ast.Attribute(value=of, attr="shape"), slice=ast.Constant(value=0)):
            return of, "rows"
        case ast.Call(func=ast.Attribute(value=of, attr="size"), args=[ast.Constant(value=0)], keywords=[]):
            return of, "rows"
        case ast.Call(args=[of], keywords=[]) if asks_length(facts, node):
            return of, "rows"
        case ast.Call(func=ast.Attribute(value=of, attr="numel" | "nelement"), args=[], keywords=[]):
            return of, "elements"
    return None
