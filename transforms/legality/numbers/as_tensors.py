"""A 0-d tensor in the place of a Python number: in which dtypes it is the same, and what differs in others.

A Python float is a double, and a Python int has no end. A number is converted to the dtype of the tensor that it meets,
and raises where that cannot hold it; a 0-d tensor is promoted, and wraps around. Measured with torch 2.13.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable

from graphmend.analysis.lattice.values import Tensor, dtype_kind
from graphmend.transforms.fix import Difference
from graphmend.transforms.questions import answers

_KINDS = ("bool", "int", "float", "complex")
_ORDER = {kind: order for order, kind in enumerate(_KINDS)}

PRECISION = Difference("rounding", "numbers are computed in the tensor's precision instead of Python's")
COMPARED = Difference("rounding", "numbers are compared in the tensor's precision instead of Python's")
BEYOND_DOUBLE = Difference("overflow", "whole numbers of more than 53 bits are compared as the nearest doubles")
UNORDERED = Difference("exception", "comparing a complex number raises no more, or another exception")
WRAPS = Difference("overflow", "whole numbers of more than 64 bits, which Python has, wrap around")
RANGE = Difference("overflow", "a number beyond the range of the tensor's dtype wraps around, or becomes infinite")
NOT_FINITE = Difference("nan", "what is computed further of a number that became infinite may be NaN")
PROMOTES = Difference("dtype", "a 0-d tensor may promote the result to its own dtype, which a Python number does not")
IMAGINARY = Difference("dtype", "a complex number loses its imaginary part where it meets a real tensor")
HALF = Difference("rounding", "a tensor of half precision may round otherwise than with a number")
INVERSE = Difference("rounding", "a division may round in its last digit where a number is turned into its inverse")
POWER = Difference("rounding", "a power may round in its last digit")
NEGATIVE = Difference("exception", "a negative power of whole numbers no longer raises")
BY_ZERO = Difference("exception", "a division by zero gives infinity or NaN, or raises otherwise")
OVERFLOW = Difference("exception", "a number that the tensor's dtype cannot hold no longer raises")
NO_BOUND = Difference("exception", "a bool, which no number bounds, is bounded by a tensor")
OF_BOOL = Difference("exception", "of a bool, which counts as 0 or 1 in Python, it raises")


def wider(dtype: Hashable) -> tuple[str, str] | None:
    """The cast, and its dtype, in which a 0-d tensor counts as a Python number does; None where its kind is not known,
    or nothing is wider.
    """
    kind = dtype_kind(dtype)
    if kind == "float" and dtype != "float64":
        return ".double()", "float64"
    if kind in ("int", "bool") and dtype != "int64":
        return ".long()", "int64"
    return None


@answers("numbers")
def unlike(value: Tensor, dtype: Hashable) -> Difference | None:
    """What a 0-d tensor does to a tensor that a number of the same kind does not."""
    of = value.dtype
    kind, other = dtype_kind(dtype), dtype_kind(of)
    if of is not None and of == dtype and of not in _KINDS[1:]:
        return None
    real = kind in ("bool", "int", "float")
    if (of == "float64" and real) or (of == "int64" and kind in ("bool", "int")):
        return None
    if of == "float32" and real and (value.rank or kind != "float" or dtype in ("float32", "float16", "bfloat16")):
        return None
    if (dtype == "float32" and other in ("bool", "int")) or (dtype == "int64" and other == "bool"):
        return None
    if kind is not None and other is not None and _ORDER[kind] <= _ORDER[other] and value.rank:
        return HALF if other == "float" else None
    return PROMOTES


@answers("numbers")
def holds(value: Tensor, dtype: Hashable) -> bool:
    """Can a tensor hold every number of a dtype, so that converting one to it never raises?"""
    kind = dtype_kind(dtype)
    if value.dtype is not None and value.dtype == dtype and dtype not in _KINDS[1:]:
        return True
    if value.dtype == "float64":
        return kind in ("bool", "int", "float")
    if value.dtype == "float32":
        return kind in ("bool", "int") or dtype in ("float32", "float16", "bfloat16")
    return kind == "bool" or (value.dtype == "int64" and kind == "int")


@answers("numbers")
def exact_in(number: float, dtype: Hashable) -> bool:
    """Does comparing with a number mean the same in a dtype as in Python? torch 2.13 brings a whole number to the dtype
    of a tensor of whole numbers, where it wraps around, and the tensor to float32 where it meets another number.
    """
    if number in (float("inf"), float("-inf")) or abs(number) >= 2**53:
        return abs(number) == float("inf")
    if dtype == "float64" or dtype == "bool":
        return True
    if isinstance(number, int) and dtype_kind(dtype) in ("int", None):
        lowest, highest = _RANGES.get(dtype, _ANY_RANGE)
        if not lowest <= number <= highest:
            return False
    if dtype_kind(dtype) == "int":
        return isinstance(number, int) or (abs(number) < 2**24 and _fits("f", number))
    if dtype == "float32":
        return abs(number) <= 2**24 and _fits("f", number)
    # float16, bfloat16, or not known: the number must be exact in all of them
    return _fits("e", number) and struct.pack("<f", number)[:2] == b"\0\0"


#: the whole numbers of a dtype, and those that all of them have
_RANGES: dict[Hashable, tuple[int, int]] = {
    "uint8": (0, 2**8 - 1),
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
}
_ANY_RANGE = (0, 2**7 - 1)


@answers("numbers")
def is_refused(number: object) -> bool:
    """Does torch raise where a tensor, of whatever dtype, meets a number: has it no 64 bits for it?"""
    lowest, highest = _RANGES["int64"]
    return isinstance(number, int) and not lowest <= number <= highest


def _fits(format_: str, number: float) -> bool:
    try:
        return bool(struct.unpack(format_, struct.pack(format_, number))[0] == number)
    except (OverflowError, struct.error):
        return False
