"""Which results never ask for gradients, whatever their operands do. Measured with torch 2.13."""

from __future__ import annotations

#: no gradient passes: integers, tests, new tensors
CUT = frozenset(
    """
    all any argmax argmin argsort argwhere bool bucketize byte char count_nonzero detach detach_ empty_like eq full_like
    ge greater greater_equal gt histc int isclose isfinite isin isinf isnan isneginf isposinf isreal le less less_equal
    logical_and logical_not logical_or logical_xor long lt multinomial ne new_empty new_empty_strided new_full new_ones
    new_tensor new_zeros nonzero not_equal ones_like rand_like randint_like randn_like searchsorted short signbit tensor
    zeros_like bincount one_hot zeros ones full empty eye arange linspace logspace rand randn randint randperm
    scalar_tensor tril_indices triu_indices size dim numel numpy tolist item is_floating_point
""".split()
)

#: attributes through which none passes
CUT_ATTRIBUTES = frozenset("data shape dtype device ndim grad_fn requires_grad layout is_cuda".split())

#: layers without parameters
PLAIN_LAYERS = frozenset(
    """
    Identity ReLU ReLU6 GELU SiLU Mish ELU SELU CELU LeakyReLU Sigmoid Tanh Softmax LogSoftmax MaxPool1d MaxPool2d
    AvgPool1d AvgPool2d AdaptiveAvgPool1d AdaptiveAvgPool2d Flatten Softplus Hardtanh Hardswish Dropout
""".split()
)

#: they have no finite derivative at 1, which stands in for elements that do not count
SINGULAR_AT_ONE = frozenset("acos asin atanh acosh logit erfinv".split())
