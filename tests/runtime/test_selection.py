"""What `select` gives is of the type that either side gives."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch")
from graphmend.runtime import select  # noqa: E402

pytestmark = pytest.mark.torch


class Pair(NamedTuple):
    low: Any
    high: Any


def named(x: Any) -> Any:
    found = select(x.sum() > 0, lambda: Pair(x, x + 1), lambda: Pair(x * 2, x - 1))
    return found.low + found.high, type(found).__name__


def of_torch(x: Any) -> Any:
    found = select(x.sum() > 0, lambda: x.max(0), lambda: (-x).max(0))
    return found.values, found[1]


def nested(x: Any) -> Any:
    one, (other, _) = select(x.sum() > 0, lambda: (x, Pair(x + 1, [x])), lambda: (x * 2, Pair(x, [x])))
    return one - other


@pytest.mark.parametrize("function", [named, of_torch, nested])
def test_records_stay_records(function: Any) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="eager")
    for x in (torch.ones(2), -torch.ones(2)):
        torch.testing.assert_close(compiled(x)[0], function(x)[0])
        assert str(compiled(x)) == str(function(x))
