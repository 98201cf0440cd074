"""What functions compute that take Python numbers alone, written with operations that take 0-d tensors too.

A field in braces is an argument; names of torch are written out. Measured with torch 2.13.
"""

from __future__ import annotations

from typing import NamedTuple

from graphmend.transforms.fix import Difference

_ADDED = Difference("rounding", "what is scaled and added in one operation may round in its last digit")
_SIZES = Difference("output", "tensors of two sizes are no longer warned of")
_RANGE = Difference("exception", "a number out of the range that the function takes no longer raises")
_COMPILED = Difference("exception", "once compiled, a number out of its range no longer raises")
_WHOLE = Difference("exception", "of whole numbers it raises no more")
_FINITE = Difference("gradients", "a number that is infinite, or NaN, makes all gradients NaN")


class Formula(NamedTuple):
    """A function of torch, the tensor first."""

    parameters: str
    """By position; what is no field of the text must be left out, or be False or None."""
    number: str
    """The one that may be a 0-d tensor in the formula."""
    text: str
    differences: tuple[Difference, ...] = ()
    of_any: str = ""
    """The text where the tensors are not known to be of floating numbers, if it is another one."""
    of_tensors: str = ""
    """The text where all but the number are tensors, if it is another one."""


#: of truth values it is one again
_OF_BOOLS = "({input} + {other} * {alpha}.to(torch.promote_types({input}.dtype, {other}.dtype)))"
_DIFFERENCE = "({input} - {target})"
_ORDERED = "{input}.flatten().sort().values"
#: how many different numbers there are: those that differ from the one in front of them, in order, and the first
DISTINCT = f"(({_ORDERED}[1:] != {_ORDERED}[:-1]).sum() + min({{input}}.numel(), 1))"
#: the same of those that follow on one another, in the order of the tensor's elements
_IN_LINE = "{input}.flatten()"
RUNS = f"(({_IN_LINE}[1:] != {_IN_LINE}[:-1]).sum() + min({{input}}.numel(), 1))"

FORMULAS = {
    "leaky_relu": Formula(
        "input negative_slope inplace",
        "negative_slope",
        "torch.where({input} > 0, {input}, {input} * {negative_slope})",
        (_FINITE, _WHOLE),
    ),
    "elu": Formula(
        "input alpha inplace",
        "alpha",
        "torch.where({input} > 0, {input}, {input}.clamp(max=0).expm1() * {alpha})",
        (Difference("rounding", "an exponential may round in its last digit"), _FINITE, _WHOLE),
    ),
    "hardshrink": Formula("input lambd", "lambd", "torch.where({input}.abs() <= {lambd}, 0, {input})", (_WHOLE,)),
    "softshrink": Formula(
        "input lambd",
        "lambd",
        "torch.where({input}.abs() > {lambd}, {input} - {input}.sign() * {lambd}, {input} * 0)",
        (_RANGE, _FINITE, _WHOLE),
    ),
    "threshold": Formula(
        "input threshold value inplace",
        "threshold",
        "torch.where({input} <= {threshold}, torch.full_like({input}, {value}), {input})",
    ),
    "huber_loss": Formula(
        "input target reduction delta",
        "delta",
        f"torch.where({_DIFFERENCE}.abs() <= {{delta}}, 0.5 * {_DIFFERENCE} ** 2, "
        f"{{delta}} * ({_DIFFERENCE}.abs() - 0.5 * {{delta}}))",
        (_ADDED, _SIZES, _RANGE, _FINITE),
    ),
    "smooth_l1_loss": Formula(
        "input target size_average reduce reduction beta",
        "beta",
        f"torch.where({_DIFFERENCE}.abs() < {{beta}}, "
        f"0.5 * {_DIFFERENCE} ** 2 / torch.where({{beta}} > 0, {{beta}}, 1), "
        f"{_DIFFERENCE}.abs() - 0.5 * {{beta}})",
        (_ADDED, _SIZES, _RANGE, _FINITE),
    ),
    "margin_ranking_loss": Formula(
        "input other target margin size_average reduce reduction",
        "margin",
        "(-{target} * ({input} - {other}) + {margin}).clamp(min=0)",
        (_SIZES,),
    ),
    "triplet_margin_loss": Formula(
        "input positive negative margin",
        "margin",
        "({margin} + torch.pairwise_distance({input}, {positive}) - torch.pairwise_distance({input}, {negative}))"
        ".clamp(min=0)",
        (_ADDED, _RANGE),
    ),
    # `addcmul` too computes in the dtype that both tensors are promoted to, and rounds once: to the bit the same on a
    # CPU for numbers of 32 and 64 bits (torch 2.13); a product of its own would be of the precision of `other` alone
    "add": Formula(
        "input other alpha",
        "alpha",
        "({input} + {other} * {alpha})",
        (_ADDED,),
        _OF_BOOLS,
        "{input}.addcmul({other}, {alpha})",
    ),
    "sub": Formula(
        "input other alpha",
        "alpha",
        "({input} - {other} * {alpha})",
        (_ADDED,),
        of_tensors="{input}.addcmul({other}, {alpha}, value=-1)",
    ),
    "nan_to_num": Formula(
        "input nan posinf neginf",
        "nan",
        "torch.where({input}.isnan(), {nan}, {input}.nan_to_num())",
    ),
    "addcmul": Formula(
        "input tensor1 tensor2 value", "value", "({input} + {value} * {tensor1} * {tensor2})", (_ADDED,)
    ),
    "addcdiv": Formula(
        "input tensor1 tensor2 value", "value", "({input} + {value} * {tensor1} / {tensor2})", (_ADDED,)
    ),
    "add_": Formula(
        "input other alpha",
        "alpha",
        "{input}.add_({other} * {alpha})",
        (_ADDED,),
        of_tensors="{input}.addcmul_({other}, {alpha})",
    ),
    "sub_": Formula(
        "input other alpha",
        "alpha",
        "{input}.sub_({other} * {alpha})",
        (_ADDED,),
        of_tensors="{input}.addcmul_({other}, {alpha}, value=-1)",
    ),
    "addcmul_": Formula(
        "input tensor1 tensor2 value", "value", "{input}.add_({tensor1} * {tensor2} * {value})", (_ADDED,)
    ),
    "addcdiv_": Formula(
        "input tensor1 tensor2 value", "value", "{input}.add_({tensor1} / {tensor2} * {value})", (_ADDED,)
    ),
}
#: those that reduce what the formula gives, by the mean where nothing else is said
LOSSES = frozenset("huber_loss smooth_l1_loss margin_ranking_loss triplet_margin_loss".split())


class Like(NamedTuple):
    """A function that takes a 0-d tensor of the dtype of the tensor that it works on."""

    place: int
    parameter: str
    differences: tuple[Difference, ...]


_WEIGHT = (
    Difference("rounding", "the weight is of the tensor's own precision"),
    Difference(
        "exception", "a complex weight of a real tensor warns, and loses its imaginary part, or raises otherwise"
    ),
)
LIKE = {
    "quantile": Like(1, "q", (_COMPILED,)),
    "nanquantile": Like(1, "q", (_COMPILED,)),
    "lerp": Like(2, "weight", _WEIGHT),
    "lerp_": Like(2, "weight", _WEIGHT),
}
