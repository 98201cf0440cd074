"""Compiling in the warm parent as if there were no CUDA device: a process that has initialised CUDA has no sound fork.

TorchDynamo initialises it wherever a device is available, also for code that stays on the processor: it keeps the
state of CUDA's generator while it traces (`preserve_global_state`) and reads a device's properties to find Triton
(`has_triton`); torch 2.8 to 2.13. `CUDA_VISIBLE_DEVICES` is read anew at each question as long as CUDA is not
initialised, so that the forks see the devices again. What torch has remembered meanwhile is forgotten.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Iterator
from typing import Any

_VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
_REMEMBERS = ("torch.utils._triton", "torch._dynamo.device_interface")
"""Modules whose answers depend on the devices and are kept for the life of a process."""


@contextlib.contextmanager
def hidden() -> Iterator[None]:
    """No device is available inside; afterwards those of the environment are."""
    kept = {name: os.environ.get(name) for name in _VISIBLE}
    os.environ.update(dict.fromkeys(_VISIBLE, ""))
    try:
        yield
    finally:
        for name, value in kept.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        _forget()


def _forget() -> None:
    for name in _REMEMBERS:
        for value in vars(sys.modules.get(name, object)).values():
            if isinstance(value, functools._lru_cache_wrapper):
                value.cache_clear()
    interfaces: Any = sys.modules.get("torch._dynamo.device_interface")
    if hasattr(interfaces, "_device_initialized"):
        interfaces._device_initialized = False  # they register again, `cuda:0` and the others now among them
    torch = sys.modules.get("torch")
    if isinstance(which := getattr(torch, "get_device_module", None), functools._lru_cache_wrapper):
        which.cache_clear()
