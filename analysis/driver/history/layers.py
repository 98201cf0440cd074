"""Modules of torch in a history: what their constructors are given, and what a graph that calls them is guarded on."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.driver.execution.objects import NONE, UNKNOWN, Constant, Object, Scope, Values
from graphmend.analysis.driver.guards.atoms import Path, Shape, Size, Tensor, only, tensor
from graphmend.analysis.driver.guards.facts import LEFT_OUT, READS_TRAINING

if TYPE_CHECKING:
    from graphmend.analysis.driver.history.interface import Recorder

#: the attribute of a module that says whether its parameters require gradients
LEARNS = "requires_grad"

_OF_CONVOLUTION = {
    "in_channels": ..., "out_channels": ..., "kernel_size": ..., "stride": 1, "padding": 0, "dilation": 1, "groups": 1,
    "bias": True,
}  # fmt: skip
_OF_BATCH = {"num_features": ..., "eps": 1e-5, "momentum": 0.1, "affine": True}
#: constructors' parameters, with their defaults
SIGNATURES: dict[str, dict[str, object]] = {
    "Linear": {"in_features": ..., "out_features": ..., "bias": True},
    **{f"Conv{n}d": _OF_CONVOLUTION for n in (1, 2, 3)},
    **{f"BatchNorm{n}d": _OF_BATCH for n in (1, 2, 3)},
    "Embedding": {"num_embeddings": ..., "embedding_dim": ...},
    "LayerNorm": {"normalized_shape": ..., "eps": 1e-5, "elementwise_affine": True, "bias": True},
    "GroupNorm": {"num_groups": ..., "num_channels": ..., "eps": 1e-5, "affine": True},
    **{name: {"p": 0.5} for name in ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout")},
    "LeakyReLU": {"negative_slope": 0.01},
    "ELU": {"alpha": 1.0},
    "Softmax": {"dim": None},
    "LogSoftmax": {"dim": None},
}
#: attributes that a module's forward reads, beside its parameters
_READ = frozenset({
    "stride", "padding", "dilation", "groups", "eps", "momentum", "p", "negative_slope", "alpha", "dim", "num_groups",
})  # fmt: skip
#: in the order in which TorchDynamo guards on them
_PARAMETERS = ("bias", "weight")
#: modules whose parameters fix a size of what they are given, and its dimension
_FIXES = {
    "Linear": -1,
    "LayerNorm": -1,
    "BatchNorm1d": 1,
    "BatchNorm2d": 1,
    "BatchNorm3d": 1,
    "Conv1d": -2,
    "Conv2d": -3,
    "Conv3d": -4,
}
#: how the names of modules begin that have parameters
_LEARNS = ("Linear", "Conv", "Embedding", "LayerNorm", "BatchNorm", "GroupNorm")
#: modules whose result has the sizes of what they are given
_KEEPS = frozenset({
    "ReLU", "GELU", "SiLU", "Tanh", "Sigmoid", "Dropout", "LayerNorm", "BatchNorm1d", "BatchNorm2d", "Identity",
    "Softmax", "RMSNorm", "GroupNorm", "LeakyReLU", "ELU",
})  # fmt: skip


def configure(made: Values, kind: str, arguments: list[Values], keywords: dict[str, Values]) -> None:
    """Set what a new module's constructor keeps of its arguments: numbers, and parameters of known sizes."""
    owner = made[0] if len(made) == 1 else None
    if not isinstance(owner, Object):
        return
    signature = SIGNATURES[kind]
    given = {**dict(zip(signature, arguments, strict=False)), **keywords}
    for name in signature.keys() & _READ:
        owner.attributes[name] = given.get(name, (Constant(signature[name]),))
    sizes = _sizes(kind, {name: only(values) for name, values in given.items()})
    without = only(given.get("bias", (Constant(True),)))
    for name, shape in sizes.items():
        if name == "bias" and without is not True:
            owner.attributes[name] = NONE if without is False else UNKNOWN
            continue
        parameter = Tensor(shape, "float32" if "dtype" not in given else None, True)
        parameter.marks = dict.fromkeys(range(len(shape)), "parameter")
        owner.attributes[name] = (parameter,)


def _sizes(kind: str, given: dict[str, object]) -> dict[str, Shape]:
    """The sizes of a module's parameters, by name."""

    def size(name: str) -> Size:
        found = given.get(name, ...)
        return found if isinstance(found, int) else None

    if kind == "Linear":
        return {"weight": (size("out_features"), size("in_features")), "bias": (size("out_features"),)}
    if kind == "Embedding":
        return {"weight": (size("num_embeddings"), size("embedding_dim"))}
    if kind.startswith("Conv"):
        channels = size("in_channels") if given.get("groups", 1) == 1 else None
        kernel = (size("kernel_size"),) * int(kind[4])
        return {"weight": (size("out_channels"), channels, *kernel), "bias": (size("out_channels"),)}
    return {}


def call(m: Recorder, owner: Object, arguments: list[Values]) -> Values:
    """A call of a module of torch."""
    trace = m.trace
    path = trace.path(owner) if trace is not None else None
    kind = owner.name.rpartition(".")[2]
    if trace is not None and path is not None and kind in READS_TRAINING:
        trace.guard((*path, ("attribute", "training")))
    if owner.name == "torch.nn.Sequential" and owner.items is not None:
        return _in_turn(m, owner, owner.items, arguments[0] if arguments else UNKNOWN)
    given = tensor(arguments[0]) if arguments else None
    if trace is not None:
        for values in arguments:
            trace.touch_all(values)
        if given is not None and kind in _FIXES and given.shape is not None and trace.path(given) is not None:
            index = _FIXES[kind] % max(1, len(given.shape))
            trace.guard((*(trace.path(given) or ()), ("size", index)))
    if trace is not None and path is not None:
        _guard(m, owner, path)
    result = m.program.torch.returns(f"{owner.name}.forward", len(arguments))
    if result is None or not result.is_tensor:
        return UNKNOWN
    if given is None:
        return (Tensor(None, None, None, None),)
    learns = kind.startswith(_LEARNS)
    guarded = m.program.torch.minor not in LEFT_OUT["parameters' requires_grad"]
    if trace is not None and path is not None and learns and guarded:
        trace.guard((*path, ("attribute", LEARNS)))
    gradient = True if learns and m.modes["grad_mode"] else given.gradient
    dtype = "float32" if kind == "Embedding" else given.dtype
    return (Tensor(_shape(owner, kind, given), dtype, gradient if m.modes["grad_mode"] else False),)


def _shape(owner: Object, kind: str, given: Tensor) -> Shape | None:
    """The sizes of what a module gives back."""
    weight = tensor(owner.attributes.get("weight", ()))
    if kind in _KEEPS or given.shape is None or weight is None or weight.shape is None:
        return given.shape if kind in _KEEPS else None
    if kind == "Linear":
        return (*given.shape[:-1], weight.shape[0])
    return (*given.shape, weight.shape[1]) if kind == "Embedding" else None


def _in_turn(m: Recorder, owner: Object, items: list[Values], values: Values) -> Values:
    """A call of a `Sequential`."""
    trace = m.trace
    path = trace.path(owner) if trace is not None else None
    if trace is not None and path is not None and not owner.rest:
        trace.guard((*path, ("modules",)))
    for index, inner in enumerate(items):
        if not m.spend():
            return UNKNOWN
        if trace is not None and path is not None:
            inner = trace.given(inner, (*path, ("module", index)))
        values = m.call(inner, [values], {}, ast.Constant(0), Scope(m.main))
    return values


def _guard(m: Recorder, owner: Object, path: Path) -> None:
    """Guard on what the module's forward reads of it."""
    assert m.trace is not None
    for name in _PARAMETERS:
        values = owner.attributes.get(name, ())
        if len(values) == 1 and isinstance(values[0], (Tensor, Constant)):
            m.trace.guard((*path, ("parameter", name)))
        for index in range(len(values[0].shape or ()) if len(values) == 1 and isinstance(values[0], Tensor) else 0):
            m.trace.guard((*path, ("parameter", name), ("size", index)))
    for name in sorted(owner.attributes.keys() & _READ):
        m.trace.guard((*path, ("attribute", name)))
