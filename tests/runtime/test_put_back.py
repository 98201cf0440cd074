"""`select` takes back what a side drew, and what it did to running statistics, where it was computed in vain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from graphmend.runtime import mechanism  # noqa: E402

if tuple(map(int, torch.__version__.split(".")[:2])) < mechanism.OLDEST:
    pytest.skip("operators have no effects in this torch", allow_module_level=True)

from graphmend.runtime import select  # noqa: E402

pytestmark = pytest.mark.torch
F = torch.nn.functional


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv1d(3, 3, 3, padding=1)
        self.norm = torch.nn.BatchNorm1d(3)

    def forward(self, x: Any) -> Any:
        return F.dropout(self.norm(self.conv(x)).relu(), 0.3, self.training)


class Dropped(torch.nn.Module):
    """Layers of which each call skips some."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.layers = torch.nn.ModuleList(Block() for _ in range(4))

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            drawn = torch.rand([])
            kept, block = (lambda x=x: x), (lambda x=x, layer=layer: x + layer(x))
            moving = lambda layer=layer: (layer,)  # noqa: E731
            x = select(drawn < 0.5, kept, block, mixed_grad=True, draws=True, moving=moving)
        return x


def training(module: Any, call: Callable[[Any], Any], steps: int = 4) -> list[Any]:
    """What some steps give: results, gradients, then the buffers and what is drawn next."""
    torch.manual_seed(3)
    found: list[Any] = []
    for step in range(steps):
        x = (torch.arange(24.0).view(2, 3, 4) - step).requires_grad_()
        module.zero_grad()
        result = call(x)
        result.square().sum().backward()
        given = [x.grad, *(p.grad for p in module.parameters())]
        found += [result.detach(), *(torch.zeros(()) if g is None or not g.any() else g.clone() for g in given)]
    return [*found, *(b.clone() for b in module.buffers()), torch.rand(3)]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("train", [True, False])
def test_graphs_that_run_node_by_node_draw_and_move_as_plain_python(backend: str, train: bool) -> None:
    torch._dynamo.reset()
    one, other = Dropped().train(train), Dropped().train(train)
    compiled = torch.compile(other, backend=backend, fullgraph=True)
    torch.testing.assert_close(training(other, compiled), training(one, one))


def test_a_kernel_draws_anew_in_each_call() -> None:
    """TorchInductor draws its seeds at once: were they taken back, each call would draw the same numbers."""
    torch._dynamo.reset()

    def f(x: Any) -> Any:
        return select(x.sum() > 0, lambda: x * 2, lambda: x + torch.rand_like(x), draws=True)

    compiled = torch.compile(f, backend="inductor", fullgraph=True)
    ones = torch.ones(8)
    assert torch.equal(compiled(ones), ones * 2)
    assert not torch.equal(compiled(-ones), compiled(-ones))


def test_statistics_are_taken_back_in_kernels() -> None:
    torch._dynamo.reset()
    norm = torch.nn.BatchNorm1d(3)

    def f(x: Any, y: Any) -> Any:
        return select(y.sum() > 0, lambda: norm(x), lambda: x, mixed_grad=True, moving=lambda: (norm,))

    compiled = torch.compile(f, backend="inductor", fullgraph=True)
    x = torch.randn(4, 3)
    assert torch.equal(compiled(x, torch.tensor(-1.0)), x)
    assert norm.num_batches_tracked == 0
    assert not norm.running_mean.any()
    compiled(x, torch.tensor(1.0))
    assert norm.num_batches_tracked == 1
    torch.testing.assert_close(norm.running_mean, 0.1 * x.mean(0))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_sides_that_do_not_agree_draw_once(backend: str) -> None:
    torch._dynamo.reset()

    def f(x: Any) -> Any:
        return select(x.sum() > 0, lambda: torch.rand(2), lambda: torch.rand(3), draws=True), torch.rand(1)

    for sign in (1.0, -1.0):
        x = torch.full((2,), sign)
        torch.manual_seed(0)
        expected = f(x)
        torch.manual_seed(0)
        torch.testing.assert_close(torch.compile(f, backend=backend)(x), expected)


def test_under_checkpointing_the_graph_breaks_and_the_numbers_stay() -> None:
    from torch.utils.checkpoint import checkpoint

    torch._dynamo.reset()

    def f(x: Any) -> Any:
        return select(x.sum() > 0, lambda: x * torch.rand_like(x), lambda: x, draws=True)

    def outer(x: Any) -> Any:
        return checkpoint(f, x, use_reentrant=False).sum()

    for sign in (1.0, -1.0):
        found = []
        for call in (outer, torch.compile(outer, backend="aot_eager")):
            x = torch.full((4,), sign, requires_grad=True)
            torch.manual_seed(0)
            call(x).backward()
            found.append([x.grad, torch.rand(2)])
        torch.testing.assert_close(*found)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_side_that_breaks_the_graph_runs_only_where_it_is_taken(backend: str) -> None:
    torch._dynamo.reset()
    runs = []

    def last(x: Any) -> Any:
        runs.append(1)
        picked = x[x > 0]
        torch._dynamo.graph_break()
        return picked[picked.numel() - 1]

    def f(x: Any) -> Any:
        return select((x > 0).any(), lambda: last(x), lambda: x.sum() * 0, draws=True)

    compiled = torch.compile(f, backend=backend)
    assert compiled(torch.ones(3)) == 1
    assert compiled(-torch.ones(3)) == 0
    assert runs == [1]
