"""Whose memory the result of an operation has.

Measured with torch 2.13 on the CPU: all of Tensor, torch, nn.functional, linalg, fft and special, seventeen kinds of
tensors, forty-six lists of arguments.
"""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: their result may be their input itself
MAY_BE_INPUT = _names("""
    positive contiguous to type type_as cpu cuda float double half bfloat16 int long short bool byte char cfloat
    cdouble chalf requires_grad_ detach_ real conj conj_physical resolve_conj resolve_neg adjoint flatten reshape
    reshape_as sum_to_size diff dequantize to_dense as_tensor asarray atleast_1d atleast_2d atleast_3d
    broadcast_tensors cartesian_prod dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout
    feature_dropout coalesce pin_memory
""")

#: their result shares the memory of their input, for some arguments or all
VIEWS = _names("""
    detach view view_as reshape ravel flatten unflatten squeeze unsqueeze permute transpose t movedim moveaxis
    swapaxes swapdims expand expand_as broadcast_to narrow select diagonal unfold unbind split split_with_sizes chunk
    tensor_split hsplit vsplit dsplit unsafe_chunk unsafe_split unsafe_split_with_sizes as_strided view_as_real
    view_as_complex einsum meshgrid from_dlpack numpy from_numpy frombuffer slice_inverse resize resize_as new adjoint
    imag data values indices crow_indices col_indices
""")

#: attributes of a tensor that share its memory, or may be it
VIEW_ATTRIBUTES = _names("T mT H mH data real imag _base grad")

#: their result is new memory, for every input that was tried; in place only where `inplace` says so
NEW = _names("""
    abs absolute acos acosh adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
    adaptive_max_pool1d_with_indices adaptive_max_pool2d adaptive_max_pool2d_with_indices adaptive_max_pool3d
    adaptive_max_pool3d_with_indices add addbmm addcdiv addcmul addmm addmv addr airy_ai alias_copy all amax
    amin aminmax angle any arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argsort
    argwhere as_strided_copy as_strided_scatter asin asinh atan atan2 atanh avg_pool1d avg_pool2d avg_pool3d
    baddbmm bartlett_window batch_norm bernoulli bessel_j0 bessel_j1 bessel_y0 bessel_y1 bilinear
    binary_cross_entropy binary_cross_entropy_with_logits bincount binomial bitwise_and bitwise_left_shift
    bitwise_not bitwise_or bitwise_right_shift bitwise_xor blackman_window block_diag bmm bucketize cat cdist
    ceil celu channel_shuffle chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v
    chebyshev_polynomial_w cholesky_ex cholesky_inverse cholesky_solve clamp clamp_max clamp_min clip clone
    column_stack combinations complex concat concatenate constant_pad_nd conv1d conv2d conv3d conv_transpose1d
    conv_transpose2d conv_transpose3d copysign corrcoef cos cosh cosine_similarity count_nonzero cov cross
    cross_entropy cummax cummin cumprod cumsum cumulative_trapezoid deg2rad det detach_copy diag diag_embed
    diagflat diagonal_copy diagonal_scatter digamma dist div divide dot dstack eig eigh eigvals eigvalsh elu
    embedding embedding_bag empty empty_like empty_permuted empty_strided entr eq erf erfc erfcx erfinv exp
    exp2 expand_copy expit expm1 eye fft fft2 fftfreq fftn fftshift fill fix flip fliplr flipud float_power
    floor floor_divide fmax fmin fmod frac fractional_max_pool2d fractional_max_pool2d_with_indices
    fractional_max_pool3d fractional_max_pool3d_with_indices frexp frobenius_norm full full_like gammainc
    gammaincc gammaln gather gaussian_nll_loss gcd ge gelu geqrf ger glu gradient greater greater_equal
    group_norm gt gumbel_softmax hamming_window hann_window hardshrink hardsigmoid hardswish hardtanh
    heaviside hermite_polynomial_h hermite_polynomial_he hfft hfft2 hfftn hinge_embedding_loss histc histogram
    histogramdd hstack huber_loss hypot i0 i0e i1 i1e ifft ifft2 ifftn ifftshift igamma igammac ihfft ihfft2
    ihfftn index_add index_copy index_fill index_put index_reduce index_select inner instance_norm interpolate
    inv inv_ex inverse irfft irfft2 irfftn isclose isfinite isin isinf isnan isneginf isposinf isreal istft
    kaiser_window kl_div kron kthvalue l1_loss laguerre_polynomial_l layer_norm lcm ldexp ldl_factor
    ldl_factor_ex le leaky_relu legendre_polynomial_p lerp less less_equal lgamma linear linear_cross_entropy
    linspace local_response_norm log log10 log1p log2 log_ndtr log_softmax logaddexp logaddexp2 logcumsumexp
    logdet logical_and logical_not logical_or logical_xor logit logsigmoid logspace logsumexp lp_pool1d
    lp_pool2d lp_pool3d lstsq lt lu lu_factor lu_factor_ex margin_ranking_loss masked_fill masked_scatter
    masked_select matmul matrix_exp matrix_norm matrix_power matrix_rank max max_pool1d
    max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d max_pool3d_with_indices maximum mean
    median min minimum mish mm mode modified_bessel_i0 modified_bessel_i1 modified_bessel_k0
    modified_bessel_k1 mse_loss msort mul multi_dot multigammaln multilabel_soft_margin_loss multinomial
    multiply mv mvlgamma nan_to_num nanmean nanmedian nanquantile nansum narrow_copy native_channel_shuffle
    ndtr ndtri ne neg negative new_empty new_empty_strided new_full new_ones new_tensor new_zeros nextafter
    nll_loss nonzero norm norm_except_dim normal normalize not_equal nuclear_norm one_hot ones ones_like outer
    pad pairwise_distance pca_lowrank pdist permute_copy pinv pinverse pixel_shuffle pixel_unshuffle poisson
    poisson_nll_loss polar polygamma pow prelu prod psi put qr quantile rad2deg rand rand_like randint
    randint_like randn randn_like randperm reciprocal relu relu6 remainder renorm repeat repeat_interleave
    rfft rfft2 rfftfreq rfftn rms_norm roll rot90 round row_stack rrelu rsqrt rsub scalar_tensor
    scaled_dot_product_attention scaled_modified_bessel_k0 scaled_modified_bessel_k1 scatter scatter_add
    scatter_reduce searchsorted select_copy select_scatter selu sgn shifted_chebyshev_polynomial_t
    shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w sigmoid sign
    signbit silu sin sinc sinh slice_copy slice_scatter slogdet smooth_l1_loss soft_margin_loss softmax
    softmin softplus softshrink softsign solve_ex sort sparse_bsr_tensor sparse_coo_tensor sparse_csc_tensor
    sparse_csr_tensor spherical_bessel_j0 split_copy split_with_sizes_copy spmm sqrt square squeeze_copy stack
    std std_mean stft sub subtract sum svd svd_lowrank svdvals t_copy take take_along_dim tan tanh tanhshrink
    tensor tensordot tensorinv tensorsolve threshold tile to_sparse to_sparse_bsc to_sparse_bsr to_sparse_coo
    to_sparse_csc to_sparse_csr topk trace transpose_copy trapezoid trapz triangular_solve tril tril_indices
    triplet_margin_loss triplet_margin_with_distance_loss triu triu_indices true_divide trunc unbind_copy
    unfold_copy unique unique_consecutive unravel_index unsqueeze_copy upsample upsample_bilinear
    upsample_nearest vander var var_mean vdot vecdot vector_norm view_as_real_copy view_copy vstack where
    xlog1py xlogy zeros zeros_like zeta
""")

#: layers whose result may be their input, and layers whose result shares its memory
LAYERS_MAY_BE_INPUT = _names(
    "Identity Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout Sequential"
)
LAYERS_VIEW = _names("Flatten Unflatten")
