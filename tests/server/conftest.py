"""A server of its own for every test: forked from one that has been imported, or, where the test is about the process,
`python -m graphmend server`, spoken to over its standard input and output."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from .editor import Editor, capabilities, new_client
from .servers import Nursery

Start = Callable[..., Awaitable[Editor]]


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A module with two branches on tensors, one of them behind characters that every encoding counts differently."""
    path = tmp_path / "net.py"
    path.write_text(MODULE, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery | None]:
    """Forks servers, where the system can."""
    if not hasattr(os, "fork"):
        yield None
        return
    made = Nursery()
    yield made
    made.close()


@pytest_asyncio.fixture
async def start(nursery: Nursery | None, start_process: Start, tmp_path: Path) -> AsyncIterator[Start]:
    """Starts servers, and ends them after the test: each must leave by itself within seconds."""
    editors: list[Editor] = []

    async def start(**given: object) -> Editor:
        if nursery is None:
            return await start_process(**given)
        client, server = new_client(), nursery.server()
        await client.start_tcp("127.0.0.1", server.port)
        editor = Editor(client, tmp_path, server)
        editors.append(editor)
        await editor.initialize(**given)
        return editor

    yield start
    for editor in editors:
        await editor.leave()


@pytest_asyncio.fixture
async def start_process(tmp_path: Path) -> AsyncIterator[Start]:
    """As `start`, each server a program that was started as editors do it."""
    editors: list[Editor] = []

    async def start(**given: object) -> Editor:
        client = new_client()
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

    def forward(self, x: torch.Tensor):
        y = self.linear(x)
        "é\U0001d4b3"; z = y + 1 if y.sum() > 0 else y - 1
        if z.max() > 3:
            z = z + 1
        else:
            z = z * 2
        return z


def get_init_inputs():
    return []


def get_inputs():
    return [torch.ones(2, 8)]
"""
