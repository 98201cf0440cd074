"""Models whose buffers decide what is padded, cut and branched on, as codecs of audio do, compile whole."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("captures")]


class Padded(torch.nn.Module):
    """A convolution that gives a whole number of frames for every length."""

    def __init__(self, width: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv1d(width, width, kernel, stride)
        self.register_buffer("stride", torch.tensor(stride), persistent=False)
        self.register_buffer("kernel", torch.tensor(kernel), persistent=False)
        self.register_buffer("total", torch.tensor(kernel - stride), persistent=False)

    def forward(self, x: Any) -> Any:
        length = x.shape[-1]
        frames = torch.ceil((length - self.kernel + self.total) / self.stride + 1).long() - 1
        extra = frames * self.stride + self.kernel - self.total - length
        most = max(self.total, extra)
        more = 0
        if length <= most:
            more = most - length + 1
            x = F.pad(x, (0, more))
        x = F.pad(x, (self.total, extra), "reflect")
        return self.conv(x[..., : x.shape[-1] - more])


class Codec(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([Padded(2, 7, 1), Padded(2, 4, 2), Padded(2, 8, 4), Padded(2, 3, 1)])

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x


def graphs(model: Any, *inputs: Any, backend: str | None = None) -> list[int]:
    """How many graphs each call adds; every call gives what plain Python gives."""
    seen: list[Any] = []

    def count(graph: Any, given: Any) -> Any:
        seen.append(graph)
        return torch._dynamo.lookup_backend(backend)(graph, given) if backend else graph.forward

    compiled, numbers = torch.compile(model, backend=count), []
    for x in inputs:
        before = len(seen)
        torch.testing.assert_close(compiled(x), model(x))
        numbers.append(len(seen) - before)
    return numbers


@pytest.mark.parametrize("backend", [None, "aot_eager"])
def test_layers_with_other_buffers_are_in_one_graph(backend: str | None) -> None:
    torch.manual_seed(0)
    model = Codec().eval()
    assert graphs(model, *(torch.randn(1, 2, 40) for _ in range(3)), backend=backend) == [1, 0, 0]


def test_other_lengths_and_other_buffers_are_seen() -> None:
    torch.manual_seed(0)
    model = Codec().eval()
    assert graphs(model, torch.randn(1, 2, 40), torch.randn(1, 2, 12)) == [1, 1]
    model.layers[1].total += 1
    graphs(model, torch.randn(1, 2, 40))  # breaks where it would without us: buffers that change are not known any more


def test_buffers_that_change_in_each_call() -> None:
    class Counting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.tensor(0))

        def forward(self, x: Any) -> Any:
            self.calls += 1
            return F.pad(x, (0, self.calls))

    compiled = torch.compile(Counting(), backend="eager")
    assert [compiled(torch.ones(2)).shape[0] for _ in range(6)] == [3, 4, 5, 6, 7, 8]
