"""The value of a call. Calls of functions whose source is available are entered; all others become a `Call` event, and
their value follows from what is known of the library."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.interpreter.calls.containers import container_method
from graphmend.analysis.interpreter.calls.external import external
from graphmend.analysis.interpreter.events import Call, Operation
from graphmend.analysis.interpreter.operations import errors, own_objects, special_methods
from graphmend.analysis.interpreter.operations.attributes import attribute
from graphmend.analysis.interpreter.operations.loads import MAY_BE_UNTAKEN, loaded
from graphmend.analysis.lattice.arguments import Arguments, Keywords
from graphmend.analysis.lattice.external import ExternalInstance, ExternalName, Intrinsic
from graphmend.analysis.lattice.values import (
    NONE,
    STATIC,
    UNKNOWN,
    Choice,
    Const,
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
from graphmend.analysis.resolution.classes import (
    MODULE_ROOTS,
    find_method,
    is_module_class,
    is_never_initialised,
    outside_bases,
)
from graphmend.analysis.resolution.parameters import bind
from graphmend.analysis.tensors.layers import held_by_any

if TYPE_CHECKING:
    from graphmend.analysis.interpreter.interface import Walk
    from graphmend.analysis.program.definitions import ClassInfo


def call(w: Walk, node: ast.Call) -> Value:
    callee = w.eval(node.func)
    args: list[Value] = []
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            spread = w.eval(argument.value)
            args.extend(_spread(spread))
        else:
            args.append(_argument(w, callee, argument))
    keywords: dict[str, Value] = {}
    for keyword in node.keywords:
        value = _argument(w, callee, keyword.value)
        if keyword.arg is not None:
            keywords[keyword.arg] = value
        elif isinstance(value, Container) and value.fields:
            keywords.update({k: v for k, v in value.fields.items() if isinstance(k, str)})
    if callee.__class__ is Function and not w.silent:
        errors.called(w, node, callee, tuple(args), keywords.keys())
    if isinstance(node.func, ast.Name) and isinstance(callee, (Instance, ExternalInstance)):
        _hooked(w, node, node.func.id)
    return apply(w, callee, tuple(args), keywords, node)


def _spread(value: Value) -> tuple[Value, ...]:
    """The arguments that `*value` passes. Of a list of unknown length they stand for one that is a module or function;
    how many numbers or tensors there are matters too much to be guessed."""
    if isinstance(value, Container) and value.items is not None:
        return value.items
    element = value.element if isinstance(value, Container) else UNKNOWN
    counts = any(isinstance(o, (Static, Tensor, Scalar, Container)) for o in options(element))
    return (UNKNOWN if counts else element,)


def _argument(w: Walk, callee: Value, node: ast.expr) -> Value:
    """The value of an argument. A local that is handed to a traced function is looked at there only."""
    if isinstance(node, ast.Name) and isinstance(callee, (Function, Instance, Class)):
        known = w.env.get(node.id)
        if known is not None:
            return known
    return w.eval(node)


#: what registers a hook that is run behind the backward of a module
_HOOKS = frozenset({"register_full_backward_hook", "register_full_backward_pre_hook", "register_backward_hook"})


def _hooked(w: Walk, node: ast.Call, name: str) -> None:
    """Tells the rules of a call of a module that the file's top level gives a backward hook."""
    source = w.module.source
    if "backward_" not in source.text or source.tree is None or name in w.env:
        return
    for statement in source.tree.body:
        said = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
        if not (isinstance(said, ast.Call) and isinstance(said.func, ast.Attribute) and said.func.attr in _HOOKS):
            continue
        if isinstance(said.func.value, ast.Name) and said.func.value.id == name:
            w.emit(Call, node, "torch.nn.Module.with_backward_hook", None, (), {})


def apply(w: Walk, callee: Value, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    """The value of `callee(*args, **keywords)`."""
    if isinstance(callee, ExternalName):
        return external(w, callee.name, None, args, keywords, node)
    if isinstance(callee, Function):
        if callee.info.decorators:
            own_objects.called(w, node, callee)
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
    if callee is UNKNOWN and not args and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return held_by_any(node.func.attr, node) or UNKNOWN
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
    if not callee.made_inside and isinstance(node, ast.expr) and is_never_initialised(w.session, callee.info):
        w.emit(Operation, node, "uninitialised", callee)
    if isinstance(node, ast.expr) and "torch._ops.HigherOrderOperator" in outside_bases(w.session, callee.info):
        w.emit(Call, node, "torch._ops.HigherOrderOperator.__call__", callee, args, keywords)
        return UNKNOWN
    method = find_method(w.session, callee.info, "__call__")
    if method is not None:
        return w.session.enter(Function(method, bound=callee), args, keywords, w, node)
    return _forward(w, callee, args, keywords, node) if is_module_class(w.session, callee.info) else UNKNOWN


def _forward(w: Walk, callee: Instance, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    """What torch.nn.Module's own `__call__` does."""
    method = find_method(w.session, callee.info, "forward")
    if method is not None:
        return w.session.enter(Function(method, bound=callee), args, keywords, w, node)
    return _of_base(w, callee, "forward", callee, args, keywords, node)


def _of_base(
    w: Walk, its: Instance | Super, name: str, receiver: Value, args: Arguments, keywords: Keywords, node: ast.AST
) -> Value:
    """A method that a module inherits from one of torch's layers."""
    bases = outside_bases(w.session, its.info)
    base = next((b for b in bases if b.startswith("torch.nn.") and b not in MODULE_ROOTS), None)
    return external(w, f"{base}.{name}", receiver, args, keywords, node) if base is not None else UNKNOWN


#: a record that is a dict, too, is a library's output of models: its `__post_init__` only fills the dict
_DICTS = frozenset({"collections.OrderedDict", "builtins.dict"})


def _construct(w: Walk, callee: Class, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    session, info = w.session, callee.info
    if session.stack.traced and isinstance(node, ast.expr) and (info.node.bases or info.node.decorator_list):
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
        new = info.methods.get("__new__")
        if new is not None:
            session.enter(Function(new, bound=callee), args, keywords, w, node)
        if init is None:
            return instance
        session.enter(Function(init, bound=instance), args, keywords, w, node)
        given = bind(session, Function(init, bound=instance), args, keywords)
        return Instance(info, True, {name: v for name, v in given.items() if tensor_in(v) is not None})
    return Instance(info, session.stack.traced, _kept(w, info, args, keywords))


def _kept(w: Walk, info: ClassInfo, args: Arguments, keywords: Keywords) -> dict[str, Value] | None:
    """The arguments of `__init__`, by parameter, that an instance is told by: the functions that it may call, and NumPy
    numbers, of which Dynamo makes tensors. None without any."""
    if not any(map(_tells_apart, args)) and not any(map(_tells_apart, keywords.values())):
        return None
    init = find_method(w.session, info, "__init__")
    bound = bind(w.session, Function(init, bound=UNKNOWN), args, keywords) if init is not None else {}
    return {name: v for name, v in bound.items() if _tells_apart(v)} or None


def _tells_apart(value: Value) -> bool:
    return value.__class__ is Function or (isinstance(value, Tensor) and value.ndarray)


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
        if isinstance(node, ast.expr) and callee.name == "__delattr__":
            w.emit(Call, node, "builtins.object.__delattr__", receiver, args, keywords)
        if isinstance(node, ast.expr) and not (callee.name == "__init__" and w.info.name == "__init__"):
            w.emit(Operation, node, f"super().{callee.name}", receiver)
        return _inherited(w, receiver, callee.name, args, keywords, node)
    return UNKNOWN


def _inherited(w: Walk, above: Super, name: str, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    """`super().name(...)` of a method without available source."""
    if name == "__init__":
        return NONE
    receiver = above.receiver
    if not isinstance(receiver, Instance):
        return UNKNOWN
    if name == "__call__" and is_module_class(w.session, receiver.info):
        return _forward(w, receiver, args, keywords, node)
    if name == "__getattr__" and args and isinstance(args[0], Const) and isinstance(node, ast.expr):
        value = attribute(w, receiver, str(args[0].value), node)
        if value.__class__ in MAY_BE_UNTAKEN:
            loaded(w, node, value)
        return value
    return _of_base(w, above, name, receiver, args, keywords, node)
