"""What a function's body says of whether it is offered to code that nobody sees."""

from __future__ import annotations

from typing import NamedTuple


class Offer(NamedTuple):
    """Asked of bodies alone, and kept with them: an edit elsewhere changes none of it."""

    computes: bool
    """Does a method call its receiver, or write into what that holds?"""
    drives: bool
    """Does it train, measure time, or read or write files?"""
    names: frozenset[str]
