"""What the functions of the program do: does one only compute, by its body, and what is handed to unknown code?"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Container, Scalar, Static, Tensor, Value, options
from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo
from graphmend.analysis.program.entities import Class, Function, Instance, Record
from graphmend.analysis.resolution.classes import mro
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.liveness import locals_of, reads
from graphmend.transforms.code.qualified_names import qualified
from graphmend.transforms.legality.names.replaced import is_lasting, is_written_as_data
from graphmend.transforms.legality.objects.records import is_record
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.outside.pure_bodies import only_computes, runs_through
from graphmend.transforms.legality.outside.tables import is_bound_by_loops, is_of_a_table
from graphmend.transforms.legality.raising.containers import makes_entries
from graphmend.transforms.legality.rows.modules import does_method, has_hooks, is_only_one
from graphmend.transforms.questions import take_for_granted

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


@lru_cache(maxsize=64)
def is_plain(function: Function, tree: ast.AST | None) -> bool:
    """Is it no method, or the only function of its name in a file, that nothing else is put in the place of, and that
    uses its object for tensors and numbers alone: for no property, no other method or module, and not as a whole?
    """
    if function.bound is None:
        return True
    node, owner = function.info.node, function.bound
    if not isinstance(owner, Instance) or not isinstance(node, ast.FunctionDef) or not is_the_one(function, tree):
        return False
    classes, own = mro(owner.info), node.args.args[0].arg
    called = {n.func for n in nodes_in(node) if isinstance(n, ast.Call)}
    plain = {
        n.value
        for n in nodes_in(node)
        if isinstance(n, ast.Attribute) and n not in called and _is_data(classes, n.attr)
    }
    return all(n in plain for n in nodes_in(node) if isinstance(n, ast.Name) and n.id == own)


def is_the_one(function: Function, tree: ast.AST | None) -> bool:
    """Is a method of an object the only function of its name in a file, that nothing else is put in the place of?"""
    node, owner = function.info.node, function.bound
    if not isinstance(owner, (Instance, Record)) or tree is None:
        return False
    if not isinstance(node, ast.FunctionDef) or not node.args.args:
        return False
    own = any(name.startswith("__getattr") for cls in mro(owner.info) for name in cls.methods)
    return not own and is_only_one(node.name, tree) and any(n is node for n in nodes_in(tree))


def computes(facts: FunctionFacts, node: ast.Call) -> bool:
    """Is what is called a function of the program, or one of several, that only computes, given tensors and numbers? Of
    a method that is so as far as the file says: a subclass may override it elsewhere.
    """
    functions = [*options(facts.value(node.func))]
    looped = isinstance(node.func, ast.Name) and is_bound_by_loops(facts, node.func.id)
    if (len(functions) > 1 or looped) and not is_of_a_table(facts, node.func):
        return False
    if not all(isinstance(f, Function) and _does_so(facts, node, f) for f in functions):
        return False
    if any(isinstance(f, Function) and f.bound is not None for f in functions):
        take_for_granted(f"`{shortened(node.func)}` is taken to be the method in sight, overridden nowhere else")
    return True


def _does_so(facts: FunctionFacts, node: ast.Call, function: Function) -> bool:
    tree = facts.source.tree
    if not is_still_named(facts, node.func):
        return False
    if not is_plain(function, tree):
        return is_the_one(function, tree) and does_method(function, tree).pure
    given = [facts.value(a) for a in (*node.args, *(k.value for k in node.keywords))]
    plain = all(_is_computed_with(v) or _holds_such(v) for v in given)
    if any(isinstance(v, Container) for v in given) and any(
        isinstance(n, ast.Attribute) and n.attr == "sort" for n in nodes_in(function.info.node)
    ):
        return False  # of a tensor it gives another one, a list it changes
    # what gives a tensor computes with tensors, whatever else is not known of them; but for what may be used up
    objects = any(isinstance(v, (Instance, Record, Container)) for v in given)
    made = facts.value(node)
    tensors = isinstance(made, Tensor) or (_holds_such(made) and isinstance(getattr(made, "element", None), Tensor))
    given_tensors = tensors and not objects and not runs_through(function.info)
    return (plain or given_tensors) and only_computes(function.info)


def _is_computed_with(value: Value) -> bool:
    return isinstance(value, (Tensor, Static, Scalar))


def _holds_such(value: Value) -> bool:
    """Is it a list or tuple of tensors and numbers? What only computes does not change it."""
    if type(value) is not Container or value.kind not in ("list", "tuple"):
        return False
    parts = value.items if value.items is not None else (value.of,)
    return all(part is not None and _is_computed_with(part) for part in parts)


def makes_record(facts: FunctionFacts, node: ast.Call) -> bool:
    """Does a call make a record of a class of the program, anew or as one that is there with other fields, and nothing
    else?"""
    if qualified(facts, node.func) == "dataclasses.replace" and node.args:
        value = facts.value(node.args[0])
        return type(value) is Record and is_record(value.info)
    made = facts.value(node.func)
    return isinstance(made, Class) and is_record(made.info) and is_still_named(facts, node.func)


def makes_object(facts: FunctionFacts, node: ast.expr | None) -> bool:
    """Does an expression make an object, on its own or by a choice that was made before?"""
    match node:
        case ast.Lambda(body=body):
            return makes_object(facts, body)
        case ast.Call(args=[_, ast.Lambda() as one, ast.Lambda() as other]):
            return makes_object(facts, one) and makes_object(facts, other)
        case ast.Call():
            return makes_record(facts, node)
    return False


def is_the_only_one(facts: FunctionFacts, node: ast.Call) -> bool:
    """Is what is called the function of the program that its value says, and the only one of its name in the file?"""
    function = facts.value(node.func)
    return (
        isinstance(function, Function)
        and is_still_named(facts, node.func)
        and is_only_one(function.info.name, facts.source.tree)
    )


def is_still_named(facts: FunctionFacts, function: ast.expr) -> bool:
    """Does a name of the module mean what it was bound to first: the function, or the module whose function it is?"""
    tree = facts.source.tree
    match function:
        case ast.Name(id=name):
            return name in locals_of(facts.function) or is_lasting(name, tree)
        case ast.Attribute(value=ast.Name(id=name), attr=attr) if name in facts.names:
            return is_lasting(name, tree) and not is_written_as_data(attr, tree)
    return True


def _is_data(classes: Sequence[ClassInfo], attribute: str) -> bool:
    """Is an attribute of an object a parameter, a buffer or a number, as every place says that gives it a value?"""
    if any(_binds(cls, attribute) for cls in classes):
        return False  # of the class: it may be a property, or anything else with `__get__`
    stored, data = False, False
    for method in (m for cls in classes for m in cls.methods.values() if m.parameters):
        me = method.parameters[0].arg
        known = set[ast.expr]()
        for n in nodes_in(method.node):
            match n:
                case ast.Assign(targets=[target], value=value) if _makes_data(method, value):
                    known.add(target)
                case ast.Call(func=ast.Attribute(attr="register_buffer"), args=[ast.Constant(value=name), *_]):
                    data |= name == attribute
                case ast.Attribute(value=ast.Name(id=own), ctx=ast.Store()) if (own, n.attr) == (me, attribute):
                    if n not in known:
                        return False
                    stored = True
    return stored or data


def _binds(cls: ClassInfo, name: str) -> bool:
    return name in cls.methods or any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
        for s in cls.node.body
        if isinstance(s, (ast.Assign, ast.AnnAssign))
        for n in nodes_in(s)
    )


def _makes_data(method: FunctionInfo, value: ast.expr) -> bool:
    """Does an expression give a tensor of torch's or a number, whatever it is given?"""
    match value:
        case ast.Constant(value=bool() | int() | float()):
            return True
        case ast.Name(id=name):
            given = next((p for p in method.parameters if p.arg == name), None)
            said = ast.unparse(given.annotation) if given is not None and given.annotation is not None else ""
            default = method.defaults.get(name)
            number = isinstance(default, ast.Constant) and isinstance(default.value, (bool, int, float))
            return said in ("int", "float", "bool") or (given is not None and not said and number)
        case ast.Call(func=function):
            name = method.module.qualified(function) or ""
            return name == "torch.nn.Parameter" or name.rpartition(".")[0] == "torch"
    return False


def runs_own_method(facts: FunctionFacts, node: ast.AST) -> bool:
    """Does an operator run a method of a class in reach, or one that makes an entry of a container?"""
    match node:
        case ast.BinOp(left=left, right=right):
            operands = [left, right]
        case ast.UnaryOp(operand=operand):
            operands = [operand]
        case ast.Compare(left=left, comparators=rights, ops=ops):
            if all(isinstance(o, (ast.Is, ast.IsNot)) for o in ops):
                return False
            operands = [left, *rights]
        case ast.Subscript(value=owner):
            is_tensor = all(isinstance(o, Tensor) for o in options(facts.value(owner)))
            if not is_tensor and makes_entries(facts.source.tree, owner):
                return True
            operands = [owner]
        case _:
            return False
    return any(isinstance(o, Instance) for n in operands for o in options(facts.value(n)) if not _inherits(o))


def _inherits(value: Value) -> bool:
    """Is a class in reach known to define no operator of its own?"""
    return isinstance(value, Instance) and not any(
        name.startswith("__") and name.endswith("__") and name not in ("__init__", "__repr__", "__new__")
        for cls in mro(value.info)
        for name in cls.methods
    )


@lru_cache(maxsize=2)
def handed_over(facts: FunctionFacts) -> tuple[ast.expr, ...]:
    """The expressions whose values are stored outside of local names, or given to code that is not known: by a call,
    or by an operator of a class in reach.
    """
    found: list[ast.expr] = []
    inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    for node in nodes_in(facts.function):
        match node:
            case ast.Assign(targets=targets, value=value) if any(_leads_out(facts, t) for t in targets):
                found.append(value)
            case ast.AnnAssign(target=target, value=ast.expr() as value) if _leads_out(facts, target):
                found.append(value)
            case ast.AugAssign(target=target, value=value) if not isinstance(facts.value(target), Tensor):
                found.append(value)
            case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value) if _leads_out(
                facts, target
            ):
                found.append(value)
            case ast.withitem(context_expr=value, optional_vars=ast.expr() as target) if _leads_out(facts, target):
                found.append(value)
            case ast.Call(args=args, keywords=keywords) if may_keep(facts, node):
                found += [*args, *(k.value for k in keywords)]
            case ast.BinOp() | ast.Compare() | ast.Subscript() if runs_own_method(facts, node):
                found += _operands(node)
            case _ if isinstance(node, inner) and node is not facts.function:
                found += [ast.Name(n, ast.Load()) for n in sorted(reads(node) & locals_of(facts.function))]
    return tuple(found)


def _leads_out(facts: FunctionFacts, target: ast.expr) -> bool:
    """Is something else than local names and elements of tensors bound: an attribute, an item of a container?"""
    stored = (n for n in nodes_in(target) if isinstance(n, (ast.Attribute, ast.Subscript)))
    return any(isinstance(n.ctx, ast.Store) and not isinstance(facts.value(n.value), Tensor) for n in stored)


def _operands(node: ast.BinOp | ast.Compare | ast.Subscript) -> list[ast.expr]:
    """What a method of a class is given by an operator."""
    match node:
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.Compare(left=left, comparators=rights):
            return [left, *rights]
    return [node.slice]


def may_keep(facts: FunctionFacts, node: ast.Call) -> bool:
    """Does a call run code that may keep its arguments, or what it gives?"""
    value = facts.value(node.func)
    if isinstance(value, ExternalInstance) and value.cls.startswith("torch.nn."):
        return has_hooks(facts.source.tree)
    name = qualified(facts, node.func) or ""
    folder = name.rpartition(".")[0]
    return folder not in (*known.FUNCTIONAL, "builtins", "math") and not name.startswith("logging.")
