"""Change a copy whatever the branch decides, and let the branch copy it back.

Before:
    if gate > 0.5:
        h.add_(residual)
        h[0] = 0

After:
    new_h = h.clone()
    new_h.add_(residual)
    new_h[0] = 0
    if gate > 0.5:
        h.copy_(new_h)

Legal when:
    a branch on a tensor without `else` does nothing but change one local tensor several times in place: by methods,
    operators and stores whose operands only compute, and by names that nobody reads behind it.

Differs in:
    the changes are computed where the branch is not taken, and may raise; a tensor that shares memory with the one that
    is changed is read as it was before the branch. It is written for the mends of branches, and stays where they remove
    the break.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Static, Tensor
from graphmend.transforms.code.expression_text import Code, shortened
from graphmend.transforms.code.liveness import alive, fresh, locals_of
from graphmend.transforms.code.positions import is_elif, replaceable
from graphmend.transforms.code.text_edits import replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal
from graphmend.transforms.if_conversion.tensor_predicates import depends
from graphmend.transforms.legality.gradients import lost
from graphmend.transforms.legality.memory import identified, may_share
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.speculation import speculate
from graphmend.transforms.rewrites.answers import asks, prepare, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "on_a_copy"
_RAISES = Difference("exception", "what a change in place raises appears where the branch is not taken, too")


class _OtherwiseError(Exception):
    """A statement that does more than change one tensor; the message says which."""


@asks("effects", "totality", "memory", "order", "gradients", "names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    branch = facts.statement
    if not isinstance(branch, ast.If) or branch.orelse or not depends(facts, branch.test):
        return None
    changed = [root for s in branch.body if (root := _changed(s)) is not None]
    if len(changed) < 2 or len(set(changed)) > 1:
        return None
    root = changed[0]
    if not replaceable(facts, [branch]) or is_elif(facts.source, branch):
        return refuse(NAME, "the statement shares its line with another one")
    if not isinstance(facts.before(branch).get(root), Tensor) or root not in locals_of(facts.function):
        return refuse(NAME, f"`{root}` is not known to be a tensor of this function")
    try:
        operands = [o for s in branch.body for o in _operands(facts, branch, s, root)]
    except _OtherwiseError as error:
        return refuse(NAME, str(error))
    found = speculate(facts, *operands)
    if found.blockers:
        return refuse(NAME, found.blockers[0])
    differences = [_RAISES, *found.differences, *_shared(facts, branch, root)]
    differences += lost(facts, branch, f"`{root}` has no gradient history", ast.Name(root, ast.Load()))
    code, new = Code(facts.source), fresh(facts, f"new_{root}")
    own: dict[ast.expr, str] = {
        n: new for s in branch.body for n in ast.walk(s) if isinstance(n, ast.Name) and n.id == root
    }  # every mention, stores included
    lines = [f"{new} = {root}.clone()", *(code.text(s, own) for s in branch.body if not isinstance(s, ast.Pass))]
    text = "\n".join([*lines, f"if {code.line(branch.test)}:", f"    {root}.copy_({new})"]) + "\n"
    return prepare(
        NAME,
        f"change a copy of `{root}`, and copy it back in the branch",
        facts,
        lambda: [replace_statements(facts.source, [branch], text)],
        differences,
    )


def _changed(statement: ast.stmt) -> str | None:
    """The name of what a statement changes in place."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=receiver, attr=attr))) if _in_place(attr):
            while isinstance(receiver, ast.Call) and isinstance(receiver.func, ast.Attribute):
                receiver = receiver.func.value
            return _root(receiver)
        case ast.AugAssign(target=(ast.Name() | ast.Subscript()) as target):
            return _root(target)
        case ast.Assign(targets=[ast.Subscript() as target]):
            return _root(target)
    return None


def _in_place(attr: str) -> bool:
    return attr.endswith("_") and not attr.endswith("__")


def _root(node: ast.expr) -> str | None:
    """The name that a tensor or a part of it is read from; None for a part that is no basic index or view."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _operands(facts: FunctionFacts, branch: ast.If, statement: ast.stmt, root: str) -> list[ast.expr]:
    """What a statement computes before it changes the tensor; raises where it does anything else."""
    match statement:
        case ast.Pass() | ast.Expr(value=ast.Constant()):
            return []
        case ast.Expr(value=ast.Call() as call) if _changed(statement) == root:
            return _of_calls(call)
        case ast.AugAssign(target=target, value=value) if _changed(statement) == root:
            return [value, *_indices(target)]
        case ast.Assign(targets=[ast.Subscript() as target], value=value) if _changed(statement) == root:
            return [value, *_indices(target)]
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if name != root:
            if alive(facts, name, branch) or name in facts.before(branch):
                raise _OtherwiseError(f"`{name}` is bound in the branch")
            return [value]
    raise _OtherwiseError(f"`{shortened(statement)}` does more than change `{root}` in place")


def _of_calls(call: ast.expr) -> list[ast.expr]:
    found: list[ast.expr] = []
    while isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        if not _in_place(call.func.attr) or call.func.attr.rstrip("_") not in _COMPUTING:
            raise _OtherwiseError(f"`{call.func.attr}` does more than change elements")
        found += [*call.args, *(k.value for k in call.keywords)]
        call = call.func.value
    return [*found, *_indices(call)]


#: methods that change nothing but elements, and draw no random numbers
_COMPUTING = known.ELEMENTWISE | known.ARITHMETIC | {
    "masked_fill", "lerp", "addcmul", "addcdiv", "copy", "zero", "fill", "index_fill", "index_add", "index_copy",
    "scatter", "scatter_add", "masked_scatter", "clamp", "clamp_min", "clamp_max",
}  # fmt: skip


def _indices(target: ast.expr) -> list[ast.expr]:
    return [n.slice for n in ast.walk(target) if isinstance(n, ast.Subscript)]


def _shared(facts: FunctionFacts, branch: ast.If, root: str) -> list[Difference]:
    """Other tensors that the branch reads and that may be changed along with the one that it changes."""
    if identified(facts, root):
        return [Difference("aliasing", f"which tensor `{root}` is asked for, and the branch has a copy")]
    reads = {n.id: n for s in branch.body for n in ast.walk(s) if isinstance(n, ast.Name) and n.id != root}
    own = ast.Name(root, ast.Load())
    return [
        Difference("aliasing", f"`{name}` is read as it was before the branch, where it shares memory with `{root}`")
        for name, node in reads.items()
        if isinstance(node.ctx, ast.Load)
        and not isinstance(facts.value(node), Static)
        and isinstance(facts.value(node), Tensor)
        and may_share(facts, own, node)
    ]
