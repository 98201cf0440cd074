"""A device context is named in each constructor that obeys it; what else may obey it keeps the context."""

from __future__ import annotations

import pytest
from judge import mend_text, nested, torch

from graphmend.transforms.rewrites.torch_api import device_context

#: they don't do the same with the context and with `device=`
APART = {"torch.range", "torch.nested.nested_tensor"}


def text(*lines: str, head: str = "", device: str = "'meta'") -> str:
    body = "".join(f"        {line}\n" for line in lines)
    head = f"import torch\nfrom torch import nn\n{head}\n\n@torch.compile\ndef case(x: torch.Tensor):\n"
    return f"{head}    with torch.device({device}):\n{body}    return y\n"


def mended(text: str) -> str:
    return mend_text(text, unsafe=False).source.text


@pytest.mark.torch
def test_the_constructors_are_those_of_torch() -> None:
    from torch.utils._device import _device_constructors

    names = set()
    for function in _device_constructors():
        module = {"torch._C._fft": "torch.fft"}.get(getattr(function, "__module__", "") or "", "torch")
        name = function.__name__.removeprefix("fft_")
        module = "torch.fft" if name in ("fftfreq", "rfftfreq") else "torch.nested" if "nested" in name else module
        names.add(f"torch.{name}" if not module.startswith("torch.") else f"{module}.{name}")
    assert names - APART == device_context.CONSTRUCTORS - APART


@pytest.mark.torch
@pytest.mark.parametrize(
    "call",
    [
        "torch.hann_window(4)",
        "torch.scalar_tensor(1.0)",
        "torch.asarray([1.0, 2.0])",
        "torch.fft.fftfreq(4)",
        "torch.empty_strided((2,), (1,))",
        "torch.zeros(2, device=None)",
        "torch.tensor(x)",
        "torch.ones(2) + x.to('meta')",
        "torch.zeros_like(x)",
        "x.new_zeros(2)",
        "torch.normal(0.0, 1.0, (2,))",
        "torch.ones(2, device='cpu')",
        "torch.stack([x, x * 2]).sum()",
        "[torch.arange(n) for n in range(2)][1]",
        "nn.functional.relu(torch.ones(2))",
    ],
)
def test_it_is_named_where_it_matters(call: str) -> None:
    original = text(f"y = {call}")
    after = mended(original)
    assert "with torch.device" not in after
    x = torch.ones(2)
    torch._dynamo.reset()
    before, answer = nested(original)(x), nested(after)(x)
    compiled = torch.compile(nested(after), backend="eager", fullgraph=True)(x)
    assert before.device == answer.device == compiled.device


@pytest.mark.parametrize(
    "lines",
    [
        ("y = nn.Linear(2, 2).weight",),
        ("y = torch.zeros(2, **{})",),
        ("f = lambda: torch.ones(2)", "y = f()"),
        ("y = list(map(torch.ones, [2]))",),
        ("y = sum(torch.ones(n) for n in range(2))",),
        ("y = torch.signal.windows.hann(4)",),
        ("y = torch.distributions.Normal(0.0, 1.0).sample()",),
        ("y = nn.init.zeros_(x)",),
        ("y = helper(x)",),
        ("y = x.apply_(torch.ones)",),
        ("d = x.device if x.is_cuda else None", "y = torch.ones(2, device=d)"),
    ],
)
def test_it_stays_where_something_else_may_obey(lines: tuple[str, ...]) -> None:
    original = text(*lines, head="def helper(x):\n    return torch.ones(2)\n")
    assert "with torch.device" in mended(original)


@pytest.mark.torch
def test_a_device_that_is_not_known_is_made_first() -> None:
    original = text("y = x * 2", device="d").replace("case(x:", "case(d, x:")
    after = mended(original)
    assert "device = torch.device(d)\n" in after
    for function in (nested(original), nested(after)):
        with pytest.raises(RuntimeError):
            function("nowhere", torch.ones(2))
