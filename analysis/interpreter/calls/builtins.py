"""Transfer functions of Python's builtins."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from graphmend.analysis.interpreter.events import Operation
from graphmend.analysis.interpreter.operations import dictionaries, own_objects, special_methods
from graphmend.analysis.interpreter.operations.attributes import attribute
from graphmend.analysis.interpreter.operations.dictionaries import widened
from graphmend.analysis.interpreter.operations.objects import used
from graphmend.analysis.interpreter.operations.subscripts import element_of, elements_of
from graphmend.analysis.lattice.arguments import Arguments, Keywords
from graphmend.analysis.lattice.evidence import Evidence
from graphmend.analysis.lattice.external import Enumeration, ExternalInstance, IdNumber, PartialString
from graphmend.analysis.lattice.values import (
    BOOL,
    FALSE,
    INT,
    NONE,
    STATIC,
    STR,
    UNKNOWN,
    Const,
    Container,
    Scalar,
    Static,
    Tensor,
    Value,
    is_known_number,
    join,
    join_all,
    tensor_in,
)
from graphmend.analysis.program.entities import Class, Function, Instance, Super
from graphmend.analysis.resolution.instance_attributes import is_override, member_names
from graphmend.analysis.tensors.operations import result

if TYPE_CHECKING:
    from graphmend.analysis.interpreter.interface import Walk

#: builtin classes of which nothing but their name is modelled
_OBJECTS = frozenset({"memoryview", "bytearray"})

_Builtin = Callable[["Walk", Arguments, Keywords, ast.AST], Value]


def builtin(w: Walk, name: str, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    """A call of a builtin, by its bare name."""
    if args and args[0].dispatches:
        answer = special_methods.by_builtin(w, name, args[0], node)
        if answer is not None:
            return answer
    if args and args[0].opaque:
        used(w, node, name, args[0])
    if args and name in ("repr", "str") and isinstance(node, ast.expr) and isinstance(args[0], (Container, Function)):
        w.emit(Operation, node, name, args[0])
    if name in _OBJECTS:
        return ExternalInstance(f"builtins.{name}", made_inside=w.session.stack.traced)
    handler = _BUILTINS.get(name)
    if handler is not None:
        return handler(w, args, keywords, node)
    if name[:1].isupper():
        return ExternalInstance(f"builtins.{name}", made_inside=True)
    return STATIC if all(isinstance(a, Static) for a in args) else UNKNOWN


def _scalar(kind: str) -> _Builtin:
    def convert(w: Walk, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        tensor = tensor_in(args[0]) if args else None
        if tensor is not None and is_known_number(tensor):
            return Static(kind)
        if tensor is not None:
            return Scalar(
                Evidence("takes a Python value out of a Tensor", node, tensor.origin),
                kind,
                symbolic=w.session.mode.scalars,
            )
        if args and isinstance(args[0], Scalar):
            return args[0].derived(kind)
        if args and isinstance(args[0], Const) and isinstance(args[0].value, (int, float, bool)):
            try:
                return Const({"int": int, "float": float, "bool": bool}[kind](args[0].value))
            except (OverflowError, ValueError):
                return Static(kind)
        return Static(kind)

    return convert


def _len(w: Walk, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    if args and isinstance(args[0], Container) and args[0].kind == "tuple" and args[0].items is not None:
        return Const(len(args[0].items))
    return INT


def _sequence(kind: str) -> _Builtin:
    def make(w: Walk, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        if not args:
            return Container(kind, ())
        value = args[0]
        if isinstance(value, Container) and value.items is not None and value.kind in ("list", "tuple", "modules"):
            return Container(kind, value.items)
        return Container(kind, of=element_of(w, value, node))

    return make


def _sorted(w: Walk, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    element = element_of(w, args[0], node) if args else UNKNOWN
    own_objects.sorted_by_themselves(w, node, element, keywords)
    return Container("list", of=element)


def _enumerate(w: Walk, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    return Enumeration(Container("tuple", (INT, element_of(w, args[0], node) if args else UNKNOWN)))


def _zip(w: Walk, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    return Container("generator", of=Container("tuple", elements_of(w, args, node)))


def _extreme(w: Walk, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    """`max` and `min`: Dynamo turns those of tensors into torch.maximum (torch 2.13)."""
    values = args if len(args) > 1 else (element_of(w, args[0], node),) if args else ()
    own_objects.given(w, node, "extreme", values)
    tensor = next((t for t in map(tensor_in, values) if t is not None), None)
    if tensor is not None:
        return result(tensor, node, "is a Tensor, as an argument is", rank=tensor.rank)
    scalar = next((v for v in values if isinstance(v, Scalar)), None)
    return scalar.derived(scalar.type) if scalar is not None else join_all(widened(v) for v in values)


def _sum(w: Walk, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    added = element_of(w, args[0], node) if args else UNKNOWN
    tensor = tensor_in(added)
    if tensor is not None:
        return result(tensor, node, "adds Tensors", rank=tensor.rank)
    return UNKNOWN if added.dispatches else widened(added)


def _truths(w: Walk, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    return BOOL


def _getattr(w: Walk, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    if len(args) >= 2 and isinstance(args[1], Const) and isinstance(args[1].value, str):
        found = attribute(w, args[0], args[1].value, node)
        if len(args) == 3 and isinstance(found, (Static, Tensor, Container)):
            return join(found, args[2]) if not isinstance(args[2], Const) else widened(found)
        return found
    if len(args) == 2 and isinstance(args[1], PartialString) and isinstance(args[0], Instance):
        names = [n for n in member_names(w.session, args[0].info) if args[1].fits(n)]
        return join_all(attribute(w, args[0], name, node) for name in names)
    return UNKNOWN


def _hasattr(w: Walk, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    match args:
        case (Instance(info=info), Const(value=str(name))) if is_override(w.session, info, name):
            return FALSE
    return BOOL


def _next(w: Walk, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    return element_of(w, args[0], node) if args else UNKNOWN


def _iterator(w: Walk, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    if args and isinstance(args[0], Container):
        return Container("generator", args[0].items, args[0].of) if args[0].kind != "dict" else UNKNOWN
    return Container("generator", of=element_of(w, args[0], node)) if args else UNKNOWN


def _dict(w: Walk, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    if args and isinstance(args[0], Container) and args[0].kind == "dict":
        fields = dict(args[0].fields or {})
        dictionaries.spread(fields, keywords)
        return Container("dict", None, args[0].of, fields)
    if not args:
        return Container("dict", None, join_all(keywords.values()) if keywords else None, dict(keywords))
    return Container("dict", of=UNKNOWN, fields={})


def _super(w: Walk, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    owner = w.info.owner
    if len(args) == 2 and isinstance(args[0], Class):
        owner = args[0].info
    receiver = args[1] if len(args) == 2 else w.env.get(w.info.parameters[0].arg) if w.info.parameters else None
    if owner is None or not isinstance(receiver, (Instance, Class)):
        return UNKNOWN
    return Super(receiver.info, owner, receiver)


def _abs(w: Walk, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    tensor = tensor_in(args[0]) if args else None
    if tensor is not None:
        return result(tensor, node, rank=tensor.rank, dtype=tensor.dtype, shape=tensor.shape)
    return widened(args[0]) if args else UNKNOWN


def _range(w: Walk, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    return Static("range")


def _type(w: Walk, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    if len(args) == 1 and isinstance(args[0], Instance):
        return Class(args[0].info)
    return UNKNOWN


def _id(w: Walk, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    made = args[0] if args else None
    return IdNumber() if isinstance(made, Tensor) and not made.graph_input and not made.likely else INT


def _always(value: Value) -> _Builtin:
    return lambda w, args, keywords, node: value


def _slice(w: Walk, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    bounds = (NONE, args[0], NONE) if len(args) == 1 else (*args, NONE, NONE)[:3]
    return Container("slice", bounds)


_BUILTINS: dict[str, _Builtin] = {
    "slice": _slice,
    "int": _scalar("int"),
    "float": _scalar("float"),
    "bool": _scalar("bool"),
    "len": _len,
    "list": _sequence("list"),
    "tuple": _sequence("tuple"),
    "set": _sequence("set"),
    "frozenset": _sequence("set"),
    "reversed": _sequence("generator"),
    "sorted": _sorted,
    "enumerate": _enumerate,
    "zip": _zip,
    "max": _extreme,
    "min": _extreme,
    "sum": _sum,
    "any": _truths,
    "all": _truths,
    "isinstance": _always(BOOL),
    "issubclass": _always(BOOL),
    "hasattr": _hasattr,
    "callable": _always(BOOL),
    "getattr": _getattr,
    "next": _next,
    "iter": _iterator,
    "dict": _dict,
    "super": _super,
    "abs": _abs,
    "round": _abs,
    "pow": _abs,
    "range": _range,
    "type": _type,
    "str": _always(STR),
    "repr": _always(STR),
    "format": _always(STR),
    "print": _always(NONE),
    "id": _id,
    "hash": _always(INT),
    "setattr": _always(NONE),
}


# -- methods of containers


# -- the standard library and the rest
