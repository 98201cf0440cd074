"""Loaders of batches: what torch's data sets and loaders stand for, how they join samples, and what samples are by the
words of the function that joins them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

import torch

from . import files
from .values import UNKNOWN, Batches, Function, Scope, known

SAMPLES = 2
"""Samples of a batch."""
NEAR = 3
"""Lines above and below one whose comments speak of it."""
MANY = 4
"""Elements along a dimension that has a name; along one of an image, and of time, several times as many."""


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


_SHAPE = re.compile(r"([\w ]*?)[\[(] ?((?:\w+ ?, ?)*\w+),? ?[\])]")
_WHOLE = re.compile(
    r"(\b|_)(len(gth)?s?|ids?|tokens?|labels?|class(es)?|categor\w+|targets?|ind(ex|ices)|text)\b", re.IGNORECASE
)
_LONG = re.compile(r"t|h|w|height|width|time|frames?|len\w*|seq\w*|samples?", re.IGNORECASE)
_NO_SIZES = re.compile(r"\b(x1|xmin|y1|cx|optional|default)\b")


def told(join: Any, resize: Callable[[int], int]) -> list[Any]:
    """Samples as the text of a function that joins them tells: `list of (feat [T, 80], token ids [L])`."""
    text = ast.get_docstring(join.node) if isinstance(join, Function) and hasattr(join.node, "body") else None
    parts = []
    for words, dims in _SHAPE.findall(text or ""):
        if (_NO_SIZES.search(dims) is None and words.split()[-1:] != ["of"]) or words.strip().endswith("list of"):
            parts.append((words, [each.strip() for each in dims.split(",")]))
    parts = [(words, dims) for words, dims in parts if all(map(_is_size, dims))]
    return [tuple(_drawn(words, dims, resize, more) for words, dims in parts) for more in (1, 0)] if parts else []


def _is_size(name: str) -> bool:
    return name.isdigit() or len(name) < 3 or _LONG.fullmatch(name) is not None


def _drawn(words: str, dims: list[str], resize: Callable[[int], int], more: int) -> torch.Tensor:
    """One part of a sample; the first one is longer than the second."""
    sizes = [resize(int(n)) if n.isdigit() else MANY * (8 if _LONG.fullmatch(n) else 1) + more for n in dims]
    return torch.randint(1, MANY, sizes) if _WHOLE.search(words) else torch.randn(sizes)


def joining(scope: Scope) -> Any:
    """The one function of a file that joins samples, by its name; UNKNOWN where there is none, or several."""
    found = [each for name, each in scope.of_module.names.items() if "collate" in name and isinstance(each, Function)]
    return found[0] if len(found) == 1 else UNKNOWN


def stated(name: str, path: str, line: int, resize: Callable[[int], int]) -> Any:
    """What goes by a name, as a comment beside a line of a file states it: `# images: (B, 3, H, W), labels [B]`."""
    near = files.text_of(path).splitlines()[max(0, line - 1 - NEAR) : line + NEAR]
    words = "\n".join(comment for each in near for comment in re.findall(r"#(.*)", each))
    found = re.search(rf"\b{re.escape(name)}\b\W{{0,3}}[\[(] ?((?:\w+ ?, ?)*\w+),? ?[\])]", words)
    dims = [each.strip() for each in found.group(1).split(",")] if found is not None else []
    if not dims or not all(map(_is_size, dims)) or (len(dims) == 1 and dims[0].isdigit()):
        return UNKNOWN
    batch = () if dims[0].isdigit() else (SAMPLES,)
    inner = _drawn(name, dims[len(batch) :], resize, 0)
    return inner.expand(*batch, *inner.shape).clone() if batch else inner
