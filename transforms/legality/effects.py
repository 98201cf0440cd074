"""Does code do more than compute: write, draw, print, warn, consume, run what is not known?"""

from __future__ import annotations

import ast
from collections.abc import Set
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Container, Scalar, Static, Tensor, Value, dtype_kind, options
from graphmend.analysis.program.definitions import FunctionInfo
from graphmend.analysis.program.entities import Instance, Record
from graphmend.analysis.resolution.classes import mro
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.qualified_names import constant, makes_tensor, qualified, written_tensor
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.operations import flags
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.own_functions import computes, makes_record, runs_own_method
from graphmend.transforms.legality.randomness.draws import is_draw
from graphmend.transforms.legality.rows.modules import does, has_hooks
from graphmend.transforms.legality.writes.in_place_flags import given, is_constructed_without
from graphmend.transforms.legality.writes.operands import in_place_operands
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

#: they only compute, of whatever values torch's code has
_BUILTINS = frozenset(
    "len min max abs int float bool complex tuple list set frozenset dict isinstance issubclass hasattr getattr range "
    "sum round str repr type id callable divmod pow zip enumerate reversed sorted any all slice chr ord hash "
    "format".split()
)
#: they run through an iterable, and an iterator is used up then
_CONSUME = frozenset("tuple list set frozenset dict sum min max zip enumerate sorted any all".split())
_CONVERT = frozenset("int float bool complex str repr format".split())
#: displays and comprehensions: nothing else holds what they run through
_MADE_HERE = (
    ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Constant,
)  # fmt: skip
#: what the functions that `select` is given do is judged with their bodies, which stand in the call
_COMPUTE = frozenset(
    "graphmend.runtime.select torch.finfo torch.iinfo torch.tensor torch.as_tensor torch.device".split()
)


@answers("effects")
def effects(facts: FunctionFacts, *nodes: ast.AST, hooks: bool = True, apart: Set[ast.expr] = frozenset()) -> list[str]:
    """What evaluating code does besides giving a value: a sentence for each, none where it only computes. Without
    `hooks` those of layers do not count; calls that are judged `apart` never do."""
    found: list[str] = []
    for whole in nodes:
        for node in nodes_in(whole):
            if isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
                found.append(f"`{shortened(node)}` does more than compute")
            elif isinstance(node, ast.Call) and node not in apart:
                found += _called(facts, node)
                if hooks and has_hooks(facts.source.tree) and is_layer(facts, node.func):
                    found.append(f"hooks of `{shortened(node.func)}` may have side effects")
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                if runs_code(facts, node):
                    found.append(f"`{shortened(node)}` is a property, which may have side effects")
            elif runs_own_method(facts, node):
                found.append(f"`{shortened(node)}` calls a method of a class, which may have side effects")
            elif (searched := _searched(facts, node)) is not None:
                found.append(f"`{shortened(searched)}` may be an iterator, which is used up")
            elif isinstance(node, ast.comprehension) and _may_be_iterator(facts.value(node.iter), node.iter):
                found.append(f"`{shortened(node.iter)}` may be an iterator, which is used up")
    return found


def _searched(facts: FunctionFacts, node: ast.AST) -> ast.expr | None:
    """What a membership test, or `*`, runs through where that may be used up."""
    match node:
        case ast.Compare(ops=ops, comparators=comparators):
            pairs = zip(ops, comparators, strict=True)
            within = [right for op, right in pairs if isinstance(op, (ast.In, ast.NotIn))]
        case ast.Starred(value=value, ctx=ast.Load()):
            within = [value]
        case _:
            return None
    return next((n for n in within if _may_be_iterator(facts.value(n), n)), None)


@answers("effects")
def warns(facts: FunctionFacts, *nodes: ast.AST) -> list[Difference]:
    """The warnings that evaluating code may bring: that too is seen from outside."""
    found: list[Difference] = []
    for whole in nodes:
        for node in nodes_in(whole):
            name = (qualified(facts, node.func) or "") if isinstance(node, ast.Call) else ""
            folder, _, last = name.rpartition(".")
            if isinstance(node, ast.Subscript) and _may_be_bytes(facts, node):
                found.append(Difference("output", f"`{shortened(node)}` warns where a mask is of uint8"))
            if folder in known.FUNCTIONAL and last in known.WARN_FOR_ONE:
                found.append(Difference("output", f"`{shortened(node)}` warns where there is only one element"))
    return found


def _may_be_bytes(facts: FunctionFacts, node: ast.Subscript) -> bool:
    """May a tensor be indexed by one of uint8, which torch takes for a mask, and warns?"""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    indices = [i for p in parts if isinstance(i := facts.value(p), Tensor) and i.rank != 0]
    tensor = isinstance(facts.value(node.value), Tensor)
    return tensor and any(dtype_kind(i.dtype) is None or i.dtype in ("int", "uint8") for i in indices)


@answers("effects")
def is_layer(facts: FunctionFacts, function: ast.expr) -> bool:
    """Is what is called a module that only computes: a layer of torch, or one made of such?"""
    value = facts.value(function)
    several = [*options(value)]
    if len(several) > 1:
        return all(isinstance(v, (Container, Instance)) and does(v, facts.source.tree).pure for v in several)
    if not isinstance(value, ExternalInstance):
        return isinstance(value, (Container, Instance)) and does(value, facts.source.tree).pure
    if value.cls not in known.LAYERS:
        return False
    last = value.cls.rpartition(".")[2]
    return all(
        position is None or is_constructed_without(facts, function, keyword, position)
        for keyword, position in (
            ("inplace", flags.LAYER_INPLACE.get(last)),
            ("max_norm", flags.LAYER_MAX_NORM.get(last)),
        )
    )


def _called(facts: FunctionFacts, node: ast.Call) -> list[str]:
    if is_layer(facts, node.func):
        return []
    name = qualified(facts, node.func)
    if computes(facts, node) or makes_record(facts, node) or _reads_entries(facts, node.func):
        return []
    if name is None:
        return [f"`{shortened(node.func)}` may have side effects"]
    folder, _, last = name.rpartition(".")
    if folder == "builtins" and last in _BUILTINS:
        return _builtin(facts, node, last)
    if name.startswith("math.") or name in _COMPUTE:
        return []
    if folder.startswith("torch.nn.") and last in known.HOLDS:
        return []
    if folder not in known.FUNCTIONAL:
        return [f"`{shortened(node.func)}` may have side effects"]
    if is_draw(facts, node):
        return [f"`{name}` draws random numbers, and would draw them on both sides"]
    if any(k.arg == "inplace" and constant(k.value) is not False for k in node.keywords):
        return [f"`{shortened(node)}` works in place"]
    if folder == "torch.Tensor" and last in ("item", "tolist", "numpy", "__bool__", "__int__", "__float__"):
        return [f"`{shortened(node)}` takes a Python value out of a tensor"]
    operands = in_place_operands(facts, node)
    if operands and last not in known.EFFECTFUL and all(makes_tensor(facts, written_tensor(o)) for o in operands):
        return []  # `torch.zeros(2).index_fill_(0, i, 1)`: nothing else sees it
    if last in known.EFFECTFUL or last.endswith("_") or any(k.arg == "out" for k in node.keywords):
        return [f"`{shortened(node.func)}` changes something"]
    if any(k.arg is None for k in node.keywords) and (last in flags.INPLACE or last in flags.MAX_NORM):
        return [f"`{shortened(node)}` may work in place"]
    if operands:
        return [f"`{shortened(node)}` works in place"]
    if folder != "torch.Tensor" and given(node, "max_norm", flags.MAX_NORM.get(last)) is not None:
        return [f"`{shortened(node)}` changes the table that it reads"]
    return []


def _reads_entries(facts: FunctionFacts, function: ast.expr) -> bool:
    """Is a function a method of a plain dict that changes nothing?"""
    if not isinstance(function, ast.Attribute) or function.attr not in ("values", "items", "keys", "get", "copy"):
        return False
    value = facts.value(function.value)
    return isinstance(value, Container) and value.kind == "dict" and not value.dispatches


def _builtin(facts: FunctionFacts, node: ast.Call, last: str) -> list[str]:
    values = [facts.value(a) for a in node.args]
    if last in _CONVERT and any(isinstance(v, Tensor) for v in values):
        return [f"`{shortened(node)}` takes a Python value out of a tensor"]
    one = last in ("min", "max") and len(node.args) > 1
    if last in _CONSUME and not one:
        used = next((a for a, v in zip(node.args, values, strict=True) if _may_be_iterator(v, a)), None)
        if used is not None:
            return [f"`{shortened(used)}` may be an iterator, which is used up"]
    if last in ("isinstance", "issubclass", "type", "id", "callable"):
        return []
    objects = [v for v in values if isinstance(v, (Instance, Record))]
    if objects and (last not in ("getattr", "hasattr") or _has_own_access(objects[0])):
        return [f"`{shortened(node)}` may run a method of a class"]
    return []


def _may_be_iterator(value: Value, node: ast.expr) -> bool:
    """May a value be used up by one run through it?"""
    if isinstance(
        node, (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp, ast.Constant)
    ):
        return False
    if isinstance(node, ast.GeneratorExp):
        return False  # made here: nothing else holds it
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in ("iter", "map", "filter", "open")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in ("__iter__", "readlines")
    return any(
        (isinstance(o, Container) and o.kind in ("generator", "iterator"))
        or not isinstance(o, (Container, Tensor, Static, Scalar, ExternalInstance, Instance))
        for o in options(value)
    )


def runs_code(facts: FunctionFacts, node: ast.Attribute) -> bool:
    """Does reading an attribute run code of a class in reach that is more than a plain expression?"""
    for value in options(facts.value(node.value)):
        if isinstance(value, (Instance, Record)):
            method = _accessor(value, node.attr)
            if method is not None and not _plain(method):
                return True
    return False


def _accessor(value: Instance | Record, name: str) -> FunctionInfo | None:
    """What runs where an attribute is read: a property of that name, or `__getattr__`."""
    classes = mro(value.info)
    for cls in classes:
        if (own := cls.methods.get("__getattribute__")) is not None:
            return own
        method = cls.methods.get(name)
        if method is not None:
            decorators = getattr(method.node, "decorator_list", [])
            return method if any(not _is_plain_decorator(d) for d in decorators) else None
        if name in cls.names or name in cls.registered or name in cls.annotations:
            return None
        if any(of is cls.methods.get("__init__") for of, _, _ in cls.assigned.get(name, ())):
            return None  # what is assigned later may not be there yet
    return next((m for cls in classes if (m := cls.methods.get("__getattr__")) is not None), None)


def _has_own_access(value: Value) -> bool:
    return isinstance(value, (Instance, Record)) and any(
        name.startswith("__getattr") or any(not _is_plain_decorator(d) for d in getattr(m.node, "decorator_list", []))
        for cls in mro(value.info)
        for name, m in cls.methods.items()
    )


def _is_plain_decorator(node: ast.expr) -> bool:
    """One that leaves a function a method: it does not run where the attribute is read."""
    return isinstance(node, ast.Name) and node.id in ("staticmethod", "classmethod")


def _plain(method: FunctionInfo) -> bool:
    """Is a method's body one expression without calls, a docstring aside?"""
    body = [
        s for s in getattr(method.node, "body", []) if not (isinstance(s, ast.Expr) and constant(s.value) is not None)
    ]
    if len(body) != 1 or not isinstance(body[0], ast.Return):
        return False
    effective = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)
    return not any(isinstance(n, effective) for n in nodes_in(body[0]))
