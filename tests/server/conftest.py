"""A real server for every test: `python -m graphmend server`, spoken to over its standard input and output."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from pytest_lsp import LanguageClient

from .editor import Editor, capabilities

Start = Callable[..., Awaitable[Editor]]


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A module with two branches on tensors, one of them behind characters that every encoding counts differently."""
    path = tmp_path / "net.py"
    path.write_text(MODULE, encoding="utf-8")
    return path


@pytest_asyncio.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Starts servers, and ends them after the test: each must leave by itself within a second."""
    editors: list[Editor] = []

    async def start(**given: object) -> Editor:
        client = LanguageClient()
        await client.start_io(sys.executable, "-m", "graphmend", "server")
        editor = Editor(client, tmp_path)
        editors.append(editor)
        await editor.initialize(**given)
        return editor

    yield start
    for editor in editors:
        await editor.leave()


@pytest_asyncio.fixture
async def editor(start: Start) -> Editor:
    """An editor that takes pushed diagnostics and can do everything else."""
    return await start()


@pytest_asyncio.fixture
async def pulling(start: Start) -> Editor:
    """An editor that pulls diagnostics."""
    return await start(client=capabilities(pull=True))


MODULE = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        y = self.linear(x)
        "é\U0001d4b3"; z = y + 1 if y.sum() > 0 else y - 1
        if z.max() > 3:
            z = z + 1
        else:
            z = z - 1
        return z


def get_init_inputs():
    return []


def get_inputs():
    return [torch.ones(2, 8)]
"""
