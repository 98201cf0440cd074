"""Functions of NumPy and plain Python that change nothing but what they make, and give one array of known size."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis import torch_facts
from graphmend.analysis.syntax.traversal import nodes_in, statements
from graphmend.analysis.torch_facts.measured_numpy import hands_out_number
from graphmend.transforms.code.qualified_names import qualified

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_MAKERS = ("numpy.zeros", "numpy.ones", "numpy.empty", "numpy.full")
_DTYPES = {
    "builtins.bool": "bool", "numpy.bool_": "bool", "numpy.float32": "float32", "numpy.float64": "float64",
    "builtins.float": "float64", "numpy.int32": "int32", "numpy.int64": "int64", "numpy.uint8": "uint8",
    "numpy.int8": "int8",
}  # fmt: skip
_DRAWS = ("numpy.random.", "random.")


def function_around(facts: FunctionFacts) -> ast.FunctionDef | None:
    """The function of the top level around a finding, if it has plain parameters and no decorator."""
    tree = facts.source.tree
    for node in tree.body if isinstance(tree, ast.Module) else ():
        if isinstance(node, ast.FunctionDef) and any(inner is facts.function for inner in statements(node)):
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
    facts = facts.within(function)
    given = [node.value for node in _own(function) if isinstance(node, ast.Return)]
    names = {value.id if isinstance(value, ast.Name) else None for value in given}
    if len(names) != 1 or (name := next(iter(names))) is None or not isinstance(function.body[-1], ast.Return):
        return None
    stores = [
        n for n in nodes_in(function) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
    ]
    for statement in function.body:
        match statement:
            case ast.Assign(targets=[target], value=ast.Call(func=maker, args=[shape, *more], keywords=options)) if (
                stores == [target] and qualified(facts, maker) in _MAKERS
            ):
                fills = qualified(facts, maker) == "numpy.full"
                said = [*more[1 if fills else 0 :], *(k.value for k in options if k.arg == "dtype")]
                if len(said) > 1 or {k.arg for k in options} - {"dtype", "fill_value"} or (fills and not said):
                    return None
                of = _DTYPES.get(qualified(facts, said[0]) or "") if said else "float64"
                return Array(name, shape, of) if of is not None else None
            case _:
                pass
    return None


def size_of(function: ast.FunctionDef, shape: ast.expr) -> ast.expr | None:
    """The size in terms of the parameters and of items of these; None where they do not say it alone."""
    parameters = [p.arg for p in (*function.args.args, *function.args.kwonlyargs)]
    bound = [n.id for n in nodes_in(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    unpacked: dict[str, str] = {}
    for statement in function.body:
        match statement:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Name(id=whole)) if whole in parameters and all(
                isinstance(t, ast.Name) for t in targets
            ):
                names = [ast.unparse(t) for t in targets]
                if isinstance(shape, ast.Tuple) and [ast.unparse(e) for e in shape.elts] == names:
                    shape = ast.Name(whole, ast.Load())
                unpacked |= {n: f"{whole}[{i}]" for i, n in enumerate(names) if bound.count(n) == 1}
            case _:
                pass
    written = Written(unpacked).visit(ast.parse(ast.unparse(shape), mode="eval").body)
    needed = {n.id for n in ast.walk(written) if isinstance(n, ast.Name)}
    parts = written.elts if isinstance(written, ast.Tuple) else [written]
    if not all(map(_is_part, parts)) or not needed <= {*parameters} or not needed.isdisjoint(bound):
        return None
    whole_size: ast.expr = written if isinstance(written, (ast.Tuple, ast.Name)) else ast.Tuple([written], ast.Load())
    return whole_size


def _is_part(node: ast.expr) -> bool:
    match node:
        case ast.Name() | ast.Constant(value=int()) | ast.Subscript(ast.Name(), ast.Constant(value=int())):
            return True
    return False


class Written(ast.NodeTransformer):
    """Writes an expression for a name."""

    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = texts

    def visit_Name(self, node: ast.Name) -> ast.AST:
        written = self._texts.get(node.id)
        return node if written is None else ast.parse(written, mode="eval").body
