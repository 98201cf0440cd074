"""Marks of tensors: on which device one was made, whether it lies in memory in order, of which subclass it is."""

from __future__ import annotations

from graphmend.analysis.lattice.arguments import Arguments, Keywords
from graphmend.analysis.lattice.values import Const, Container, MarkedTensor, Tensor, Value, marked

_MAKES = frozenset("zeros ones empty rand randn full randint".split())
_ON_DEVICE = frozenset("zeros ones empty rand randn full randint eye arange linspace tensor randperm".split())
_MOVES = frozenset({"cuda", "cpu", "xpu"})
_REARRANGES = frozenset({"t", "transpose", "permute", "swapaxes", "movedim"})


def with_marks(name: str, first: Tensor | None, args: Arguments, keywords: Keywords, value: Tensor) -> Tensor:
    """The result `value` of `torch.name(...)`, or of the method of `first`, with what is known for certain."""
    if name in _ON_DEVICE:
        marks: list[tuple[str, str]] = [("contiguous", "")] if name in _MAKES and _is_literal(value) else []
        device = _device(keywords.get("device"))
        marks += [("device", device)] if device is not None else []
        return marked(value, *marks) if marks else value
    if name in _MOVES and not args and not keywords and first is not None:
        return marked(value, ("device", name))
    if name == "to" and args and (device := _device(args[0])) is not None:
        return marked(value, ("device", device))
    if name in _REARRANGES and isinstance(first, MarkedTensor) and first.mark("contiguous") is not None:
        shape = first.shape
        if isinstance(shape, tuple) and len(shape) == 2 and min(shape) > 1:
            return marked(value, ("strided", ""))
    return value


def sliced(value: Tensor, index: Value, part: Value) -> Value:
    """`part` is `value[index]`: with every other element only, it is not in order."""
    if not (isinstance(value, MarkedTensor) and isinstance(part, Tensor) and value.mark("contiguous") is not None):
        return part
    step = index.items[-1] if isinstance(index, Container) and index.kind == "slice" and index.items else None
    every = step.value if isinstance(step, Const) and isinstance(step.value, int) else 1
    length = value.shape[0] if isinstance(value.shape, tuple) and value.shape else 0
    return marked(part, ("strided", "")) if 1 < every < length else part


def _is_literal(value: Tensor) -> bool:
    return isinstance(value.shape, tuple) and bool(value.shape) and all(isinstance(n, int) for n in value.shape)


def _device(value: Value | None) -> str | None:
    """The kind of device that an argument names."""
    text = value.value if isinstance(value, Const) else None
    return text.partition(":")[0] if isinstance(text, str) else None
