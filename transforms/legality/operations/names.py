"""What rewrites must know about torch's callables, by name: which have effects, which cannot raise, where
gradients are singular.

Held against torch 2.13 by tests/transforms/test_torch_names.py.
"""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: folders of torch whose functions only compute, but for the names below
FUNCTIONAL = ("torch", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special", "torch.Tensor")

#: they draw from a random number generator
RANDOM = _names("""
    rand rand_like randint randint_like randn randn_like randperm normal bernoulli multinomial
    poisson binomial dropout alpha_dropout feature_alpha_dropout feature_dropout dropout1d dropout2d
    dropout3d rrelu gumbel_softmax fractional_max_pool2d fractional_max_pool3d
    scaled_dot_product_attention multi_head_attention_forward native_dropout _standard_gamma _sample_dirichlet
""")

#: methods that fill a tensor with random numbers
DRAWN_IN_PLACE = _names("""
    uniform_ normal_ bernoulli_ random_ exponential_ geometric_ cauchy_ log_normal_
    dropout_ alpha_dropout_ feature_dropout_ feature_alpha_dropout_ rrelu_
""")

#: layers that draw while training
RANDOM_LAYERS = frozenset(
    f"torch.nn.{name}"
    for name in _names("""
        Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout RReLU FractionalMaxPool2d
        FractionalMaxPool3d MultiheadAttention Transformer TransformerEncoderLayer TransformerDecoderLayer
    """)
)

#: they change something, or their result is no tensor
EFFECTFUL = _names("""
    save load manual_seed seed set_default_dtype set_default_device set_default_tensor_type
    set_grad_enabled set_num_threads set_printoptions compile set_rng_state
    use_deterministic_algorithms backward register_hook retain_grad set_ data_ptr requires_grad_
    share_memory_ apply_ map_ pin_memory numpy item tolist batch_norm instance_norm embedding_bag
    _assert _assert_async is_nonzero equal allclose get_rng_state initial_seed storage
    untyped_storage record_stream apply_ map_ enable_grad no_grad inference_mode set_default_tensor_type
    set_float32_matmul_precision set_warn_always set_flush_denormal set_deterministic_debug_mode
    set_num_interop_threads cond vmap
""")

#: they warn where there are too few elements
WARN_FOR_ONE = _names("std var std_mean var_mean")

#: elementwise, one tensor in, shape and floating dtype kept, raises for no floating tensor
ELEMENTWISE = _names("""
    abs absolute neg negative positive relu relu6 gelu silu mish elu selu celu leaky_relu softplus
    softsign hardtanh hardswish hardsigmoid logsigmoid sigmoid tanh sin cos tan sinh cosh asinh exp
    exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square erf erfc acos asin atan atanh acosh
    sign sgn floor ceil round trunc frac nan_to_num clamp clip clamp_min clamp_max clone contiguous
    detach erfinv lgamma digamma logit sinc deg2rad rad2deg zeros_like ones_like empty_like
    full_like pow
""")

#: the same for two tensors of one shape, or a tensor and a number
ARITHMETIC = _names("""
    add sub subtract mul multiply div divide true_divide rsub maximum minimum fmax fmin atan2 hypot
""")

#: elementwise tests: shape kept, dtype bool
TESTS = _names("""
    isnan isinf isfinite isposinf isneginf isreal signbit logical_not logical_and logical_or
    logical_xor eq ne lt le gt ge less greater not_equal less_equal greater_equal isclose
""")

#: one tensor in, a 0-d tensor out (without `dim`), raises for no floating tensor
REDUCTIONS = _names("""
    sum mean prod any all std var norm nansum nanmean count_nonzero
""")

#: dtype changes by method
CASTS = _names("""
    float double half bfloat16 int long short bool byte char
""")

#: further methods of tensors that only compute, and that no list, text or dictionary has with another meaning
METHODS = _names("""
    max min amax amin aminmax argmax argmin size dim numel element_size stride view view_as reshape reshape_as transpose
    permute movedim moveaxis swapaxes swapdims unsqueeze squeeze flatten unflatten ravel expand expand_as broadcast_to
    repeat tile softmax log_softmax logsumexp dot vdot inner outer matmul mm bmm mv addmm baddbmm cumsum cumprod cummax
    cummin logcumsumexp diff t masked_fill masked_scatter masked_select nonzero type_as to new_zeros new_ones new_full
    new_empty new_tensor where gather take take_along_dim scatter scatter_add scatter_reduce index_select index_add
    index_fill index_copy index_put select narrow chunk unbind unfold diag diagonal diag_embed tril triu flip fliplr
    flipud roll rot90 topk argsort msort kthvalue median nanmedian mode quantile nanquantile std_mean lerp addcmul
    addcdiv remainder fmod floor_divide logaddexp logaddexp2 xlogy bitwise_and bitwise_or bitwise_xor bitwise_not
    copysign heaviside cross trace det inverse bincount histc is_floating_point is_complex repeat_interleave
""")

#: nothing but the value of a finite derivative reaches the other side: a gradient of zero stays zero for every input
LEAKLESS = TESTS | _names("""
    neg negative positive add sub subtract rsub clone contiguous detach relu clamp clip
    clamp_min clamp_max hardtanh floor ceil round trunc sign zeros_like ones_like empty_like
    full_like sum mean float double half bfloat16 where masked_fill nan_to_num reshape view flatten
    unsqueeze squeeze transpose permute expand abs isnan isinf isfinite masked_select index_select gather take
""")

#: infinite or undefined derivatives at finite inputs
SINGULAR = _names("""
    sqrt rsqrt log log2 log10 log1p reciprocal pow div divide true_divide norm std acos asin acosh
    atanh logit erfinv exp exp2 expm1 sinh cosh tan hypot atan2 softmax log_softmax cross_entropy
    nll_loss prod digamma lgamma
""")

#: methods of modules that hand out what these hold
HOLDS = _names("parameters named_parameters buffers named_buffers children named_children modules named_modules")

#: layers that only compute, whose call has no effect but for gradients
LAYERS = frozenset(
    f"torch.nn.{name}"
    for name in _names("""
        Linear Identity ReLU ReLU6 GELU SiLU Mish ELU SELU CELU LeakyReLU Sigmoid Tanh Softmax
        LogSoftmax LayerNorm RMSNorm GroupNorm Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d
        Embedding MaxPool1d MaxPool2d AvgPool1d AvgPool2d AdaptiveAvgPool1d AdaptiveAvgPool2d Flatten
        Softplus Hardtanh Hardswish Bilinear PReLU GLU Hardsigmoid Hardshrink Softshrink LogSigmoid Softmin
        Softsign Tanhshrink Threshold Softmax2d AdaptiveMaxPool1d AdaptiveMaxPool2d LPPool1d LPPool2d MaxPool3d
        AvgPool3d AdaptiveAvgPool3d ConvTranspose3d Unflatten Fold Unfold LocalResponseNorm PixelShuffle
        PixelUnshuffle ChannelShuffle Upsample UpsamplingNearest2d UpsamplingBilinear2d ConstantPad1d ConstantPad2d
        ZeroPad2d ReflectionPad1d ReflectionPad2d ReplicationPad1d ReplicationPad2d CosineSimilarity
        PairwiseDistance RNNCell GRUCell LSTMCell MSELoss L1Loss SmoothL1Loss HuberLoss CrossEntropyLoss NLLLoss
        BCELoss BCEWithLogitsLoss KLDivLoss CosineEmbeddingLoss MarginRankingLoss TripletMarginLoss
    """)
)

#: losses that give a 0-d tensor unless `reduction` says otherwise
LOSSES = _names("""
    cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss kl_div binary_cross_entropy
    binary_cross_entropy_with_logits
""")
