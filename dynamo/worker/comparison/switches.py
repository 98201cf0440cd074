"""What torch holds for the whole process besides random generators: modes and settings that calls leave changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_Switch = tuple[str, Callable[[], Any], Callable[[Any], Any]]

_SWITCHES: tuple[_Switch, ...] = (
    ("the mode of gradients", torch.is_grad_enabled, torch.set_grad_enabled),
    (
        "the detection of anomalies",
        lambda: (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()),
        lambda mode: torch.set_anomaly_enabled(*mode),
    ),
    (
        "the choice of deterministic algorithms",
        lambda: (torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()),
        lambda mode: torch.use_deterministic_algorithms(mode[0], warn_only=mode[1]),
    ),
    ("the default dtype", torch.get_default_dtype, torch.set_default_dtype),
    (
        "the precision of float32 products",
        torch.get_float32_matmul_precision,
        torch.set_float32_matmul_precision,
    ),
    (
        "cudnn.benchmark",
        lambda: torch.backends.cudnn.benchmark,
        lambda on: setattr(torch.backends.cudnn, "benchmark", on),
    ),
    ("the number of threads", torch.get_num_threads, torch.set_num_threads),
)


_UNREADABLE = object()


def _state(read: Callable[[], Any]) -> Any:
    """A switch as it stands. torch refuses to tell of some where a program has set them by a newer interface
    (`torch.backends.fp32_precision` and `get_float32_matmul_precision`, torch 2.9 to 2.13).
    """
    try:
        return read()
    except RuntimeError:
        return _UNREADABLE


def states() -> dict[str, str]:
    found = ((name, _state(read)) for name, read, _ in _SWITCHES)
    return {name: "unreadable" if state is _UNREADABLE else str(state) for name, state in found}


class Kept:
    """How the switches stand, to be set so again."""

    def __init__(self) -> None:
        self._found = [(read, write, _state(read)) for _, read, write in _SWITCHES]

    def restore(self) -> None:
        for read, write, value in self._found:
            if _UNREADABLE not in (value, now := _state(read)) and now != value:
                write(value)
