"""Whether GraphMend's hooks into the loaded torch do their work: tested once for each torch, not in each program."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path


def passes(test: Callable[[], bool]) -> bool:
    """What a self-test of the hooks says, or said in an earlier program of the same torch and Python.

    One that fails is made again: what hinders it may be the program's.
    """
    from graphmend.workspace.cache import Cache, digest

    cache, name, stamp = Cache(), digest("self-test"), _stamp()
    if stamp is not None and cache.load(name, stamp) is True:
        return True
    passed = test()
    if passed and stamp is not None:
        cache.store(name, stamp, True)
    return passed


def _stamp() -> str | None:
    """Covers GraphMend, Python, and of torch the build and TorchDynamo's files."""
    from graphmend.workspace.cache import digest, folder_stamp, own_stamp

    torch = sys.modules["torch"]
    dynamo = folder_stamp(Path(str(torch.__file__)).parent / "_dynamo")
    build = str(torch.__version__), str(torch.version.git_version)
    return None if dynamo is None else digest(own_stamp(), sys.version, sys.platform, *build, dynamo)
