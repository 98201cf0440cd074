"""What outlives a call is added to by the graph only where nothing that is traced along would notice."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from judge import mend_text, torch

HEAD = """import torch

METRICS = {"n": 0.0}
KEPT: list = []


def total():
    return len(KEPT) + len(METRICS)


@torch.compile
def case(x: torch.Tensor):
    {}


def example_inputs():
    return [(torch.ones(3),)]
"""


def mended(body: str) -> str:
    text = HEAD.replace("{}", textwrap.indent(body, "    ").lstrip())
    return mend_text(text, unsafe=True).source.text


def state(text: str, backend: str) -> list[Any]:
    namespace: dict[str, Any] = {"__name__": "case"}
    exec(compile(text.replace("@torch.compile\n", ""), "case.py", "exec"), namespace)
    torch._dynamo.reset()
    function = namespace["case"]
    if backend != "none":
        function = torch.compile(function, backend=backend, fullgraph=True)
    answers = [function(torch.full((3,), float(n))).tolist() for n in (1, 2)]
    return [answers, namespace["METRICS"], namespace["KEPT"]]


@pytest.mark.torch
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize(
    "body",
    [
        'METRICS["n"] = x.sum().item()\nreturn x + 1',
        'METRICS["first"] = 1\nMETRICS["n"] = x.sum().item()\nMETRICS["n"] = 2 * x.sum().item()\nreturn x + 1',
        'KEPT.append(("sum", x.sum().item()))\nKEPT.append(x.max().item())\nreturn x + 1',
    ],
)
def test_what_the_graph_keeps_is_what_plain_python_keeps(body: str, backend: str) -> None:
    text = mended(body)
    assert "emit(" in text
    assert (
        state(text, backend) == state(text, "none") == state(HEAD.replace("{}", body.replace("\n", "\n    ")), "none")
    )


@pytest.mark.torch
@pytest.mark.parametrize(
    "body",
    [
        'METRICS["n"] = x.sum().item()\nreturn x + len(METRICS)',
        'METRICS["n"] = x.sum().item()\nreturn x + total()',
        'METRICS["n"] = x.sum().item()\nMETRICS["n"] += 1\nreturn x + 1',
        'METRICS["n"] = x.sum().item()\ndel METRICS["n"]\nreturn x + 1',
        'row = [1]\nMETRICS["n"] = (row, x.sum().item())\nrow.append(2)\nreturn x + 1',
        'y = x + 1\nMETRICS["n"] = (y, x.sum().item())\ny.add_(1)\nreturn y',
        "KEPT.append(1)\nKEPT.append(x.sum().item())\nreturn x + 1",
        "KEPT.append(x.sum().item())\nKEPT.sort()\nreturn x + 1",
        "KEPT.append(x.sum().item())\nreturn x * len(KEPT)",
        "KEPT.append(x.sum().item())\nreturn x * total()",
    ],
)
def test_what_would_be_noticed_is_kept_as_before(body: str) -> None:
    assert "emit(" not in mended(body)
