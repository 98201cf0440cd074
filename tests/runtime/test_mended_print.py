"""A print mended for the torch that runs stays in one graph with its text, or the mend is not offered with it."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from typing import Any

import pytest

from graphmend.analysis.settings import Settings
from graphmend.analysis.syntax.source import Source
from graphmend.transforms.mend import mend_all
from graphmend.transforms.torch_versions import unmeasured

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.torch

VERSION = ".".join(str(torch.__version__).split(".")[:2])
TEXT = """\
import torch
def f(x):
    y = x + 1
    print("the sum is", y.sum().item(), end="!\\n")
    print(f"{y[0]:.3f} of {x.shape}")
    return y * 2
compiled = torch.compile(f, backend=backend)
"""


def ran(text: str, name: str) -> tuple[str, Any, int]:
    """What a program prints, its result, and how many graphs it has."""
    graphs = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph

    torch._dynamo.reset()
    scope: dict[str, Any] = {"backend": backend}
    exec(compile(text, "program.py", "exec"), scope)
    stream = io.StringIO()
    with redirect_stdout(stream):
        result = scope[name](torch.arange(3.0))
    return stream.getvalue(), result, len(graphs)


def test_it_stays_in_one_graph_or_is_not_offered() -> None:
    mended = mend_all(Source(TEXT, "program.py"), settings=Settings(torch_version=VERSION), unsafe=False)
    plain = ran(TEXT, "f")
    if (reason := unmeasured("emit", VERSION)) is not None:
        assert not mended.changed
        assert any(reason in why for _, why in mended.left)
    else:
        assert mended.changed
        printed, result, graphs = ran(mended.source.text, "compiled")
        assert (printed, graphs) == (plain[0], 1)
        assert torch.equal(result, plain[1])
