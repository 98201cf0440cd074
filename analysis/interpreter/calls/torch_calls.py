"""Transfer functions of torch's callables, from the tables in `torch_facts`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.arguments import Arguments, Keywords
from graphmend.analysis.lattice.evidence import Evidence
from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import (
    NONE,
    UNKNOWN,
    Container,
    Scalar,
    Static,
    Tensor,
    Value,
    join_all,
    marked,
    tensor_in,
)
from graphmend.analysis.program.entities import Class, Instance
from graphmend.analysis.resolution.classes import is_module_class
from graphmend.analysis.tensors import distributions, layers, operations
from graphmend.analysis.tensors.equations import einsum_rank
from graphmend.analysis.tensors.layouts import with_layout
from graphmend.analysis.tensors.marks import with_marks
from graphmend.analysis.tensors.return_types import PYTHON_RESULTS, signature
from graphmend.analysis.torch_facts import Returns

if TYPE_CHECKING:
    from graphmend.analysis.interpreter.interface import Walk


#: functions whose results are objects of a kind of their own
_MAKES = {
    "torch.Tensor.data_ptr": "torch.Tensor.data_ptr",
    "torch.autograd.graph.get_gradient_edge": "torch.autograd.graph.GradientEdge",
    "torch.Tensor.register_hook": "torch.utils.hooks.RemovableHandle",
    "torch.jit.freeze": "torch.jit.ScriptModule",
}


#: what gives a `PackedSequence`
_PACKS = frozenset(f"torch.nn.utils.rnn.{name}" for name in ("pack_padded_sequence", "pack_sequence", "PackedSequence"))


def _packed(packed: Tensor | None, node: ast.AST) -> Container:
    """A named tuple: the rows of all sequences, how many sequences are as long as each place, and their order, which is
    None where they are packed in the order in which they are."""
    rows = operations.result(packed, node, "packs Tensors")
    sizes = operations.result(packed, node, "packs Tensors", rank=1, dtype="int64")
    order = join_all((sizes, NONE))
    fields = {"data": rows, "batch_sizes": sizes, "sorted_indices": order, "unsorted_indices": order}
    return Container("tuple", tuple(fields.values()), fields=fields)


def _is_module(w: Walk, value: Value) -> bool:
    if isinstance(value, ExternalInstance):
        return value.cls.startswith("torch.nn.")
    return isinstance(value, Instance) and is_module_class(w.session, value.info)


def _refused(name: str, keywords: Keywords) -> str | None:
    """What kind of tensor a call makes that no graph takes as an input."""
    if name == "torch.quantize_per_tensor":
        return "a quantized Tensor"
    return "a strided nested Tensor" if name == "torch.nested.nested_tensor" and "layout" not in keywords else None


def torch_call(w: Walk, name: str, receiver: Value | None, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    last = name.rpartition(".")[2]
    returns, data_dependent = signature(w.session.torch, name, args, keywords)
    self_ = receiver if isinstance(receiver, Tensor) else None
    if name == "torch.jit.script" and args and _is_module(w, args[0]):
        return ExternalInstance("torch.jit.ScriptModule", made_inside=w.session.stack.traced)
    if name in _MAKES:
        return ExternalInstance(_MAKES[name], made_inside=w.session.stack.traced)
    if name in _PACKS:
        return _packed(operations.any_of((*args, *keywords.values())), node)
    if not w.session.stack.traced and (refused := _refused(name, keywords)) is not None:
        return ExternalInstance(refused)
    if name == "torch.Tensor.as_subclass" and args and isinstance(args[0], Class) and self_ is not None:
        return marked(operations.result(self_, node), ("class", args[0].info))
    if returns is None:
        return _torch_object(w, name, args, keywords, node)
    first = self_ or operations.any_of((*args, *keywords.values()))
    layer = name.split(".")[-2] if last == "forward" and len(args) == 1 and args[0] is first else ""
    if first is not None and (made := layers.given_by(layer, first, node)) is not None:
        return made
    if last == "where" and len(args) == 1 and not keywords:
        rows = operations.result(first, node, "returns Tensors", rank=1, dtype="int64")
        return Container("tuple", of=rows)
    if data_dependent or name in (
        "torch.Tensor.tolist",
        "torch.Tensor.item",
    ):
        kind = {"bool": "bool", "int": "int", "list": "list"}.get(returns.kind)
        origin = Evidence("takes a Python value out of a Tensor", node, first.origin if first else None)
        scalar = Scalar(origin, kind, symbolic=w.session.mode.scalars)
        return Container("list", of=scalar) if last == "tolist" else scalar
    return _returned(returns, last, self_, first, args, keywords, node)


_SPLITS = frozenset("split split_with_sizes chunk tensor_split hsplit vsplit dsplit unsafe_split unsafe_chunk".split())


#: elements of the operand and their places, with as many dimensions
_RANKED = frozenset({"topk", "sort", "cummax", "cummin"})


def _part(last: str, first: Tensor, node: ast.AST) -> Tensor:
    """One of the tensors that a function gives as a list."""
    if last == "nonzero":
        return operations.result(first, node, "returns Tensors", rank=1, dtype="int64")
    if last in _SPLITS:
        return operations.result(first, node, "returns Tensors", rank=first.rank, dtype=first.dtype)
    if last == "unbind":
        return operations.unbound(first, node)
    return operations.result(first, node, "returns Tensors")


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
        if last == "einsum" and args and (rank := einsum_rank(args[0])) is not None:
            return operations.result(first, node, "returns a Tensor", rank=rank)
        value = with_layout(last, first, operations.operation(last, self_, inputs, keywords, node))
        return with_marks(last, first, args, keywords, value)
    if returns.kind == "tuple":
        if last in ("max", "min", "median", "mode") and first is not None:
            return operations.pair(first, args[0 if self_ is not None else 1 :], keywords, node)
        if last in _RANKED and first is not None and len(returns.items) == 2:
            values = operations.result(first, node, "returns Tensors", rank=first.rank, dtype=first.dtype)
            places = operations.result(first, node, "returns Tensors", rank=first.rank, dtype="int64")
            return Container(
                "tuple", (values, places), fields=dict(zip(returns.fields, (values, places), strict=False))
            )
        items = tuple(
            _returned(r, "", None, first, args, keywords, node)
            if r.kind != "T"
            else operations.result(first, node, "returns Tensors")
            for r in returns.items
        )
        fields = dict(zip(returns.fields, items, strict=True)) if returns.fields else None
        return Container("tuple", items, fields=fields)
    if returns.kind == "L":
        element = _part(last, first, node) if first is not None else None
        return Container("tuple", of=element or operations.result(None, node, "returns Tensors"))
    if returns.kind == "union":
        return join_all(_returned(r, last, self_, first, args, keywords, node) for r in returns.items)
    if returns.kind == "ndarray":
        value = operations.result(
            first,
            node,
            "is traced as an array",
            dtype=first.dtype if first else None,
            shape=first.shape if first else None,
        )
        return Tensor(value.origin, first.rank if first else None, value.dtype, value.shape, ndarray=True)
    if returns.kind == "none" and last.endswith("_copy"):
        return UNKNOWN  # only the overload that writes to `out` gives nothing
    return PYTHON_RESULTS.get(returns.kind, UNKNOWN)


def _spread(value: Value) -> Value:
    """For functions that join a list of tensors: one of them, as far as it is like the result: rank and dtype."""
    if isinstance(value, Container):
        element = tensor_in(value.element)
        if element is not None:
            return Tensor(element.origin, element.rank, element.dtype, None, likely=element.likely)
    return value


def _torch_object(w: Walk, name: str, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    """The value of a call of a class of torch, or of something that the tables do not have."""
    last = name.rpartition(".")[2]
    if name == "torch.device":
        return Static("device")
    if name in ("torch.Size", "torch.broadcast_shapes"):
        return Static("size")
    if name.startswith("torch.nn."):
        if (tensors := layers.held(name.rpartition(".")[0], last, node)) is not None:
            return tensors
        if last in ("Sequential", "ModuleList"):
            given = args[0] if len(args) == 1 and isinstance(args[0], Container) else None
            if given is not None and given.kind != "modules":
                return Container("modules", given.items, given.of, given.fields)
            return Container("modules", args)
        if last == "ModuleDict":
            return Container("dict", of=args[0].of if args and isinstance(args[0], Container) else UNKNOWN, fields={})
        if last in ("Parameter", "Buffer"):
            given_tensor = tensor_in(args[0]) if args else None
            return operations.result(
                given_tensor,
                node,
                "makes a Tensor",
                rank=given_tensor.rank if given_tensor else None,
                dtype=given_tensor.dtype if given_tensor else None,
                shape=given_tensor.shape if given_tensor else None,
            )
        if last == "ParameterList":
            return Container("list", of=operations.result(None, node, "makes Tensors"))
        if last == "forward":
            return UNKNOWN
    if (tensor := distributions.given(name, node)) is not None:
        return tensor
    if name.endswith("Tensor") and last != "Tensor":
        return operations.result(None, node, "makes a Tensor")
    if name.startswith("torch.Tensor."):
        return UNKNOWN
    return ExternalInstance(name, made_inside=w.session.stack.traced)
