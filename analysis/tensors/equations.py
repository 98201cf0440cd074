"""Results of functions whose text argument names the dimensions: `torch.einsum` and einops."""

from __future__ import annotations

import ast
import re

from graphmend.analysis.lattice.arguments import Arguments, Keywords
from graphmend.analysis.lattice.values import STATIC, Const, Container, Tensor, Value
from graphmend.analysis.tensors import operations

#: einops' functions that return a tensor with the elements, or the dtype, of the one that they are given
_REARRANGING = frozenset({"rearrange", "repeat", "reduce"})


def einsum_rank(equation: Value | None) -> int | None:
    """The rank of `torch.einsum(equation, ...)` where that is written out: `"bij,bjk->bik"`."""
    text = equation.value if isinstance(equation, Const) else None
    if not isinstance(text, str) or "." in text or "->" not in text:
        return None
    return len(text.partition("->")[2].replace(" ", ""))


def pattern_rank(pattern: Value | None) -> int | None:
    """The rank of the tensor that a pattern of einops describes: `"b n d -> b (n d)"`."""
    text = pattern.value if isinstance(pattern, Const) else None
    if not isinstance(text, str) or "..." in text or "->" not in text:
        return None
    return len(re.findall(r"\([^)]*\)|\S+", text.partition("->")[2]))


def einops_call(last: str, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    """The value of a call of one of einops' functions."""
    given = operations.any_of((*args, *keywords.values()))
    made = operations.result(given, node, "returns a Tensor")
    if last in _REARRANGING and args:
        of_list = not isinstance(args[0], Tensor)
        pattern = args[1] if len(args) > 1 else keywords.get("pattern")
        dtype = None if given is None else given.dtype
        rank = None if of_list and given is not None else pattern_rank(pattern)
        return Tensor(made.origin, rank, dtype, None, likely=given is None or given.likely)
    if last == "pack":
        return Container("tuple", (made, Container("list", of=STATIC)))
    if last == "unpack":
        return Container("list", of=made)
    likely = given is None or given.likely
    return Tensor(made.origin, None, None, None, likely=likely) if last == "einsum" else made
