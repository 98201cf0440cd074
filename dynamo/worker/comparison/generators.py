"""The states of the random generators that everybody shares."""

from __future__ import annotations

import random
import sys

import torch

from . import reach


def states() -> dict[str, str]:
    """A digest of each: torch's for the CPU and for CUDA where it is in use, Python's, NumPy's where it is loaded."""
    found = {
        "torch's generator": reach.digest(torch.get_rng_state().numpy().tobytes()),
        "the generator of random": reach.digest(repr(random.getstate()).encode()),
    }
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        for number in range(torch.cuda.device_count()):
            found[f"the generator of cuda:{number}"] = reach.digest(torch.cuda.get_rng_state(number).numpy().tobytes())
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        kind, keys, *rest = numpy.random.get_state()
        found["NumPy's generator"] = reach.digest(keys.tobytes() + repr((kind, rest)).encode())
    return found
