"""Tensors to try: what a model's layers demand, what an annotation says, what a parameter's name suggests."""

from __future__ import annotations

import re
from typing import Any

import torch

BATCH, LENGTH = 2, 5
SIDES = (32, 28, 64, 224)
"""Heights and widths of images: CIFAR's, MNIST's, and two that deep networks need."""


class Tensor:
    """A tensor as source text. `kind` is "float", "int" (below `high`) or "bool"."""

    def __init__(self, kind: str, shape: tuple[int, ...], high: int = 8) -> None:
        self.kind = kind
        self.shape = shape
        self.high = high

    def text(self) -> str:
        sizes = ", ".join(map(str, self.shape))
        if self.kind == "int":
            comma = "," if len(self.shape) == 1 else ""
            return f"torch.randint(0, {self.high}, ({sizes}{comma}))"
        if self.kind == "bool":
            return f"torch.ones({sizes or '()'}, dtype=torch.bool)"
        return f"torch.randn({sizes or '()'})"

    def like(self, shape: tuple[int, ...]) -> Tensor:
        return Tensor(self.kind, shape, self.high)

    def as_int(self, high: int) -> Tensor:
        """Indices in place of features: the last dimension goes."""
        return Tensor("int", self.shape[:-1] if len(self.shape) > 1 and self.kind == "float" else self.shape, high)


def from_layers(model: torch.nn.Module) -> list[Tensor]:
    """What the layers accept, in the order in which the model holds them; the first is most often the one that gets
    the input.
    """
    found: list[Tensor] = []
    for layer in model.modules():
        found += _accepted(layer)
    for parameter in model.parameters(recurse=False):
        if parameter.dim() in (1, 2):
            found += [Tensor("float", (BATCH, size)) for size in dict.fromkeys(parameter.shape)]
    unique = {tensor.text(): tensor for tensor in found}
    return list(unique.values())[:16]


def _accepted(layer: torch.nn.Module) -> list[Tensor]:
    nn = torch.nn
    if isinstance(layer, nn.Embedding):
        return [Tensor("int", (BATCH, LENGTH), layer.num_embeddings), Tensor("int", (BATCH,), layer.num_embeddings)]
    if isinstance(layer, nn.Linear):
        return [Tensor("float", (BATCH, layer.in_features)), Tensor("float", (BATCH, LENGTH, layer.in_features))]
    if isinstance(layer, (nn.Conv1d, nn.Conv2d, nn.Conv3d)):
        rank = {nn.Conv1d: 1, nn.Conv2d: 2, nn.Conv3d: 3}
        dimensions = next(n for kind, n in rank.items() if isinstance(layer, kind))
        sides = SIDES if dimensions < 3 else (16,)
        return [Tensor("float", (BATCH, layer.in_channels, *[side] * dimensions)) for side in sides]
    if isinstance(layer, (nn.LSTM, nn.GRU, nn.RNN)):
        return [Tensor("float", (BATCH, LENGTH, layer.input_size))]
    if isinstance(layer, (nn.LSTMCell, nn.GRUCell, nn.RNNCell)):
        return [Tensor("float", (BATCH, layer.input_size))]
    if isinstance(layer, nn.MultiheadAttention):
        return [Tensor("float", (BATCH, LENGTH, layer.embed_dim))]
    if isinstance(layer, nn.LayerNorm):
        return [
            Tensor("float", (BATCH, LENGTH, *layer.normalized_shape)),
            Tensor("float", (BATCH, *layer.normalized_shape)),
        ]
    if isinstance(layer, nn.BatchNorm2d):
        return [Tensor("float", (BATCH, layer.num_features, 16, 16))]
    if isinstance(layer, nn.BatchNorm1d):
        return [Tensor("float", (BATCH, layer.num_features))]
    return []


_JAXTYPING = re.compile(r"\b(Float\w*|Int\w*|UInt\w*|Bool|Shaped|Num|Inexact|BFloat16)\[[^,\]]*,\s*['\"]([^'\"]*)['\"]")
_TENSOR = re.compile(r"\b(Tensor|FloatTensor|LongTensor|BoolTensor|IntTensor)\b")


def from_annotation(annotation: Any, shape: Tensor) -> Any:
    """A value for a parameter by its annotation (an object, or text under postponed evaluation); None where it says
    nothing.
    """
    dims, kind = getattr(annotation, "dim_str", None), getattr(annotation, "__name__", "")
    text = annotation if isinstance(annotation, str) else str(annotation)
    found = _JAXTYPING.search(text)
    if dims is None and found is not None:
        kind, dims = found.groups()
    if dims is not None:
        return _named_dimensions(kind, dims, shape)
    name = annotation.__name__ if isinstance(annotation, type) else text
    tensor = _TENSOR.search(name)
    if tensor is not None:
        return {"LongTensor": shape.as_int(8), "IntTensor": shape.as_int(8)}.get(tensor.group(1))
    return {"bool": False, "int": 2, "float": 0.5, "str": ""}.get(name)


def _named_dimensions(kind: str, dims: str, shape: Tensor) -> Tensor:
    """`"batch time 64"`: numbers as they are; the last name takes the size that the layers demand, others are small."""
    names = [name.lstrip("#*").split("=")[-1] for name in dims.split() if name != "..."]
    sizes = []
    for position, name in enumerate(names):
        if name.isdigit():
            sizes.append(int(name))
        elif position == len(names) - 1 and shape.shape and shape.kind == "float":
            sizes.append(shape.shape[-1])
        else:
            sizes.append({"b": BATCH, "batch": BATCH, "n": BATCH}.get(name.lower(), LENGTH))
    if kind.startswith(("Int", "UInt")):
        return Tensor("int", tuple(sizes), shape.high)
    return Tensor("bool" if kind.startswith("Bool") else "float", tuple(sizes))


_INDICES = re.compile(r"(^|_)(ids?|tokens?|idx|index|indices|labels?|targets?)($|_)")


def from_name(name: str, shape: Tensor) -> Any:
    """A tensor for a parameter without a telling annotation."""
    if re.search(r"pixel|image|img", name) and len(shape.shape) != 4:
        return Tensor("float", (BATCH, 3, 32, 32))
    if "mask" in name:
        return Tensor("bool", shape.shape[:2] if shape.kind == "float" and len(shape.shape) == 3 else shape.shape)
    if _INDICES.search(name) and shape.kind == "float":
        return shape.as_int(8)
    return {"training": False, "inplace": False}.get(name, shape)


def resized(tensor: Tensor, rank: int) -> Tensor | None:
    """The same tensor with another number of dimensions; the first and the last stay."""
    shape = tensor.shape
    if rank <= 0 or rank == len(shape):
        return None
    if rank < len(shape):
        return tensor.like((*shape[: rank - 1], shape[-1]) if rank > 1 else shape[-1:])
    first, last = (shape[:1] or (BATCH,)), (shape[-1:] if len(shape) > 1 else (8,))
    return tensor.like((*first, *([LENGTH] * (rank - 2)), *last)) if rank > 1 else tensor.like((8,))
