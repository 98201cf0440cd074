"""Use a stand-in while compiled for a value that eager code has to make.

Before:
    started = time.time()
    for step in tqdm(range(10)):

After:
    started = 0.0 if torch.compiler.is_compiling() else time.time()
    for step in range(10) if torch.compiler.is_compiling() else tqdm(range(10)):

Legal when:
    the call is one of those below: a clock whose time is only written, kept or returned, a progress bar around
    something to loop over, which statements of their own move and write at most, a context that only watches or chooses
    between kernels for the same, a question whether a logger would write.

Differs in:
    the value means nothing while compiled, no progress is shown, the context is not entered there.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.program.entities import Function
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bindings, stores
from graphmend.transforms.code.expression_text import Code, shortened
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import bound_anywhere
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import called, constant, qualified
from graphmend.transforms.code.text_edits import HOLE, replace_expression, replace_statements
from graphmend.transforms.fix import Difference, DifferenceKind, Fix, Refusal, TextEdit
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "skip_value"

_CLOCKS = ("time", "perf_counter", "monotonic", "process_time", "thread_time")
_WATCHING = (
    "warnings.catch_warnings",
    "torch.autograd.profiler.emit_nvtx",
    "torch.autograd.detect_anomaly",
    "torch.autograd.set_detect_anomaly",
    "tracemalloc.start",
)
#: contexts that choose between kernels that compute the same
_CHOOSING = ("torch.backends.cudnn.flags",)


@asks("names", leaves_names=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    call = next((n for n in (facts.node, *facts.ancestors(facts.node)) if isinstance(n, ast.Call)), None)
    if isinstance(facts.node, (ast.With, ast.For)):
        inner = facts.node.items[0].context_expr if isinstance(facts.node, ast.With) else facts.node.iter
        call = inner if isinstance(inner, ast.Call) else None
    if call is None:
        return None
    name = qualified(facts, call.func)
    root = call.func
    while isinstance(root, ast.Attribute):
        root = root.value
    if name is None or (isinstance(root, ast.Name) and not bound_anywhere(facts, root.id)):
        return None
    folder, _, last = name.rpartition(".")
    parent = facts.parent(call)
    code = Code(facts.source)
    imports = Imports(facts)
    moves: list[ast.Expr] = []
    if isinstance(parent, ast.Expr):
        return None
    if folder == "time" and last.removesuffix("_ns") in _CLOCKS:
        if (other := _reaches(facts, call)) is not None:
            return refuse(NAME, f"more is made of the time in `{ast.unparse(other).splitlines()[0]}`")
        stand_in, difference = ("0" if last.endswith("_ns") else "0.0"), "the clock stands still while compiled"
    elif last in ("tqdm", "trange", "track", "progress_bar") and call.args:
        if (other := _asked_of_bar(facts, call, moves)) is not None:
            return refuse(NAME, f"`{shortened(other)}` asks the progress bar for more than to loop over")
        stand_in, difference = code.operand(call.args[0]), "no progress is shown while compiled"
        if last == "trange":
            stand_in = f"range({', '.join(code.argument(a) for a in call.args)})"
    elif last == "isEnabledFor":
        stand_in, difference = "False", "the logger does not write while compiled"
    elif isinstance(parent, ast.withitem) and name in (*_WATCHING, *_CHOOSING):
        if parent.optional_vars is not None:
            return refuse(NAME, "what the context gives is used")
        stand_in, difference = (
            f"{imports.name('contextlib.nullcontext', 'contextlib')}()",
            "the context is not entered while compiled",
        )
        if name in _CHOOSING:
            difference += ", so that other kernels may be chosen there"
    else:
        return None

    def make() -> list[TextEdit]:
        compiling = imports.name("torch.compiler.is_compiling")
        text = f"{stand_in} if {compiling}() else {code.text(call)}"
        bare = isinstance(parent, (ast.Assign, ast.For, ast.Return, ast.keyword))
        head = f"if not {compiling}():\n    {HOLE.format(0)}\n"
        left_out = [replace_statements(facts.source, [move], head, [move]) for move in moves]
        return [*imports.edits(), replace_expression(facts.source, call, text if bare else f"({text})"), *left_out]

    silences = finding.code in ("GM202", "GM203", "GM204")
    kind: DifferenceKind = "output" if silences else "state"
    return offer(NAME, "use a stand-in while compiled", facts, make, [Difference(kind, difference)], silences=silences)


def _asked_of_bar(facts: FunctionFacts, call: ast.Call, moves: list[ast.Expr]) -> ast.AST | None:
    """What asks a progress bar for more than to be looped over, and to be moved or written by statements, which are
    added to `moves`: while compiled there is none.
    """
    match parent := facts.parent(call):
        case ast.For() | ast.comprehension() | ast.Call():
            return None
        case ast.Assign(targets=[ast.Name(id=name)]) if stores(facts, name) == 1:
            pass
        case _:
            return parent
    for node in nodes_in(facts.function):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            return node
        if not (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)):
            continue
        statement = next(above for above in facts.ancestors(node) if isinstance(above, ast.stmt))
        match statement, facts.parent(node):
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=of)) as move), _ if (
                of is node and replaceable(facts, [statement]) and not _binds(move)
            ):
                moves.append(statement)
            case _, ast.For(iter=of) | ast.comprehension(iter=of) if of is node:
                pass
            case _, ast.Call(args=[of, *_]) as over if of is node and called(facts, over, *_LOOPED_OVER):
                pass
            case _:
                return statement
    return None


def _binds(move: ast.Call) -> bool:
    return any(isinstance(n, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)) for n in nodes_in(move))


#: what loops over the things of a progress bar
_LOOPED_OVER = ("builtins.enumerate", "builtins.zip", "builtins.iter")


def _reaches(facts: FunctionFacts, source: ast.AST, called: frozenset[ast.AST] = frozenset()) -> ast.AST | None:
    """The first statement that makes more of a number than to write it, hand it out, or keep it in an attribute or a
    container: that computes a tensor with it, or decides by it. What is handed to a call in sight is followed there.
    """
    names: set[str] = set()
    rest: list[ast.AST] = [source]
    while rest:
        node = rest.pop()
        statement = next(n for n in (node, *facts.ancestors(node)) if isinstance(n, ast.stmt))
        match statement:
            case ast.Expr(ast.Call(ast.Attribute(value=holder) as method)) if (
                qualified(facts, holder) is None  # of a module, it is a function
                and not (qualified(facts, method) or "").startswith("logging.Logger.")
                and _is_used(facts, holder, statement)
            ):
                return statement
            case ast.Expr(ast.Call(func=function) as call) if not isinstance(facts.value(function), Function):
                parts = [*call.args, *(k.value for k in call.keywords)]
                if all(_is_time(facts, part, source) for part in parts if node in nodes_in(part)):
                    continue
                return statement
            case ast.Return(value=ast.expr() as value):
                parts = value.elts if isinstance(value, ast.Tuple) else [value]
                if not all(_is_time(facts, part, source) for part in parts if node in nodes_in(part)):
                    return statement
                callers = [] if facts.function in called else facts.calls()
                made = (_reaches(caller, caller.node, called | {facts.function}) for caller in callers)
                if (other := next((one for one in made if one is not None), None)) is not None:
                    return other
                continue
            case ast.Assign(targets=targets) if len(targets) == 1:
                target = targets[0]
            case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
                pass
            case _:
                return statement
        for part in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
            if isinstance(part, ast.Name) and part.id not in names:
                if statement.value is None or not _is_time(facts, statement.value, source):
                    return statement
                names.add(part.id)
                rest += (
                    n
                    for n in nodes_in(facts.function)
                    if isinstance(n, ast.Name) and n.id == part.id and isinstance(n.ctx, ast.Load)
                )
            elif not isinstance(part, ast.Name) and _is_used(facts, part, statement):
                return statement
    return None


def _is_used(facts: FunctionFacts, holder: ast.expr, statement: ast.stmt) -> bool:
    """Does a function compute with what holds a number: a tensor, or what it reads again elsewhere?"""
    owner = holder.value if isinstance(holder, ast.Subscript) else holder
    if isinstance(facts.value(owner), Tensor) or isinstance(facts.value(getattr(owner, "value", owner)), Tensor):
        return True
    own = {*nodes_in(statement)}
    text = ast.unparse(owner)
    reads = (n for n in nodes_in(facts.function) if isinstance(n, (ast.Name, ast.Attribute)) and n not in own)
    return any(isinstance(n.ctx, ast.Load) and ast.unparse(n) == text for n in reads)


def _is_time(facts: FunctionFacts, node: ast.expr, source: ast.AST, seen: frozenset[str] = frozenset()) -> bool:
    """Is an expression a number that is made of times and constants alone, or text? `source` is one, and names in
    `seen` are taken to be: each of their bindings is asked about.
    """
    if node is source:
        return True
    match node:
        case ast.Constant(value=int() | float()) | ast.JoinedStr():
            return True
        case ast.Name(id=name):
            bound = bindings(facts).get(name, [])
            values = [one.value for one in bound if one.value is not None and not one.part]
            known = bool(bound) and len(values) == len(bound) == stores(facts, name)
            return name in seen or (known and all(_is_time(facts, value, source, seen | {name}) for value in values))
        case ast.BinOp(left=left, op=ast.Div() | ast.FloorDiv() | ast.Mod() | ast.Pow(), right=right):
            return bool(constant(right)) and _is_time(
                facts, left, source, seen
            )  # no time may pass while it stands still
        case ast.IfExp(body=one, orelse=other):  # a stand-in, for one
            return _is_time(facts, one, source, seen) and _is_time(facts, other, source, seen)
        case ast.BinOp(left=left, right=right):
            return _is_time(facts, left, source, seen) and _is_time(facts, right, source, seen)
        case ast.Call(func=function):
            folder, _, last = (qualified(facts, function) or "").rpartition(".")
            return folder == "time" or (folder == "builtins" and last in ("round", "int", "float"))
    return False
