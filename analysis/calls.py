"""What a call gives. Calls of code in reach are entered; the others become a `Call` event, and a value from torch's
facts."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TYPE_CHECKING

from graphmend.analysis import functional, protocols, python_calls, tensor_ops
from graphmend.analysis.annotations import record, record_fields
from graphmend.analysis.binding import bind
from graphmend.analysis.classes import MODULE_ROOTS, find_method, is_module_class, outside_bases
from graphmend.analysis.entities import Class, Function, Instance, Method, Native, Object, Ref, Super
from graphmend.analysis.events import Call, With
from graphmend.analysis.numpy_calls import numpy_call
from graphmend.analysis.origin import Origin
from graphmend.analysis.signatures import signature
from graphmend.analysis.torch_facts import Returns
from graphmend.analysis.tracing import WHILE_TRACING
from graphmend.analysis.values import (
    INT,
    NONE,
    STATIC,
    STR,
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

if TYPE_CHECKING:
    from graphmend.analysis.definitions import ClassInfo
    from graphmend.analysis.flow import Walker

Arguments = tuple[Value, ...]
Keywords = Mapping[str, Value]

#: context managers in whose body Dynamo can break and resume (torch 2.13); in any other, a break gives the frame up
RESUMABLE = frozenset({
    "torch.no_grad", "torch.enable_grad", "torch.set_grad_enabled", "torch.inference_mode", "torch.autocast",
    "torch.amp.autocast", "torch.cuda.amp.autocast", "torch.cpu.amp.autocast", "torch.autograd.grad_mode.no_grad",
    "contextlib.nullcontext", "torch.profiler.record_function", "torch.autograd.profiler.record_function",
    "torch.profiler.profile", "torch.cuda.stream", "torch.autograd.no_grad", "torch.autograd.enable_grad",
})  # fmt: skip
_STOPS_GRADIENTS = frozenset(
    {"torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad", "torch.autograd.grad_mode.no_grad"}
)


#: functions that call their first argument with the others
_CALLS_ITS_ARGUMENT = frozenset({"torch.utils.checkpoint.checkpoint"})
_CHECKPOINT_OPTIONS = frozenset({"use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug"})
_MAPS_TREE = frozenset({"torch.utils._pytree.tree_map", "torch.utils._pytree.tree_map_only"})


def call(w: Walker, node: ast.Call) -> Value:
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


def apply(w: Walker, callee: Value, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    """The value of `callee(*args, **keywords)`."""
    if isinstance(callee, Ref):
        return external(w, callee.name, None, args, keywords, node)
    if isinstance(callee, Function):
        return w.session.enter(callee, args, keywords, w, node)
    if isinstance(callee, Method):
        return _method(w, callee, args, keywords, node)
    if isinstance(callee, Instance):
        return _instance(w, callee, args, keywords, node)
    if isinstance(callee, Object):
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
    if isinstance(callee, Native):
        return callee.call(w, args, keywords, node)
    if isinstance(callee, Container) and callee.kind == "modules":
        return _sequential(w, callee, args, node)
    if isinstance(callee, Static) and all(isinstance(a, Static) for a in (*args, *keywords.values())):
        return STATIC
    return UNKNOWN


def _sequential(w: Walker, modules: Container, args: Arguments, node: ast.AST) -> Value:
    """`nn.Sequential(...)(x)`: one after the other."""
    if modules.items is None:
        return apply(w, modules.element, args, {}, node)
    value = args[0] if args else UNKNOWN
    for module in modules.items:
        value = apply(w, module, (value,), {}, node)
    return value


def _instance(w: Walker, callee: Instance, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
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


def _construct(w: Walker, callee: Class, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    session, info = w.session, callee.info
    fields = record_fields(session, info)
    if fields is not None:
        given = dict(zip(fields, args, strict=False)) | {k: v for k, v in keywords.items() if k in fields}
        rest = {k: NONE if _is_none(info, k) else v for k, v in fields.items() if k not in given}
        made = record(session, info, {**fields, **rest, **given})
        if session.within_region and not _DICTS.intersection(outside_bases(session, info)):
            protocols.asked(w, made, ("__post_init__",), (), node)
        return made
    for base in outside_bases(session, info):
        if base.startswith("enum."):
            return STATIC
        if base in ("builtins.list", "builtins.dict", "builtins.tuple", "builtins.set"):
            return Container(base[9:], of=UNKNOWN)
    if session.within_region and not is_module_class(session, info):
        init = find_method(session, info, "__init__")
        instance = Instance(info, made_inside=True)
        if init is None:
            return instance
        session.enter(Function(init, bound=instance), args, keywords, w, node)
        given = bind(session, Function(init, bound=instance), args, keywords)
        return Instance(info, True, {name: v for name, v in given.items() if tensor_in(v) is not None})
    return Instance(info, made_inside=session.within_region)


def _is_none(info: ClassInfo, name: str) -> bool:
    """Whether a field is None by default, and no method such as `__post_init__` sets it."""
    default = info.names.get(name)
    return isinstance(default, ast.Constant) and default.value is None and name not in info.assigned


def _method(w: Walker, callee: Method, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    receiver = callee.receiver
    if isinstance(receiver, Tensor):
        owner = "numpy.ndarray" if receiver.ndarray else "torch.Tensor"
        return external(w, f"{owner}.{callee.name}", receiver, args, keywords, node)
    if isinstance(receiver, Container):
        return python_calls.container_method(w, receiver, callee.name, args, keywords, node)
    if isinstance(receiver, Object):
        return external(w, f"{receiver.cls}.{callee.name}", receiver, args, keywords, node)
    if isinstance(receiver, Scalar):
        return receiver.derived(None)
    if isinstance(receiver, Super) and callee.name == "__init__":
        return NONE
    return UNKNOWN


def external(w: Walker, name: str, receiver: Value | None, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    """A call that ends outside the code in reach."""
    session = w.session
    known = WHILE_TRACING.get(name)
    if known is not None:
        return known
    if name in session.settings.returns_tensor:
        return tensor_ops.result(None, node, "returns a Tensor, as the configuration says")
    if name in session.settings.static:
        return STATIC
    takes_function = name in functional.KNOWN
    if takes_function and (answer := functional.answers(w, name, args, keywords, node)) is not None:
        keywords = {**keywords, "key()": answer}
    if not w.silent and isinstance(node, ast.expr) and session.listens(name):
        w.emit(Call, node, name, receiver, args, keywords)
    if name in _CALLS_ITS_ARGUMENT and args:
        passed = {k: v for k, v in keywords.items() if k not in _CHECKPOINT_OPTIONS}
        return apply(w, args[0], args[1:], passed, node)
    if name in _MAPS_TREE and len(args) >= 2:
        function, tree = args[1:3] if name.endswith("_only") and len(args) > 2 else args[:2]
        return functional.mapped_tree(w, function, tree, node)
    if name in ("torch.vmap", "torch.func.vmap", "torch.compile") and args:
        return args[0]
    if takes_function and (value := functional.function(w, name, args, keywords, node)) is not None:
        return value
    root = name.partition(".")[0]
    if root == "torch":
        return _torch(w, name, receiver, args, keywords, node)
    if root == "builtins":
        return python_calls.builtin(w, name[9:], args, keywords, node)
    if root == "numpy":
        return numpy_call(name, receiver, args, keywords, node)
    return python_calls.library(w, name, receiver, args, keywords, node)


# -- torch

_PYTHON_KINDS: dict[str, Value] = {
    "int": INT, "float": Static("float"), "bool": Static("bool"), "number": STATIC, "str": STR,
    "dtype": Static("dtype"), "device": Static("device"), "layout": Static("layout"), "size": Static("size"),
    "none": NONE, "list": Container("list"),
}  # fmt: skip


def _torch(w: Walker, name: str, receiver: Value | None, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    last = name.rpartition(".")[2]
    returns, data_dependent = signature(w.session.torch, name, args, keywords)
    self_ = receiver if isinstance(receiver, Tensor) else None
    if returns is None:
        return _torch_object(w, name, args, keywords, node)
    first = self_ or tensor_ops.any_of((*args, *keywords.values()))
    if last == "where" and len(args) == 1 and not keywords:
        rows = tensor_ops.result(first, node, "returns Tensors", rank=1, dtype="int64")
        return Container("tuple", of=rows)
    if data_dependent or name in (
        "torch.Tensor.tolist",
        "torch.Tensor.item",
    ):
        kind = {"bool": "bool", "int": "int", "list": "list"}.get(returns.kind)
        origin = Origin("takes a Python value out of a Tensor", node, first.origin if first else None)
        scalar = Scalar(origin, kind, symbolic=w.session.mode.scalars)
        return Container("list", of=scalar) if last == "tolist" else scalar
    return _returned(returns, last, self_, first, args, keywords, node)


def _returned(
    returns: Returns,
    last: str,
    self_: Tensor | None,
    first: Tensor | None,
    args: Arguments,
    keywords: Keywords,
    node: ast.AST,
) -> Value:
    if returns.kind in ("T", "self"):
        inputs = (
            args
            if last not in ("cat", "stack", "concat", "vstack", "hstack") or not args
            else (_spread(args[0]), *args[1:])
        )
        return tensor_ops.operation(last, self_, inputs, keywords, node)
    if returns.kind == "tuple":
        if last in ("max", "min", "median", "mode") and first is not None:
            return tensor_ops.pair(first, args[0 if self_ is not None else 1 :], keywords, node)
        items = tuple(
            _returned(r, "", None, first, args, keywords, node)
            if r.kind != "T"
            else tensor_ops.result(first, node, "returns Tensors")
            for r in returns.items
        )
        fields = dict(zip(returns.fields, items, strict=True)) if returns.fields else None
        return Container("tuple", items, fields=fields)
    if returns.kind == "L":
        element = (
            tensor_ops.result(first, node, "returns Tensors", rank=first.rank, dtype=first.dtype) if first else None
        )
        if last in ("unbind",) and first is not None and first.rank:
            element = tensor_ops.unbound(first, node)
        return Container("tuple", of=element or tensor_ops.result(None, node, "returns Tensors"))
    if returns.kind == "union":
        return join_all(_returned(r, last, self_, first, args, keywords, node) for r in returns.items)
    if returns.kind == "ndarray":
        value = tensor_ops.result(
            first,
            node,
            "is traced as an array",
            dtype=first.dtype if first else None,
            shape=first.shape if first else None,
        )
        return Tensor(value.origin, first.rank if first else None, value.dtype, value.shape, ndarray=True)
    if returns.kind == "none" and last.endswith("_copy"):
        return UNKNOWN  # only the overload that writes to `out` gives nothing
    return _PYTHON_KINDS.get(returns.kind, UNKNOWN)


def _spread(value: Value) -> Value:
    """Of a list of tensors that are put together: one of them, of which only rank and dtype hold."""
    if isinstance(value, Container):
        element = tensor_in(value.element)
        if element is not None:
            return Tensor(element.origin, element.rank, element.dtype, None, likely=element.likely)
    return value


def _torch_object(w: Walker, name: str, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    """A class of torch's is called, or something that the facts do not know."""
    last = name.rpartition(".")[2]
    if name == "torch.device":
        return Static("device")
    if name in ("torch.Size", "torch.broadcast_shapes"):
        return Static("size")
    if name.startswith("torch.nn."):
        if last in ("Sequential", "ModuleList"):
            given = args[0] if len(args) == 1 and isinstance(args[0], Container) else None
            if given is not None and given.kind != "modules":
                return Container("modules", given.items, given.of, given.fields)
            return Container("modules", args)
        if last == "ModuleDict":
            return Container("dict", of=args[0].of if args and isinstance(args[0], Container) else UNKNOWN, fields={})
        if last in ("Parameter", "Buffer"):
            given_tensor = tensor_in(args[0]) if args else None
            return tensor_ops.result(
                given_tensor,
                node,
                "makes a Tensor",
                rank=given_tensor.rank if given_tensor else None,
                dtype=given_tensor.dtype if given_tensor else None,
                shape=given_tensor.shape if given_tensor else None,
            )
        if last == "ParameterList":
            return Container("list", of=tensor_ops.result(None, node, "makes Tensors"))
        if last == "forward":
            return UNKNOWN
    if name.endswith("Tensor") and last != "Tensor":
        return tensor_ops.result(None, node, "makes a Tensor")
    if name.startswith("torch.Tensor."):
        return UNKNOWN
    return Object(name, made_inside=w.session.within_region)


# -- contexts


def enter_context(w: Walker, node: ast.expr) -> tuple[Value, bool, bool]:
    """(what `as` binds, whether Dynamo can break inside and resume, whether gradients are off inside)."""
    value = w.eval(node)
    name = value.cls if isinstance(value, Object) else value.name if isinstance(value, Ref) else None
    if isinstance(value, Static) and value.type == "device":
        name = "torch.device"
    w.emit(With, node, name, value)
    bound: Value = UNKNOWN
    if isinstance(value, Container) and value.kind == "generator":
        bound = value.element
    elif isinstance(value, Instance) and (entered := protocols.asked(w, value, ("__enter__",), (), node)) is not None:
        bound = entered
    elif isinstance(value, (Instance, Object, Tensor)):
        bound = value
    stops = name in _STOPS_GRADIENTS
    if name == "torch.set_grad_enabled" and isinstance(node, ast.Call) and node.args:
        argument = node.args[0]
        stops = isinstance(argument, ast.Constant) and argument.value is False
    return bound, name in RESUMABLE, stops
