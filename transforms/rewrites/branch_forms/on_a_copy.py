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

Where the branch makes the tensor that it changes (`h = h.clone()`, `h = torch.zeros_like(h)`), it is made in front, and
the branch binds the name to it.

Legal when:
    a branch on a tensor without `else` does nothing but change one local tensor several times in place: by methods,
    operators and stores whose operands only compute, and by names that nobody reads behind it. The test has no effect,
    and nothing that the branch reads shares memory with the tensor, parameters aside.

Differs in:
    the changes are computed where the branch is not taken, and may raise, and their derivatives may not be finite; a
    parameter that shares memory with the tensor is read as it was before the branch. It is written for the mends of
    branches, and stays where they remove the break.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Scalar, Static, Tensor, dtype_kind
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bindings
from graphmend.transforms.code.expression_text import Code, shortened
from graphmend.transforms.code.liveness import alive, fresh, locals_of, parameters, reads, stored, writes
from graphmend.transforms.code.positions import is_elif, replaceable
from graphmend.transforms.code.qualified_names import constant, makes_tensor, qualified
from graphmend.transforms.code.text_edits import replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal
from graphmend.transforms.if_conversion.value_tests import depends, effects_of_test
from graphmend.transforms.legality.effects import is_layer
from graphmend.transforms.legality.gradients.sides import Leak, leak, lost, recorded
from graphmend.transforms.legality.memory import may_share, shares
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.outside.identity import identified
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
    made = _made_anew(facts, branch.body[0])
    anew = made[0] if made is not None else None
    body = branch.body if anew is None else branch.body[1:]
    changed = [root for s in body if (root := _changed(s)) is not None]
    if len(changed) < (2 if anew is None else 1) or len(set(changed)) > 1 or anew not in (None, changed[0]):
        return None
    root = changed[0]
    if not replaceable(facts, [branch]) or is_elif(facts.source, branch):
        return refuse(NAME, "the statement shares its line with another one")
    before = facts.before(branch).get(root)
    if not isinstance(before, Tensor) or before.ndarray or root not in locals_of(facts.function):
        return refuse(NAME, f"`{root}` is not known to be a tensor of this function")
    if reason := _test_differs(facts, branch):
        return refuse(NAME, reason)
    if anew is None and identified(facts, root):
        return refuse(NAME, f"which tensor `{root}` is is asked, and the branch has a copy")
    try:
        operands = [o for s in body for o in _operands(facts, branch, s, root)]
        shared = _shared(facts, branch, operands, root) if anew is None else []
        operands += [made[1]] if made is not None else []
    except _OtherwiseError as error:
        return refuse(NAME, str(error))
    found = speculate(facts, *operands)
    if found.blockers:
        return refuse(NAME, found.blockers[0])
    differences = [_RAISES, *found.differences, *shared, *_leaks(facts, branch, before, operands)]
    if anew is None:
        differences += lost(facts, branch, f"`{root}` has no gradient history", ast.Name(root, ast.Load()))
    code, new = Code(facts.source), fresh(facts, f"new_{root}")
    own: dict[ast.expr, str] = {
        n: new for s in body for n in nodes_in(s) if isinstance(n, ast.Name) and n.id == root
    }  # every mention, stores included
    first = f"{new} = {root}.clone()" if made is None else f"{new} = {code.line(made[1])}"
    lines = [first, *(code.text(s, own) for s in body if not isinstance(s, ast.Pass))]
    back = f"{root}.copy_({new})" if anew is None else f"{root} = {new}"
    text = "\n".join([*lines, f"if {code.line(branch.test)}:", f"    {back}"]) + "\n"
    return prepare(
        NAME,
        f"change a copy of `{root}`, and copy it back in the branch",
        facts,
        lambda: [replace_statements(facts.source, [branch], text)],
        differences,
    )


def _made_anew(facts: FunctionFacts, statement: ast.stmt) -> tuple[str, ast.expr] | None:
    """The name and the value in `h = h.clone()`, `h = torch.zeros_like(h)`: a tensor that nothing else holds."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if makes_tensor(facts, value):
            return name, value
    return None


def _test_differs(facts: FunctionFacts, branch: ast.If) -> str | None:
    """Why the test of a branch cannot be evaluated behind its body."""
    if bound := writes(branch.test) & reads(*branch.body):
        return f"`{min(bound)}` is bound by the test, and read in the branch"
    return next(iter(effects_of_test(facts, branch.test)), None)


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
        case ast.AugAssign(target=target, op=op, value=value) if _changed(statement) == root:
            if type(op) not in _OPERATORS:
                raise _OtherwiseError(f"`{shortened(statement)}` binds `{root}` again")
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


#: methods that change nothing but elements, and draw no random numbers; `detach_` changes the history
_COMPUTING = (known.ELEMENTWISE - {"detach"}) | known.ARITHMETIC | {
    "masked_fill", "lerp", "addcmul", "addcdiv", "copy", "zero", "fill", "index_fill", "index_add", "index_copy",
    "scatter", "scatter_add", "masked_scatter", "clamp", "clamp_min", "clamp_max",
}  # fmt: skip
#: the operators that change a tensor in place, by the methods that do the same; `@=` binds the name again
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder", ast.Pow: "pow", ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor", ast.LShift: "bitwise_left_shift", ast.RShift: "bitwise_right_shift",
}  # fmt: skip


def _indices(target: ast.expr) -> list[ast.expr]:
    return [n.slice for n in nodes_in(target) if isinstance(n, ast.Subscript)]


def _shared(facts: FunctionFacts, branch: ast.If, operands: list[ast.expr], root: str) -> list[Difference]:
    """The parameters that the branch reads and that may be changed along with the tensor that it changes; raises where
    something else shares memory with it.
    """
    own = ast.Name(root, ast.Load())
    paths = shares(facts, own).paths
    inner = {root, *stored(branch.body)}
    found = []
    for read in dict.fromkeys(leaf for operand in operands for leaf in _leaves(facts, operand)):
        name = read.id if isinstance(read, ast.Name) else None
        if name in inner or not may_share(facts, own, read):
            continue
        unrelated = name in parameters(facts.function) and not bindings(facts).get(name or "")
        if not unrelated or any(p == name or p.startswith((f"{name}.", f"{name}[")) for p in paths):
            raise _OtherwiseError(f"`{shortened(read)}` may share memory with `{root}`")
        says = f"`{name}` is read as it was before the branch, where a caller lets it share memory with `{root}`"
        found.append(Difference("callers", says))
    return found


def _leaves(facts: FunctionFacts, node: ast.expr) -> Iterator[ast.expr]:
    """The names, attributes and layers whose memory an expression reads; raises where code that is not known does."""
    value = facts.value(node)
    if isinstance(value, Static) or (isinstance(value, Scalar) and isinstance(node, (ast.Name, ast.Attribute))):
        return
    match node:
        case ast.Name():
            yield node
            return
        case ast.Attribute(value=base) if not isinstance(facts.value(base), Tensor):
            yield node
            return
        case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            raise _OtherwiseError(f"`{shortened(node)}` has names of its own")
        case ast.Call(func=function, args=args, keywords=keywords):
            folder = (qualified(facts, function) or "").rpartition(".")[0]
            if folder == "torch.Tensor" and isinstance(function, ast.Attribute):
                yield from _leaves(facts, function.value)
            elif is_layer(facts, function):
                yield function
            elif folder not in (*known.FUNCTIONAL, "builtins", "math"):
                raise _OtherwiseError(f"`{shortened(node)}` may read `{shortened(function)}`'s own names")
            for given in (*args, *(k.value for k in keywords)):
                yield from _leaves(facts, given)
            return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield from _leaves(facts, child)


def _leaks(facts: FunctionFacts, branch: ast.If, before: Tensor, operands: list[ast.expr]) -> list[Difference]:
    """How the gradients of changes that are computed in vain may be no numbers."""
    if not recorded(facts, branch) or dtype_kind(before.dtype) in ("bool", "int"):
        return []
    levels = {leak(facts, o) for o in operands} | {_leak_of(*one) for s in branch.body for one in _operations(s)}
    if "anywhere" in levels:
        return [Difference("gradients", "gradients may become NaN where the derivative of a change is not finite")]
    if "at infinity" in levels:
        return [Difference("gradients", "gradients may become NaN where a change holds infinite or NaN values")]
    return []


def _operations(statement: ast.stmt) -> Iterator[tuple[str, list[ast.expr]]]:
    """The operations that a statement changes its tensor by, with their operands."""
    match statement:
        case ast.AugAssign(op=op, value=value):
            yield _OPERATORS[type(op)], [value]
        case ast.Expr(value=value):
            while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
                yield value.func.attr.rstrip("_"), [*value.args, *(k.value for k in value.keywords)]
                value = value.func.value


def _leak_of(operation: str, operands: list[ast.expr]) -> Leak:
    """Where a gradient of zero, sent into a change in place, may come out as NaN."""
    if operation in known.LEAKLESS | _PLACED:
        return "never"
    numbers = [constant(o) for o in operands]
    finite = all(isinstance(n, (int, float)) and n and math.isfinite(n) for n in numbers)
    if operation in ("mul", "multiply", "div", "divide", "true_divide"):
        if finite:
            return "never"
        return "at infinity" if operation in ("mul", "multiply") else "anywhere"
    return "anywhere" if operation in known.SINGULAR | _DIVIDING else "at infinity"


#: methods that put other elements in the place of some
_PLACED = {"copy", "zero", "fill", "index_fill", "index_add", "index_copy", "scatter", "scatter_add", "masked_scatter"}
_DIVIDING = {"floor_divide", "remainder", "pow", "addcdiv"}
