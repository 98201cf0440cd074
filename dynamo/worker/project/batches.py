"""Loaders of batches: what torch's data sets and loaders stand for, and how they join samples."""

from __future__ import annotations

from typing import Any

import torch

from .values import UNKNOWN, Batches, known


def loader(name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """`DataLoader` and what it is made from."""
    samples = args[0] if args else kwargs.get("dataset", UNKNOWN)
    if name == "DataLoader":
        return Batches(samples, kwargs.get("collate_fn"))
    if name == "TensorDataset":
        return list(zip(*args)) if known(args) else UNKNOWN  # noqa: B905
    if name == "random_split":
        return [samples] * 4
    return samples if name in ("Subset", "ConcatDataset") else UNKNOWN


def joined(samples: list[Any]) -> Any:
    """Samples as one batch, as torch's loader joins them."""
    first = samples[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(samples)
    if type(first).__module__ == "numpy":
        return torch.stack([torch.as_tensor(sample) for sample in samples])
    if isinstance(first, (bool, int, float)):
        return torch.tensor(samples)
    if isinstance(first, dict):
        return {key: joined([sample[key] for sample in samples]) for key in first}
    if isinstance(first, (list, tuple)):
        return [joined(list(parts)) for parts in zip(*samples)]  # noqa: B905
    return UNKNOWN if first is UNKNOWN else samples
