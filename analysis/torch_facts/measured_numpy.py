"""What Dynamo really does with NumPy functions, measured on torch 2.13 with NumPy 2; see measured.py.

Dynamo traces a NumPy function as the function of the same name in torch._numpy; what it has is in the data files.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

#: NumPy functions that, called without a size, give one Python number; that number is read out of the graph (GB0033).
#: Each with the number of its arguments before the size
SCALAR_UNLESS_SIZED: Final = {
    "numpy.random.normal": 2, "numpy.random.rand": 0, "numpy.random.randint": 2, "numpy.random.randn": 0,
    "numpy.random.random": 0, "numpy.random.random_sample": 0, "numpy.random.sample": 0, "numpy.random.uniform": 2,
}  # fmt: skip

#: NumPy functions that torch._numpy has no counterpart of (GB0294), below `numpy`
NUMPY_ONLY: Final = (
    "apply_along_axis apply_over_axes argpartition array2string array_repr array_str asanyarray asarray_chkfinite "
    "asfortranarray asmatrix astype base_repr binary_repr bitwise_count block bmat busday_count busday_offset "
    "compress cumulative_prod cumulative_sum datetime_as_string datetime_data delete digitize ediff1d einsum_path "
    "errstate extract format_float_positional format_float_scientific frexp frombuffer fromfile fromfunction fromiter "
    "frompyfunc fromregex fromstring genfromtxt get_include get_printoptions getbufsize geterr geterrcall "
    "histogram_bin_edges insert interp intersect1d is_busday isdtype isfortran isin isnat iterable ix_ lexsort "
    "linalg.cross linalg.diagonal linalg.matmul linalg.matrix_norm linalg.matrix_transpose linalg.outer "
    "linalg.svdvals linalg.tensordot linalg.trace linalg.vecdot linalg.vector_norm load loadtxt mask_indices "
    "matrix_transpose matvec may_share_memory mintypecode nanargmax nanargmin nancumprod nancumsum nanmax nanmean "
    "nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar nested_iters packbits partition "
    "piecewise place poly poly1d polyadd polyder polydiv polyfit polyint polymul polysub polyval printoptions "
    "promote_types putmask random.beta random.binomial random.bytes random.chisquare random.default_rng "
    "random.dirichlet random.exponential random.f random.gamma random.geometric random.get_bit_generator "
    "random.get_state random.gumbel random.hypergeometric random.laplace random.logistic random.lognormal "
    "random.logseries random.multinomial random.multivariate_normal random.negative_binomial "
    "random.noncentral_chisquare random.noncentral_f random.pareto random.permutation random.poisson random.power "
    "random.random_integers random.ranf random.rayleigh random.set_bit_generator random.set_state "
    "random.standard_cauchy random.standard_exponential random.standard_gamma random.standard_normal "
    "random.standard_t random.triangular random.vonmises random.wald random.weibull random.zipf ravel_multi_index "
    "require roots save savetxt savez savez_compressed select set_printoptions setbufsize setdiff1d seterr seterrcall "
    "setxor1d shares_memory sort_complex spacing trapezoid trim_zeros typename union1d unique_all unique_counts "
    "unique_inverse unique_values unpackbits unravel_index unstack unwrap vecdot vecmat vectorize "
)


def hands_out_number(name: str, arguments: int, keywords: Collection[str]) -> bool:
    """Whether a call of a NumPy function breaks (GB0033), as it has no size: it hands out one Python number."""
    before = SCALAR_UNLESS_SIZED.get(name)
    return before is not None and arguments <= before and "size" not in keywords
