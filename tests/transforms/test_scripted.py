"""What TorchScript compiles as well stays as it is: it knows no lambdas, and no functions of a runtime."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
from judge import mend_text

pytestmark = pytest.mark.torch
_CASE = "\n\n@torch.compile\ndef case(x):\n    return used(x)\n"


@pytest.mark.parametrize(
    "text",
    [
        "def used(x):\n    print('in')\n    return x * 2\n\nscripted = torch.jit.script(used)",
        "def inner(x):\n    if x.sum() > 0:\n        x = x + 1\n    return x\n\n"
        "def used(x):\n    return inner(x)\n\nscripted = torch.jit.script(used)",
        "class Model(torch.nn.Module):\n    def forward(self, x):\n        print('in')\n        return x * 2\n\n"
        "used = Model()\nscripted = torch.jit.script(Model())",
    ],
    ids=["function", "called", "module"],
)
def test_it_stays_as_it_is(text: str) -> None:
    whole = f"import torch\n\n\n{text}{_CASE}"
    assert mend_text(whole).source.text == whole
    assert mend_text(whole.replace("torch.jit.script(", "print(")).source.text != whole
