"""For which dtypes and sizes torch's operations raise, and what kind of dtype they give.

Measured with torch 2.13 on the CPU. A kind is "bool", "uint8", "int", "float" or "complex"; letters stand for them:
b, u, i, f, c. Held against the torch that is installed by tests/transforms/test_torch_names.py.
"""

from __future__ import annotations

KINDS = {"b": "bool", "u": "uint8", "i": "int", "f": "float", "c": "complex"}


def _table(lines: str) -> dict[str, frozenset[str]]:
    """Lines of letters and names."""
    found: dict[str, frozenset[str]] = {}
    for line in lines.split("\n"):
        letters, _, names = line.strip().partition(" ")
        kinds = frozenset(KINDS[x] for x in letters if x != "-")
        found.update(dict.fromkeys(names.split(), kinds))
    return found


#: an operation on one tensor, by the kinds of dtype for which it raises
RAISES_FOR: dict[str, frozenset[str]] = _table("""\
- acos acosh asin asinh atan atanh cos cosh exp exp2 expm1 log log10 log1p log2 logsumexp reciprocal rsqrt
- sigmoid sin sinc sinh sqrt tan tanh arccos arcsin arctan angle
- clone conj detach contiguous nan_to_num sgn square zeros_like ones_like empty_like full_like
- isfinite isnan isreal isinf logical_not logical_and logical_or logical_xor eq ne not_equal
- cumsum prod sum all any count_nonzero real add mul multiply div divide true_divide
- where masked_fill fill tril triu flip roll
- double float half bfloat16 int long short bool byte char
c deg2rad digamma erf erfc erfinv lgamma logit rad2deg amax amin aminmax max min sign sort argsort unique
c cummax cummin isneginf isposinf signbit nansum lt le gt ge less less_equal greater greater_equal
c maximum minimum fmax fmin msort atan2 arctan2 floor_divide remainder fmod heaviside
c clamp clip clamp_min clamp_max mode
bc kthvalue topk argmax argmin relu relu6 ceil floor round trunc fix median nanmedian
b neg negative positive abs absolute sub subtract rsub softsign
buic celu elu frac gelu hardsigmoid hardswish leaky_relu logsigmoid mish nanmean selu
buic softmax log_softmax softmin softplus
buic hypot quantile nanquantile
bui logcumsumexp mean silu norm std var std_mean var_mean lerp
buc hardtanh
fc bitwise_not bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift
bfc gcd lcm
""")

#: they raise for a tensor without elements, and where a dimension is given, for one in which that has none
EMPTY = frozenset("max min amax amin aminmax argmax argmin mode quantile nanquantile kthvalue topk".split())

#: their other tensor must be a tensor: a number is a TypeError
TENSORS_ONLY = frozenset(
    "maximum minimum fmax fmin atan2 arctan2 hypot logical_and logical_or logical_xor isclose".split()
)

#: elementwise: a result of the same kind as the operand
SAME_KIND = frozenset(
    """
    clone conj detach contiguous nan_to_num sgn neg negative positive relu relu6 ceil floor round trunc fix hardtanh
    celu elu frac gelu hardsigmoid hardswish leaky_relu logsigmoid mish selu softmax log_softmax softmin
    softplus silu logcumsumexp mean nanmean sign max min amax amin cummax cummin median nanmedian mode kthvalue topk
    sort msort tril triu flip roll zeros_like ones_like empty_like full_like new_zeros new_ones new_empty new_full
    masked_fill fill clamp_ view reshape flatten unflatten squeeze unsqueeze permute transpose t expand expand_as
    narrow select diagonal unbind split chunk movedim swapaxes repeat tile repeat_interleave cpu cuda
    index_select gather take masked_select scatter scatter_add index_add index_fill dropout layer_norm normalize
    to_dense unique data T mT H mH dropout2d max_pool1d max_pool2d avg_pool1d avg_pool2d
    adaptive_avg_pool1d adaptive_avg_pool2d interpolate pad
""".split()
)

#: a floating result of everything that is not complex
FLOATING = frozenset(
    """
    acos acosh asin asinh atan atanh cos cosh exp exp2 expm1 log log10 log1p log2 logsumexp reciprocal rsqrt sigmoid
    sin sinc sinh sqrt tan tanh deg2rad digamma erf erfc erfinv lgamma logit rad2deg div divide true_divide softsign
""".split()
)

#: a floating result for certain
FLOAT = frozenset(
    """
    float double half bfloat16 rand randn angle norm std var hypot quantile nanquantile
    cross_entropy nll_loss mse_loss l1_loss binary_cross_entropy binary_cross_entropy_with_logits kl_div
    smooth_l1_loss huber_loss
""".split()
)

#: an integer result for certain
INTEGER = frozenset("int long short char argmax argmin argsort count_nonzero nonzero searchsorted bucketize".split())

#: integers are added as int64
SUMMED = frozenset("sum prod cumsum cumprod nansum".split())

#: an operation on two operands with the dtype that both promote to
PROMOTES = frozenset(
    """
    add sub subtract rsub mul multiply maximum minimum fmax fmin pow where lerp remainder fmod floor_divide addcmul
    addcdiv clamp clip clamp_min clamp_max bitwise_and bitwise_or bitwise_xor
""".split()
)

#: layers with parameters, whose result is floating
FLOAT_LAYERS = frozenset(
    """
    Linear LayerNorm RMSNorm GroupNorm Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d Embedding
    Bilinear BatchNorm1d BatchNorm2d BatchNorm3d GELU SiLU Mish ELU SELU CELU LeakyReLU Sigmoid Tanh Softmax LogSoftmax
    Softplus Hardswish
""".split()
)
FLOAT_PARAMETERS = frozenset("weight bias".split())

#: functions of `math` that raise for no finite or infinite float, NaN included
MATH = frozenset(
    "fabs isnan isinf isfinite copysign tanh atan asinh erf erfc isclose hypot degrees atan2 radians".split()
)
