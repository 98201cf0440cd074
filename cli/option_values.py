"""Values of options on a command line."""

from __future__ import annotations

import argparse
import re

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def words(text: str) -> list[str]:
    """A list with commas between its words."""
    return [word.strip() for word in text.split(",") if word.strip()]


def seconds(text: str) -> float:
    """A duration above 0."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < 1e6:
        raise argparse.ArgumentTypeError(f"not a number of seconds above 0: {text}")
    return found


def size(text: str) -> int:
    """Bytes, from such as `8G` or `512 MiB`."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([kmgt]?)(?:i?b)?", text.strip().lower())
    bytes_ = int(float(found[1]) * _UNITS[found[2]]) if found is not None else 0
    if not bytes_:  # less than one byte is none, which would be no limit
        raise argparse.ArgumentTypeError(f"not a size such as 8G: {text}")
    return bytes_


def device(text: str) -> str:
    """`auto`, `cpu`, `cuda` or `cuda:N`."""
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", text):
        raise argparse.ArgumentTypeError(f"neither auto, cpu, cuda nor cuda:N: {text}")
    return text


def positive(text: str) -> int:
    """A whole number above 0."""
    if not text.isdecimal() or not 0 < int(text) <= 100_000:
        raise argparse.ArgumentTypeError(f"not a whole number above 0: {text}")
    return int(text)


def share(text: str) -> float:
    """A number of devices above 0, which may be a part of one."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found <= 1000:
        raise argparse.ArgumentTypeError(f"not a number above 0: {text}")
    return found
