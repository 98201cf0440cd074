"""The value of a call. Calls of functions whose source is available are entered; all others become a `Call` event, and
their value follows from what is known of the library."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.interpreter.calls.containers import container_method
from graphmend.analysis.interpreter.calls.external import external
from graphmend.analysis.interpreter.events import Call, Operation
from graphmend.analysis.interpreter.operations import special_methods
from graphmend.analysis.lattice.arguments import Arguments, Keywords
from graphmend.analysis.lattice.external import ExternalInstance, ExternalName, Intrinsic
from graphmend.analysis.lattice.values import (
    NONE,
    STATIC,
    UNKNOWN,
    Choice,
    Container,
    Scalar,
    Static,
    Tensor,
    Value,
    join_all,
    options,
    tensor_in,
)
from graphmend.analysis.program.entities import Class, Function, Instance, Method, Super
from graphmend.analysis.resolution.annotations import record, record_fields
from graphmend.analysis.resolution.classes import MODULE_ROOTS, find_method, is_module_class, outside_bases
from graphmend.analysis.resolution.parameters import bind

if TYPE_CHECKING:
    from graphmend.analysis.interpreter.interface import Walk
    from graphmend.analysis.program.definitions import ClassInfo


def call(w: Walk, node: ast.Call) -> Value:
    callee = w.eval(node.func)
    args: list[Value] = []
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            spread = w.eval(argument.value)
            args.extend(spread.items if isinstance(spread, Container) and spread.items is not None else (UNKNOWN,))
        else:
            args.append(w.eval(argument))
    keywords: dict[str, Value] = {}
    for keyword in node.keywords:
        value = w.eval(keyword.value)
        if keyword.arg is not None:
            keywords[keyword.arg] = value
        elif isinstance(value, Container) and value.fields:
            keywords.update({k: v for k, v in value.fields.items() if isinstance(k, str)})
    return apply(w, callee, tuple(args), keywords, node)


def apply(w: Walk, callee: Value, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    """The value of `callee(*args, **keywords)`."""
    if isinstance(callee, ExternalName):
        return external(w, callee.name, None, args, keywords, node)
    if isinstance(callee, Function):
        return w.session.enter(callee, args, keywords, w, node)
    if isinstance(callee, Method):
        return _method(w, callee, args, keywords, node)
    if isinstance(callee, Instance):
        return _instance(w, callee, args, keywords, node)
    if isinstance(callee, ExternalInstance):
        return external(
            w,
            f"{callee.cls}.forward" if callee.cls.startswith("torch.nn.") else f"{callee.cls}.__call__",
            callee,
            args,
            keywords,
            node,
        )
    if isinstance(callee, Class):
        return _construct(w, callee, args, keywords, node)
    if isinstance(callee, Choice):
        return join_all(apply(w, o, args, keywords, node) for o in options(callee) if o is not NONE)
    if isinstance(callee, Intrinsic):
        return callee.call(w, args, keywords, node)
    if isinstance(callee, Container) and callee.kind == "modules":
        return _sequential(w, callee, args, node)
    if isinstance(callee, Static) and callee.type == "size" and isinstance(node, ast.expr):
        w.emit(Operation, node, "call", callee)
    if isinstance(callee, Static) and all(isinstance(a, Static) for a in (*args, *keywords.values())):
        return STATIC
    return UNKNOWN


def _sequential(w: Walk, modules: Container, args: Arguments, node: ast.AST) -> Value:
    """`nn.Sequential(...)(x)`: calls its modules one after the other."""
    if modules.items is None:
        return apply(w, modules.element, args, {}, node)
    value = args[0] if args else UNKNOWN
    for module in modules.items:
        value = apply(w, module, (value,), {}, node)
    return value


def _instance(w: Walk, callee: Instance, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    if isinstance(node, ast.expr) and "torch._ops.HigherOrderOperator" in outside_bases(w.session, callee.info):
        w.emit(Call, node, "torch._ops.HigherOrderOperator.__call__", callee, args, keywords)
        return UNKNOWN
    name = "forward" if is_module_class(w.session, callee.info) else "__call__"
    method = find_method(w.session, callee.info, name)
    if method is not None:
        return w.session.enter(Function(method, bound=callee), args, keywords, w, node)
    base = next(
        (b for b in outside_bases(w.session, callee.info) if b.startswith("torch.nn.") and b not in MODULE_ROOTS), None
    )
    return external(w, f"{base}.forward", callee, args, keywords, node) if base is not None else UNKNOWN


#: a record that is a dict, too, is a library's output of models: its `__post_init__` only fills the dict
_DICTS = frozenset({"collections.OrderedDict", "builtins.dict"})


def _construct(w: Walk, callee: Class, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    session, info = w.session, callee.info
    if session.stack.traced and isinstance(node, ast.expr) and info.node.bases:
        w.emit(Call, node, "class", callee, args, keywords)
    fields = record_fields(session, info)
    if fields is not None:
        given = dict(zip(fields, args, strict=False)) | {k: v for k, v in keywords.items() if k in fields}
        rest = {k: NONE if _is_none(info, k) else v for k, v in fields.items() if k not in given}
        made = record(session, info, {**fields, **rest, **given})
        if session.stack.traced and not _DICTS.intersection(outside_bases(session, info)):
            special_methods.call_special_method(w, made, ("__post_init__",), (), node)
        return made
    for base in outside_bases(session, info):
        if base.startswith("enum."):
            return STATIC
        if base in ("builtins.list", "builtins.dict", "builtins.tuple", "builtins.set"):
            return Container(base[9:], of=UNKNOWN)
    if session.stack.traced and not is_module_class(session, info):
        init = find_method(session, info, "__init__")
        instance = Instance(info, made_inside=True)
        if init is None:
            return instance
        session.enter(Function(init, bound=instance), args, keywords, w, node)
        given = bind(session, Function(init, bound=instance), args, keywords)
        return Instance(info, True, {name: v for name, v in given.items() if tensor_in(v) is not None})
    return Instance(info, made_inside=session.stack.traced)


def _is_none(info: ClassInfo, name: str) -> bool:
    """Whether a field is None by default, and no method such as `__post_init__` sets it."""
    default = info.names.get(name)
    return isinstance(default, ast.Constant) and default.value is None and name not in info.assigned


def _method(w: Walk, callee: Method, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    receiver = callee.receiver
    if isinstance(receiver, Tensor):
        owner = "numpy.ndarray" if receiver.ndarray else "torch.Tensor"
        return external(w, f"{owner}.{callee.name}", receiver, args, keywords, node)
    if isinstance(receiver, Container):
        return container_method(w, receiver, callee.name, args, keywords, node)
    if isinstance(receiver, ExternalInstance):
        return external(w, f"{receiver.cls}.{callee.name}", receiver, args, keywords, node)
    if isinstance(receiver, Scalar):
        return receiver.derived(None)
    if isinstance(receiver, Super):
        if isinstance(node, ast.expr) and not (callee.name == "__init__" and w.info.name == "__init__"):
            w.emit(Operation, node, f"super().{callee.name}", receiver)
        return NONE if callee.name == "__init__" else UNKNOWN
    return UNKNOWN


# -- torch


# -- contexts
