"""Which device a check runs on.

`auto` is CUDA where a small computation works there, else the processor, and says which and why.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from ..errors import Unusable, describe


def candidates(wanted: str) -> tuple[list[str], str]:
    """(devices to try in this order, why CUDA is not among them)."""
    if wanted == "cpu":
        return ["cpu"], ""
    reason = _unusable("cuda" if wanted == "auto" else wanted)
    if wanted == "auto":
        return (["cpu"], reason) if reason else (["cuda", "cpu"], "")
    if reason:
        raise Unusable(f"device {wanted} cannot be used: {reason}")
    return [wanted], ""


def _unusable(device: str) -> str:
    if not device.startswith("cuda"):
        return "only auto, cpu and cuda[:N] are known"
    if torch.version.cuda is None and getattr(torch.version, "hip", None) is None:
        return "this torch is built for the CPU only"
    if not torch.cuda.is_available():
        return "no CUDA device is available"
    try:
        if float(torch.ones(2, device=device).sum()) != 2.0:
            return f"a small computation on {device} went wrong"
    except Exception as error:
        return describe(error)
    return ""


def move(value: Any, device: str) -> Any:
    """Tensors and modules to the device; everything else stays."""
    if isinstance(value, torch.nn.Module):
        return value.to(device)
    if device == "cpu":
        return value

    def to(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().to(device).requires_grad_(tensor.requires_grad)

    return tree_map_only(torch.Tensor, to, value)


def title(device: str) -> str:
    if device.startswith("cuda"):
        return f"{device} ({torch.cuda.get_device_name(device)})"
    return device
