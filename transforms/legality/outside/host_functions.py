"""Functions of NumPy and plain Python that change nothing but what they make, and give one array of known size."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis import torch_facts
from graphmend.analysis.lattice.values import Static
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.analysis.torch_facts.measured_numpy import hands_out_number
from graphmend.transforms.code.liveness import locals_of, writes
from graphmend.transforms.code.qualified_names import qualified
from graphmend.transforms.legality.names.replaced import is_lasting

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

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
_CALLED = ("numpy.", "math.", "random.")
#: functions of NumPy that change their first argument, and those that read and write files
_INTO = frozenset("put put_along_axis place putmask copyto fill_diagonal shuffle at".split())
#: functions that give what nothing else has
_FRESH = frozenset(
    "zeros ones empty full zeros_like ones_like empty_like full_like arange linspace array concatenate stack vstack "
    "hstack tile repeat where nonzero argsort sort cumsum unique int float len list sorted round abs".split()
)
_FILES = frozenset("save savez savez_compressed savetxt load loadtxt genfromtxt fromfile memmap open_memmap".split())


def function_around(facts: FunctionFacts) -> ast.FunctionDef | None:
    """The function of the top level around a finding, if it has plain parameters and no decorator."""
    tree = facts.source.tree
    for node in tree.body if isinstance(tree, ast.Module) else ():
        if isinstance(node, ast.FunctionDef) and any(inner is facts.function for inner in ast.walk(node)):
            arguments = node.args
            plain = not (node.decorator_list or arguments.vararg or arguments.kwarg or arguments.posonlyargs)
            return node if plain else None
    return None


def traced_draws(facts: FunctionFacts, function: ast.FunctionDef) -> list[ast.expr]:
    """What a function calls to draw random numbers, as far as TorchDynamo traces it.

    It draws what it traces of NumPy's functions from torch's generator (torch 2.13, `use_numpy_random_stream` is off),
    and breaks the graph at the others.
    """
    torch = torch_facts.load(facts.torch_version)
    calls = {n.func: n for n in nodes_in(function) if isinstance(n, ast.Call)}
    found: list[ast.expr] = []
    for node in nodes_in(function):
        if not isinstance(node, (ast.Attribute, ast.Name)):
            continue
        name, call = qualified(facts, node) or "", calls.get(node)
        if not name.startswith(_DRAWS):
            continue
        keywords = {k.arg or "" for k in call.keywords} if call is not None else set()
        breaks = torch.refusal(name) is not None
        if call is None or not (breaks or hands_out_number(name, len(call.args), keywords)):
            found.append(node)
    return found


def _own(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function's body, without those of functions in it."""
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            todo += ast.iter_child_nodes(node)


class Array(NamedTuple):
    """An array that a function makes and gives: its name there, its size, and the name of its dtype in torch."""

    name: str
    size: ast.expr
    dtype: str


def array_made(facts: FunctionFacts, function: ast.FunctionDef) -> Array | None:
    """The array that every `return` gives, by the one call that makes it."""
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
                return Array(name, shape, _DTYPES[said]) if fills and said in _DTYPES else None
            case _:
                pass
    return None


def size_of(function: ast.FunctionDef, shape: ast.expr) -> str | None:
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
    if not is_size(shape):
        return None
    written = Written(unpacked).visit(ast.parse(ast.unparse(shape), mode="eval").body)
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


def is_size(node: ast.expr) -> bool:
    """Is a size computed with what may be computed twice?"""
    return all(isinstance(n, _SIZES) and (not isinstance(n, ast.Call) or _is_length(n)) for n in ast.walk(node))


def _is_length(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "len" and len(call.args) == 1 and not call.keywords


class Written(ast.NodeTransformer):
    """Writes an expression for a name."""

    def __init__(self, unpacked: dict[str, str]) -> None:
        self._unpacked = unpacked

    def visit_Name(self, node: ast.Name) -> ast.AST:
        written = self._unpacked.get(node.id)
        return node if written is None else ast.parse(written, mode="eval").body


def does_more(facts: FunctionFacts, function: ast.FunctionDef, outside: Collection[str] = ()) -> str | None:
    """What a function does besides computing, by its text; None where that is nothing. What some names hold is not
    its own, whatever they are bound to.
    """
    nodes = list(nodes_in(function))
    defined = {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
    made = _made_names(facts, function, outside)
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


def _made_names(facts: FunctionFacts, function: ast.FunctionDef, outside: Collection[str]) -> set[str]:
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
    others = {name for name, values in bound.items() if None in values}.union(outside)
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
