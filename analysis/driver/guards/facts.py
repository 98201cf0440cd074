"""What TorchDynamo guards on and when it compiles for any value: measured with torch 2.13.0, each by a program that
calls a function with changing values and counts compilations, and in `LEFT_OUT` what 2.8 to 2.12 do otherwise.

A number is compiled for its exact value at first. Where a later call brings another one, TorchDynamo compiles once
more, for any value (*automatic dynamic*), unless the table says that it never does.
"""

from __future__ import annotations

#: where a number stands -> the types of it that are compiled for any value after their first change
WIDENED: dict[str, frozenset[str]] = {
    "argument": frozenset({"int", "float"}),
    "attribute": frozenset({"int", "float"}),  # of a plain object
    "module attribute": frozenset({"float"}),  # allow_unspec_int_on_nn_module is False
    "item": frozenset({"int", "float"}),
    "closure": frozenset({"int", "float"}),
    "keyword": frozenset({"int", "float"}),  # of a functools.partial
    "default": frozenset({"float"}),  # of a function's parameter
    "global": frozenset({"float"}),  # and whatever is reached from one
}

#: what versions of torch trace for and do not guard on: they go on with the graph of the first value
LEFT_OUT: dict[str, frozenset[str]] = {
    "default": frozenset({"2.9", "2.10", "2.11"}),  # of a positional parameter of a function that is called
    "parameters' requires_grad": frozenset({"2.8", "2.9", "2.10", "2.11"}),  # those of a module
}

#: sizes that a graph is compiled for exactly, whatever else is dynamic
SPECIALISED_SIZES = (0, 1)

#: functions that make a class, which is another one each time
MAKE_CLASSES = frozenset({
    "collections.namedtuple", "typing.NamedTuple", "dataclasses.make_dataclass", "torch._dynamo.aot_autograd",
    "torch._dynamo.backends.common.aot_autograd",
})  # fmt: skip

#: `recompile_limit`: compilations of one function, after which it runs eagerly
LIMIT = 8

#: calls of torch by which a number among the arguments is needed while tracing -> which of them, by position or name
DECIDES: dict[str, tuple[int | str, ...]] = {
    "dropout": (1, "p"), "alpha_dropout": (1, "p"), "feature_dropout": (1, "p"), "dropout1d": (1, "p"),
    "dropout2d": (1, "p"), "dropout3d": (1, "p"), "chunk": (1, "chunks"), "sum": (1, "dim"), "mean": (1, "dim"),
    "softmax": (1, "dim"), "log_softmax": (1, "dim"), "amax": (1, "dim"), "amin": (1, "dim"), "argmax": (1, "dim"),
    "cat": (1, "dim"), "stack": (1, "dim"), "unsqueeze": (1, "dim"), "squeeze": (1, "dim"), "flip": (1, "dims"),
    "cumsum": (1, "dim"), "prod": (1, "dim"), "unbind": (1, "dim"), "one_hot": (1, "num_classes"),
    "layer_norm": (4, "eps"), "rms_norm": (3, "eps"), "group_norm": (4, "eps"),
    "batch_norm": (6, "momentum", 7, "eps"), "instance_norm": (6, "momentum", 7, "eps"),
    "cosine_similarity": (2, "dim", 3, "eps"), "rrelu": (1, "lower", 2, "upper"), "huber_loss": (3, "delta"),
    "smooth_l1_loss": (5, "beta"), "cross_entropy": (7, "label_smoothing"), "margin_ranking_loss": (3, "margin"),
    "triplet_margin_loss": (3, "margin", 4, "p", 5, "eps"), "poisson_nll_loss": (5, "eps"),
    "interpolate": (2, "scale_factor"), "quantile": (1, "q"), "cdist": (2, "p"), "bernoulli": (1, "p"),
    "scaled_dot_product_attention": (4, "dropout_p", 6, "scale"), "logit": (1, "eps"), "nan_to_num": (1, "nan"),
    "isclose": (2, "rtol", 3, "atol"), "normal": (1, "std"), "pad": (3, "value"),
}  # fmt: skip

#: modules of torch whose forward reads `training`
READS_TRAINING = frozenset({
    "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout", "RReLU", "BatchNorm1d",
    "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d",
    "MultiheadAttention", "TransformerEncoderLayer", "TransformerDecoderLayer", "TransformerEncoder",
    "TransformerDecoder", "Transformer", "LSTM", "GRU", "RNN",
})  # fmt: skip

#: calls and contexts that change the modes on which every graph is guarded: name -> (mode, value on entry; None takes
#: it from the first argument)
MODES: dict[str, tuple[str, bool | None]] = {
    "torch.no_grad": ("grad_mode", False),
    "torch.autograd.no_grad": ("grad_mode", False),
    "torch.inference_mode": ("grad_mode", False),
    "torch.enable_grad": ("grad_mode", True),
    "torch.set_grad_enabled": ("grad_mode", None),
    "torch.autocast": ("autocast", True),
    "torch.amp.autocast": ("autocast", True),
    "torch.cuda.amp.autocast": ("autocast", True),
    "torch.cpu.amp.autocast": ("autocast", True),
    "torch.use_deterministic_algorithms": ("deterministic_algorithms", None),
}
#: those that hold as long as nothing else is said, when they are called outside of a `with`
LASTING = frozenset({"torch.set_grad_enabled", "torch.use_deterministic_algorithms"})

#: the modes a program starts with
START = {"grad_mode": True, "autocast": False, "deterministic_algorithms": False}
