"""Which torch this is; what is private to torch is used with the versions alone that it was measured with."""

from __future__ import annotations

import re

import torch


def version() -> tuple[int, int]:
    """The minor version of this torch; (0, 0) where it does not say."""
    numbers = re.match(r"(\d+)\.(\d+)", str(torch.__version__))
    return (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)
