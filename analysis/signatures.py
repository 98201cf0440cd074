"""What a call of torch gives, by the kinds of its arguments."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import lru_cache

from graphmend.analysis.torch_facts import Returns, TorchFacts
from graphmend.analysis.values import FALSE, NONE, Container, Scalar, Static, Tensor, Value

_Signature = tuple[Returns | None, bool]
_NO_TENSORS = (Static, Scalar, Container)


@lru_cache(maxsize=4)
def _memory(torch: TorchFacts) -> dict[Hashable, _Signature]:
    """Asked once for each kind of call: the next file calls the same."""
    return {}


def signature(torch: TorchFacts, name: str, args: tuple[Value, ...], keywords: Mapping[str, Value]) -> _Signature:
    """What a call of torch gives, and whether that is a Python value that depends on data."""
    given = frozenset(k for k, v in keywords.items() if v is not NONE and v is not FALSE)
    kinds = tuple(True if isinstance(a, Tensor) else False if isinstance(a, _NO_TENSORS) else None for a in args)
    memory, key = _memory(torch), (name, given, kinds)
    known = memory.get(key)
    if known is None:
        tensors: dict[int | str, bool] = {i: kind for i, kind in enumerate(kinds) if kind is not None}
        returns = torch.returns(name, len(args), given, tensors)
        known = memory[key] = (returns, torch.is_data_dependent(name, len(args), given, tensors))
    return known
