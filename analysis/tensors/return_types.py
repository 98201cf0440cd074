"""Result types of torch's functions, by the kinds of their arguments."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache

from graphmend.analysis.lattice.arguments import Arguments, Keywords
from graphmend.analysis.lattice.values import (
    FALSE,
    INT,
    NONE,
    STATIC,
    STR,
    Const,
    Container,
    Scalar,
    SparseTensor,
    Static,
    Tensor,
    Value,
)
from graphmend.analysis.program.entities import Record
from graphmend.analysis.torch_facts import Returns, TorchFacts

_Signature = tuple[Returns | None, bool]
_IS_TENSOR: dict[type[Value], bool] = {
    Tensor: True, SparseTensor: True, Static: False, Const: False, Scalar: False, Container: False, Record: False,
}  # fmt: skip
#: what torch gives that is no tensor, by the kind that its facts tell
PYTHON_RESULTS: dict[str, Value] = {
    "int": INT, "float": Static("float"), "bool": Static("bool"), "number": STATIC, "str": STR,
    "dtype": Static("dtype"), "device": Static("device"), "layout": Static("layout"), "size": Static("size"),
    "none": NONE, "list": Container("list"),
}  # fmt: skip
_NONE_GIVEN: frozenset[str] = frozenset()


@lru_cache(maxsize=4)
def _memory(torch: TorchFacts) -> dict[Hashable, _Signature]:
    """Cache: results by kind of call; most files make the same calls."""
    return {}


def signature(torch: TorchFacts, name: str, args: Arguments, keywords: Keywords) -> _Signature:
    """The result type of a call of torch, and whether it is a Python value that depends on data."""
    given = frozenset(k for k, v in keywords.items() if v is not NONE and v is not FALSE) if keywords else _NONE_GIVEN
    kinds = tuple(map(_IS_TENSOR.get, map(type, args)))
    memory, key = _memory(torch), (name, given, kinds)
    known = memory.get(key)
    if known is None:
        tensors: dict[int | str, bool] = {i: kind for i, kind in enumerate(kinds) if kind is not None}
        returns = torch.returns(name, len(args), given, tensors)
        known = memory[key] = (returns, torch.is_data_dependent(name, len(args), given, tensors))
    return known
