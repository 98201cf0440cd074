"""What Inductor alone may get wrong about output: where it happens among the kernels."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from graphmend.runtime import emit  # noqa: E402

pytestmark = pytest.mark.torch


class Net(torch.nn.Module):
    """What is computed in front of the message and behind it makes one kernel, and shares an input."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(66, 32)
        self.norm = torch.nn.LayerNorm(32)
        self.linear = torch.nn.Linear(32, 32)

    def forward(self, x):
        y = self.norm(self.embedding(x) + 1)
        emit(print, "a message without a tensor")
        return self.linear(y * 2 + self.embedding.weight[0])


def test_a_message_without_tensors_between_kernels(capfd: pytest.CaptureFixture[str]) -> None:
    net, x = Net(), torch.arange(10).reshape(2, 5)
    torch._dynamo.reset()
    compiled = torch.compile(net, fullgraph=True)(x)
    assert capfd.readouterr().out == "a message without a tensor\n"
    torch.testing.assert_close(compiled, net(x))
