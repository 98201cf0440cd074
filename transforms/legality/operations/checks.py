"""Checks of torch that raise where a condition does not hold."""

from __future__ import annotations

#: the position of the condition, a Python bool, among the arguments; the message follows it
CONDITIONS = {
    "torch._assert": 0,
    "torch._check": 0,
    "torch._check_index": 0,
    "torch._check_not_implemented": 0,
    "torch._check_type": 0,
    "torch._check_value": 0,
    "torch._check_with": 1,
}
