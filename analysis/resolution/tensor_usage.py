"""Inference from use: parameters without annotation that a function uses as only a tensor can be used."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.evidence import DeclaredEvidence
from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import UNKNOWN, Static, Tensor
from graphmend.analysis.program.definitions import FunctionInfo
from graphmend.analysis.resolution.instance_attributes import instance_attribute
from graphmend.analysis.syntax.traversal import walk

if TYPE_CHECKING:
    from graphmend.analysis.resolution.interface import ProgramView

#: attributes that tensors share with what else gets passed to a model: modules, configuration,
#: containers, strings, dates
_SHARED = frozenset({*dir(list), *dir(dict), *dir(str), *dir(set), *dir(int)}) | frozenset({
    "to", "cuda", "cpu", "float", "half", "double", "bfloat16", "type", "apply", "share_memory", "requires_grad_",
    "train", "eval", "name", "data", "grad", "names", "T", "H", "real", "imag", "copy", "device", "dtype", "layout",
    "is_cuda", "is_leaf", "select", "where", "put", "take",
    "register_hook", "parameters", "mode", "values", "indices", "size", "map_", "record_stream",
})  # fmt: skip
_TELLING = frozenset({"shape", "ndim"})
#: what NumPy's arrays have as well
_OF_ARRAYS = frozenset(
    "all any argmax argmin argpartition argsort base choose clip conj conjugate cumprod cumsum data diagonal dot dtype "
    "fill flatten imag item itemsize mT max mean min nbytes ndim nonzero prod ravel real repeat reshape round "
    "searchsorted shape size sort squeeze std strides sum swapaxes T take tolist trace transpose var view".split()
)
#: methods of modules and of tensors, which no array, number or text has
_CONVERTS = frozenset({"to", "cuda", "cpu", "float", "half", "double", "bfloat16"})


def inferred(session: ProgramView, info: FunctionInfo, name: str) -> Tensor | None:
    """A Tensor, if the function uses parameter `name` as only a tensor can be used."""
    if info.uses is None:
        info.uses = _uses(session, info)
    how, may_be_array = info.uses.get(name, ("", False))
    if not how:
        return None
    says = f"is used as a Tensor in {info.qualname}: {how}"
    origin = DeclaredEvidence(says, name, (info.module.name, info.qualname))
    likely = may_be_array and session.passes_arrays
    return Tensor(origin, None, ("dtype", name), ("shape", name), graph_input=True, likely=likely)


def is_flag(session: ProgramView, info: FunctionInfo, name: str) -> bool:
    """Whether an optional parameter that is annotated as a tensor is in fact a flag: nothing uses it as a tensor, and
    it is tested for truth by itself.

    Such annotations are common mistakes; to believe them would report fine code.
    """
    if not any(p.arg == name for p in (*info.parameters, *info.node.args.kwonlyargs)):
        return False
    if info.uses is None:
        info.uses = _uses(session, info)
    return name not in info.uses


#: layers whose first argument is a tensor and nothing else
_LAYERS = frozenset(
    f"torch.nn.{name}"
    for name in (
        "Linear LazyLinear Embedding EmbeddingBag Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d "
        "LayerNorm RMSNorm GroupNorm BatchNorm1d BatchNorm2d BatchNorm3d InstanceNorm1d InstanceNorm2d InstanceNorm3d "
        "Dropout Dropout1d Dropout2d Dropout3d AlphaDropout ReLU ReLU6 LeakyReLU PReLU ELU SELU GELU SiLU Mish Tanh "
        "Sigmoid Softplus Softmax LogSoftmax Hardtanh Hardswish MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d "
        "AvgPool3d AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveMaxPool2d Upsample PixelShuffle Flatten Unfold "
        "MultiheadAttention"
    ).split()
)

_SAYS_SOMETHING = frozenset({ast.Attribute, ast.Call, ast.Subscript, ast.BinOp, ast.Assign})


def _uses(session: ProgramView, info: FunctionInfo) -> dict[str, tuple[str, bool]]:
    """For each name that is used as only a tensor can be, the first such use, and whether arrays can be used so."""
    found: dict[str, tuple[str, bool]] = {}
    computed: list[ast.Assign] = []

    def note(name: str | None, how: ast.AST, of_arrays: bool, more: str = "") -> None:
        if name is not None and (name not in found or (found[name][1] and not of_arrays)):
            found[name] = f"{ast.unparse(how)}{more}", of_arrays

    for node in walk(info.node):
        if node.__class__ not in _SAYS_SOMETHING:
            continue
        if isinstance(node, ast.Attribute):
            name = _operand(session, info, node.value)
            if name is not None and _tells(session, node):
                note(name, node, node.attr in _OF_ARRAYS)
        elif isinstance(node, ast.Call):
            for name in _passed_as_tensor(session, info, node):
                note(name, node.func, False, f"({name})")
        elif isinstance(node, ast.Subscript):
            if isinstance(node.value, ast.Name) and (
                _selects_dimensions(node.slice) or _compares(session, info, node.value.id, node.slice)
            ):
                note(node.value.id, node, True)
        elif isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.MatMult):
                for side in (node.left, node.right):
                    if isinstance(side, ast.Name):
                        note(side.id, node, True)
        elif isinstance(node, ast.Assign) and isinstance(node.value, (ast.BinOp, ast.UnaryOp, ast.Compare)):
            computed.append(node)
    for statement in computed:
        operand, target = _operand(session, info, statement.value), statement.targets[0]
        if operand is not None and isinstance(target, ast.Name) and target.id in found:
            how, of_arrays = found[target.id]
            note(operand, statement, of_arrays, f", and {how}")
    return found


def is_tensor_only(session: ProgramView, attr: str) -> bool:
    """Whether only tensors, of what a model computes with, have an attribute of that name."""
    return attr in _TELLING or (attr not in _SHARED and _is_tensor_member(session, attr))


def _tells(session: ProgramView, node: ast.Attribute) -> bool:
    """Whether what has the attribute is a tensor. What is computed, as by a comparison, is no module."""
    of_computed = node.attr in _CONVERTS and isinstance(node.value, (ast.Compare, ast.UnaryOp, ast.BinOp))
    return of_computed or is_tensor_only(session, node.attr)


def _operand(session: ProgramView, info: FunctionInfo, node: ast.expr) -> str | None:
    """The single name in `x`, `(x > 0)`, `(2 * x - 1)`, `(x == PAD)`: it is a tensor only if the name is one."""
    if isinstance(node, ast.Name):
        return node.id
    parts: tuple[ast.expr, ...]
    if isinstance(node, ast.UnaryOp):
        parts = (node.operand,)
    elif isinstance(node, ast.BinOp):
        parts = (node.left, node.right)
    elif isinstance(node, ast.Compare):
        parts = (node.left, *node.comparators)
    else:
        return None
    names = [_operand(session, info, part) for part in parts if not _is_number(session, info, part)]
    return names[0] if len(names) == 1 else None


def _binds(info: FunctionInfo, name: str) -> bool:
    """Whether a function has a parameter or variable of that name."""
    return any(
        n.arg == name
        if isinstance(n, ast.arg)
        else isinstance(n, ast.Name) and n.id == name and n.ctx.__class__ is ast.Store
        for n in walk(info.node)
    )


def _is_number(session: ProgramView, info: FunctionInfo, node: ast.expr) -> bool:
    """Is this a number that is written, of the module, or of the object whose method this is?"""
    match node:
        case ast.Constant():
            return True
        case ast.Name(id=name) if name in info.module.globals and not _binds(info, name):
            value = session.reading.evaluate_in(info.module, None, node)
        case ast.Attribute(value=ast.Name(id="self"), attr=attr) if info.owner is not None:
            value = instance_attribute(session, info.owner, attr) or UNKNOWN
        case _:
            return False
    return isinstance(value, Static) and value.type in ("int", "float")


def _passed_as_tensor(session: ProgramView, info: FunctionInfo, call: ast.Call) -> Iterator[str]:
    """The names that a call of torch, of a method that only tensors have, or of a layer of the object, passes for
    parameters that take tensors only.
    """
    if not any(isinstance(argument, ast.Name) for argument in call.args):
        return
    if _is_own_layer(session, info, call.func):
        yield from (a.id for a in call.args[:1] if isinstance(a, ast.Name))
        return
    callee = info.module.qualified(call.func)
    function = call.func
    if (callee or "").startswith("builtins.") and isinstance(function, ast.Attribute):
        # an object's own methods may have any name
        on_itself = isinstance(function.value, ast.Name) and function.value.id not in ("self", "cls")
        if on_itself and is_tensor_only(session, function.attr):
            callee = f"torch.Tensor.{function.attr}"
    if callee is None or not callee.startswith("torch."):
        return
    overloads = session.torch.overloads(callee)
    for i, argument in enumerate(call.args):
        if isinstance(argument, ast.Starred):
            return
        takes_tensors = all(len(o.positional) > i and o.positional[i] in o.tensors_only for o in overloads)
        if isinstance(argument, ast.Name) and overloads and takes_tensors:
            yield argument.id


def _is_own_layer(session: ProgramView, info: FunctionInfo, function: ast.expr) -> bool:
    """Is this one of torch's layers that take one tensor, which the object holds whose method this is?"""
    match function:
        case ast.Attribute(value=ast.Name(id="self"), attr=attr) if info.owner is not None:
            value = instance_attribute(session, info.owner, attr)
            return isinstance(value, ExternalInstance) and value.cls in _LAYERS
    return False


def _selects_dimensions(index: ast.expr) -> bool:
    """`[:, 0]`, `[..., None]`: no list and no dict takes such an index."""
    return isinstance(index, ast.Tuple) and any(
        isinstance(e, ast.Slice) or (isinstance(e, ast.Constant) and e.value in (..., None)) for e in index.elts
    )


def _compares(session: ProgramView, info: FunctionInfo, name: str, index: ast.expr) -> bool:
    """`x[x < 0]`: what is ordered against a number and indexed by the answer."""
    return isinstance(index, ast.Compare) and _operand(session, info, index) == name


def _is_tensor_member(session: ProgramView, attr: str) -> bool:
    return session.torch.knows(f"torch.Tensor.{attr}") or (
        attr.startswith("is_") and session.torch.attribute(attr) is not None
    )
