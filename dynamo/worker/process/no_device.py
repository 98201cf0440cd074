"""Compiling in the warm parent as if there were no CUDA device: a process that has initialised CUDA has no sound fork.

TorchDynamo initialises it wherever a device is available, also for code that stays on the processor (torch 2.11 to
2.13): it keeps the state of CUDA's generator while it traces (`preserve_global_state`), reads a device's properties to
find Triton (`has_triton`), and its fake tensors ask the driver for the number of devices
(`_ensureCUDADeviceGuardSet`, which takes CUDA's device guard away where there is none).

`CUDA_VISIBLE_DEVICES` is read anew at each question as long as CUDA is not initialised, so that the forks see the
devices again. What torch has remembered meanwhile is forgotten.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch

_VISIBLE = dict.fromkeys(("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"), "")
_REMEMBERS = ("torch.utils._triton", "torch._dynamo.device_interface")
"""Modules whose answers depend on the devices and are kept for the life of a process."""


@contextlib.contextmanager
def hidden() -> Iterator[None]:
    """No device is available inside; afterwards those of the environment are."""
    with mock.patch.dict(os.environ, _VISIBLE), _driver_not_asked():
        yield
    _forget()


def _driver_not_asked() -> contextlib.AbstractContextManager[Any]:
    if hasattr(torch._C, "_ensureCUDADeviceGuardSet"):
        return mock.patch.object(torch._C, "_ensureCUDADeviceGuardSet", return_value=None)
    return contextlib.nullcontext()


def _forget() -> None:
    for name in _REMEMBERS:
        for value in vars(sys.modules.get(name, object)).values():
            if isinstance(value, functools._lru_cache_wrapper):
                value.cache_clear()
    interfaces: Any = sys.modules.get("torch._dynamo.device_interface")
    if hasattr(interfaces, "_device_initialized"):
        interfaces._device_initialized = False  # they register again, `cuda:0` and the others now among them
    if isinstance(torch.get_device_module, functools._lru_cache_wrapper):
        torch.get_device_module.cache_clear()
