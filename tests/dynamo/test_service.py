"""The warm processes: one for each interpreter, replaced when one dies, ended when nobody asks."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from graphmend.dynamo.requests import Request
from graphmend.dynamo.service import Service
from graphmend.dynamo.worker_process import WorkerProcess

pytestmark = [pytest.mark.torch, pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")]

SLOW = "import time\ntime.sleep(0.5)\n@torch.compile\ndef f(x):\n    return x\n"


def test_dies_in_the_middle_of_a_check(write: Callable[..., Path]) -> None:
    """Another one makes the check again, and the reason is told."""
    path, told = write(SLOW), []

    async def run() -> str | None:
        service = Service()

        def tell(stage: str) -> None:
            told.append(stage)
            if stage == "importing model.py" and told.count(stage) == 1:
                (worker,) = service._workers.values()
                worker.kill()

        try:
            return (await service.check(Request(str(path), interpreter=sys.executable), tell)).problem
        finally:
            await service.close()

    assert asyncio.run(run()) is None
    (again,) = [stage for stage in told if stage.startswith("starting again: ")]
    assert "was ended by signal 9" in again
    assert told.count("importing model.py") == 2


@pytest.mark.skipif(os.name == "nt", reason="uses a shell script as interpreter")
def test_one_for_each_interpreter_and_none_when_nobody_asks(tmp_path: Path, write: Callable[..., Path]) -> None:
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    script.chmod(0o755)
    paths = [write(SLOW, "one.py"), write(SLOW, "two.py")]

    async def run() -> None:
        service = Service(idle_seconds=0.2)
        workers: set[WorkerProcess] = set()
        try:
            requests = [
                Request(str(path), interpreter=python)
                for path, python in zip(paths, (sys.executable, str(script)), strict=True)
            ]
            checks = (
                service.check(request, lambda _: workers.update(service._workers.values())) for request in requests
            )
            assert [report.problem for report in await asyncio.gather(*checks)] == [None, None]
            assert len(workers) == 2
            assert all((worker.memory or 0) > 50 << 20 for worker in workers)
            for _ in range(100):
                if not any(worker.alive for worker in workers):
                    break
                await asyncio.sleep(0.1)
            assert not any(worker.alive for worker in workers)
            assert (await service.check(requests[0])).problem is None
        finally:
            await service.close()

    asyncio.run(run())
