"""The CTC loss is one node of the graph, with the values and gradients of torch's."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from graphmend import runtime  # noqa: E402

pytestmark = pytest.mark.torch
LABELS = torch.tensor([[1, 2, 3], [2, 4, -100]])


class Model(torch.nn.Module):
    def __init__(self, reduction: str, zero_infinity: bool, padded: bool, loss: Any) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 6)
        self.options = {"reduction": reduction, "zero_infinity": zero_infinity}
        self.padded = padded
        self.loss = loss

    def forward(self, x: Any, labels: Any) -> Any:
        log_probs = torch.log_softmax(self.linear(x), -1).transpose(0, 1)
        mask = labels >= 0
        targets = labels.clamp(min=0) if self.padded else labels.masked_select(mask)
        inputs = [x.shape[1]] * 2 if self.padded else torch.full((x.shape[0],), x.shape[1])
        losses = self.loss(log_probs, targets, inputs, (3, 2) if self.padded else mask.sum(-1), **self.options)
        return (losses * torch.arange(1, 3)).sum()


def answer(model: Any, function: Any, length: int) -> tuple[Any, Any]:
    model.zero_grad()
    torch.manual_seed(length)
    loss = function(torch.randn(2, length, 8), LABELS)
    loss.backward()
    return loss.detach(), model.linear.weight.grad


HOW = [
    *(("aot_eager", reduction, zero, True) for reduction in ("none", "sum", "mean") for zero in (False, True)),
    ("aot_eager", "mean", False, False),
    ("eager", "sum", True, False),
    ("inductor", "mean", True, False),
]


@pytest.mark.parametrize(("backend", "reduction", "zero_infinity", "padded"), HOW)
def test_values_and_gradients_are_those_of_torch(
    backend: str, reduction: str, zero_infinity: bool, padded: bool
) -> None:
    torch._dynamo.reset()
    plain = Model(reduction, zero_infinity, padded, torch.nn.functional.ctc_loss)
    mended = Model(reduction, zero_infinity, padded, runtime.ctc_loss)
    mended.load_state_dict(plain.state_dict())
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        compiled = torch.compile(mended, backend=backend, fullgraph=True)
        for length in (12, 7, 2):  # the last one is too short for the targets: an infinite loss
            one, two = answer(plain, plain, length), answer(mended, compiled, length)
            if backend == "inductor":  # which computes the softmax otherwise
                torch.testing.assert_close(two, one, rtol=1e-4, atol=1e-5, equal_nan=True)
            else:
                torch.testing.assert_close(two, one, rtol=0, atol=0, equal_nan=True)


def test_the_operators_are_what_torch_asks_of_one() -> None:
    log_probs = torch.randn(12, 2, 6).log_softmax(-1).requires_grad_()
    given = (log_probs, LABELS.clamp(min=0), torch.tensor([12, 9]), torch.tensor([3, 2]), 0, False)
    torch.library.opcheck(torch.ops.graphmend.ctc_losses.default, given)


@pytest.mark.parametrize("what", ["lengths", "reduction"])
def test_what_torch_refuses_is_refused(what: str) -> None:
    torch._dynamo.reset()

    def loss(log_probs: Any) -> Any:
        lengths = (12, 12, 12) if what == "lengths" else (12, 12)
        return runtime.ctc_loss(log_probs, LABELS, lengths, (3, 2), reduction="mean" if what == "lengths" else "each")

    given = torch.randn(12, 2, 6).log_softmax(-1)
    for function in (loss, torch.compile(loss, backend="aot_eager")):
        with pytest.raises((RuntimeError, ValueError)):
            function(given)


def test_one_sample_and_autocast_are_left_to_torch() -> None:
    torch._dynamo.reset()
    given = torch.randn(12, 6).log_softmax(-1)

    def loss(log_probs: Any) -> Any:
        return runtime.ctc_loss(log_probs, torch.tensor([1, 2]), torch.tensor(12), torch.tensor(2))

    assert torch.equal(torch.compile(loss, backend="eager")(given), loss(given))
    with torch.autocast("cpu", torch.bfloat16):
        torch._dynamo.reset()
        batch = torch.randn(12, 2, 6).log_softmax(-1).bfloat16()

        def losses(log_probs: Any) -> Any:
            return runtime.ctc_loss(log_probs, LABELS.clamp(min=0), torch.tensor([12, 9]), torch.tensor([3, 2]))

        assert torch.equal(torch.compile(losses, backend="eager")(batch), losses(batch))
