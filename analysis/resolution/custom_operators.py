"""Operators that a program registers with `torch.library`: whether TorchDynamo can run them on tensors without data.

For that an operator needs an implementation that only says what it returns (`register_fake`, or one for the key
"Meta"), or one that is made of other operators (torch 2.13). Read from the calls and decorators of a module's top
level.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphmend.analysis.program.definitions import FunctionInfo, ModuleInfo
from graphmend.analysis.syntax.nodes import statements_of

_CUSTOM = "torch.library.custom_op"
_FAKES = frozenset({"register_fake", "impl_abstract", "_register_fake", "register_meta", "register_torch_dispatch"})
#: keys under which an implementation serves tensors without data, too
_SERVES_FAKES = frozenset(
    {"Meta", "CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional"}
)


class Operator(NamedTuple):
    """An operator that a module defines."""

    name: str
    """`namespace::name`; without a namespace where a `Library` object holds that."""
    schemas: tuple[str, ...]
    """Those that are written down, one for each overload."""
    is_compliant: bool
    """Whether all overloads say that they keep to the rules of compilation."""
    fault: str | None
    """What keeps it from being traced: "no fake", "no kernel", "fake raises"; None where nothing is known to."""


class _Registration(NamedTuple):
    """An implementation for tensors without data: of which operator or function (None: of any), and by which one."""

    of: str | None
    by: ast.FunctionDef | None


def of_function(info: FunctionInfo) -> Operator | None:
    """The operator that a function under `torch.library.custom_op` is; None where it is none, or returns nothing:
    for these torch knows what to do."""
    name = _custom_name(info)
    returns = getattr(info.node, "returns", None)
    gives_nothing = isinstance(returns, ast.Constant) and returns.value is None
    if name is None or gives_nothing or info.owner is not None:
        return None
    return Operator(name, (), True, _fault(info.module, {name, name.rpartition("::")[2], info.name}, "no fake"))


def by_name(module: ModuleInfo, qualified: str) -> Operator | None:
    """The operator `torch.ops.namespace.name`, where the module defines it."""
    namespace, _, last = qualified.removeprefix("torch.ops.").partition(".")
    last = last.partition(".")[0]
    for function in module.functions.values():
        if _custom_name(function) == f"{namespace}::{last}":
            return of_function(function)
    found = [call for call in _calls(module) if _defined(call) in (last, f"{namespace}::{last}")]
    if not found:
        return None
    schemas = tuple("".join(filter(None, map(_text, call.args[:2]))) for call in found)
    tagged = all("pt2_compliant_tag" in ast.unparse(call) for call in found)
    returns = not all(schema.endswith("-> ()") for schema in schemas)
    fault = _fault(module, {last, f"{namespace}::{last}"}, "no kernel") if returns else None
    return Operator(f"{namespace}::{last}", schemas, tagged, fault)


def _defined(call: ast.Call) -> str | None:
    """The name of the operator that a call defines, without its overload."""
    if not (isinstance(call.func, ast.Attribute) and call.func.attr == "define" and call.args):
        return None
    text = _text(call.args[0])
    return text.partition("(")[0].partition(".")[0] if text is not None else None


def _fault(module: ModuleInfo, names: set[str], without: str) -> str | None:
    known = [one for one in _registrations(module) if one.of is None or one.of in names]
    if not known:
        return without
    return "fake raises" if all(one.by is not None and _gives_up(one.by) for one in known) else None


def _registrations(module: ModuleInfo) -> Iterator[_Registration]:
    tree = module.source.tree
    for call in _calls(module):
        yield from _registered(call, None)
    for statement in statements_of(tree.body) if tree is not None else ():
        for decorator in getattr(statement, "decorator_list", ()):
            call = decorator if isinstance(decorator, ast.Call) else ast.Call(decorator, [], [])
            yield from _registered(call, statement if isinstance(statement, ast.FunctionDef) else None)


def _registered(call: ast.Call, by: ast.FunctionDef | None) -> Iterator[_Registration]:
    func, texts = call.func, [_text(node) for node in (*call.args, *(k.value for k in call.keywords))]
    last = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
    if last in _FAKES:
        first = call.args[0] if call.args else None
        owner = func.value if isinstance(func, ast.Attribute) else None
        if texts[:1] and texts[0] is not None:
            yield _Registration(texts[0], by)
        elif isinstance(first, ast.Name) and by is not None:
            yield _Registration(first.id, by)
        elif isinstance(owner, ast.Name):
            yield _Registration(owner.id, by)
        else:
            yield _Registration(None, by)
    elif last == "impl" and (None in texts[-1:] or _SERVES_FAKES.intersection(filter(None, texts))):
        about = next((text for text in texts if text is not None and text not in _SERVES_FAKES), None)
        serves = bool(_SERVES_FAKES.intersection(filter(None, texts)))
        yield _Registration(about if serves else None, by)


def _calls(module: ModuleInfo) -> Iterator[ast.Call]:
    """The calls that are statements of the top level, or assigned there."""
    tree = module.source.tree
    for statement in statements_of(tree.body) if tree is not None else ():
        value = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
        if isinstance(value, ast.Call):
            yield value
            if isinstance(value.func, ast.Call):
                yield value.func


def _gives_up(function: ast.FunctionDef) -> bool:
    """Whether all that a function does is to say that it is not implemented."""
    body = [s for s in function.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    error = body[0].exc if len(body) == 1 and isinstance(body[0], ast.Raise) else None
    error = error.func if isinstance(error, ast.Call) else error
    return isinstance(error, ast.Name) and error.id == "NotImplementedError"


def _custom_name(info: FunctionInfo) -> str | None:
    for decorator in info.decorators:
        if isinstance(decorator, ast.Call) and decorator.args and info.module.qualified(decorator.func) == _CUSTOM:
            return _text(decorator.args[0])
    return None


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
