"""What a real backend does with graphs that capture numbers: it traces them once more, and their backward passes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
switches = pytest.importorskip("graphmend.runtime.switches")
if switches.version() < switches.OLDEST or sys.version_info < switches.OLDEST_PYTHON:
    pytest.skip("the switches are measured with other versions", allow_module_level=True)

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("captures")]

MASKS = [torch.arange(6) < n for n in (4, 3, 1, 6)]


def reasons(function: Callable[..., Any]) -> list[str]:
    return [reason for _, _, name, reason in switches.taken_back() if name == function.__name__]


def x() -> Any:
    return torch.arange(48.0).reshape(6, 8) / 48


def trained(function: Callable[..., Any], *calls: Any, backend: str = "aot_eager") -> list[int]:
    """How many graphs each call runs. Every call gives the values and the gradients that it gives in plain Python."""
    executed = [0]

    def count(graph: Any, inputs: Any) -> Any:
        compiled = torch._dynamo.lookup_backend(backend)(graph, inputs)

        def run(*arguments: Any) -> Any:
            executed[0] += 1
            return compiled(*arguments)

        return run

    def one(step: Any, argument: Any) -> Any:
        value = x().requires_grad_()
        result = step(value, argument)
        result.square().mean().backward()
        return result.detach(), value.grad

    compiled = torch.compile(function, backend=count)
    numbers = []
    for argument in calls:
        executed[0] = 0
        torch.testing.assert_close(one(compiled, argument), one(function, argument), equal_nan=True)
        numbers.append(executed[0])
    return numbers


def test_a_gradient_that_divides_by_a_size() -> None:
    def spread(v: Any, mask: Any) -> Any:
        rows = v[mask]
        return (rows - rows.mean(0)) / (rows.std(0) + 1)

    trained(spread, *MASKS)  # where one row is picked, Python divides by zero, and torch's own code does not
    assert reasons(spread) == ["Raises: a gradient divides by it"]


def test_a_gradient_that_asks_for_a_number() -> None:
    def ordered(v: Any, mask: Any) -> Any:
        return v[mask].sort(0).values.cumsum(0)

    assert max(trained(ordered, *MASKS)) <= 2
    assert any("8*u" in reason for reason in reasons(ordered))


def test_a_backward_pass_that_a_backend_cannot_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is known before the graph is used; and what was compiled for one value is not kept for another."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))

    def first(v: Any, count: Any) -> Any:
        return v[:, : count.max().item()].sum() + v

    trained(first, *(torch.tensor([n, 1]) for n in (3, 2, 5)), backend="inductor")


def test_the_graph_breaks_at_the_operation_that_a_backend_cannot_take() -> None:
    def stepped(v: Any, count: Any) -> Any:
        kept = v[: count.min().item()].sum(0)
        return kept * torch.arange(0, 1 - 1e-6, 1 / (count > 0).sum()).sum()  # Dynamo takes it, AOTAutograd does not

    assert trained(stepped, *(torch.tensor([n, 1]) for n in (3, 2, 5))) == [2, 2, 2]
    reason, *others = reasons(stepped)
    assert reason.startswith("GuardOnDataDependentSymNode"), "the size stays captured"
    assert not others


def test_a_tensor_that_is_taken_for_its_number_is_a_number_in_the_graph() -> None:
    """Dynamo knows what constants and small inputs hold, a backend does not."""

    def levels(v: Any, count: Any) -> Any:
        total = v.sum()
        for height, width in torch.as_tensor([(2, 3), (3, 2)]):
            total = total + torch.linspace(0.5, height - 0.5, height).sum() * width
        return torch.nn.functional.interpolate(v[None, None], size=(count[0], count[1])).mean() * total * v

    assert trained(levels, *[torch.tensor([3, 2])] * 2) == [1, 1]


def test_a_tensor_that_is_no_number_stays_a_tensor() -> None:
    def typed(v: Any, _: Any) -> Any:
        three = torch.tensor(3, dtype=torch.int32)
        return v * three + (torch.arange(three) * torch.tensor(2)).sum() + torch.full((three,), three).sum()

    assert trained(typed, None) == [1]
