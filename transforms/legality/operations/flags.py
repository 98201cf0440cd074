"""Where an argument makes an operation change something: the position of `inplace` and of `max_norm`, counted from 0.

Held against the signatures of the torch that is installed by tests/transforms/test_torch_names.py.
"""

from __future__ import annotations

from typing import NamedTuple

#: functions of torch.nn.functional, by the position of `inplace`
INPLACE: dict[str, int] = {
    **dict.fromkeys("relu relu6 silu mish selu hardswish hardsigmoid".split(), 1),
    **dict.fromkeys("leaky_relu elu celu".split(), 2),
    **dict.fromkeys(
        "hardtanh threshold dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout".split(), 3
    ),
    "rrelu": 4,
}

#: constructors of torch.nn, by the position of `inplace`
LAYER_INPLACE: dict[str, int] = {
    **dict.fromkeys("ReLU ReLU6 SiLU Mish SELU Hardswish Hardsigmoid".split(), 0),
    **dict.fromkeys(
        "LeakyReLU ELU CELU Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout".split(), 1
    ),
    **dict.fromkeys("Hardtanh RReLU Threshold".split(), 2),
}

#: the same for `max_norm`, with which a table of embeddings is changed as it is read
MAX_NORM: dict[str, int] = {"embedding": 3, "embedding_bag": 3}
LAYER_MAX_NORM: dict[str, int] = {"Embedding": 3, "EmbeddingBag": 2}


class Statistics(NamedTuple):
    """Which arguments of a normalisation it counts in, where a flag does not say otherwise."""

    counted: tuple[tuple[str, int], ...]
    flag: str
    flag_position: int


_MEAN_AND_VAR = ("running_mean", "running_var")
#: functions that change the statistics that they are given
STATISTICS = {
    "torch.nn.functional.batch_norm": Statistics(tuple(zip(_MEAN_AND_VAR, (1, 2), strict=True)), "training", 5),
    "torch.nn.functional.instance_norm": Statistics(
        tuple(zip(_MEAN_AND_VAR, (1, 2), strict=True)), "use_input_stats", 5
    ),
    "torch.batch_norm": Statistics(tuple(zip(_MEAN_AND_VAR, (3, 4), strict=True)), "training", 5),
    "torch.instance_norm": Statistics(tuple(zip(_MEAN_AND_VAR, (3, 4), strict=True)), "use_input_stats", 5),
}
#: the buffers of layers that count in their calls
COUNTED = frozenset({*_MEAN_AND_VAR, "num_batches_tracked"})

#: functions of `operator`, and methods between double underscores, that change their first operand
IN_PLACE_OPERATORS = frozenset(
    "iadd iand iconcat ifloordiv ilshift imatmul imod imul ior ipow irshift isub itruediv ixor setitem delitem".split()
)


def is_in_place(method: str) -> bool:
    """Does a method of tensors change the one that it is called on, by its name?"""
    if method.startswith("__") and method.endswith("__"):
        return method[2:-2] in IN_PLACE_OPERATORS
    return method.endswith("_") and not method.endswith("__")
