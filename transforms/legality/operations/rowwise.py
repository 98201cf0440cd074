"""Which of torch's operations compute each row of their result from the same row of what they are given, so that they
may be computed for all rows, and rows be picked afterwards. A row is one element of the first dimension; the last one
belongs to it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from graphmend.transforms.code.qualified_names import constant
from graphmend.transforms.legality.operations import names as known

#: layers that work on each element
LAYERS_OF_EACH = frozenset(
    "Identity ReLU ReLU6 GELU SiLU Mish ELU SELU CELU LeakyReLU Sigmoid Tanh Softplus Hardtanh Hardswish".split()
)
#: layers that work along the last dimension, whose size they fix
LAYERS_ALONG = frozenset("Linear LayerNorm RMSNorm".split())
#: functions that work on each element
EACH = (known.ELEMENTWISE | known.ARITHMETIC | known.TESTS | known.CASTS | {"to", "type_as", "where"}) - {
    "empty_like",
    "to_sparse",
}
#: they work along one dimension, `dim` or the first argument
ALONG = frozenset(
    "softmax log_softmax softmin sum mean amax amin norm cumsum argmax argmin logsumexp normalize any all "
    "gather".split()
)

#: losses of each element, with `reduction="none"`
LOSSES_OF_EACH = frozenset(
    "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy_with_logits soft_margin_loss kl_div".split()
)
#: they compare two tensors along one dimension, the third argument, or along the last one
COMPARE = frozenset(["cosine_similarity", "pairwise_distance"])


def is_loss_of_each(name: str, keywords: Mapping[str | None, ast.expr]) -> bool:
    """Is a call a loss of each element, which does not reduce?"""
    return name in LOSSES_OF_EACH and constant(keywords.get("reduction")) == "none"


def compares_inside(
    name: str, options: Sequence[ast.expr], keywords: Mapping[str | None, ast.expr], *, flat: bool
) -> bool:
    """Do two tensors meet along a dimension inside of a row? `options` are those behind the two tensors."""
    if name == "pairwise_distance":
        return True
    return is_inside(options, keywords, flat=flat) if options or "dim" in keywords else flat


def is_inside(arguments: Sequence[ast.expr], keywords: Mapping[str | None, ast.expr], *, flat: bool) -> bool:
    """Is the dimension one of those inside a row? `arguments` are those behind the tensor."""
    place = constant(keywords.get("dim") or (arguments[0] if arguments else None))
    if not isinstance(place, int) or isinstance(place, bool):
        return False
    return place == -1 or (flat and place >= 1)


def keeps_rows(index: ast.expr, *, flat: bool) -> bool:
    """Does an index take all rows, and cut or add other dimensions alone?"""
    first = index.elts[0] if isinstance(index, ast.Tuple) and index.elts else index
    if isinstance(first, ast.Slice):
        return flat and first.lower is None and first.upper is None and first.step is None
    last = index.elts[-1] if isinstance(index, ast.Tuple) else None
    return isinstance(first, ast.Constant) and first.value is ... and isinstance(last, ast.Constant)
