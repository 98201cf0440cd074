"""What the lens over a definition counts, and what a check says of lines that it did not trace."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from .conftest import Start

pytestmark = pytest.mark.asyncio

PATIENCE = 120.0
TRUSTED = {"trusted": True, "settings": {"interpreter": sys.executable, "verify": {"device": "cpu"}}}
SHARED = """\
import torch

def limited(x: torch.Tensor):
    if x.max() > 3:
        x = x / 3
    return x
"""
NESTED = """\
import torch
from torch import nn

from shared import limited


class Attention(nn.Module):
    def forward(self, x: torch.Tensor):
        if x.sum() > 0:
            x = x + 1
        print(x)
        return limited(x)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()

    def forward(self, x: torch.Tensor):
        return self.attention(x) * 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(2)])

    def forward(self, x: torch.Tensor):
        for block in self.blocks:
            x = block(x)
        return x * x.mean().item()


class Plain(nn.Module):
    def forward(self, x: torch.Tensor):
        return x * 2
"""
BEHIND = """\
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x: torch.Tensor):
        for row in x:
            if row.sum() > 0:
                x = x + 1
        print("done", x.sum())
        return x
"""


async def test_a_lens_counts_what_is_called_too(start: Start, tmp_path: Path) -> None:
    (tmp_path / "shared.py").write_text(SHARED)
    path = tmp_path / "nested.py"
    path.write_text(NESTED)
    editor = await start()
    uri = editor.open(path)
    assert await editor.lenses(uri) == [
        "Graph breaks: own 2, with callees 3 - Verify",
        "Graph breaks: own 0, with callees 3 - Verify",
        "Graph breaks: own 1, with callees 4 - Verify",
        "No graph breaks found - Verify",
    ]
    editor.replace(uri, "print(x)", "pass")
    assert (await editor.lenses(uri))[1] == "Graph breaks: own 0, with callees 2 - Verify"
    for number in range(3):  # other documents are edited: the tree of this one is let go of
        other = tmp_path / f"other{number}.py"
        other.write_text(BEHIND)
        editor.open(other)
        await editor.lenses(other.as_uri())
    assert (await editor.lenses(uri))[1] == "Graph breaks: own 0, with callees 2 - Verify"


@pytest.mark.torch
async def test_a_line_behind_a_lost_frame_runs_eagerly_because_of_another(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "behind.py"
    path.write_text(BEHIND)
    editor = await start(options=TRUSTED)
    uri = editor.open(path)
    await editor.execute("graphmend.verify", uri, patience=PATIENCE)
    messages = {d.range.start.line + 1: d.message for d in await editor.diagnostics(uri)}
    assert "confirmed by TorchDynamo" in messages[8]
    assert messages[10].endswith("the graph can break here (runs eagerly because of line 8)")
    hover = await editor.hover(uri, editor.at(uri, "print(").start)
    assert hover is not None
    assert "Line 8 takes its whole frame out of the graph" in hover


@pytest.mark.torch
async def test_what_was_not_seen_is_not_said_to_break(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "flags.py"
    path.write_text(
        "import torch\n\n"
        "torch._dynamo.config.capture_scalar_outputs = bool(int('1'))\n\n\n"
        "@torch.compile\ndef f(x: torch.Tensor):\n    return x * x.sum().item()\n"
    )
    editor = await start(options=TRUSTED)
    uri = editor.open(path)
    await editor.execute("graphmend.verify", uri, patience=PATIENCE)
    (diagnostic,) = await editor.diagnostics(uri)
    assert "not seen by TorchDynamo" in diagnostic.message
    assert "can break" in diagnostic.message
    assert "breaks here" not in diagnostic.message


@pytest.mark.torch
async def test_a_check_without_inputs_says_why(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "reader.py"
    path.write_text("import torch\n\n\n@torch.compile\ndef f(reader):\n    return reader.next_batch() + 1\n")
    editor = await start(options=TRUSTED)
    uri = editor.open(path)
    await editor.execute("graphmend.verify", uri, patience=PATIENCE)
    assert any("no inputs found for f" in said and "next_batch" in said for said in editor.shown)


@pytest.mark.torch
async def test_a_lens_counts_what_is_compiled_anew(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "sizes.py"
    path.write_text(
        "import torch\n\n\n@torch.compile\ndef f(x):\n    return x * 2\n\n\n"
        "def example_inputs():\n    return [(torch.ones(n),) for n in (2, 3, 4)]\n"
    )
    editor = await start(options=TRUSTED)
    uri = editor.open(path)
    await editor.execute("graphmend.verify", uri, patience=PATIENCE)
    assert any("1 graph, 2 compilations: `x` changes" in lens for lens in await editor.lenses(uri))
