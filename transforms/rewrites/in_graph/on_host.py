"""Call a function of NumPy from inside the graph.

Before:
    def spans(shape, rate):
        count, length = shape
        mask = np.zeros((count, length), dtype=bool)
        for row in range(count):
            mask[row, np.random.choice(length, int(rate * length), replace=False)] = True
        return mask

    mask = spans((count, length), rate=0.5)

After:
    mask = on_host((count, length), torch.bool, spans, (count, length), rate=0.5)

Legal when:
    the function is of the module's top level, and gives nothing but one array that `np.zeros` or the like makes in it,
    of a size that its parameters say; it calls NumPy, Python's own functions and methods that read tensors, and changes
    nothing but what it makes. The file calls it by its name, with arguments that say the size twice as well as once.

Differs in:
    nothing in plain Python, which calls the function as before. A graph calls it each time it runs, and what it draws
    comes from the generators of NumPy and Python then; TorchDynamo draws what it traces of it from torch's (2.13).
    So `graphmend run`, which leaves alone what a compiled program answers, makes it with `--accept random` only.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Static
from graphmend.analysis.syntax.span import Span
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import locals_of, writes
from graphmend.transforms.code.qualified_names import qualified
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.names.replaced import is_lasting
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "on_host"
_MAKERS = ("numpy.zeros", "numpy.ones", "numpy.empty", "numpy.full")
_DTYPES = {
    "bool": "bool", "numpy.bool_": "bool", "numpy.float32": "float32", "numpy.float64": "float64", "float": "float64",
    "numpy.int32": "int32", "numpy.int64": "int64", "numpy.uint8": "uint8", "numpy.int8": "int8",
}  # fmt: skip
#: methods of tensors, arrays, lists and generators of NumPy that change nothing but what was made in the function
_READS = frozenset(
    "detach cpu numpy item tolist sum any all max min mean argmax argmin size dim numel long int float bool to view "
    "shape reshape copy astype nonzero unbind flatten squeeze unsqueeze append extend sort cumsum transpose".split()
)
#: of these only what the function makes itself may be the owner
_CHANGES = frozenset({"append", "extend", "sort"})
_PURE = frozenset(
    "abs all any bool divmod enumerate filter float int isinstance len list map max min next pow range reversed round "
    "set sorted str sum tuple zip dict ValueError TypeError RuntimeError IndexError AssertionError".split()
)
_DRAWS = ("numpy.random.", "random.")
_REDRAWN = "once compiled, its random numbers are those of plain Python, and no longer drawn from torch's generator"
_CALLED = ("numpy.", "math.", "random.")
#: functions of NumPy that change their first argument, and those that read and write files
_INTO = frozenset("put put_along_axis place putmask copyto fill_diagonal shuffle at".split())
#: functions that give what nothing else has
_FRESH = frozenset(
    "zeros ones empty full zeros_like ones_like empty_like full_like arange linspace array concatenate stack vstack "
    "hstack tile repeat where nonzero argsort sort cumsum unique int float len list sorted round abs".split()
)
_FILES = frozenset("save savez savez_compressed savetxt load loadtxt genfromtxt fromfile memmap open_memmap".split())


@asks("names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    function = _around(facts)
    made = _made(facts, function) if function is not None else None
    if function is None or made is None:
        return None
    result, shape, dtype = made
    size = _size(function, shape)
    if size is None:
        return refuse(NAME, f"the size of `{result}` is not known from the parameters of `{function.name}`")
    if (reason := _does_more(facts, function)) is not None:
        return refuse(NAME, reason)
    calls = list(_calls(facts, function.name))
    sizes = [_at_call(facts, function, call, size) for _, call in calls]
    if not calls or None in sizes:
        return refuse(NAME, f"not every call of `{function.name}` says the size of its result by names and numbers")

    spelled: list[tuple[Imports, str, str]] = []
    for caller, _ in calls:
        imports = Imports(facts.within(caller))
        host = imports.name("graphmend.runtime.on_host", "graphmend.runtime")
        spelled.append((imports, host, imports.name(f"torch.{dtype}")))

    def make() -> list[TextEdit]:
        edits: list[TextEdit] = []
        for (_, call), at, (imports, host, of) in zip(calls, sizes, spelled, strict=True):
            first = _first(facts, call)
            edits.append(replace_expression(facts.source, call.func, host))
            place = Span(first.line, first.column, first.line, first.column)
            edits += [TextEdit(place, f"{at}, {of}, {function.name}, "), *imports.edits()]
        return list(dict.fromkeys(edits))

    draws = any(
        (qualified(facts, n) or "").startswith(_DRAWS) for n in nodes_in(function) if isinstance(n, ast.Attribute)
    )
    differences = [Difference("random", _REDRAWN)] if draws else []
    fix = offer(NAME, "call the function from the graph (graphmend.runtime)", facts, make, differences)
    return replace(fix, redraws=draws)


def _calls(facts: FunctionFacts, name: str) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, ast.Call]]:
    """The calls of a function of the top level by its name, and the functions that they stand in."""
    tree = facts.source.tree
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef)
    inner = (
        {n for f in nodes_in(tree) if isinstance(f, definitions) for n in nodes_in(f) if n is not f} if tree else set()
    )
    for caller in nodes_in(tree) if tree is not None else ():
        if isinstance(caller, definitions) and caller not in inner and name not in locals_of(caller):
            for call in nodes_in(caller):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == name:
                    yield caller, call


def _first(facts: FunctionFacts, call: ast.Call) -> Span:
    """The first argument of a call."""
    parts: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    return min(map(facts.source.span, parts))


def _at_call(facts: FunctionFacts, function: ast.FunctionDef, call: ast.Call, size: str) -> str | None:
    """The size at a call; None where its text would be evaluated twice, or is not there."""
    names = [p.arg for p in function.args.args]
    given = dict(zip(names, call.args, strict=False)) | {k.arg or "": k.value for k in call.keywords}
    if "" in given or any(isinstance(a, ast.Starred) for a in call.args) or len(call.args) > len(names):
        return None
    head = facts.source.segment(facts.source.span(call)).partition("(")
    if head[0].strip() != function.name or (
        head[2][:1] == "(" and not isinstance((*call.args, *call.keywords)[0], ast.Tuple)
    ):
        return None
    plain = (ast.Name, ast.Attribute, ast.Constant, ast.Tuple, ast.Subscript, ast.Load)
    written = ast.parse(size, mode="eval").body
    texts: dict[str, str] = {}
    for node in ast.walk(written):
        if isinstance(node, ast.Name) and node.id != "len":
            argument = given.get(node.id, _default(function, node.id))
            if argument is None or not all(isinstance(n, plain) for n in ast.walk(argument)):
                return None
            texts[node.id] = ast.unparse(argument)
    return ast.unparse(_Written(texts).visit(written))


def _default(function: ast.FunctionDef, name: str) -> ast.expr | None:
    """The default of a parameter, where it is a constant."""
    names = [p.arg for p in function.args.args][len(function.args.args) - len(function.args.defaults) :]
    default = dict(zip(names, function.args.defaults, strict=True)).get(name)
    return default if isinstance(default, ast.Constant) else None


def _around(facts: FunctionFacts) -> ast.FunctionDef | None:
    """The function of the top level around a finding, if it has plain parameters and no decorator."""
    tree = facts.source.tree
    for node in tree.body if isinstance(tree, ast.Module) else ():
        if isinstance(node, ast.FunctionDef) and any(inner is facts.function for inner in ast.walk(node)):
            arguments = node.args
            plain = not (node.decorator_list or arguments.vararg or arguments.kwarg or arguments.posonlyargs)
            return node if plain else None
    return None


def _own(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function's body, without those of functions in it."""
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            todo += ast.iter_child_nodes(node)


def _made(facts: FunctionFacts, function: ast.FunctionDef) -> tuple[str, ast.expr, str] | None:
    """The name of the array that every `return` gives, its size and its dtype, by the one call that makes it."""
    given = [node.value for node in _own(function) if isinstance(node, ast.Return)]
    names = {value.id if isinstance(value, ast.Name) else None for value in given}
    if len(names) != 1 or (name := next(iter(names))) is None or not isinstance(function.body[-1], ast.Return):
        return None
    stores = [
        n for n in nodes_in(function) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
    ]
    for statement in function.body:
        match statement:
            case ast.Assign(targets=[target], value=ast.Call(func=maker, args=[shape, *_], keywords=keywords)) if (
                stores == [target] and qualified(facts, maker) in _MAKERS
            ):
                of = next((k.value for k in keywords if k.arg == "dtype"), None)
                said = "float" if of is None else of.id if isinstance(of, ast.Name) else qualified(facts, of)
                fills = of is not None or qualified(facts, maker) != "numpy.full"
                return (name, shape, _DTYPES[said]) if fills and said in _DTYPES else None
            case _:
                pass
    return None


def _size(function: ast.FunctionDef, shape: ast.expr) -> str | None:
    """The size in terms of the parameters; None where they do not say it alone."""
    parameters = [p.arg for p in (*function.args.args, *function.args.kwonlyargs)]
    bound = [n.id for n in nodes_in(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    unpacked: dict[str, str] = {}
    for statement in function.body:
        match statement:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Name(id=whole)) if whole in parameters:
                names = [t.id if isinstance(t, ast.Name) else "" for t in targets]
                if isinstance(shape, ast.Tuple) and [ast.unparse(e) for e in shape.elts] == names:
                    shape = ast.Name(whole, ast.Load())
                unpacked |= {n: f"{whole}[{i}]" for i, n in enumerate(names) if bound.count(n) == 1}
            case _:
                pass
    if not all(isinstance(n, _SIZES) and (not isinstance(n, ast.Call) or _is_length(n)) for n in ast.walk(shape)):
        return None
    written = _Written(unpacked).visit(ast.parse(ast.unparse(shape), mode="eval").body)
    needed = {n.id for n in ast.walk(written) if isinstance(n, ast.Name)} - {"len"}
    if not needed <= {*parameters} or not needed.isdisjoint(bound):
        return None
    return ast.unparse(written if isinstance(written, (ast.Tuple, ast.Name)) else ast.Tuple([written], ast.Load()))


#: what a size may be computed with
_SIZES = (
    ast.Name,
    ast.Tuple,
    ast.Constant,
    ast.Subscript,
    ast.Attribute,
    ast.BinOp,
    ast.operator,
    ast.Load,
    ast.Call,
)


def _is_length(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "len" and len(call.args) == 1 and not call.keywords


class _Written(ast.NodeTransformer):
    """Writes what was unpacked from a parameter as a part of it."""

    def __init__(self, unpacked: dict[str, str]) -> None:
        self._unpacked = unpacked

    def visit_Name(self, node: ast.Name) -> ast.AST:
        written = self._unpacked.get(node.id)
        return node if written is None else ast.parse(written, mode="eval").body


def _does_more(facts: FunctionFacts, function: ast.FunctionDef) -> str | None:
    """What a function does besides computing, by its text; None where that is nothing."""
    nodes = list(nodes_in(function))
    defined = {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
    made = _made_names(facts, function)
    if (read := _from_outside(facts, function)) is not None:
        return f"`{read}` may be another one when the graph runs"
    for node in nodes:
        match node:
            case ast.Global() | ast.Nonlocal() | ast.Yield() | ast.YieldFrom() | ast.Await() | ast.Delete():
                return f"`{ast.unparse(node)}` does more than compute"
            case ast.Attribute(ctx=ast.Store()):
                return f"`{ast.unparse(node)}` is stored to"
            case ast.Subscript(value=owner, ctx=ast.Store()) if _root(owner) not in made:
                return f"`{ast.unparse(owner)}` is not made in the function, which stores to it"
            case ast.AugAssign(target=ast.Name(id=changed)) if changed not in made:
                return f"`{changed}` is changed in place"
            case ast.Call(keywords=keywords) if any(k.arg in ("out", None) for k in keywords):
                return f"`{ast.unparse(node)}` may write to what it is given"
            case ast.Call(func=called, args=given) if not _computes(facts, called, given, defined, made):
                return f"`{ast.unparse(called)}` may do more than compute"
            case _:
                pass
    return None


def _from_outside(facts: FunctionFacts, function: ast.FunctionDef) -> str | None:
    """A name that a function reads of its module and that traced code may have changed, which Dynamo writes back only
    when the graph has run: neither an import, nor a builtin, nor a number or text that is bound once.
    """
    tree = facts.source.tree
    own = {n for f in nodes_in(function) if isinstance(f, (ast.FunctionDef, ast.Lambda)) for n in locals_of(f)}
    for node in nodes_in(function):
        if not isinstance(node, ast.Name) or isinstance(node.ctx, ast.Store) or node.id in own:
            continue
        plain = isinstance(facts.value(node), Static) and isinstance(tree, ast.Module) and is_lasting(node.id, tree)
        if node.id not in facts.names and not hasattr(builtins, node.id) and not plain:
            return node.id
    return None


def _made_names(facts: FunctionFacts, function: ast.FunctionDef) -> set[str]:
    """The names of what a function makes itself: arrays, lists and numbers, and parts and views of these."""
    bound: dict[str, list[ast.expr | None]] = {}
    for node in nodes_in(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                bound.setdefault(name, []).append(value)
            case ast.Assign(targets=targets):
                bound |= {name: [None] for name in writes(*targets)}
            case ast.For(target=target) | ast.comprehension(target=target) | ast.NamedExpr(target=target):
                bound |= {name: [None] for name in writes(target)}
            case ast.arg(arg=name):
                bound[name] = [None]
    others = {name for name, values in bound.items() if None in values}
    made = {*bound} - others
    while gone := {n for n in made if not all(v is not None and _is_made(facts, v, made) for v in bound[n])}:
        made -= gone
    return made


def _is_made(facts: FunctionFacts, value: ast.expr, made: set[str]) -> bool:
    """Does nothing that was there before share memory with a value, if nothing does with some names?"""
    match value:
        case ast.Constant() | ast.List() | ast.ListComp() | ast.Dict() | ast.BinOp() | ast.Compare() | ast.UnaryOp():
            return True
        case ast.Call(func=called, args=given, keywords=[]):
            name = qualified(facts, called) or ""
            last = name.rpartition(".")[2]
            if name.startswith("numpy.random.") or (name == f"numpy.{last}" and last in _FRESH):
                return True
            if isinstance(called, ast.Name) and not name.startswith("numpy."):
                return called.id in _FRESH
            is_method = isinstance(called, ast.Attribute) and _root(called.value) not in facts.names
            of = getattr(called, "value", None) if is_method else next(iter(given), None)
            return of is not None and _root(of) in made
        case ast.Call(func=called, keywords=[ast.keyword(arg="dtype")]):
            return (qualified(facts, called) or "").rpartition(".")[2] in _FRESH
        case _:
            return _root(value) in made


def _computes(facts: FunctionFacts, called: ast.expr, given: list[ast.expr], defined: set[str], made: set[str]) -> bool:
    """Is a call one of NumPy or Python that changes nothing but what was made in the function?"""
    name = qualified(facts, called) or ""
    if name.startswith(_CALLED) and not name.startswith("numpy.ndarray."):
        last = name.rpartition(".")[2]
        return last not in _FILES and (last not in _INTO or (bool(given) and _root(given[0]) in made))
    if isinstance(called, ast.Name):
        return called.id in defined or (called.id in _PURE and name in ("", f"builtins.{called.id}"))
    if not isinstance(called, ast.Attribute) or called.attr not in _READS:
        return False
    return called.attr not in _CHANGES or _root(called.value) in made


def _root(node: ast.expr) -> str | None:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
