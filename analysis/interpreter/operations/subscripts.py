"""Transfer functions of indexing and iteration."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graphmend.analysis.interpreter.operations.attributes import call_method
from graphmend.analysis.interpreter.operations.objects import used
from graphmend.analysis.lattice.evidence import Evidence
from graphmend.analysis.lattice.external import ExternalInstance, ExternalName
from graphmend.analysis.lattice.values import (
    INT,
    NONE,
    STATIC,
    STR,
    UNKNOWN,
    Choice,
    Const,
    Container,
    Scalar,
    Static,
    Tensor,
    Value,
    beginning,
    dtype_kind,
    join_all,
    options,
    present,
    without_none,
)
from graphmend.analysis.program.entities import Instance
from graphmend.analysis.program.instance_stores import ELEMENTS
from graphmend.analysis.resolution.classes import find_method
from graphmend.analysis.resolution.instance_attributes import instance_attribute
from graphmend.analysis.tensors import layers, operations
from graphmend.analysis.tensors.marks import sliced

if TYPE_CHECKING:
    from graphmend.analysis.interpreter.interface import Walk


def index_of(w: Walk, node: ast.expr) -> Value:
    """The value of an index expression; a slice is a Container of its bounds."""
    if isinstance(node, ast.Slice):
        return Container(
            "slice", tuple(w.eval(b) if b is not None else NONE for b in (node.lower, node.upper, node.step))
        )
    if isinstance(node, ast.Tuple):
        return Container("tuple", tuple(index_of(w, e) for e in node.elts))
    return w.eval(node)


def item(w: Walk, value: Value, index: Value, node: ast.AST) -> Value:
    """`value[index]`."""
    if isinstance(value, Tensor):
        return sliced(value, index, operations.subscript(value, index, node))
    if isinstance(value, Container):
        return _element(value, index, node)
    if isinstance(value, Choice):
        return join_all(item(w, o, index, node) for o in options(without_none(value)))
    if isinstance(value, Static):
        if value.type == "size":
            return Static("size") if isinstance(index, Container) else INT
        return STR if value.type == "str" else STATIC
    if isinstance(value, Scalar):
        return value.derived(None)
    if isinstance(value, Instance):
        held = _held(w, value, "__getitem__")
        return _element(held, index, node) if held else call_method(w, value, "__getitem__", (index,), {}, node)
    if isinstance(value, ExternalInstance) and not isinstance(index, Container):
        return layers.held(value.cls, "", node) or UNKNOWN
    if isinstance(value, ExternalName) and value.name in ("os.environ",):
        return STR
    if isinstance(value, ExternalName) and value.name.endswith(".default_generators"):
        return ExternalInstance("torch.Generator")
    if value is UNKNOWN and _selects_dimensions(index):
        return Tensor(Evidence("is indexed as only a Tensor can be", node), likely=True)
    return UNKNOWN


def _selects_dimensions(index: Value) -> bool:
    """Whether no list and no dict takes an index: `[:, 0]`, `[rows, columns]` of tensors, a mask."""
    if isinstance(index, Tensor) and dtype_kind(index.dtype) == "bool":
        return index.rank != 0
    parts = index.items if isinstance(index, Container) and index.kind == "tuple" else None
    return any(isinstance(p, Tensor) or (isinstance(p, Container) and p.kind == "slice") for p in parts or ())


def _element(value: Container, index: Value, node: ast.AST) -> Value:
    if isinstance(index, Const) and value.fields is not None and index.value in value.fields:
        held = value.fields[index.value]
        return present(held) if isinstance(held, Choice) else held
    if value.kind == "record" and value.fields and isinstance(index, Const) and index.value == 0:
        return next(iter(value.fields.values()))
    if isinstance(index, Container) and index.kind == "slice":
        bounds: list[Any] = [b.value if isinstance(b, Const) else ... for b in index.items or ()]
        if value.items is not None and all(b is None or isinstance(b, int) for b in bounds):
            lower, upper, step = bounds
            return Container(value.kind, value.items[lower:upper:step]) if step != 0 else UNKNOWN
        known: dict[int, Value] = {}
        if value.kind == "tuple" and isinstance(bounds[0], int) and bounds[0] >= 0 and bounds[1:] == [None, None]:
            known = {index - bounds[0]: held for index, held in beginning(value).items() if index >= bounds[0]}
        return Container(value.kind, of=value.element, fields=known or None)
    if isinstance(index, Const) and isinstance(index.value, int) and value.items is not None:
        if -len(value.items) <= index.value < len(value.items):
            return value.items[index.value]
        return UNKNOWN
    element = value.of or UNKNOWN if value.kind == "dict" else value.element
    return _one_of(element, node)


def _one_of(value: Value, node: ast.AST) -> Value:
    """One element of a container with a known join of its elements: with shape and dtype tokens of its own."""
    if not isinstance(value, Tensor):
        return value
    place = (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
    shape = value.shape if value.rank == 0 else ("element", place)
    dtype = value.dtype if isinstance(value.dtype, str) else ("element dtype", place)
    return value.__class__(
        value.origin,
        value.rank,
        dtype,
        shape,
        likely=value.likely,
        graph_input=value.graph_input,
        ndarray=value.ndarray,
    )


def elements_of(w: Walk, values: Sequence[Value], node: ast.AST) -> tuple[Value, ...]:
    """What iteration over several values side by side yields: tensors with shapes and dtypes of their own."""
    return tuple(_numbered(element_of(w, value, node), number) for number, value in enumerate(values))


def _numbered(value: Value, number: int) -> Value:
    if not isinstance(value, Tensor):
        return value
    shape, dtype = (
        (*token, number) if isinstance(token, tuple) and token[:1] in (("element",), ("element dtype",)) else token
        for token in (value.shape, value.dtype)
    )
    flags = {"likely": value.likely, "graph_input": value.graph_input, "ndarray": value.ndarray}
    return value.__class__(value.origin, value.rank, dtype, shape, **flags)


def element_of(w: Walk, value: Value, node: ast.AST) -> Value:
    """What iteration over a value yields."""
    if value.opaque:
        used(w, node, "iterate", value)
    if isinstance(value, Tensor):
        return operations.unbound(value, node)
    if isinstance(value, Container):
        if value.kind == "dict":
            return (
                join_all(Const(k) for k in value.fields)
                if value.fields and value.of is None
                else UNKNOWN
                if value.of is UNKNOWN
                else STATIC
            )
        return _one_of(value.element, node) if value.items is None else value.element
    if isinstance(value, Choice):
        return join_all(element_of(w, o, node) for o in options(without_none(value)))
    if isinstance(value, Static):
        return INT if value.type in ("range", "size") else STR if value.type == "str" else STATIC
    if isinstance(value, Scalar):
        return value.derived(None)
    if isinstance(value, ExternalInstance) and (tensor := layers.held(value.cls, "", node)) is not None:
        return _one_of(tensor, node)
    if isinstance(value, Instance):
        if value.info.methods.get("__iter__") is not None:
            return element_of(w, call_method(w, value, "__iter__", (), {}, node), node)
        if value.info.methods.get("__getitem__") is not None:
            return call_method(w, value, "__getitem__", (INT,), {}, node)
        held = _held(w, value, "__iter__")
        return element_of(w, held, node) if held else UNKNOWN
    return UNKNOWN


def _held(w: Walk, value: Instance, method: str) -> Container | None:
    """What an object of a class that derives from one of torch's containers holds, where the method is torch's."""
    if find_method(w.session, value.info, method) is not None:
        return None
    held = instance_attribute(w.session, value.info, ELEMENTS)
    return held if isinstance(held, Container) else None
