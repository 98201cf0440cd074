"""Families of operations: what each makes of the rank, shape and dtype of its first operand, by name."""

from __future__ import annotations

#: elementwise, of one tensor: same shape, same dtype
SAME = frozenset(
    "abs absolute neg negative positive relu relu6 leaky_relu sign sgn ceil floor round trunc fix clone contiguous "
    "detach detach_ cpu cuda zeros_like ones_like empty_like rand_like randn_like full_like dropout triu tril flip "
    "roll requires_grad_ hardtanh threshold nan_to_num alpha_dropout feature_dropout fill relu_ clamp_ bitwise_not "
    "sort_ where_ masked_fill_ fill_ zero_ add_ sub_ mul_ div_ copy_ neg_ abs_ exp_ sqrt_ normal_ uniform_ "
    "exponential_ bernoulli_ random_ log_ sigmoid_ tanh_ floor_ ceil_ round_ pow_ masked_scatter_ scatter scatter_ "
    "scatter_add scatter_add_ index_add index_add_ index_copy index_copy_ index_fill index_fill_ glu_ rsqrt_ "
    "reciprocal_ bernoulli dropout_ apply_ map_ conj conj_physical resolve_conj resolve_neg fftshift ifftshift".split()
)
#: elementwise, of one tensor: same shape, floating result
FLOATING = frozenset(
    "sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh "
    "sigmoid erf erfc erfinv lgamma digamma reciprocal softmax log_softmax gelu silu mish softplus elu selu celu "
    "logsigmoid hardswish hardsigmoid logit softsign tanhshrink normalize layer_norm rms_norm expit sinc i0 erfcx "
    "gumbel_softmax".split()
)
BOOLEAN = frozenset("isnan isinf isfinite isposinf isneginf logical_not signbit isreal".split())
BINARY = frozenset(
    "add sub subtract mul multiply minimum maximum fmin fmax remainder fmod bitwise_and bitwise_or bitwise_xor "
    "logaddexp hypot heaviside floor_divide pow lerp addcmul addcdiv".split()
)
BINARY_FLOAT = frozenset(["div", "divide", "true_divide", "atan2", "xlogy"])
BINARY_BOOL = frozenset(
    "eq ne lt le gt ge greater greater_equal less less_equal not_equal "
    "logical_and logical_or logical_xor isclose".split()
)
#: over all dimensions without `dim`, else over some: dtype of the result by kind of the operand's
REDUCTIONS = {
    "sum": "sum", "prod": "sum", "mean": "float", "std": "float", "var": "float", "norm": "float",
    "logsumexp": "float", "amax": "same", "amin": "same", "max": "same", "min": "same", "median": "same",
    "nansum": "sum", "nanmean": "float", "quantile": "float", "any": "bool", "all": "bool", "argmax": "int64",
    "argmin": "int64", "count_nonzero": "int64",
}  # fmt: skip
#: of each element of two tensors, with `reduction="none"`
LOSSES = frozenset(
    "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits "
    "soft_margin_loss".split()
)
#: of the classes that a second tensor names, with `reduction="none"` one number for each
CLASSIFIES = frozenset({"cross_entropy", "nll_loss"})
RESHAPES = frozenset(["view", "reshape", "expand", "permute", "repeat"])
#: of one tensor: as many dimensions, the dtype's kind
TRANSFORMS = {
    **dict.fromkeys("fft ifft rfft fft2 ifft2 rfft2 fftn ifftn rfftn ihfft ihfft2 ihfftn".split(), "complex"),
    **dict.fromkeys("irfft irfft2 irfftn hfft hfft2 hfftn".split(), "float"),
}
#: as many dimensions, same dtype
REARRANGES = frozenset(
    "pad interpolate group_norm batch_norm instance_norm local_response_norm pixel_shuffle pixel_unshuffle "
    "conv_transpose1d conv_transpose2d conv_transpose3d max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d "
    "avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d logcumsumexp renorm "
    "transpose cat flip t chunk swapaxes swapdims movedim moveaxis mT T index_select fliplr flipud "
    "rot90 adjoint msort narrow_copy slice_scatter select_scatter diagonal_scatter".split()
)
#: elements of the operand, or of its dtype, in another shape
PICKS = frozenset(["tile", "resize_as", "diagflat", "unique_consecutive", "new_tensor"])
#: places among the operand's elements: a row of indices for each, or as many dimensions as the operand has
PLACES = frozenset(["argsort", "argwhere", "multinomial", "nonzero_static"])
