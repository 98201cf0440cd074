"""Operations of torch that join several tensors to one, or part one into several."""

from __future__ import annotations

from collections.abc import Callable as Function

from graphmend.analysis.driver.execution.objects import UNKNOWN, Constant, Object, Values, sequence
from graphmend.analysis.driver.guards.atoms import Tensor, only, tensor

Arguments = list[Values]
Keywords = dict[str, Values]


def _cat(operands: Arguments, keywords: Keywords) -> Values:
    held = operands[0][0] if len(operands[0]) == 1 else None
    items = held.items if isinstance(held, Object) and not held.rest else None
    dim = only(operands[1] if len(operands) > 1 else keywords.get("dim", (Constant(0),)))
    if not items or not isinstance(dim, int):
        return (Tensor(None, None, None),)
    parts = [tensor(values) for values in items]
    known = next((p for p in parts if p is not None and p.shape is not None), None)
    if known is None or known.shape is None or not -len(known.shape) <= dim < len(known.shape):
        return (Tensor(None, None, None),)
    dim %= len(known.shape)
    # a part of which nothing is known adds at least one: the size is another one than before
    added = [p.shape[dim] if p is not None and p.shape is not None and len(p.shape) > dim else None for p in parts]
    shape = [*known.shape]
    shape[dim] = sum(1 if size is None else size for size in added)
    dtypes = {p.dtype if p is not None else None for p in parts}
    gradients = {p.gradient if p is not None else None for p in parts}
    return (
        Tensor(
            tuple(shape),
            dtypes.pop() if len(dtypes) == 1 else known.dtype,
            True if True in gradients else None if None in gradients else False,
        ),
    )


def _stack(operands: Arguments, keywords: Keywords) -> Values:
    held = operands[0][0] if len(operands[0]) == 1 else None
    items = held.items if isinstance(held, Object) and not held.rest else None
    first = tensor(items[0]) if items else None
    dim = only(operands[1] if len(operands) > 1 else keywords.get("dim", (Constant(0),)))
    if items is None or first is None or first.shape is None or dim != 0:
        return (Tensor(None, None, None),)
    return (first.of_shape((len(items), *first.shape)),)


def _padded(operands: Arguments, keywords: Keywords) -> Values:
    """`pad_sequence`: as long as the longest."""
    held = operands[0][0] if len(operands[0]) == 1 else None
    items = held.items if isinstance(held, Object) and not held.rest else None
    parts = [tensor(values) for values in items or ()]
    first = parts[0] if parts else None
    lengths = [one.shape[0] if one is not None and one.shape else None for one in parts]
    batch_first = only(operands[1] if len(operands) > 1 else keywords.get("batch_first", (Constant(False),)))
    if first is None or not first.shape or not isinstance(batch_first, bool):
        return (Tensor(None, None, None),)
    known = [one for one in lengths if one is not None]
    longest = max(known) if len(known) == len(lengths) else None
    ahead = (len(parts), longest) if batch_first else (longest, len(parts))
    return (first.of_shape((*ahead, *first.shape[1:])),)


def _parts(operands: Arguments, keywords: Keywords, by_size: bool) -> Values:
    first = tensor(operands[0])
    number = only(operands[1] if len(operands) > 1 else next(iter(keywords.values()), UNKNOWN))
    if first is None or not first.shape or first.shape[0] is None or not isinstance(number, int) or number < 1:
        return UNKNOWN
    if len(operands) > 2 or "dim" in keywords:
        return UNKNOWN
    size = first.shape[0]
    step = number if by_size else -(-size // number)
    sizes = [min(step, size - begin) for begin in range(0, size, step)][:12] if step else []
    return (sequence([(first.of_shape((one, *first.shape[1:])),) for one in sizes]),)


#: those whose first operand is a list of tensors
OF_LISTS: dict[str, Function[[Arguments, Keywords], Values]] = {
    "cat": _cat, "concat": _cat, "concatenate": _cat, "stack": _stack, "pad_sequence": _padded,
}  # fmt: skip
OPERATIONS: dict[str, Function[[Arguments, Keywords], Values]] = {
    **OF_LISTS,
    "chunk": lambda o, k: _parts(o, k, by_size=False),
    "split": lambda o, k: _parts(o, k, by_size=True),
}
