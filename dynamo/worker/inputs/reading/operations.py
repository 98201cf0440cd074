"""What functions and methods say of the values that they get, by their names."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import torch

from . import layers, patterns
from .usage import Known, Ref, Value

SAME_SHAPE_METHODS = frozenset(
    "float half double bfloat16 long int bool to type contiguous clone detach cuda cpu abs neg relu sigmoid tanh exp"
    " clamp requires_grad_ type_as masked_fill softmax log_softmax".split()
)
SAME_SHAPE_FUNCTIONS = frozenset(
    "relu gelu silu tanh sigmoid softmax log_softmax dropout normalize layer_norm leaky_relu elu clamp abs exp log"
    " nan_to_num checkpoint as_tensor pack_padded_sequence".split()
)
OF_ONE_AXIS = frozenset(
    "split chunk sum mean softmax log_softmax max min amax amin argmax argmin sort topk cumsum norm std var prod"
    " normalize flip roll narrow gather scatter index_select glu unbind any all logsumexp".split()
)
"""Functions and methods whose `dim` is one that their first tensor has."""
OF_SEVERAL = frozenset("len sum min max sorted set any all cumsum prod array map filter".split())
"""Functions whose arguments have items."""
OF_ARRAYS = frozenset("LongTensor IntTensor FloatTensor from_numpy".split())
"""Functions that take arrays and lists, and no tensors."""


_COUNTS = frozenset("zeros ones empty randn rand arange range new_zeros new_ones new_empty".split())
"""Functions whose arguments are numbers of elements."""


def _counts(name: str, arguments: list[Value]) -> list[Value]:
    if name == "linspace":
        return arguments[2:3]
    if name not in _COUNTS:
        return []
    own = arguments[1:] if name.startswith("new_") else arguments
    return [*own, *(each for given in own if isinstance(given, tuple) for each in given)]


def wanted_by(name: str, arguments: list[Value]) -> None:
    """What a function or method of torch demands of its arguments."""
    for given in _counts(name, arguments):
        if isinstance(given, Ref) and not given.back:
            given.use.bounds = True
    for position, tensor in layers.OF_FUNCTIONS.get(name.rstrip("_"), {}).items():
        given = arguments[position] if position < len(arguments) else None
        if isinstance(given, Ref):
            given.wants(tensor)


def rearranged(name: str, first: Ref, node: ast.Call, value: Callable[[Any], Value]) -> Value:
    """`rearrange(x, "b c h w -> b (h w) c")`"""
    pattern = node.args[1].value if len(node.args) > 1 and isinstance(node.args[1], ast.Constant) else None
    if not isinstance(pattern, str) or "->" not in pattern:
        return None
    known = {k.arg: value(k.value) for k in node.keywords if k.arg}
    sizes = {n: v.value for n, v in known.items() if isinstance(v, Known) and isinstance(v.value, int)}
    left = patterns.groups(pattern.partition("->")[0])
    if left is not None:
        first.has_rank(len(left))
    return first.by(patterns.back(pattern, sizes)) if name == "rearrange" else None


def asked(test: Any) -> set[str]:
    """`d` of `callable(d)`, `isfunction(d)`, `isinstance(d, type)`."""
    calls = [n for n in ast.walk(test) if isinstance(n, ast.Call)]
    kinds = ("callable", "isfunction", "ismethod", "isroutine", "isclass", "isinstance", "hasattr", "issubclass")
    asking = [c.args[0] for c in calls if c.args and ast.unparse(c.func).rpartition(".")[2] in kinds]
    return {first.id for first in asking if isinstance(first, ast.Name)}


def multiplied(left: Value, right: Value) -> None:
    """`x @ table`: a tensor that exists tells the features."""
    if isinstance(left, Ref) and isinstance(right, Known) and isinstance(right.value, torch.Tensor):
        size = right.value.shape[-2 if right.value.dim() > 1 else -1]
        for tensor in layers.features(size):
            left.wants(tensor)
