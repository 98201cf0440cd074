"""Where code asks which object a value is, or of which class, and not what it holds: a copy gives another answer, and
is no parameter any more.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.program.entities import Class, Function
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.analysis.torch_facts import load
from graphmend.transforms.code.bindings import name_given
from graphmend.transforms.code.liveness import parameters
from graphmend.transforms.code.qualified_names import constant, qualified
from graphmend.transforms.legality.memory import shares
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

#: methods of containers that look for an object
_LOOK_UP = frozenset("add discard remove index count get setdefault pop".split())
#: what tensors say of their memory and of how they were made
_OF_OBJECT = frozenset(
    "data_ptr untyped_storage storage storage_offset is_set_to is_leaf grad_fn grad retains_grad retain_grad "
    "is_inference register_hook output_nr _base _version _is_view __dict__".split()
)
#: functions that tell objects apart, or hash them
_ASKING = frozenset("id hash set frozenset vars".split()) | {"operator.is_", "operator.is_not"}
#: classes of tensors of which a copy is none
_PARAMETERS = frozenset(
    f"torch.nn.{folder}{name}"
    for folder in ("", "parameter.")
    for name in ("Parameter", "UninitializedParameter", "Buffer")
)
#: functions that show of which class a value is
_SHOWING = frozenset("print str repr format".split())
#: functions for which tensors are the ones that their caller has, by the place and the keyword of these
_BY_OBJECT = {"torch.autograd.grad": (1, "inputs"), "torch.autograd.backward": (4, "inputs")}
_BY_NAME = ("getattr", "hasattr", "setattr", "delattr")
#: decorators that keep results by the objects that were given
_CACHES = frozenset({"lru_cache", "cache"})


@answers("memory")
def identified(facts: FunctionFacts, name: str) -> bool:
    """Does the function ask which object a name is bound to, by this name or another one that may mean it (`y is x`,
    `id(y)`, `{x, y}`, `y.data_ptr()`, an attribute that only this tensor was given)?
    """
    return any(
        ast.unparse(asked) == name or (name in shares(facts, asked).same and not _is_key(facts, asked))
        for asked in _all_asked(facts)
    )


@answers("memory")
def asked_by_callers(facts: FunctionFacts) -> str | None:
    """A call of the function in sight that asks which object it gives."""
    for caller in facts.calls():
        assert isinstance(caller.node, ast.expr)
        name = name_given(caller, caller.node)
        if any(asked is caller.node for asked in _all_asked(caller)) or (name and identified(caller, name)):
            return ast.unparse(caller.node)
    return None


def _all_asked(facts: FunctionFacts) -> Iterator[ast.expr]:
    """The expressions in a function of which code asks which object they are."""
    for node in nodes_in(facts.function):
        yield from _asked(node, lambda n: isinstance(facts.value(n), Tensor))
        yield from _asked_inside(facts, node)


def _asked(node: ast.AST, is_tensor: Callable[[ast.expr], bool]) -> list[ast.expr]:
    """The expressions of which code asks which object they are; tensors are told apart so where they are hashed."""
    match node:
        case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot(), *_], comparators=others):
            sides = [left, *others]
            return [] if any(isinstance(side, ast.Constant) for side in sides) else sides
        case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[of]) if not is_tensor(of):
            return [left, *_listed(of)]
        case ast.Compare(left=left, comparators=others):  # equal lists are those of the same objects, before all else
            return [element for side in (left, *others) for element in _listed(side)]
        case ast.Set(elts=elements):
            return elements
        case ast.SetComp(elt=element) | ast.DictComp(key=element):
            return [element]
        case ast.Dict(keys=keys):
            return [key for key in keys if key is not None]
        case ast.Subscript(value=of, slice=key) if not is_tensor(of) and not _has_slices(key):
            return [key]
        case ast.Call(func=ast.Attribute(value=of, attr=attr), args=given) if attr in _LOOK_UP and not is_tensor(of):
            return given
        case ast.Attribute(value=of, attr=attr) if attr in _OF_OBJECT:
            return [of]
        case ast.Attribute(value=of, attr="__class__") if is_tensor(of):
            return [of]
    return []


def _has_slices(key: ast.expr) -> bool:
    """Is an index none of a dictionary for certain: a slice, or several indices with one among them?"""
    return any(isinstance(k, ast.Slice) for k in (key.elts if isinstance(key, ast.Tuple) else [key]))


def _asked_inside(facts: FunctionFacts, node: ast.AST) -> list[ast.expr]:
    """The same of what is called, and of attributes that tensors have only where somebody gave them."""
    has = load(facts.torch_version).has_method
    match node:
        case ast.Attribute(value=of, attr=attr) if isinstance(facts.value(of), Tensor):
            return [] if has(attr) or load(facts.torch_version).attribute(attr) is not None else [of]
        case ast.Call(func=ast.Name(id=name), args=[of, asked, *_]) if name in _BY_NAME:
            known = constant(asked)
            return [] if isinstance(known, str) and has(known) and known not in _OF_OBJECT else [of]
        case ast.FormattedValue(value=of):
            return [of] if _may_be_parameter(facts, of) else []
        case ast.Call(func=function, args=given, keywords=keywords):
            name = (qualified(facts, function) or "").removeprefix("builtins.")
            if name in _ASKING or name.startswith(("weakref.", "torch.optim.")):
                return [n for g in given for n in (g, *_listed(g))]
            if name in ("isinstance", "type") and given and _tells_copies(facts, given[0], given[1:]):
                return given[:1]
            if name in _SHOWING:
                return [g for g in given if _may_be_parameter(facts, g)]
            if (by_object := _BY_OBJECT.get(name)) is not None:
                place, keyword = by_object
                asked_for = [*given[place : place + 1], *(k.value for k in keywords if k.arg == keyword)]
                return [n for g in asked_for for n in (g, *_listed(g))]
            if name.startswith("torch.Tensor.") and name.rpartition(".")[2] in _OF_OBJECT:
                return given[:1]  # `torch.Tensor.data_ptr(x)`
            value = facts.value(function)
            return list(given) if isinstance(value, Function) and _asks(value.info.node) else []
    return []


def _tells_copies(facts: FunctionFacts, node: ast.expr, classes: list[ast.expr]) -> bool:
    """Is a copy of a tensor of another class than the tensor, for what is asked: is it a parameter?"""
    if not classes:
        return isinstance(facts.value(node), Tensor)
    of = classes[0].elts if isinstance(classes[0], ast.Tuple) else classes
    names = [qualified(facts, each) for each in of]
    known = all(name is not None or isinstance(facts.value(each), Class) for name, each in zip(names, of, strict=True))
    return not _PARAMETERS.isdisjoint(names) or (not known and isinstance(facts.value(node), Tensor))


def _may_be_parameter(facts: FunctionFacts, node: ast.expr) -> bool:
    """May it be a parameter of a module, which says so in its text: an attribute, by any name?"""
    return isinstance(facts.value(node), Tensor) and any("." in path for path in shares(facts, node).same)


def _is_key(facts: FunctionFacts, asked: ast.expr) -> bool:
    """Is it a name of keys of dictionaries, which a choice between them keeps, or of numbers that count?"""
    if not isinstance(asked, ast.Name) or asked.id in parameters(facts.function):
        return False
    names = (n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n.id == asked.id)
    bound, keys = [n for n in names if isinstance(n.ctx, ast.Store)], {*_keys(facts.function)}
    return bool(bound) and all(n in keys for n in bound)


def _keys(function: ast.AST) -> Iterator[ast.expr]:
    """What loops bind to keys: `k` in `for k, v in d.items()`, `i` in `for i, x in enumerate(xs)`."""
    for node in nodes_in(function):
        if isinstance(node, (ast.For, ast.comprehension)):
            match node.target, node.iter:
                case ast.Tuple(elts=[key, _]), ast.Call(func=ast.Attribute(attr="items") | ast.Name(id="enumerate")):
                    yield key


def _asks(function: ast.AST) -> bool:
    """Does a function of the program ask that of what it is given?"""
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    for decorator in function.decorator_list:
        named = decorator.func if isinstance(decorator, ast.Call) else decorator
        if (named.attr if isinstance(named, ast.Attribute) else getattr(named, "id", "")) in _CACHES:
            return True
    own = parameters(function)
    called = (n for n in nodes_in(function) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name))
    asked = [a for n in called if n.func.id in _ASKING for a in n.args]  # type: ignore[attr-defined]
    # what is indexed, or searched, is no dictionary there for certain
    asked += [a for n in nodes_in(function) if not isinstance(n, ast.Subscript) for a in _asked(n, lambda _: True)]
    return any(isinstance(a, ast.Name) and a.id in own for a in asked)


def _listed(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, (ast.List, ast.Tuple)) else []
