"""What `added_part` names, and where it does not change in place what somebody else may hold."""

from __future__ import annotations

import pytest

from graphmend.analysis.check import check
from graphmend.analysis.syntax.source import Source
from graphmend.transforms.fix import Fix
from graphmend.transforms.rewrites.branch_forms import added_part

_HEAD = "import torch\n\n\n@torch.compile\n"
_GIVEN = "def case(x: torch.Tensor, init: torch.Tensor | None = None):\n    total = 0 if init is None else init\n"
_LOOP = "def case(a: torch.Tensor, b: torch.Tensor):\n    total = 0\n    for x in (a, b):\n"


def kinds(body: str) -> set[str] | None:
    """The differences that it names of the first branch; None where it does not apply."""
    result = check(Source(_HEAD + body, "model.py"))
    finding = next(f for f in result.findings if f.code == "GM101")
    facts = result.facts(finding)
    assert facts is not None
    answer = added_part.rewrite(finding, facts)
    return {difference.kind for difference in answer.differences} if isinstance(answer, Fix) else None


@pytest.mark.parametrize("added", ["total = total + x", "total += x", "total -= x"])
def test_the_addition_itself_may_raise_and_broadcast(added: str) -> None:
    found = kinds(f"{_LOOP}        if x.sum() > 0:\n            {added}\n    return total\n")
    assert found is not None
    assert found >= {"shape", "exception", "type", "dtype"}


@pytest.mark.parametrize("added", ["total += x", "total -= x"])
def test_a_tensor_that_was_given_is_not_changed_in_place(added: str) -> None:
    assert kinds(f"{_GIVEN}    if x.sum() > 0:\n        {added}\n    return total\n") is None


def test_a_tensor_that_was_given_becomes_a_copy() -> None:
    found = kinds(f"{_GIVEN}    if x.sum() > 0:\n        total = total + x\n    return total\n")
    assert found is not None
    assert "aliasing" in found
