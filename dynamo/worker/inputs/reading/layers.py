"""What torch's own layers accept, by position of the argument; the first alternative is the likeliest."""

from __future__ import annotations

import re
from typing import Any

import torch

from . import patterns
from .shapes import BATCH, LENGTH, Tensor

SIDES = (32, 28, 64, 224)
"""Heights and widths of images: CIFAR's, MNIST's, and two that deep networks need."""
DEPTHS = (16, 4)
SAME_SHAPE = (
    torch.nn.Identity,
    torch.nn.Dropout,
    torch.nn.ReLU,
    torch.nn.GELU,
    torch.nn.SiLU,
    torch.nn.Tanh,
    torch.nn.Sigmoid,
    torch.nn.LeakyReLU,
    torch.nn.LayerNorm,
    torch.nn.BatchNorm1d,
    torch.nn.BatchNorm2d,
    torch.nn.BatchNorm3d,
    torch.nn.GroupNorm,
)
"""Layers whose result has the shape of what they get."""
_SIDE_NAME = re.compile(r"(image|img)_?(size|resolution)$|^input_resolution$")
_MOST_LAYERS = 16


def demands(layer: torch.nn.Module, position: Any, sides: tuple[int, ...] = SIDES) -> list[Tensor]:
    """What a layer takes as its argument at a position (a number) or of a name; nothing where it does not say."""
    nn = torch.nn
    if isinstance(layer, (nn.LSTM, nn.GRU, nn.RNN)):
        return _recurrent(layer, position)
    if isinstance(layer, (nn.LSTMCell, nn.GRUCell, nn.RNNCell)):
        return [Tensor("float", (BATCH, layer.input_size if position in (0, "input") else layer.hidden_size))]
    if isinstance(layer, nn.MultiheadAttention):
        return _attention(layer, position)
    if isinstance(layer, nn.EmbeddingBag) and position in (1, "offsets"):
        return [Tensor("int", (BATCH,), 1)]  # all 0: offsets begin with it
    if isinstance(layer, (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)):
        return demands(layer.self_attn, 0) if position in (0, 1, "src", "tgt", "memory") else []
    if isinstance(layer, (nn.CrossEntropyLoss, nn.NLLLoss)) and position in (1, "target"):
        return [Tensor("int", (BATCH,), 2)]
    if type(layer).__module__.startswith("einops.layers") and isinstance(getattr(layer, "pattern", None), str):
        sizes = {n: v for n, v in getattr(layer, "axes_lengths", {}).items() if isinstance(v, int)}
        return [Tensor("float", shape) for shape in patterns.taken(layer.pattern, sizes)]  # type: ignore[arg-type]
    return _first(layer, sides) if position in (0, "input") else []


OF_FUNCTIONS: dict[str, dict[int, Tensor]] = {
    "index_add": {2: Tensor("int", (BATCH,), BATCH)},
    "index_copy": {2: Tensor("int", (BATCH,), BATCH)},
    "index_fill": {2: Tensor("int", (BATCH,), BATCH)},
    "index_select": {2: Tensor("int", (BATCH,), BATCH)},
    "one_hot": {0: Tensor("int", (BATCH, LENGTH), 2)},
    "embedding": {0: Tensor("int", (BATCH, LENGTH), 2)},
    "cross_entropy": {1: Tensor("int", (BATCH,), 2)},
    "nll_loss": {1: Tensor("int", (BATCH,), 2)},
    "binary_cross_entropy": {1: Tensor("unit", (BATCH, 1))},
    "pack_padded_sequence": {1: Tensor("int", (BATCH,), LENGTH + 1, 1)},
    "grid_sample": {1: Tensor("float", (BATCH, 8, 8, 2))},
}
"""What torch's functions take, by position; of a method the object is the first argument."""


def _first(layer: torch.nn.Module, sides: tuple[int, ...]) -> list[Tensor]:
    nn = torch.nn
    if isinstance(layer, nn.Embedding):
        return [Tensor("int", (BATCH, LENGTH), layer.num_embeddings), Tensor("int", (BATCH,), layer.num_embeddings)]
    if isinstance(layer, nn.EmbeddingBag):
        return [Tensor("int", (BATCH, LENGTH), layer.num_embeddings), Tensor("int", (8,), layer.num_embeddings)]
    if isinstance(layer, nn.Linear):
        return features(layer.in_features)
    if isinstance(layer, nn.Bilinear):
        return features(layer.in1_features)
    if isinstance(layer, nn.LayerNorm):
        shape = tuple(layer.normalized_shape)
        return [Tensor("float", (BATCH, LENGTH, *shape)), Tensor("float", (BATCH, *shape))]
    if isinstance(layer, nn.GroupNorm):
        return [Tensor("float", (BATCH, layer.num_channels, 16, 16)), Tensor("float", (BATCH, layer.num_channels))]
    for rank, kinds in enumerate(_RANKED, 1):
        if isinstance(layer, kinds):
            return _ranked(layer, rank, sides)
    return []


_RANKED: tuple[tuple[type, ...], ...] = (
    (torch.nn.Conv1d, torch.nn.ConvTranspose1d, torch.nn.BatchNorm1d),
    (torch.nn.Conv2d, torch.nn.ConvTranspose2d, torch.nn.BatchNorm2d),
    (torch.nn.Conv3d, torch.nn.ConvTranspose3d, torch.nn.BatchNorm3d),
)


def _ranked(layer: Any, rank: int, sides: tuple[int, ...]) -> list[Tensor]:
    if isinstance(layer, torch.nn.BatchNorm1d):
        return features(layer.num_features)[:1]
    channels = layer.in_channels if hasattr(layer, "in_channels") else layer.num_features
    if rank < 3:
        return [Tensor("float", (BATCH, channels, *[side] * rank)) for side in sides]
    kernel = layer.kernel_size[0] if hasattr(layer, "kernel_size") else DEPTHS[0]
    return [Tensor("float", (BATCH, channels, depth, 16, 16)) for depth in dict.fromkeys((*DEPTHS, kernel))]


def features(size: int) -> list[Tensor]:
    return [Tensor("float", (BATCH, size)), Tensor("float", (BATCH, LENGTH, size))]


def _recurrent(layer: Any, position: Any) -> list[Tensor]:
    if position in (0, "input"):
        return [Tensor("float", (BATCH, LENGTH, layer.input_size))]
    batch = BATCH if layer.batch_first else LENGTH
    state = Tensor("float", (layer.num_layers * (2 if layer.bidirectional else 1), batch, layer.hidden_size))
    return [state]


def _attention(layer: Any, position: Any) -> list[Tensor]:
    if position in (3, "key_padding_mask"):
        return [Tensor("bool", (BATCH, LENGTH) if layer.batch_first else (LENGTH, BATCH))]
    sizes = {1: layer.kdim, "key": layer.kdim, 2: layer.vdim, "value": layer.vdim}
    return [Tensor("float", (BATCH, LENGTH, sizes.get(position) or layer.embed_dim))]


def anywhere(model: torch.nn.Module, sides: tuple[int, ...]) -> list[Tensor]:
    """What any of the layers accept, in the order in which the model holds them; the first is most often the one that
    gets the input.
    """
    found: list[Tensor] = []
    for layer in model.modules():
        found += [tensor for tensor in demands(layer, 0, sides) if 0 not in tensor.shape]  # a lazy layer says 0
    for parameter in model.parameters(recurse=False):
        if not torch.nn.parameter.is_lazy(parameter) and parameter.dim() in (1, 2):
            found += [Tensor("float", (BATCH, size)) for size in dict.fromkeys(parameter.shape)]
    unique = {tensor.text(): tensor for tensor in found}
    return list(unique.values())[:_MOST_LAYERS]


def sides_of(model: torch.nn.Module) -> tuple[int, ...]:
    """Sides of images to try: first what the model or its configuration calls its image size."""
    named: list[int] = []
    for layer in model.modules():
        for values in (vars(layer), getattr(getattr(layer, "config", None), "__dict__", {})):
            for name, value in values.items():
                if _SIDE_NAME.search(name):
                    value = value[-1] if isinstance(value, (tuple, list)) and value else value
                    named += [value] if isinstance(value, int) and 0 < value <= 1024 else []
    return tuple(dict.fromkeys((*named, *SIDES)))
