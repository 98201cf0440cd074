"""Arguments of operators that are Python numbers: a tensor in their place is read for its number, which ends the graph.

Each was measured with torch 2.13: a program gives a 0-d tensor that it computes, and counts the graphs. Operators
that take tensors there in another overload, or that TorchDynamo decomposes (`torch.full`, `Tensor.add_`), are not among
them. Sizes, dimensions and counts are told by signatures (`overloads`).
"""

from __future__ import annotations

from typing import Final

_BY_NAME = (
    "torch.add.alpha torch.sub.alpha torch.subtract.alpha torch.rsub.alpha torch.addcmul.value torch.addmm.alpha "
    "torch.addmm.beta torch.addmv.alpha torch.addmv.beta torch.addr.alpha torch.addr.beta torch.addbmm.alpha "
    "torch.addbmm.beta torch.baddbmm.alpha torch.baddbmm.beta torch.index_add.alpha torch.cumulative_trapezoid.dx "
    "torch.trapezoid.dx torch.gradient.spacing torch.Tensor.add.alpha torch.Tensor.sub.alpha torch.Tensor.sub_.alpha "
    "torch.Tensor.addcmul.value torch.Tensor.addcdiv.value torch.Tensor.addmm.alpha torch.Tensor.addmm.beta "
    "torch.Tensor.addmm_.alpha torch.Tensor.addmv.alpha torch.Tensor.baddbmm.alpha torch.Tensor.index_add.alpha "
    "torch.Tensor.index_add_.alpha"
)
#: with the place that the argument has where it is given by position
_BY_PLACE = """
torch.full_like 1 fill_value    torch.Tensor.new_full 1 fill_value    torch.Tensor.fill_diagonal_ 0 fill_value
torch.scalar_tensor 0 s    torch.celu 1 alpha    torch.hardshrink 1 lambd    torch.threshold 1 threshold
torch.threshold 2 value    torch.Tensor.hardshrink 0 lambd    torch.norm 1 p    torch.dist 2 p    torch.renorm 1 p
torch.renorm 3 maxnorm    torch.linalg.vector_norm 1 ord    torch.linalg.norm 1 ord    torch.histc 2 min
torch.histc 3 max    torch.Tensor.histc 1 min    torch.Tensor.histc 2 max    torch.Tensor.norm 0 p
torch.Tensor.dist 1 p    torch.Tensor.renorm 0 p    torch.Tensor.renorm 2 maxnorm    torch.cosine_similarity 3 eps
torch.pairwise_distance 2 p    torch.pairwise_distance 3 eps    torch.rrelu 1 lower
"""
#: the same of functions in `torch.nn.functional`
_FUNCTIONAL = """
leaky_relu 1 negative_slope    elu 1 alpha    celu 1 alpha    hardtanh 1 min_val    hardtanh 2 max_val
threshold 1 threshold    threshold 2 value    softplus 1 beta    softplus 2 threshold    hardshrink 1 lambd
softshrink 1 lambd    dropout 1 p    alpha_dropout 1 p    layer_norm 4 eps    rms_norm 3 eps    group_norm 4 eps
batch_norm 6 momentum    batch_norm 7 eps    instance_norm 7 eps    normalize 1 p    huber_loss 3 delta
smooth_l1_loss 5 beta    cosine_similarity 3 eps    pdist 1 p    margin_ranking_loss 3 margin
cross_entropy 7 label_smoothing    triplet_margin_loss 3 margin    triplet_margin_loss 4 p
triplet_margin_loss 5 eps    poisson_nll_loss 5 eps    hinge_embedding_loss 2 margin    rrelu 1 lower
cosine_embedding_loss 3 margin    multi_margin_loss 3 margin    pairwise_distance 2 p    pairwise_distance 3 eps
embedding 3 max_norm    scaled_dot_product_attention 4 dropout_p    scaled_dot_product_attention 6 scale
"""


def _table() -> dict[str, frozenset[int | str]]:
    found: dict[str, set[int | str]] = {}
    for entry in _BY_NAME.split():
        name, _, argument = entry.rpartition(".")
        found.setdefault(name, set()).add(argument)
    for text, folder in ((_BY_PLACE, ""), (_FUNCTIONAL, "torch.nn.functional.")):
        words = text.split()
        for name, place, argument in zip(words[::3], words[1::3], words[2::3], strict=True):
            found.setdefault(folder + name, set()).update((int(place), argument))
    return {name: frozenset(arguments) for name, arguments in found.items()}


#: qualified name -> the arguments, by place and by name
NUMBER_ARGUMENTS: Final = _table()
